"""Fail when tests disappear quietly: compare the counts of this run with tests/counts.toml."""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path


def counted(log: str, word: str) -> int:
    """Sum every 'N <word>' on the closing lines of pytest and cargo test."""
    closing = [line for line in log.splitlines() if re.search(r"\d+ (passed|failed|skipped)", line)]
    return sum(int(n) for line in closing for n in re.findall(rf"(\d+) {word}\b", line))


def main(folder: Path) -> int:
    """Print one closing line; return 1 when fewer tests ran than the project has."""
    wanted = tomllib.loads(Path("tests/counts.toml").read_text(encoding="utf-8"))
    logs = {name: (folder / f"{name}.log").read_text(encoding="utf-8") for name in wanted}
    short = [
        f"{name}: {counted(log, 'passed')} tests ran and passed, counts.toml wants {wanted[name]}"
        for name, log in logs.items()
        if counted(log, "passed") + counted(log, "skipped") < wanted[name]
    ]
    whole = "\n".join(logs.values())
    numbers = (counted(whole, "passed"), counted(whole, "failed"), counted(whole, "skipped"))
    for reason in re.findall(r"^SKIPPED.*$", whole, flags=re.MULTILINE):
        print(reason)
    print("\n".join(short), end="\n" if short else "")
    print("{} passed, {} failed, {} skipped".format(*numbers))
    return 1 if short or numbers[1] else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
