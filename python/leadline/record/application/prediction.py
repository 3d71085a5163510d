"""What a surveyed system would do with an application: its time in I/O, and in all."""

from __future__ import annotations

from typing import Literal

import msgspec

from leadline.record.application.phase import StreamKind
from leadline.record.finding import Finding
from leadline.record.workload import Interval

TermName = Literal["reads", "writes", "syncs", "metadata"]


class Term(msgspec.Struct, frozen=True, kw_only=True):
    """A part of the time in I/O; one that was not surveyed is said to be, and never zero."""

    name: TermName
    calls: int
    seconds: Interval | None
    """None where the survey knows nothing of it."""
    traced_s: float | None
    """What it took where it was traced, one call after another."""
    because: str | None = None
    """Why it is not known."""


class CacheMisses(msgspec.Struct, frozen=True, kw_only=True):
    """What a level that the survey found misses of the application's references."""

    cache_bytes: Interval
    lru: float
    two_lists: float | None
    """None where the trace tells nothing of caches so small."""


class StreamTime(msgspec.Struct, frozen=True, kw_only=True):
    """Reads, or writes, of one stream of one phase."""

    phase: int
    stream: int
    """Place among its phase's, from 0."""
    kind: StreamKind
    write: bool
    requests: float
    size_mean: float
    misses: tuple[float, ...]
    """Of its references, at each of the survey's levels; between both policies."""
    seconds: float


class ApplicationPrediction(msgspec.Struct, frozen=True, kw_only=True):
    """Time of one application as the model of one system expects it; intervals hold 95%."""

    application: str
    application_id: str
    system: str
    survey_id: str
    traced_on: str | None = None
    """The surveyed system where it was traced, by which the times are scaled."""
    model: str
    io_s: Interval
    """Time in I/O, of the terms that are known."""
    io_at_least: bool
    """Whether a term is not known, so that both times are lower bounds."""
    elapsed_s: Interval | None
    elapsed_because: str | None
    """Why there is none."""
    traced_io_s: float | None
    """Time in I/O where it was traced."""
    traced_s: float | None
    ln_sd: float
    """Standard deviation of ln time in I/O."""
    own_ln_sd: float
    """Of that, by the survey's model: what predictions of the same application elsewhere do not
    share."""
    df: float
    terms: tuple[Term, ...]
    caches: tuple[CacheMisses, ...]
    streams: tuple[StreamTime, ...]
    findings: tuple[Finding, ...]

    @property
    def in_io(self) -> float | None:
        """Share of the predicted time that is I/O; None where either may be longer."""
        if self.elapsed_s is None or self.io_at_least or self.elapsed_s.value <= 0:
            return None
        return min(1.0, self.io_s.value / self.elapsed_s.value)
