"""An application on several surveyed systems: ratios of its predicted times, with verdicts."""

from __future__ import annotations

import msgspec

from leadline.record.application.prediction import ApplicationPrediction
from leadline.record.comparison import Verdict
from leadline.record.finding import Finding
from leadline.record.workload import Interval


class ApplicationPair(msgspec.Struct, frozen=True, kw_only=True):
    """An application on one pair of systems; above 1 says that A is the faster one."""

    a: str
    b: str
    io_ratio: Interval
    """Time in I/O on B over that on A, of the terms that are known."""
    elapsed_ratio: Interval | None
    """The same of the time in all; None where either is not known."""
    p_value: float
    """Of the hypothesis that both times in I/O are equal, by itself."""
    verdict: Verdict
    """Holm's procedure over all pairs keeps the chance of any wrong one at 5%."""
    findings: tuple[Finding, ...] = ()
    """Why there is no verdict although there is a ratio."""


class ApplicationComparison(msgspec.Struct, frozen=True, kw_only=True):
    """An application on several systems."""

    application: str
    application_id: str
    names: tuple[str, ...]
    """Of the systems, as `pairs` have them."""
    predictions: tuple[ApplicationPrediction, ...]
    """In the order of `names`."""
    pairs: tuple[ApplicationPair, ...]
