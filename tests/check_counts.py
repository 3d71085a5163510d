"""Count the tests of this run, skips apart; fail when tests disappear quietly.

A test that did not run is skipped, never passed, whichever language it is written in: pytest says
so itself, a Rust test prints `SKIPPED [rust] <test>: <reason>` and is taken from cargo's passes.
Skips count as existing tests, so that a lesser machine can still run `make test`.
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

COUNTS = Path(__file__).with_name("counts.toml")
PYTHON_SKIP = re.compile(r"^SKIPPED \[(\d+)\] \S+: (.*)$", re.MULTILINE)
RUST_SKIP = re.compile(r"SKIPPED \[rust\] \S+: (.*)$", re.MULTILINE)
"""Not only at the beginning of a line: cargo's dots may stand there."""


@dataclass(frozen=True)
class Tally:
    """What one log says."""

    passed: int
    failed: int
    skipped: int
    reasons: Counter[str]

    @property
    def exist(self) -> int:
        """Tests that passed, or said why they did not run."""
        return self.passed + self.skipped


def counted(log: str, word: str) -> int:
    """Sum every 'N <word>' on the closing lines of pytest and cargo test."""
    closing = [line for line in log.splitlines() if re.search(r"\d+ (passed|failed|skipped)", line)]
    return sum(int(n) for line in closing for n in re.findall(rf"(\d+) {word}\b", line))


def tally(log: str) -> Tally:
    """Count a log of pytest, of cargo test, or of several of them."""
    reasons: Counter[str] = Counter(RUST_SKIP.findall(log))
    in_rust = reasons.total()
    for number, reason in PYTHON_SKIP.findall(log):
        reasons[reason] += int(number)
    return Tally(
        passed=counted(log, "passed") - in_rust,
        failed=counted(log, "failed") + counted(log, "errors?"),
        skipped=counted(log, "skipped") + in_rust,
        reasons=reasons,
    )


def report(wanted: dict[str, int], tallies: dict[str, Tally]) -> tuple[list[str], bool]:
    """Return what is said, the closing line last, and whether this was the whole of the tests."""
    said = [
        f"skipped {count} time{'s' if count > 1 else ''}: {reason}"
        for reason, count in sum(
            (each.reasons for each in tallies.values()), Counter()
        ).most_common()
    ]
    short = [
        f"{name}: {tallies[name].exist} tests passed or were skipped, counts.toml wants {number}"
        for name, number in wanted.items()
        if tallies[name].exist < number
    ]
    numbers = [
        sum(getattr(each, what) for each in tallies.values())
        for what in ("passed", "failed", "skipped")
    ]
    closing = "{} passed, {} failed, {} skipped".format(*numbers)
    return [*said, *short, closing], not short and not numbers[1]


def main(folder: Path) -> int:
    """Print the reasons of skips and one closing line; 1 when tests failed or are missing."""
    wanted = tomllib.loads(COUNTS.read_text(encoding="utf-8"))
    tallies = {name: tally((folder / f"{name}.log").read_text(encoding="utf-8")) for name in wanted}
    said, whole = report(wanted, tallies)
    print("\n".join(said))
    return 0 if whole else 1


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
