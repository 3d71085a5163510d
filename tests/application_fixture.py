"""Traces described, and what is kept of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from leadline.record.application import (
    APPLICATION,
    Application,
    ApplicationFound,
    ApplicationStart,
    PhaseFound,
)
from leadline.record.study import Status
from leadline.store import Keeper
from leadline.studies.application.characterize import characterize_trace
from planted_traces import Planted, Requests, mixture, write_msr


@dataclass
class Kept:
    """A store that forgets everything but how often it was asked."""

    begun: int = 0
    items: list[Any] = field(default_factory=list)

    def begin(self, *_: Any) -> None:
        self.begun += 1

    def add(self, _study_id: str, item: Any, _group: str = "") -> None:
        self.items.append(item)

    def end(self, *_: Any) -> None: ...


def described(requests: Requests, folder: Path) -> Application:
    """Describe a trace that was made."""
    return characterize_trace(str(write_msr(requests, folder / "made.csv")), Kept())


def add_application(kept: Keeper, study_id: str, name: str, folder: Path) -> None:
    """Add the description of a small trace, whose times are those of no machine."""
    streams = (Planted("uniform", 0.6, 64 * 4096, 4096, 0.5), Planted("loop", 0.4, 32 * 8192, 8192))
    made = described(mixture(streams, 1500, 7), folder)
    start = msgspec.structs.replace(
        made.start,
        study_id=study_id,
        system=name,
        trace="trace.csv",
        started_at="2026-11-23T12:00:00+00:00",
    )
    found: ApplicationFound = msgspec.structs.replace(made.found, wall_s=0.5)
    _keep(kept, start, made.phases, found)


def _keep(
    kept: Keeper, start: ApplicationStart, phases: tuple[PhaseFound, ...], found: ApplicationFound
) -> None:
    kept.begin(APPLICATION, start)
    for phase in phases:
        own = msgspec.structs.replace(phase, item_id=f"{phase.order:032x}")
        kept.add(start.study_id, own)
    kept.end(start.study_id, found, Status.DONE)
