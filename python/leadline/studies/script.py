"""Which point a study measures next: asked for a point, told its measurement."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from leadline.record import Measurement, Workload


@dataclass(frozen=True)
class PointRequest:
    """One question to the storage system."""

    order: int
    stage: str
    workload: Workload
    seed: int


class Script(Protocol):
    """Decides each point of a study from those before it."""

    @property
    def points(self) -> Sequence[Measurement]:
        """Every point told so far, in order."""
        ...

    def ask(self) -> PointRequest | None:
        """Return the next point; None when there is none."""
        ...

    def tell(self, measurement: Measurement) -> None:
        """Take the measurement of the point last asked for."""
        ...


class KnownScript:
    """Points that are all known beforehand, in their order."""

    def __init__(
        self, requests: Sequence[PointRequest], points: Sequence[Measurement] = ()
    ) -> None:
        self._requests = requests
        self.points = list(points)

    def ask(self) -> PointRequest | None:
        """Return the next point; None after the last."""
        done = len(self.points)
        return self._requests[done] if done < len(self._requests) else None

    def tell(self, measurement: Measurement) -> None:
        """Take the measurement of the point last asked for."""
        self.points.append(measurement)
