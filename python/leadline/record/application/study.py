"""An application's I/O as its trace shows it: the study, and what the trace does not say."""

from __future__ import annotations

from typing import Literal

import msgspec

from leadline.record.application.capture import Capture
from leadline.record.application.phase import FiveParameters, PhaseFound
from leadline.record.application.reuse import Reuse
from leadline.record.finding import Finding
from leadline.record.jobs.replay import KeptSteps
from leadline.record.study import Records, Status, StudyStart


class TraceFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What the trace is, and what it does not say."""

    format: str
    below_the_cache: bool
    """Its requests missed a page cache already."""
    times: Literal["none", "whole seconds", "known"]
    timed: int
    """Requests and calls whose duration it says."""
    processes_known: bool
    processes: int
    files: int
    requests: int
    references: int
    lines: int
    unread: tuple[int, int]
    """Lines that are not of its format, and the first of them."""
    late: int
    """Requests that stand after later ones."""
    unseen: tuple[tuple[str, int], ...]
    """What it shows and does not tell, and how often."""
    unplaced_bytes: int
    """Moved to where the trace does not say."""
    memory_bytes: int = 0
    """That its processes held of their own, in the mean; 0 where it does not say."""


class ApplicationStart(StudyStart, frozen=True, kw_only=True):
    """What decides a description: the trace alone, or what was seen of a running program."""

    trace: str
    """The file as it was named, or who was watched."""
    facts: TraceFacts
    capture: Capture | None = None
    """None of a trace that was recorded before."""

    @property
    def target(self) -> str:
        """The trace."""
        return self.trace


class ApplicationFound(msgspec.Struct, frozen=True, kw_only=True):
    """What a trace shows as a whole."""

    wall_s: float
    """That it took to describe it."""
    seconds: float | None
    """Of the trace."""
    workload: FiveParameters
    read_bytes: int
    written_bytes: int
    in_io: float | None
    """Share of the time in which a request or call was outstanding (CP94 Fig. 1)."""
    in_calls_s: tuple[tuple[str, float], ...]
    """That share by what it was for: reads, writes, syncs, metadata; seconds of calls added up."""
    reuse: Reuse
    sentences: tuple[str, ...]
    findings: tuple[Finding, ...]
    steps: KeptSteps | None = None
    """None of a long trace, and of one that cannot be made again."""


class Application(msgspec.Struct, frozen=True, kw_only=True):
    """An application as it is told."""

    start: ApplicationStart
    status: Status
    found: ApplicationFound
    phases: tuple[PhaseFound, ...]

    @property
    def predictable(self) -> bool:
        """Whether a prediction may rest on it: nothing that counts was missed."""
        return self.start.capture is None or self.start.capture.whole


APPLICATION = Records(
    "application",
    ApplicationStart,
    PhaseFound,
    ApplicationFound,
    said="application",
    made_by="leadline characterize -- COMMAND",
)
