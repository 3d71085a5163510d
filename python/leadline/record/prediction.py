"""What a model says of a workload nobody measured (CP94 §9)."""

from __future__ import annotations

import msgspec

from leadline.record.finding import Finding
from leadline.record.workload import Interval, Workload


class Prediction(msgspec.Struct, frozen=True, kw_only=True):
    """Throughput of one workload as a model of one system expects it.

    Both intervals hold 95%; `n` is the number of readings the model rests on. Response times and
    rates follow from the throughput: requests per second are throughput / size_mean, and by
    Little's law a request takes process_num x queue_depth / requests per second.
    """

    workload: Workload
    throughput_mb_s: Interval
    """Of the throughput that many runs of the workload would average to."""
    run_throughput_mb_s: Interval
    """Of the throughput that one more run of it will read: run-to-run noise included."""
    ln_sd: float
    """Standard deviation of ln throughput behind the first interval."""
    run_ln_sd: float
    """The same behind the second."""
    df: float
    """Degrees of freedom of Student's t behind both."""
    region: int | None
    """Index of the region whose unique_bytes hold the workload's; None outside all of them."""
    model: str
    extrapolated: bool = False
    """Whether a value lies outside what was measured; only when extrapolation was allowed."""
    findings: tuple[Finding, ...] = ()
    """What it takes for granted, and where it is a guess."""
