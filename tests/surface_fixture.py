"""A small surface with known peaks, and searches that answer with them and a stated error."""

from __future__ import annotations

import random

from leadline.record import Interval
from leadline.record.workbench import Factor, Goal, PeakRate, PeakVerdict, Sample, Threshold

DISKS = Factor(name="disks", role="resource", levels=(1, 2, 3, 4))
THREADS = Factor(name="threads", role="configuration", levels=(1, 2, 4, 8, 16, 32, 64, 100))
FACTORS = (DISKS, THREADS)
GOAL = Goal(threshold=Threshold(mean_ms=40.0))


def bottleneck(sample: Sample) -> float:
    """Threads, disks or a processor at 350/s, the smallest of them."""
    disks, threads = float(sample["disks"]), float(sample["threads"])
    return min(100 * disks, 60 * threads, 350.0)


def peak_of(
    rate_per_s: float, sd_log: float = 0.02, cost_s: float = 300.0, seed: int | None = None
) -> PeakRate:
    """Return the answer of a search: the rate, off by `sd_log` with a seed, and its interval."""
    off = 0.0 if seed is None else random.Random(seed).gauss(0.0, sd_log)
    rate = rate_per_s * (1 + off)
    half = 1.96 * sd_log
    return PeakRate(
        policy="told",
        verdict=PeakVerdict.FOUND,
        rate_per_s=Interval(rate, rate * (1 - half), rate * (1 + half), 5),
        accuracy=1 - half,
        confidence=0.95,
        cost_s=cost_s,
        trials=5,
        loads=(),
        limited_by="server",
        run_length_s=180.0,
    )


def lost_peak(verdict: PeakVerdict = PeakVerdict.FAILED) -> PeakRate:
    """Return the answer of a search that found no number."""
    return PeakRate(
        policy="told",
        verdict=verdict,
        rate_per_s=None,
        accuracy=None,
        confidence=0.95,
        cost_s=60.0,
        trials=2,
        loads=(),
        limited_by="unknown",
        run_length_s=180.0,
    )
