"""What every model of a surveyed system offers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from leadline.errors import LeadlineError
from leadline.record import Workload

Floats = NDArray[np.float64]


class PredictionRefused(LeadlineError):
    """The survey says nothing of what is asked; the message says what would."""

    exit_code = 2


@dataclass(frozen=True)
class Expected:
    """Throughput of several workloads, on a natural-log scale of MB/s; arrays of (workloads,)."""

    ln_mb_s: Floats
    ln_sd: Floats
    """Of the expected throughput: what is not known of the mean of many runs."""
    noise_ln_sd: Floats
    """Of one run about that mean."""


class Model(Protocol):
    """A fitted model of one system. It knows nothing of ranges: `Predictor` guards those."""

    name: str
    """How it is chosen and shown: "product", "joint", …"""
    n: int
    """Readings it rests on."""
    df: float
    """Degrees of freedom behind its standard deviations."""

    def expect(self, workloads: Sequence[Workload]) -> Expected:
        """Return what is expected of each workload."""

    def embedded(self) -> dict[str, Any]:
        """Return all a browser needs to predict the same, as plain JSON values."""
