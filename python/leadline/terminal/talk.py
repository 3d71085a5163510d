"""Words on stderr, data on stdout; colour only on a terminal and never the only carrier."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import cache
from typing import IO, TYPE_CHECKING, Any

from leadline.errors import LeadlineError
from leadline.sanitize import printable

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType
    from rich.segment import Segment

    from leadline.record.finding import Finding


verbose_answers = ContextVar("verbose_answers", default=False)
"""Whether answers hold everything, as `leadline --verbose` asks."""

_STEERING = re.compile("[\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
"""Control characters and turned writing, as far as JSON does not ask for them to be escaped."""


@cache
def _plain_console() -> type[Console]:
    """Return what everything for people is printed by: names are data, whatever is in them."""
    from rich.console import Console  # noqa: PLC0415 - a command with nothing to say needs none

    class Plain(Console):
        verbose: bool = False

        def render(
            self, renderable: RenderableType, options: ConsoleOptions | None = None
        ) -> Iterable[Segment]:
            for segment in super().render(renderable, options):
                inert = segment.control is not None or segment.text.isprintable()
                yield segment if inert else segment._replace(text=printable(segment.text))

    return Plain


def _console(file: IO[str], *, soft_wrap: bool) -> Console:
    make = _plain_console()
    made = make(file=file, soft_wrap=soft_wrap, highlight=False, markup=False, emoji=False)
    made.verbose = verbose_answers.get()  # type: ignore[attr-defined]
    return made


def console() -> Console:
    """Console for people: stderr, honours NO_COLOR."""
    return _console(sys.stderr, soft_wrap=True)


def talk(text: str) -> None:
    """Say something to the person at the terminal; nothing ends because nobody can hear it."""
    with suppress(OSError):
        console().print(text)


class OutputLost(LeadlineError):
    """Standard output takes no more; what was measured is stored all the same."""

    exit_code = 3


UNWRAPPED = 10_000
"""Columns of an answer that goes into a pipe or a file: whatever reads it finds a row on a line."""


def show(renderable: RenderableType) -> None:
    """Put an answer for people on stdout: wrapped on a terminal, or as COLUMNS says, only."""
    with _written():
        if sys.stdout.isatty():
            _console(sys.stdout, soft_wrap=False).print(renderable)
            return
        screen = _console(sys.stdout, soft_wrap=False)
        if not os.environ.get("COLUMNS", "").isdigit():
            screen.width = UNWRAPPED
        with screen.capture() as said:
            screen.print(renderable)
        lines = said.get().splitlines()
        sys.stdout.write("".join(f"{line.rstrip()}\n" for line in lines))


def put_bytes(data: bytes) -> None:
    """Put data on stdout as they are."""
    with _written():
        sys.stdout.buffer.write(data)


@contextmanager
def _written() -> Iterator[None]:
    """See that what is put on stdout gets there.

    Raises:
        OutputLost: it does not.
        BrokenPipeError: whoever read it has gone.

    """
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for Python's last flush
        raise OutputLost(
            f"the answer cannot be written to standard output: {error.strerror}; what was measured "
            "is kept: `leadline systems` finds it, `leadline show ID` tells it"
        ) from error


SCHEMA = 1
"""Of the documents of --json: raised when a member goes or changes its meaning."""


def put_json(document: Any) -> None:
    """Put one JSON document on stdout; an object says first who wrote it, and by which schema."""
    import msgspec  # noqa: PLC0415 - for the help alone it would take a tenth of the time

    from leadline.machine.facts import leadline_version  # noqa: PLC0415 - as above

    encoded = msgspec.json.encode(document)
    if encoded.startswith(b"{"):
        head = msgspec.json.encode({"leadline": leadline_version(), "schema": SCHEMA})
        encoded = head[:-1] + b"," + encoded[1:] if len(encoded) > 2 else head
    data = msgspec.json.format(encoded, indent=2)
    put_bytes(_STEERING.sub(_escaped, data.decode()).encode() + b"\n")


def _escaped(found: re.Match[str]) -> str:
    return f"\\u{ord(found[0]):04x}"


def print_findings(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """Say what was found before measuring; return what is more than a note, as it is stored."""
    for finding in findings:
        talk(f"{'note' if finding.is_note else 'warning'}: {finding}")
    return tuple(finding for finding in findings if not finding.is_note)
