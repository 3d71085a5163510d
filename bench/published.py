"""Survey and measure every machine of CP93 and CP94, and print published beside found.

Every figure of bench/published.toml, with what Leadline finds on the machine's profile. Each
difference above 15% has its sentence; a run in which one lacks it, or has one it does not need,
ends with exit code 1.

    .venv/bin/python bench/published.py [--machine NAME ...] [--save]
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median

from figures import Cell, Column, Content, add_save_option, save
from figures import Row as Line
from proving.published import (
    HEAD,
    Row,
    find_all,
    format_difference,
    format_published,
    read_figures,
    table,
)

FIGURES = Path(__file__).with_name("published.toml")
MEASURES = (
    "python/leadline/profiles",
    ":!python/leadline/profiles/machines",
    "tests/proving/published.py",
    "python/leadline/studies/survey",
    "python/leadline/studies/cache",
    "python/leadline/stats",
    "crates/sim/src/law",
    "crates/stats/src",
    "bench/published.toml",
)
FOUND = (
    "{value:.3g} {unit} [{low:.3g}, {high:.3g}] (n = {n})",
    "{value:.3g} {unit} (n = 1 survey)",
)
KEYS = ("machine", "figure", "published", "source", "role", "found", "difference")
COLUMNS = (
    *(
        Column(key, title, FOUND)
        for key, title in zip(KEYS, ("machine", *HEAD[0].strip("| ").split(" | ")), strict=True)
    ),
    Column("within", "within 15%", ("{value:.0f} of {n}",)),
    Column("median", "median difference", ("{value:.0f}%",)),
)


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--machine", nargs="*", default=None)
    add_save_option(parser, "published")
    asked = parser.parse_args()
    if asked.save == "published" and asked.machine:
        parser.error("--save keeps the whole table for the documentation; leave out --machine")
    figures = read_figures(FIGURES)
    rows = find_all([f for f in figures if asked.machine is None or f.machine in asked.machine])
    lines = table(rows)
    print("\n".join(lines))
    for row in rows:
        if not row.settled:
            missing = "no sentence" if row.differs else "a sentence that it does not need"
            print(f"{row.figure.machine}, {row.figure.what}: {missing}", file=sys.stderr)
    settled = all(row.settled for row in rows)
    if settled:
        save(asked, COLUMNS, [*by_role(rows), *lines_of(rows)], seeds="seed 11")
    return 0 if settled else 1


def by_role(rows: Sequence[Row]) -> Iterator[Line]:
    """Yield for each role how many figures were found within 15%, with keys `role.ROLE`."""
    for role in dict.fromkeys(row.figure.role for row in rows):
        own = [row for row in rows if row.figure.role == role]
        off = [100 * abs(row.difference) for row in own if row.difference is not None]
        cells: dict[str, Content] = {
            "role": role,
            "within": Cell(sum(not row.differs for row in own), n=len(own)),
            "median": Cell(median(off)),
        }
        yield Line(f"role.{role.replace(' ', '-')}", cells)


def lines_of(rows: Sequence[Row]) -> Iterator[Line]:
    """Yield what is stored, with keys `MACHINE.NUMBER`, and `.off` where it is over 15%."""
    for machine in dict.fromkeys(row.figure.machine for row in rows):
        own = [row for row in rows if row.figure.machine == machine]
        for number, row in enumerate(own, 1):
            figure, found = row.figure, row.found
            cells: dict[str, Content] = {
                "machine": machine,
                "figure": figure.what,
                "published": format_published(figure),
                "source": figure.source,
                "role": figure.role,
                "found": row.said,
                "difference": format_difference(row),
            }
            if found is not None:
                cells["found"] = Cell(found.value, found.low, found.high, found.n, unit=figure.unit)
            off = ".off" if row.differs else ""
            yield Line(f"{machine}.{number}{off}", cells, figure.why)


if __name__ == "__main__":
    sys.exit(main())
