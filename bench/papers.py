"""Run the command of every figure and table of the five papers, and say which are shown.

    .venv/bin/python bench/papers.py [--paper CP94] [--save]

`bench/papers.toml` has the rows: what a paper shows, the command that shows it here, and patterns
that the command must print. The state of a row is what its command did. All systems are simulated,
or are small files in a folder that is removed, so that `tests/house/test_papers.py` runs every
command again and holds the table against it. Ends with exit code 1 where a command did not print
what its row wants.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import msgspec

from examples import printed
from figures import Column, Row, add_save_option, save
from figures.stored import ROOT, slug
from leadline.inputs import parse_toml

ROWS = Path(__file__).with_name("papers.toml")
MEASURES = ("bench/papers.toml", "python/leadline/profiles", "python/leadline/studies")
SHOWN, IN_PART, NOT_SHOWN, NOT_THERE = "shown", "in part", "**NOT SHOWN**", "not there"
COLUMNS = (
    Column("figure", "figure"),
    Column("paper", "the paper"),
    Column("command", "command"),
    Column("found", "what it prints"),
    Column("state", "state"),
)


class Figure(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A figure, table or section of a paper, and how it is had here."""

    paper: str
    figure: str
    says: str
    """What the paper shows there, in a few words and numbers."""
    before: tuple[str, ...] = ()
    """Commands that must have run."""
    command: str = ""
    """None where there is none."""
    prints: tuple[str, ...] = ()
    """Patterns of what it must print. A group `said` is what the table tells, as far as it lies in
    the first pattern; chance must not decide it."""
    lacks: str = ""
    """What is missing, or why nothing can be had."""
    dear: bool = False
    """Whether it takes several surveys: `make test-long` runs it, `make test` does not."""

    def __post_init__(self) -> None:
        """Refuse a row that could not fail, or that says nothing.

        Raises:
            ValueError: a command without patterns, or neither a command nor a reason.

        """
        if bool(self.command) != bool(self.prints):
            raise ValueError(f"{self.paper} {self.figure}: a command and what it must print")
        if not self.command and not self.lacks:
            raise ValueError(f"{self.paper} {self.figure}: neither a command nor why there is none")


class _File(msgspec.Struct, forbid_unknown_fields=True):
    row: list[Figure]


def read_rows(path: Path = ROWS) -> tuple[Figure, ...]:
    """Read the rows.

    Raises:
        msgspec.ValidationError: an entry that makes no sense.

    """
    return tuple(msgspec.convert(parse_toml(path.read_text(encoding="utf-8")), _File).row)


def papers(figures: Iterable[Figure]) -> tuple[str, ...]:
    """Return the papers' names, each once."""
    return tuple(dict.fromkeys(figure.paper for figure in figures))


def rows_of(paper: str, figures: Sequence[Figure]) -> Iterator[Row]:
    """Run the commands of one paper in a folder and a store of its own, each once."""
    texts: dict[str, str] = {}
    with tempfile.TemporaryDirectory(prefix="leadline-papers-") as name:
        folder = Path(name).resolve()
        (folder / "workloads").symlink_to(ROOT / "workloads")
        for figure in figures:
            if figure.paper != paper:
                continue
            for command in (*figure.before, *filter(None, [figure.command])):
                if command not in texts:
                    texts[command] = printed(command, folder, folder / "store.sqlite")
            yield row_of(figure, texts.get(figure.command, ""))


def row_of(figure: Figure, text: str) -> Row:
    """Say of a row whether its command printed what it must."""
    flat = " ".join(text.split())
    found = [re.search(pattern, flat) for pattern in figure.prints]
    missing = [p for p, match in zip(figure.prints, found, strict=True) if match is None]
    if not figure.command:
        state = NOT_THERE
    elif missing:
        state = NOT_SHOWN
    else:
        state = IN_PART if figure.lacks else SHOWN
    said = found[0].groupdict().get("said", "") if found and found[0] else ""
    reason = f"it did not print {missing[0]}" if missing else figure.lacks
    cells = {
        "figure": figure.figure,
        "paper": figure.says,
        "command": f"`{figure.command}`".replace("|", "\\|") if figure.command else "",
        "found": said,
        "state": f"{state}: {reason}" if reason else state,
    }
    return Row(slug(f"{figure.paper} {figure.figure}"), dict(cells))


def main() -> int:
    """Run them, print the table and store it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--paper", help="only this one's")
    add_save_option(parser, "papers")
    asked = parser.parse_args()
    if asked.save and asked.paper:
        parser.error("--save keeps the whole table; leave out --paper")
    figures = read_rows()
    rows = [
        row
        for paper in papers(figures)
        if asked.paper in (None, paper)
        for row in rows_of(paper, figures)
    ]
    for row in rows:
        print(f"{row.key:16} {row.cells['state']}\n{'':16} {row.cells['found']}")
    failed = any(str(row.cells["state"]).startswith(NOT_SHOWN) for row in rows)
    if not failed:
        save(asked, COLUMNS, rows, seeds="seed 1")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
