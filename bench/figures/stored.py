"""A stored result: what a bench measured, when, where, and of which code.

One shape for all: a head that says whose figures they are, columns that say how each is told, and
named rows of cells. A cell is a figure with its interval and its number of readings, or a word. A
figure knows its goal, so what misses it is told so wherever it is rendered.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "bench" / "results"
DATA = frozenset({"machine_truths", "server_truths", "survey_boundaries"})
"""Files of the same folder that are no results to be told: benches read them again."""


class Cell(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """A figure, in the unit of its column."""

    value: float
    low: float | None = None
    high: float | None = None
    n: int | None = None
    """Of how many: rounds, searches, workloads."""
    unit: str = ""
    """Where it is another one than the column's."""
    least: float | None = None
    """The goal: at least this, at most `most`, or between the two."""
    most: float | None = None
    also: dict[str, float] = {}
    """More figures that stand in the same cell, by a name that a form may use."""

    def aiming(self, goal: Mapping[str, float]) -> Cell:
        """Return the same with a goal: `least`, `most`, or both."""
        return msgspec.structs.replace(self, **goal)

    @property
    def missed(self) -> bool:
        """Whether there is a goal and the figure does not reach it."""
        too_little = self.least is not None and self.value < self.least
        return too_little or (self.most is not None and self.value > self.most)


def share(flags: Sequence[bool]) -> Cell | None:
    """Return a percentage with its 95% interval (Wilson); None of nothing."""
    n = len(flags)
    if n == 0:
        return None
    p, z = sum(flags) / n, 1.96
    middle = (p + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    return Cell(100 * p, 100 * (middle - half), 100 * (middle + half), n)


Content = Cell | float | str | None
"""A number is a cell without anything else; a word is told as it is; None is an empty cell."""


class Column(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """What a column is called, and how its figures are written."""

    key: str
    title: str
    forms: tuple[str, ...] = ("{value:.4g}",)
    """As for `str.format`, of the names in a cell; the first of which the cell has everything."""
    unit: str = ""
    """Behind a figure and behind its goal."""


class Row(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """One line: a key that markers use, and cells by the keys of their columns."""

    key: str
    cells: dict[str, Content]
    note: str = ""
    """Told below the table, by a number behind the last cell."""


class Result(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What one run of a bench found."""

    made_by: str | None
    """The program, whose MEASURES names the code that it measures; None where none is left."""
    command: str
    """That made it, with `--save`, so that it makes it again."""
    commit: str | None
    """Of the code that was measured, with `-dirty` where that differed from it; None: not written
    down, which is told as older than the shipped code."""
    date: str | None
    machine: dict[str, str] | None
    """None where it was not written down; empty where nothing depends on it."""
    rounds: int | None = None
    seeds: str = ""
    """In words: `seeds 1 to 20`."""
    interval: str = "95%"
    """What the ends of an interval are."""
    entered: str = ""
    """Where the figures were taken from, when no bench wrote this file."""
    older: str = ""
    """What has changed since in the code it measured, where that was seen."""
    note: str = ""
    """A sentence to be told with the figures."""
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]

    def row(self, key: str) -> Row | None:
        """Return a row by its key."""
        return next((row for row in self.rows if row.key == key), None)

    def column(self, key: str) -> Column | None:
        """Return a column by its key."""
        return next((column for column in self.columns if column.key == key), None)


def slug(text: str) -> str:
    """Return a text as a key: `cached 4 KiB pread` is `cached-4-kib-pread`."""
    return re.sub(r"[^a-z0-9.+@]+", "-", text.lower()).strip("-")


def names() -> tuple[str, ...]:
    """Return the names of all stored results."""
    return tuple(path.stem for path in sorted(RESULTS.glob("*.json")) if path.stem not in DATA)


def load(name: str) -> Result:
    """Read a stored result.

    Raises:
        FileNotFoundError: there is none of this name.
        msgspec.ValidationError: it has another shape.

    """
    return msgspec.json.decode((RESULTS / f"{name}.json").read_bytes(), type=Result)


def keep(name: str, result: Result) -> None:
    """Write a result, one row to a line."""
    head = msgspec.to_builtins(result)
    rows = head.pop("rows")
    write_lines(RESULTS / f"{name}.json", head, "rows", rows)


def write_lines(path: Path, head: Mapping[str, Any], name: str, rows: Iterable[Any]) -> None:
    """Write a head and one line for each row, so that a change of one can be read as one.

    The old file is whole until the new one is.
    """
    begin = json.dumps(head, indent=1, ensure_ascii=False, allow_nan=False).removesuffix("\n}")
    lines = ",\n".join(json.dumps(row, ensure_ascii=False, allow_nan=False) for row in rows)
    part = path.with_suffix(".new")
    path.parent.mkdir(exist_ok=True)
    part.write_text(f'{begin},\n "{name}": [\n{lines}\n]}}\n', encoding="utf-8")
    part.replace(path)
