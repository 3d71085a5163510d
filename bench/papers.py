"""Run the command of every figure and table of the five papers, and hold its numbers to theirs.

    .venv/bin/python bench/papers.py [--paper CP94] [--save]

`bench/papers.toml` has the rows: what a paper shows, the command that shows it here, and checks of
single values of its JSON document: the paper's number with a tolerance, or bounds of an ordering.
A row *agrees* when all its checks hold. Where one does not, the row must say why it *differs*; a
reason that is no longer needed is an error, as is a check that nothing explains. All systems are
simulated, or are small files in a folder that is removed, so that `tests/house/test_papers.py` runs
the commands again. Ends with exit code 1 where a row is wrong.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from functools import reduce
from pathlib import Path
from typing import Any

import msgspec

from examples import printed
from figures import Column, Row, add_save_option, save
from figures.stored import ROOT, slug
from leadline.inputs import parse_toml

ROWS = Path(__file__).with_name("papers.toml")
MEASURES = ("bench/papers.toml", "python/leadline/profiles", "python/leadline/studies")
AGREES, DIFFERS, WRONG, NOT_HERE = "agrees", "differs", "**WRONG**", "not possible here"
COLUMNS = (
    Column("figure", "figure"),
    Column("shows", "what it shows"),
    Column("paper", "the paper"),
    Column("here", "here"),
    Column("verdict", "verdict"),
    Column("command", "command"),
)


class Check(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One value of a command's JSON document, and what it must be."""

    what: str
    at: str
    """Its place: keys and positions with `/` between; `#` counts, `key=value,…` picks an element,
    `max:key` the one where the key is largest, `min:key` smallest."""
    over: str = ""
    """Place of a value that it is divided by."""
    scale: float = 1.0
    unit: str = ""
    paper: float | str | None = None
    """The paper's value; without a tolerance or a bound it must be exactly that."""
    within: float | None = None
    """Tolerance, as a share of the paper's value."""
    least: float | None = None
    most: float | None = None

    def __post_init__(self) -> None:
        """Refuse a check that could not fail.

        Raises:
            ValueError: it wants nothing, or a tolerance of no number.

        """
        if (self.paper, self.least, self.most) == (None, None, None):
            raise ValueError(f"{self.what}: neither a value nor a bound")
        if self.within is not None and not isinstance(self.paper, int | float):
            raise ValueError(f"{self.what}: a tolerance needs a number")

    def own(self, document: Any) -> float | str:
        """Return the value of a document.

        Raises:
            LookupError: there is none at that place.

        """
        found = value_at(document, self.at)
        if isinstance(found, str):
            return found
        return self.scale * float(found) / (value_at(document, self.over) if self.over else 1.0)

    def holds(self, own: float | str) -> bool:
        """Whether that is the paper's value, within the tolerance and the bounds."""
        if isinstance(own, str) or isinstance(self.paper, str):
            return own == self.paper
        bounded = (self.least, self.most) != (None, None)
        if self.paper is not None and (self.within is not None or not bounded):
            near = abs(own - self.paper) <= (self.within or 1e-9) * abs(self.paper)
            return near and self._bounds(own)
        return self._bounds(own)

    def _bounds(self, own: float) -> bool:
        low = -math.inf if self.least is None else self.least
        return low <= own <= (math.inf if self.most is None else self.most)

    def wanted(self) -> str:
        """Write what it must be."""
        ends = [f"≥ {self.least:g}"] if self.least is not None else []
        ends += [f"≤ {self.most:g}"] if self.most is not None else []
        if self.paper is not None:
            share = f" ± {100 * self.within:g}%" if self.within else ""
            ends = [f"{_written(self.paper)}{share}", *ends]
        return f"{self.what} {', '.join(ends)} {self.unit}".rstrip()


class Figure(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A figure, table or section of a paper, and how it is had here."""

    paper: str
    figure: str
    says: str
    """What the paper shows there, in a few words."""
    before: tuple[str, ...] = ()
    """Commands that must have run."""
    command: str = ""
    """It prints one JSON document; none where nothing here shows it."""
    check: tuple[Check, ...] = ()
    because: str = ""
    """Why a check does not hold, or why there is no command."""
    real: bool = False
    """Measured on this machine: its values are those of the day, and not shown."""
    dear: bool = False
    """Whether it takes several surveys: `make test-long` runs it, `make test` does not."""

    def __post_init__(self) -> None:
        """Refuse a row that could not fail, or that says nothing.

        Raises:
            ValueError: a command without checks, or neither a command nor a reason.

        """
        if bool(self.command) != bool(self.check):
            raise ValueError(f"{self.paper} {self.figure}: a command and checks of what it prints")
        if not self.command and not self.because:
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


def value_at(document: Any, place: str) -> Any:
    """Return what a document has at a place (`Check.at`).

    Raises:
        LookupError: nothing.

    """
    found = reduce(_step, place.split("/"), document)
    if found is None:
        raise KeyError(place)
    return found


def _step(inside: Any, word: str) -> Any:
    if word == "#":
        return len(inside)
    if isinstance(inside, dict):
        return inside[word]
    if word.startswith(("max:", "min:")):
        choose = max if word.startswith("max") else min
        return choose(inside, key=lambda each: _size(value_at(each, word[4:])))
    if "=" in word:
        wanted = [part.split("=") for part in word.split(",")]
        for each in inside:
            if all(str(each[key]) == value for key, value in wanted):
                return each
        raise KeyError(word)
    return inside[int(word)]


def _size(found: Any) -> float:
    return float(found["value"] if isinstance(found, dict) else found)


def _written(value: float | str) -> str:
    return value if isinstance(value, str) else f"{value:.3g}"


def document_of(text: str) -> Any:
    """Return the first JSON document that a command printed, among its warnings.

    Raises:
        ValueError: there is none.

    """
    lines = text.splitlines()
    begins = next((at for at, line in enumerate(lines) if line.startswith(("{", "["))), None)
    if begins is None:
        raise ValueError(f"no JSON document: {text[-300:]}")
    return json.JSONDecoder().raw_decode("\n".join(lines[begins:]))[0]


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
    """Hold what its command printed against the row."""
    own: list[float | str] = []
    if not figure.command:
        verdict = f"{NOT_HERE}: {figure.because}"
    else:
        try:
            document = document_of(text)
            own = [check.own(document) for check in figure.check]
            verdict = _verdict(figure, own)
        except (LookupError, TypeError, ValueError) as error:
            verdict = f"{WRONG}: nothing to check: {type(error).__name__} {error}"
    units = (check.unit for check in figure.check)
    here = [f"{_written(value)} {unit}".rstrip() for value, unit in zip(own, units, strict=False)]
    cells = {
        "figure": figure.figure,
        "shows": figure.says,
        "paper": "; ".join(check.wanted() for check in figure.check),
        "here": "of the day" if figure.real and own else "; ".join(here),
        "verdict": verdict,
        "command": f"`{figure.command}`".replace("|", "\\|") if figure.command else "",
    }
    return Row(slug(f"{figure.paper} {figure.figure}"), dict(cells))


def _verdict(figure: Figure, own: Sequence[float | str]) -> str:
    missed = [
        f"{check.what} {_written(value)}"
        for check, value in zip(figure.check, own, strict=True)
        if not check.holds(value)
    ]
    if missed and figure.because:
        return f"{DIFFERS}: {figure.because}"
    if missed:
        return f"{WRONG}: {'; '.join(missed)}"
    return f"{WRONG}: it agrees, against what the row says" if figure.because else AGREES


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
        print(f"{row.key:24} {row.cells['verdict']}")
        print(f"{'':24} {row.cells['paper']}\n{'':24} {row.cells['here']}")
    wrong = any(str(row.cells["verdict"]).startswith(WRONG) for row in rows)
    if not wrong:
        save(asked, COLUMNS, rows, seeds="seed 1")
    return int(wrong)


if __name__ == "__main__":
    sys.exit(main())
