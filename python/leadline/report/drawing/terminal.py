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
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.table import Table
from rich.text import Text

from leadline.inert import printable

_Asked = ParamSpec("_Asked")
_ASCII = str.maketrans({"×": "x", "−": "-", "±": "+/-", "\N{MICRO SIGN}": "u"})


@dataclass(frozen=True)
class Terminal:
    """What one console can show."""

    plain: bool
    """ASCII alone."""
    width: int

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

    def warnings(self, warnings: Iterable[str]) -> Iterator[Text]:
        """What speaks against the answer."""
        for warning in warnings:
            yield self.text(f"warning: {warning}", "yellow")

    def table(self, heads: Sequence[str], rows: Iterable[Sequence[str]]) -> Table:
        """A table that folds rather than cuts."""
        table = Table(box=box.ASCII if self.plain else box.SIMPLE_HEAD, pad_edge=False)
        for head in heads:
            table.add_column(self.text(head), overflow="fold")
        for row in rows:
            table.add_row(*map(self.text, row))
        return table


WIDTH_MAX = 160
"""Of what is drawn: a pipe has no width."""


@dataclass(frozen=True)
class _Told:
    """What rich can print: told anew for every console."""

    tell: Callable[[Terminal], Iterable[RenderableType]]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield from self.tell(Terminal(options.ascii_only, min(options.max_width, WIDTH_MAX)))


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
