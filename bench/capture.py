"""How much longer a program takes when it is watched, and whether all of it was seen.

    .venv/bin/python bench/capture.py [--pairs 5] [--ways bpf,ptrace] [--programs pgbench,compile]

Each program of bench/programs runs watched and not watched in turns, in a folder of its own; the
ratio is of their times, with the 95% interval of its geometric mean. Two pairs say little: give ten
on a calm machine.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from figures import Cell, Column, Row, add_save_option, save
from programs import PROGRAMS, Unavailable

MEASURES = ("crates/capture/src", "crates/trace/src")
COLUMNS = (
    Column("what", "what"),
    Column("ratio", "watched over not", ("{value:.3f} [{low:.3f}, {high:.3f}]",)),
    Column("calls", "calls", ("{value:.0f}",)),
    Column("off", "bytes off", ("{value:.3g}%",)),
    Column("lost", "lost", ("{value:.3g}%",)),
)
RATIO_MOST, OFF_MOST = 1.05, 1.0
"""Goals of root's way: of the time, and of the bytes in %."""


def measured(name: str, way: str, pairs: int, below: Path) -> dict[str, Any]:
    """Run one program in turns; return what was said of its capture."""
    leadline = str(Path(sys.executable).with_name("leadline"))
    below.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="leadline-bench-", dir=below) as root:
        Path(root).chmod(0o755)  # a database server is another user
        folder = Path(root) / "data"
        folder.mkdir()
        PROGRAMS[name].prepare(folder)
        words = ["characterize", "--json", "--way", way, "--perturbation", str(pairs), "--"]
        done = subprocess.run(
            [leadline, *words, "sh", "-c", PROGRAMS[name].script],
            capture_output=True,
            text=True,
            check=False,
            cwd=folder,
            env=os.environ | {"LEADLINE_STORE": f"{root}/store.sqlite"},
        )
    if done.returncode not in (0, 3):
        sys.exit(f"{name}, {way}: {done.stderr}")
    found: dict[str, Any] = json.loads(done.stdout[done.stdout.index("{\n") :])["capture"]
    return found


def row_of(what: str, way: str, found: dict[str, Any], pairs: int) -> Row:
    """Make a row, with goals for root's way."""
    turns = found["perturbation"]
    low, high = turns["low"] or turns["ratio"], turns["high"] or turns["ratio"]
    ratio = Cell(turns["ratio"], low, high, pairs)
    off = Cell(100.0 * (found["bytes_off"] or 0.0), unit=" %")
    goals = way == "bpf"
    return Row(
        f"{what} {way}",
        {
            "what": f"{what}, {way}",
            "ratio": ratio.aiming({"most": RATIO_MOST}) if goals else ratio,
            "calls": Cell(found["calls"]),
            "off": off.aiming({"most": OFF_MOST}) if goals else off,
            "lost": Cell(100.0 * found["lost_share"], unit=" %"),
        },
    )


def main() -> None:
    """Measure every row by every way."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--ways", default="bpf,ptrace")
    parser.add_argument("--programs", default="sqlite-rollback,pgbench,compile")
    parser.add_argument("--folder", type=Path, default=Path(__file__).parents[1] / "build")
    add_save_option(parser, "capture")
    asked = parser.parse_args()
    rows = []
    for what in asked.programs.split(","):
        for way in asked.ways.split(","):
            try:
                found = measured(what, way, asked.pairs, asked.folder)
            except Unavailable as missing:
                print(f"{what} left out: {missing}", flush=True)
                continue
            rows.append(row_of(what, way, found, asked.pairs))
            turns = found["perturbation"]
            print(
                f"{what}, {way}: {turns['ratio']:.3f} of its time unwatched "
                f"({turns['low']} to {turns['high']}), {found['calls']:,} calls, "
                f"{found['lost']} lost, bytes off {100 * (found['bytes_off'] or 0):.4f}%"
            )
    load = f"Load average {os.getloadavg()[0]:.0f}."
    save(asked, COLUMNS, rows, directory=asked.folder, rounds=asked.pairs, note=load)


if __name__ == "__main__":
    main()
