"""Words on stderr, data on stdout; colour only on a terminal and never the only carrier."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

    from leadline.engine import Finding


def console() -> Console:
    """Console for people: stderr, honours NO_COLOR."""
    from rich.console import Console  # noqa: PLC0415 - a command with nothing to say needs none

    return Console(file=sys.stderr, highlight=False, soft_wrap=True)


def talk(text: str) -> None:
    """Say something to the person at the terminal."""
    console().print(text, markup=False)


def show(renderable: RenderableType) -> None:
    """Put an answer for people on stdout."""
    from rich.console import Console  # noqa: PLC0415 - as above

    Console(file=sys.stdout, highlight=False).print(renderable)


def put_json(document: Any) -> None:
    """Put one JSON document on stdout."""
    data = msgspec.json.format(msgspec.json.encode(document), indent=2)
    sys.stdout.buffer.write(data + b"\n")
    sys.stdout.flush()


def tell_findings(findings: Sequence[Finding]) -> tuple[str, ...]:
    """Say what was found before measuring; return the warnings among it, as they are stored."""
    for finding in findings:
        talk(f"{'note' if finding.note else 'warning'}: {finding}")
    return tuple(str(finding) for finding in findings if not finding.note)
