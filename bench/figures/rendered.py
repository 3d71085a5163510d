"""Text from stored results: what stands between the markers of README and docs/.

    <!-- figures: engine rows=*-bare columns=what,ratio -->     a table, with where it is from
    <!-- origin: engine -->                                     that alone
    <!-- example: examples/peak lines=8-12 -->                  a command and what it printed
    <!-- findings: run -->                                      what is found in a run
    <!-- end -->                                               ends each of these
    <!--= engine/null/own {value:.0f} ns -->29 ns<!--/-->       one figure, within a sentence
    <!--= engine/older --><!--/-->                              that it is old; nothing if it is not

`rows` and `columns` choose by patterns of keys, in the order of the patterns; without them all are
told. A single figure is told in the form of its column, or in that of its marker. It may not begin
a line: Markdown would end the paragraph there.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NamedTuple

from figures.stored import ROOT, Cell, Column, Content, Result, Row, load
from leadline.record.finding import catalogue

WIDTH = 100
BLOCK = re.compile(
    r"^<!-- (figures|origin|example|findings): (\S+)((?: \w+=\S+)*) -->\n(.*?)^<!-- end -->$",
    re.M | re.S,
)
INLINE = re.compile(r"<!--= (\S+)(?: (\S.*?))?? -->(.*?)<!--/-->", re.S)
BEGUN = re.compile(r"^<!-- ?(?:figures|origin|example|findings)\b|<!-- ?=", re.M)
SAVING = re.compile(r" --save(?: [^-\s]\S*)?")
BEGINS_LINE = re.compile(r"^ {0,3}<!--=", re.M)


class FigureError(Exception):
    """A marker that cannot be rendered; the message says which and why."""


class Difference(NamedTuple):
    """Where a document does not say what the stored results do."""

    document: Path
    marker: str


def documents() -> tuple[Path, ...]:
    """Return everything that may have markers."""
    return (*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md")))


def render(text: str) -> str:
    """Return a document with the figures of today's results.

    Raises:
        FigureError: a marker names nothing that is stored, or is not closed.

    """
    found = [*BLOCK.finditer(text), *INLINE.finditer(text)]
    if len(found) != len(BEGUN.findall(text)):
        raise FigureError("a marker is misspelt, or not closed")
    if begins := BEGINS_LINE.search(text):
        number = text.count("\n", 0, begins.start()) + 1
        raise FigureError(f"line {number} begins with a figure's marker: put a word before it")
    return INLINE.sub(_inline, BLOCK.sub(_block, text))


def differences() -> Iterator[Difference]:
    """Yield every marker below which something else stands than what is stored."""
    for document in documents():
        text = document.read_text(encoding="utf-8")
        rendered = render(text)
        if text != rendered:
            for pattern in (BLOCK, INLINE):
                pairs = zip(pattern.finditer(text), pattern.finditer(rendered), strict=True)
                for stands, stored in pairs:
                    if stands[0] != stored[0]:
                        yield Difference(document, stands[0].splitlines()[0][:100])


def _block(found: re.Match[str]) -> str:
    kind, name, words, _ = found.groups()
    options = dict(word.split("=", 1) for word in words.split())
    try:
        if kind == "example":
            lines = example(name, options.get("lines"))
        elif kind == "findings":
            lines = findings(name)
        else:
            result = load(name)
            lines = table(result, options) if kind == "figures" else [caption(result)]
    except (FileNotFoundError, KeyError, ValueError) as error:
        raise FigureError(f"{found[0].splitlines()[0]}: {error}") from error
    return "\n".join([f"<!-- {kind}: {name}{words} -->", "", *lines, "", "<!-- end -->"])


def _inline(found: re.Match[str]) -> str:
    path, form, _ = found.groups()
    name, _, place = path.partition("/")
    try:
        said = age(load(name)) if place == "older" else figure(load(name), place, form)
    except (FileNotFoundError, KeyError, ValueError) as error:
        raise FigureError(f"{found[0]}: {error}") from error
    return f"<!--= {path}{f' {form}' if form else ''} -->{said}<!--/-->"


ITALIC = "*{}*"


def findings(group: str) -> list[str]:
    """Return what may be found there: codes with what they mean, or the sentence that says it."""
    lines = [
        f"| `{code}` | {each.severity} | {each.means or each.pattern(ITALIC)} |"
        for code, each in catalogue()[group].items()
    ]
    return ["| Code | Severity | Meaning |", "|---|---|---|", *lines]


def figure(result: Result, place: str, form: str | None) -> str:
    """Return one figure (`ROW/COLUMN`), in the form of its column unless told another."""
    row_key, _, column_key = place.partition("/")
    row, column = result.row(row_key), result.column(column_key)
    if row is None or column is None:
        raise KeyError(f"no row {row_key} or no column {column_key}")
    return say(row.cells.get(column_key), (form,) if form else column.forms, column.unit)


def table(result: Result, options: dict[str, str]) -> list[str]:
    """Return a result as a table in Markdown, with where it is from and its notes."""
    rows = [
        row
        for pattern in options.get("rows", "*").split(",")
        for row in result.rows
        if fnmatchcase(row.key, pattern)
    ]
    wanted = options.get("columns", "*").split(",")
    columns = [c for pattern in wanted for c in result.columns if fnmatchcase(c.key, pattern)]
    if not rows or not columns:
        raise KeyError("no such rows or columns")
    lines = markdown(columns, rows)
    if options.get("origin") != "no":
        lines += ["", caption(result)]
    return lines


def markdown(columns: Sequence[Column], rows: Sequence[Row]) -> list[str]:
    """Return rows as a table, with their notes below it: what a bench prints as well.

    A goal that a whole column has stands in its head.
    """
    notes = list(dict.fromkeys(row.note for row in rows if row.note))
    goals = {column.key: _common_goal(column, rows) for column in columns}
    lines = [_row(_head(column, goals[column.key]) for column in columns)]
    lines += ["|---" * len(columns) + "|"]
    lines += [_line(row, columns, notes, goals) for row in rows]
    return lines + ([""] if notes else []) + [f"{n}. {note}" for n, note in enumerate(notes, 1)]


def _head(column: Column, goal: str) -> str:
    return f"{column.title} ({goal})" if goal else column.title


def _common_goal(column: Column, rows: Sequence[Row]) -> str:
    """Return the goal of all figures of a column; nothing where they differ, or of one row."""
    cells = [content for row in rows if (content := row.cells.get(column.key)) is not None]
    goals = {_goal(cell, column.unit) if isinstance(cell, Cell) else "" for cell in cells}
    return goals.pop() if len(goals) == 1 and len(cells) > 1 else ""


def _line(
    row: Row, columns: Sequence[Column], notes: Sequence[str], goals: Mapping[str, str]
) -> str:
    cells = [
        say(row.cells.get(column.key), column.forms, column.unit, goals[column.key])
        for column in columns
    ]
    if row.note:
        cells[-1] += f" ({notes.index(row.note) + 1})"
    return _row(cells)


def _row(cells: Iterable[str]) -> str:
    return "|" + "|".join(f" {cell} ".replace("  ", " ") for cell in cells) + "|"


def say(content: Content, forms: Sequence[str], unit: str, known_goal: str = "") -> str:
    """Return a cell in the first form of which it has everything, with what it says of its goal.

    Of a goal that is known already (it stands in the head of the column), only that it is missed.
    """
    if content is None or isinstance(content, str):
        return content or ""
    cell = content if isinstance(content, Cell) else Cell(content)
    unit = cell.unit or unit
    names = {"value": cell.value, "low": cell.low, "high": cell.high, "n": cell.n}
    known = {name: number for name, number in names.items() if number is not None}
    for form in forms:
        try:
            said = form.format(**known, **cell.also, unit=unit).strip()
            goal = _goal(cell, unit)
            told = goal not in ("", known_goal)
            remarks = [goal] if told else []
            remarks += ["**missed**"] if cell.missed else ["met"] if told else []
            return said.replace(" %", "%") + (f" ({': '.join(remarks)})" if remarks else "")
        except KeyError:
            continue
    raise ValueError(f"no form of {list(forms)} can tell {cell}")


def _goal(cell: Cell, unit: str) -> str:
    ends = [f"{end:g}" for end in (cell.least, cell.most) if end is not None]
    if not ends:
        return ""
    sign = "" if len(ends) == 2 else "≤ " if cell.least is None else "≥ "
    return f"goal {sign}{' to '.join(ends)} {(cell.unit or unit).strip()}".strip().replace(
        " %", "%"
    )


def caption(result: Result) -> str:
    """Return in words where figures come from, and how old they are."""
    when = f", {_said(date.fromisoformat(result.date))}" if result.date else ""
    rounds = f", {result.rounds} rounds" if (result.rounds or 1) > 1 else ""
    seeds = f", {result.seeds}" if result.seeds else ""
    of = f", commit {result.commit}" if result.commit else ""
    parts = [f"`{SAVING.sub('', result.command)}`{rounds}{seeds}{when}{of}"]
    if result.machine is None:
        parts.append("machine not written down")
    elif result.machine:
        parts.append(", ".join(result.machine.values()))
    said = "; ".join(parts) + "."
    if any(_has_ends(cell) for row in result.rows for cell in row.cells.values()):
        said += f" Intervals: {result.interval}."
    if result.made_by is None:
        said += " No program of this repository makes it again."
    said += f" {age(result)}" if age(result) else ""
    if result.entered:
        said += " Entered by hand."
    said += f" {result.note}" if result.note else ""
    return textwrap.fill(said, WIDTH, break_long_words=False, break_on_hyphens=False)


def age(result: Result) -> str:
    """Say that a result is older than the shipped code, or nothing; the file has the reason."""
    return "**Older than the code.**" if result.older or result.commit is None else ""


def _has_ends(content: Content) -> bool:
    return isinstance(content, Cell) and content.low is not None


def _said(day: date) -> str:
    return f"{day.day} {day:%B} {day.year}"


def example(path: str, lines: str | None) -> list[str]:
    """Return a command and what it printed, or some lines of that (`8-12,15-15`), as a block."""
    name, _, key = path.partition("/")
    row = load(name).row(key)
    if row is None:
        raise KeyError(f"no example {key!r}")
    printed = str(row.cells["text"]).splitlines()
    chosen: list[str] = [] if lines else printed
    for part in lines.split(",") if lines else ():
        first, last = map(int, part.split("-"))
        if not 1 <= first <= last <= len(printed):
            raise ValueError(f"lines {part} of {len(printed)}")
        chosen += printed[first - 1 : last]
    return [f"    {line}".rstrip() for line in [f"$ {row.cells['command']}", *chosen]]
