"""The true throughput of a workload on a machine made of parts: the mean of long runs of itself.

A law knows its expectation; a machine has none but its own behaviour. So the truth is the mean over
independent runs (other addresses, other neighbours, other losses), each from the state in which
every job begins and with a window as long as a reading of this machine may be at most. Its standard
error comes from the scatter between the runs.
"""

from __future__ import annotations

import functools
import hashlib
import json
import math
import random
import statistics
from pathlib import Path
from typing import Any

import msgspec

from leadline.engine import Simulated, Target, open_engine
from leadline.record import Workload
from leadline.record.job import Limits

PUBLISHED = Path(__file__).parents[3] / "bench" / "results" / "machine_truths.json"
"""Truths computed once by `bench/machine_truths.py`; of a checkout, not of the package."""

METHOD = 1
"""Raised when what is computed here changes its meaning; old truths are then not found any more."""

SE_FRAC = 0.005
"""Standard error asked for, as a fraction."""
RUNS_MIN, RUNS_MAX = 4, 24
WINDOW_S = 20.0
"""Virtual seconds of a window where the profile does not say how long a reading may take."""
_FIRST_SEED = 1 << 40
"""No survey uses these seeds."""


class MachineTruth(msgspec.Struct, frozen=True, kw_only=True):
    """What a workload reaches on a machine."""

    throughput_mb_s: float
    se_frac: float
    """Its standard error, as a fraction; above what was asked for where runs scatter widely."""
    runs: int
    cached_share: float | None
    """Mean share of the bytes read that came from the host's memory; None without reads."""


def draw_workloads(profile: dict[str, Any], seed: int, count: int) -> tuple[Workload, ...]:
    """Draw workloads over all that a survey of this machine may ask.

    Args:
        profile: with its `[survey]`.
        seed: decides them, together with the profile's name.
        count: how many.

    """
    hints = profile["survey"]
    draw = random.Random(f"workloads {profile['meta']['name']} {seed}")

    def whole(low: float, high: float, unit: int) -> int:
        return max(round(math.exp(draw.uniform(math.log(low), math.log(high))) / unit), 1) * unit

    most = int(hints["unique_bytes_max"])
    least = min(_memory_bytes(profile) // 8, most // 64)
    longest = int(hints.get("size_mean_max", 2**20))
    return tuple(
        Workload(
            unique_bytes=whole(least, most, 4096) // 4096 * 4096,
            size_mean=whole(4096, min(longest, least), 512),
            read_frac=round(draw.random(), 3),
            seq_frac=round(draw.random(), 3),
            process_num=whole(1, int(hints.get("process_num_max", 16)), 1),
        )
        for _ in range(count)
    )


def _memory_bytes(profile: dict[str, Any]) -> int:
    return int(profile["machine"].get("cache", {}).get("capacity_bytes", 2**30))


def machine_truth(
    profile: dict[str, Any], workload: Workload, *, se_frac: float = SE_FRAC
) -> MachineTruth:
    """Return the published truth where it is good enough, otherwise compute it.

    Raises:
        NothingCompleted: the machine is so slow that no request ends in a window.

    """
    known = _published().get(truth_key(profile, workload))
    if known is not None and (known.se_frac <= se_frac or known.runs >= RUNS_MAX):
        return known
    return compute_truth(profile, workload, se_frac=se_frac)


def truth_key(profile: dict[str, Any], workload: Workload) -> str:
    """Return what tells this machine and workload from all others, whatever it is called."""
    asked = [METHOD, profile["machine"], _window_s(profile), msgspec.to_builtins(workload)]
    text = json.dumps(asked, sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=12).hexdigest()


def compute_truth(
    profile: dict[str, Any], workload: Workload, *, se_frac: float = SE_FRAC
) -> MachineTruth:
    """Run the workload until its mean is known well enough.

    Args:
        profile: of a machine.
        workload: within what the machine stores.
        se_frac: standard error at which it ends, as a fraction; it ends after `RUNS_MAX` runs
            anyway.

    Raises:
        NothingCompleted: the machine is so slow that no request ends in a window.

    """
    window_s = _window_s(profile)
    limits = Limits(
        warm_up_s_max=window_s / 2,
        measure_s_min=window_s,
        measure_s_max=window_s,
        accuracy=0.0,
        total_s_max=10 * window_s,
    )
    rates: list[float] = []
    shares: list[float] = []
    reached = math.inf
    while len(rates) < RUNS_MIN or (reached > se_frac and len(rates) < RUNS_MAX):
        seed = _FIRST_SEED + len(rates)
        with open_engine(_target(profile), run_seed=seed) as engine:
            result = engine.run(workload, seed=seed, limits=limits)
        rates.append(result.throughput_mb_s.value)
        if result.cached_share is not None:
            shares.append(result.cached_share)
        if len(rates) > 1:
            reached = statistics.stdev(rates) / math.sqrt(len(rates)) / statistics.fmean(rates)
    return MachineTruth(
        throughput_mb_s=statistics.fmean(rates),
        se_frac=reached,
        runs=len(rates),
        cached_share=statistics.fmean(shares) if shares else None,
    )


def _target(profile: dict[str, Any]) -> Target:
    return Simulated(text=f"sim:{profile['meta']['name']}", profile=profile)


def _window_s(profile: dict[str, Any]) -> float:
    return float(profile["survey"].get("measure_s_max", WINDOW_S))


@functools.cache
def _published() -> dict[str, MachineTruth]:
    if not PUBLISHED.is_file():
        return {}
    document = json.loads(PUBLISHED.read_text(encoding="utf-8"))
    return {row["key"]: msgspec.convert(row["truth"], MachineTruth) for row in document["truths"]}
