"""What the sub-commands of `leadline stream` do: from what was typed to what is printed."""

from __future__ import annotations

from pathlib import Path

import msgspec

from leadline.errors import LeadlineError


class RecordsWrong(LeadlineError):
    """A check found records that are not what they should be."""


class Spelled(msgspec.Struct, frozen=True, kw_only=True):
    """What was typed."""

    kernel: str
    source: str | None = None
    destination: str | None = None
    match_frac: float = 0.5
    rows: int | None = None
    columns: int | None = None
    memory: int | None = None
    threads: int = 1
    io: str = "uring"
    stripe: tuple[str, ...] = ()
    stripe_unit: int = 65536
    buffered: bool = False
    depth: int = 8
    temporary: tuple[str, ...] = ()
    replace: bool = False
    cache_limit: int | None = None
    bound: bool = True
    name: str | None = None
    seed: int = 1
    budget_s: float
    output: Path | None = None
    json: bool = False
