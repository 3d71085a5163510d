"""Requests per second and response time of a prediction: they follow from its throughput."""

from __future__ import annotations

from leadline.record import Interval, Prediction


def iops_of(prediction: Prediction, *, run: bool = False) -> Interval:
    """Return requests per second: throughput / size_mean.

    Args:
        prediction: the prediction.
        run: of one more run instead of the mean of many.

    """
    rate = prediction.run_throughput_mb_s if run else prediction.throughput_mb_s
    scale = 1e6 / prediction.workload.size_mean
    return Interval(rate.value * scale, _times(rate.low, scale), _times(rate.high, scale), rate.n)


def response_us_of(prediction: Prediction) -> Interval:
    """Return the mean response time in microseconds, by Little's law.

    Every issuer keeps queue_depth requests outstanding and never waits, so a request takes
    process_num x queue_depth / requests per second.
    """
    iops = iops_of(prediction)
    outstanding = prediction.workload.process_num * prediction.workload.queue_depth
    scale = 1e6 * outstanding
    low = scale / iops.high if iops.high else None
    high = scale / iops.low if iops.low else None
    return Interval(scale / iops.value, low, high, iops.n)


def _times(end: float | None, scale: float) -> float | None:
    return None if end is None else end * scale
