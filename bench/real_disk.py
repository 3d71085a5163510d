"""Survey a real directory, then hold its predictions against workloads nobody had measured.

    .venv/bin/python bench/real_disk.py --target DIR --keep DIR [--runs NAME:CAP:SEED ...]
        [--save [NAME]]

Each run surveys the directory for ten minutes under a cap of its page cache, and validates forty
random workloads of its seed, each measured twice; one whose name begins with `busy` does so beside
a loop that takes a processor. Half an hour a pair, on a machine that does nothing else. What was
measured is kept in `--keep`, and a run that is there is not repeated. The prediction is the
survey's own: caps and seeds that were scored before are not held out any more.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from figures import Cell, Column, Content, Row, add_save_option, markdown, save

MEASURES = (
    "python/leadline/models",
    "python/leadline/studies/survey",
    "python/leadline/studies/validation",
    "python/leadline/studies/hit_ratio.py",
    "python/leadline/stats",
    "crates/engine/src/run",
    "crates/engine/src/access",
    "crates/engine/src/evidence",
    "crates/stats/src",
)
RUNS = ("calm:520MiB:4201", "busy:420MiB:4202")
AMPLIFIED_MOST = {"calm": 1.25, "busy": 1.5}
COVER_GOAL = {"least": 85.0, "most": 95.0}
ERROR = ("{value:.3g}% [{low:.3g}, {high:.3g}]", "{value:.3g}%")
COLUMNS = (
    Column("what", "machine"),
    Column("inherent", "repeating a run", ERROR),
    Column("error", "joint model, median error", ERROR),
    Column("times", "error over that of a repeat (A)", ("{value:.2f} [{low:.2f}, {high:.2f}]",)),
    Column("cover", "90% intervals hold", ERROR),
    Column("p90", "nine in ten errors within", ERROR),
    Column("product", "the paper's product", ERROR),
    Column("workloads", "workloads", ("{value:.0f}",)),
)


def leadline(*words: str, store: Path) -> dict[str, Any]:
    """Run a command of Leadline with `--json`; its talk goes to our stderr."""
    command = [str(Path(sys.executable).with_name("leadline")), *words, "--json"]
    environment = os.environ | {"LEADLINE_STORE": str(store)}
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, env=environment)
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


@contextmanager
def beside(*, busy: bool) -> Iterator[None]:
    """Take a processor meanwhile, where the machine is to be busy."""
    if not busy:
        yield
        return
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as loop:
        try:
            yield
        finally:
            loop.kill()


def measured(name: str, cap: str, seed: str, asked: argparse.Namespace) -> dict[str, Any]:
    """Return a run's validation; measured where it is not kept."""
    path = asked.keep / f"{name}.json"
    if not path.is_file():
        store = asked.keep / f"{name}.sqlite"
        limits = ("--cache-limit", cap, "--max-bytes", "3GiB")
        with beside(busy=name.startswith("busy")):
            words = ("survey", str(asked.target), "--name", name, "--budget", "10m", *limits)
            leadline(*words, store=store)
            how = ("--count", "40", "--seed", seed, "--seconds", "2")
            found = leadline("validate", name, *how, store=store)
        path.write_text(json.dumps(found), encoding="utf-8")
    kept: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return kept


def percent(number: dict[str, Any]) -> Cell:
    """Return a fraction with its interval in percent."""
    value, low, high = (
        None if number[end] is None else 100 * number[end] for end in ("value", "low", "high")
    )
    return Cell(value or 0.0, low, high)


def row_of(name: str, cap: str, found: dict[str, Any]) -> Row:
    """Say how well a run was predicted."""
    joint = found["models"][found["model"]]["intervals"]
    times = joint["amplification"]
    goal = {"most": AMPLIFIED_MOST["busy" if name.startswith("busy") else "calm"]}
    cells: dict[str, Content] = {
        "what": f"{name}, page cache of {cap}",
        "inherent": percent(found["intervals"]["inherent_error"]),
        "error": percent(joint["median_error"]),
        "times": Cell(times["value"], times["low"], times["high"]).aiming(goal),
        "cover": percent(joint["coverage"]["90"]).aiming(COVER_GOAL),
        "p90": percent(joint["p90_error"]),
        "product": percent(found["models"]["product"]["intervals"]["median_error"]),
        "workloads": Cell(float(found["n"])),
    }
    return Row(name, cells)


def main() -> None:
    """Survey, validate, print, store."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--target", type=Path, required=True, metavar="DIR")
    parser.add_argument("--keep", type=Path, required=True, metavar="DIR")
    parser.add_argument("--runs", nargs="+", default=RUNS, metavar="NAME:CAP:SEED")
    add_save_option(parser, "real_disk")
    asked = parser.parse_args()
    runs = [each.split(":") for each in asked.runs]
    rows = [row_of(name, cap, measured(name, cap, seed, asked)) for name, cap, seed in runs]
    print("\n".join(markdown(COLUMNS, rows)))
    seeds = "seeds " + " and ".join(seed for _, _, seed in runs)
    save(asked, COLUMNS, rows, directory=asked.target, seeds=f"{seeds} (held out)")


if __name__ == "__main__":
    main()
