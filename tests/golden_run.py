"""Runs the command line inside this process, with everything fixed that chance or time decide.

In this process, because loading Leadline takes longer than most answers. Nothing of Leadline is
replaced but what it asks of others (ids, drawings): whatever moves inside it, this still runs it.
"""

from __future__ import annotations

import io
import os
import sys
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

from leadline.app import main

_SURROUNDINGS = {"COLUMNS": "100", "NO_COLOR": "1", "TERM": "dumb"}
"""A terminal is as wide as it is; text wraps by that."""


@dataclass(frozen=True)
class Ran:
    """What a command left."""

    code: int
    out: str
    err: str


def run(arguments: Sequence[str], store: Path) -> Ran:
    """Run `leadline ARGUMENTS` on a store to its end."""
    out, err = io.TextIOWrapper(io.BytesIO(), "utf-8"), io.TextIOWrapper(io.BytesIO(), "utf-8")
    with ExitStack() as stack:
        stack.enter_context(mock.patch.object(sys, "argv", ["leadline", *arguments]))
        stack.enter_context(mock.patch.object(sys, "stdout", out))
        stack.enter_context(mock.patch.object(sys, "stderr", err))
        surroundings = _SURROUNDINGS | {"LEADLINE_STORE": str(store)}
        stack.enter_context(mock.patch.dict(os.environ, surroundings))
        stack.enter_context(_nothing_drawn())
        code = _ended(main)
    return Ran(code, _text(out), _text(err))


def _ended(command: Callable[[], None]) -> int:
    try:
        command()
    except SystemExit as leaving:
        return leaving.code if isinstance(leaving.code, int) else 0
    return 0


def _text(stream: io.TextIOWrapper) -> str:
    stream.flush()
    assert isinstance(stream.buffer, io.BytesIO)
    return stream.buffer.getvalue().decode()


@contextmanager
def _nothing_drawn() -> Iterator[None]:
    """No chart is drawn or checked: that takes a second each, and goldens leave charts out.

    Other tests (test_charts.py and its like) draw them, which checks them.
    """
    with ExitStack() as stack:
        for name in ("vegalite_to_svg", "vega_to_svg"):
            stack.enter_context(mock.patch(f"vl_convert.{name}", return_value="<svg></svg>"))
        stack.enter_context(mock.patch("altair.utils.schemapi.SchemaBase.validate"))
        yield


class Ids:
    """Ids in an order of its own instead of random ones, and which were given."""

    def __init__(self, seed: str) -> None:
        self._space = uuid.uuid5(uuid.NAMESPACE_OID, seed)
        self.given: list[uuid.UUID] = []

    def __call__(self) -> uuid.UUID:
        # All hexadecimal letters and digits, as a random one: the beginning must be unambiguous.
        self.given.append(uuid.uuid5(self._space, str(len(self.given))))
        return self.given[-1]


@contextmanager
def fixed_ids(seed: str) -> Iterator[Ids]:
    """Give ids that a seed decides while the block runs."""
    ids = Ids(seed)
    with mock.patch("uuid.uuid4", ids):
        yield ids
