"""What is done first in a command's own process; apart, since every one of them loads it."""

from __future__ import annotations

import tempfile
from collections.abc import Callable

from steered_command import shorten

Steer = Callable[[], None]


def settle(temporary: str, point_s: float, then: Steer | None) -> None:
    """Give a command a temporary directory of its own, and short points."""
    tempfile.tempdir = temporary
    if point_s:
        shorten(point_s)
    if then is not None:
        then()
