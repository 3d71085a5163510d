"""How much longer a program takes when it is watched, and whether all of it was seen.

    .venv/bin/python bench/capture.py [--pairs 5] [--ways bpf,ptrace] [--rows sqlite,compile]

Each program runs watched and not watched in turns, in a folder of its own; the ratio is of their
times, with the 95% interval of its geometric mean. Two pairs say little: give ten on a calm
machine. SQLite: single updates and lookups with its rollback journal. A compile: small files of C,
one by one.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from figures import Cell, Column, Row, add_save_option, save

MEASURES = ("crates/capture/src", "crates/trace/src")
COLUMNS = (
    Column("what", "what"),
    Column("ratio", "watched over not", ("{value:.3f} [{low:.3f}, {high:.3f}]",)),
    Column("calls", "calls", ("{value:.0f}",)),
    Column("off", "bytes off", ("{value:.3g}%",)),
    Column("lost", "lost", ("{value:.3g}%",)),
)
RATIO_MOST, OFF_MOST = 1.05, 1.0
"""What issue 18 allows, of root's way: of the time, and of the bytes in %."""
SQLITE = """
import random, sqlite3, sys
random.seed(5)
base = sqlite3.connect("load.sqlite", isolation_level=None)
base.execute("CREATE TABLE IF NOT EXISTS t (k INTEGER PRIMARY KEY, v BLOB)")
base.execute("PRAGMA cache_size = 100")
base.execute("BEGIN")
base.executemany("INSERT OR REPLACE INTO t VALUES (?, zeroblob(200))", [(k,) for k in range(20000)])
base.execute("COMMIT")
for number in range(2000):
    if number % 4 == 0:
        base.execute("UPDATE t SET v = randomblob(200) WHERE k = ?", (random.randrange(20000),))
    else:
        base.execute("SELECT v FROM t WHERE k = ?", (random.randrange(20000),)).fetchall()
"""
COMPILE = "for each in c*.c; do cc -O1 -c $each -o ${each%.c}.o || exit 1; done"
FILES = 12


def prepare(folder: Path) -> None:
    """Write what is compiled."""
    body = "\n".join(f'int f{n}(int x) {{ return printf("%d", x * {n}); }}' for n in range(200))
    for number in range(FILES):
        text = f"#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n{body}\n"
        (folder / f"c{number}.c").write_text(text, encoding="ascii")


def command_of(row: str) -> list[str]:
    """Return what is run; stops where it is missing."""
    if row == "sqlite":
        return [sys.executable, "-I", "-c", SQLITE]
    if shutil.which("cc") is None:
        sys.exit("there is no cc here; leave --rows compile out")
    return ["sh", "-c", COMPILE]


def measured(row: str, way: str, pairs: int) -> dict[str, Any]:
    """Run one program in turns; return what was said of its capture."""
    leadline = str(Path(sys.executable).with_name("leadline"))
    with tempfile.TemporaryDirectory(prefix="leadline-bench-") as folder:
        prepare(Path(folder))
        words = ["characterize", "--json", "--way", way, "--perturbation", str(pairs), "--"]
        done = subprocess.run(
            [leadline, *words, *command_of(row)],
            capture_output=True,
            text=True,
            check=False,
            cwd=folder,
            env=os.environ | {"LEADLINE_STORE": f"{folder}/store.sqlite"},
        )
    if done.returncode not in (0, 3):
        sys.exit(f"{row}, {way}: {done.stderr}")
    found: dict[str, Any] = json.loads(done.stdout)["capture"]
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
    parser.add_argument("--rows", default="sqlite,compile")
    add_save_option(parser, "capture")
    asked = parser.parse_args()
    rows = []
    for what in asked.rows.split(","):
        for way in asked.ways.split(","):
            found = measured(what, way, asked.pairs)
            rows.append(row_of(what, way, found, asked.pairs))
            turns = found["perturbation"]
            print(
                f"{what}, {way}: {turns['ratio']:.3f} of its time unwatched "
                f"({turns['low']} to {turns['high']}), {found['calls']:,} calls, "
                f"{found['lost']} lost, bytes off {100 * (found['bytes_off'] or 0):.4f}%"
            )
    load = f"Load average {os.getloadavg()[0]:.0f}."
    save(asked, COLUMNS, rows, directory=Path(), rounds=asked.pairs, note=load)


if __name__ == "__main__":
    main()
