"""What all studies are told in on a terminal, as wide as it is and in the signs that it knows.

Nothing is printed here; the command line prints. Names are data: they reach the terminal as plain
text, without markup and without control characters.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import Concatenate, ParamSpec

from rich import box
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.table import Table
from rich.text import Text

from leadline.record.finding import Finding, Severity
from leadline.sanitize import printable

_Asked = ParamSpec("_Asked")
_ASCII = str.maketrans({"×": "x", "−": "-", "±": "+/-", "\N{MICRO SIGN}": "u"})


WARNINGS_MOST = 5
"""Lines of warnings, unless all are asked for."""


@dataclass(frozen=True)
class Terminal:
    """What one console can show."""

    plain: bool
    """ASCII alone."""
    width: int
    verbose: bool = False
    """Everything, as `leadline --verbose` asks; else an answer of about 25 lines."""

    def printable(self, text: str) -> str:
        """Replace control characters, and on an ASCII terminal every sign it cannot show."""
        shown = printable(text.replace("\n", "?"))
        if not self.plain:
            return shown
        return shown.translate(_ASCII).encode("ascii", "replace").decode()

    def text(self, line: str, style: str = "") -> Text:
        """Words that are folded where the console ends."""
        return Text(self.printable(line), style=style)

    def fixed(self, line: str) -> Text:
        """A line in columns of its own, which would mean nothing when it were folded."""
        return Text(self.printable(line), no_wrap=True, overflow="ignore")

    def sentences(self, sentences: Iterable[str]) -> Iterator[Text]:
        """The answer, its first sentence above all."""
        for number, sentence in enumerate(sentences):
            yield self.text(sentence, "bold" if number == 0 else "")

    def warnings(self, warnings: Iterable[Finding]) -> Iterator[Text]:
        """Yield the gravest warnings, and how many there are besides."""
        found = sorted(warnings, key=lambda each: list(Severity).index(each.severity))
        hidden = 0 if self.verbose else max(0, len(found) - WARNINGS_MOST)
        for warning in found[: WARNINGS_MOST - 1] if hidden else found:
            yield self.text(f"warning: {warning}", "yellow")
        if hidden:
            yield self.text(f"{hidden + 1} more warnings: leadline --verbose …", "yellow")

    def table(self, heads: Sequence[str], rows: Iterable[Sequence[str]]) -> Table:
        """A table that folds rather than cuts, and breaks no word where all have room."""
        told = [[*map(self.printable, row)] for row in (heads, *rows)]
        widths, blanks = _widths([*zip(*told, strict=True)], self.width - _EDGES)
        padding = (0, min(1, blanks - 1), 0, max(0, blanks - 2))
        table = Table(
            box=box.ASCII if self.plain else box.SIMPLE_HEAD, pad_edge=False, padding=padding
        )
        for head, width in zip(told[0], widths, strict=True):
            table.add_column(Text(head), overflow="fold", width=width)
        for row in told[1:]:
            table.add_row(*map(Text, row))
        return table


_EDGES = 2
"""Signs that a table's frame takes."""


def _widths(columns: Sequence[Sequence[str]], room: int) -> tuple[list[int | None], int]:
    """Return how wide each column is, its head first, and the blanks between two.

    Columns stand closer before anything is folded, and heads are folded before what is below them.
    rich narrows the widest columns to one width, which breaks a word that is longer; here columns
    of such words stay wider.
    """
    usual: list[int | None] = [None] * len(columns)
    longest = [
        max(cell_len(word) for cell in cells for word in ["", *cell.split()]) for cells in columns
    ]
    wanted = [max(map(cell_len, cells)) for cells in columns]
    for blanks in (3, 2):
        if sum(wanted) + blanks * len(columns) <= room:
            return usual, blanks
    below = [max(map(cell_len, cells[1:]), default=0) for cells in columns]
    for blanks in (2, 1):
        for level in range(max(wanted), 0, -1):
            widths = [
                max(min(each, level), word) for each, word in zip(below, longest, strict=True)
            ]
            if sum(widths) + blanks * len(columns) <= room:
                return [*widths], blanks
    return usual, 2


WIDTH_MAX = 160
"""Of what is drawn: a pipe has no width."""


@dataclass(frozen=True)
class _Told:
    """What rich can print: told anew for every console."""

    tell: Callable[[Terminal], Iterable[RenderableType]]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        width, verbose = min(options.max_width, WIDTH_MAX), getattr(console, "verbose", False)
        yield from self.tell(Terminal(options.ascii_only, width, verbose))


def on_terminal(
    tell: Callable[Concatenate[Terminal, _Asked], Iterable[RenderableType]],
) -> Callable[_Asked, RenderableType]:
    """Make of what tells a terminal what a rich console can print, whatever its width and signs."""

    @wraps(tell)
    def render(*asked: _Asked.args, **named: _Asked.kwargs) -> RenderableType:
        def told(terminal: Terminal) -> Iterable[RenderableType]:
            return tell(terminal, *asked, **named)

        return _Told(told)

    return render
