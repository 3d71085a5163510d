"""Survey and measure every machine of CP93 and CP94, and print published beside found.

Every figure of bench/published.toml, with what Leadline finds on the machine's profile. Each
difference above 15 % has its sentence; a run in which one lacks it, or has one it does not need,
ends with exit code 1.

    .venv/bin/python bench/published.py [--machine NAME ...] [--write]
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from leadline.testing.published import find_all, read_figures, table

FIGURES = Path(__file__).with_name("published.toml")
PAGE = Path(__file__).parent.parent / "docs" / "concepts" / "published-machines.md"
BEGIN = "<!-- bench/published.py --write: what follows is generated -->"


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--machine", nargs="*", default=None)
    parser.add_argument("--write", action="store_true", help="into the documentation too")
    asked = parser.parse_args()
    if asked.write and asked.machine:
        parser.error("--write puts the whole table into the documentation; leave out --machine")
    figures = read_figures(FIGURES)
    rows = find_all([f for f in figures if asked.machine is None or f.machine in asked.machine])
    lines = table(rows)
    print("\n".join(lines))
    for row in rows:
        if not row.settled:
            missing = "no sentence" if row.differs else "a sentence that it does not need"
            print(f"{row.figure.machine}, {row.figure.what}: {missing}", file=sys.stderr)
    settled = all(row.settled for row in rows)
    if asked.write and settled:
        before = PAGE.read_text(encoding="utf-8").partition(BEGIN)[0]
        PAGE.write_text(before + BEGIN + "\n" + "\n".join(lines) + "\n", encoding="utf-8")
    return 0 if settled else 1


if __name__ == "__main__":
    sys.exit(main())
