"""A population of simulated servers whose true peak rates are known, to try policies on.

Two hundred servers, each drawn from `RANGES` by its own seed, in five classes. The order of the
classes repeats every twenty servers, so that the first n are a fair part of all.

Response times without load are 5 to 12 ms and R_sat is 40 ms as in SH08 §5.3, so every server has a
peak rate; `noise_frac` of its truth says how hard it is to find. Every trial is charged 15 s of
set-up and warm-up.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from enum import StrEnum
from random import Random
from typing import Any

import msgspec

from leadline.record.workbench import Goal, SimulatedServer, Threshold
from proving.peak_truth import NoPeak, Truth, compute_truth, truth, truth_key

__all__ = [
    "GOAL",
    "PERCENTILE_GOAL",
    "RANGES",
    "Kind",
    "Member",
    "NoPeak",
    "Truth",
    "compute_truth",
    "member",
    "population",
    "truth",
    "truth_key",
]

GOAL = Goal(threshold=Threshold(mean_ms=40.0))
"""SH08 §5.3: R_sat 40 ms ± 10%, accuracy 90% at 95% confidence, runs of three minutes."""

PERCENTILE_GOAL = Goal(threshold=Threshold(percentile=0.95, limit_ms=120.0))
"""95% of the responses within 120 ms: three times R_sat, as an exponential tail has it."""


class Kind(StrEnum):
    """Classes of servers."""

    PLAIN = "plain"
    """M/G/k whose speed drifts a little and differs a little from trial to trial."""
    HEAVY_TAILS = "heavy tails"
    """Service times with a Pareto tail."""
    DRIFT = "drift"
    """Speed that wanders by 6 to 15% within a trial."""
    RETROGRADE = "retrograde"
    """More load, less done: service takes longer when requests have waited."""
    TWO_MODES = "two modes"
    """Whole trials are slower or faster. The truth is the root of the mixture's expectation."""


_ORDER = (
    Kind.PLAIN,
    Kind.HEAVY_TAILS,
    Kind.PLAIN,
    Kind.DRIFT,
    Kind.RETROGRADE,
    Kind.PLAIN,
    Kind.TWO_MODES,
    Kind.PLAIN,
    Kind.HEAVY_TAILS,
    Kind.DRIFT,
    Kind.PLAIN,
    Kind.RETROGRADE,
    Kind.TWO_MODES,
    Kind.PLAIN,
    Kind.HEAVY_TAILS,
    Kind.PLAIN,
    Kind.DRIFT,
    Kind.RETROGRADE,
    Kind.PLAIN,
    Kind.TWO_MODES,
)
"""Of every twenty, eight are plain and three of each other class."""

RANGES: dict[str, tuple[float, float]] = {
    "service_ms": (5.0, 12.0),
    "lognormal_cv": (0.5, 2.0),
    "hit_miss_slow_share": (0.05, 0.3),
    "hit_miss_slow_factor": (3.0, 12.0),
    "drift_sd": (0.01, 0.05),
    "drift_memory_s": (5.0, 40.0),
    "between_trials_sd": (0.005, 0.03),
    "cold_frac": (0.0, 1.0),
    "cold_s": (1.0, 5.0),
    "cpu_share_of_limit": (0.3, 1.0),
    "stalls_per_s": (0.003, 0.03),
    "stall_ms": (30.0, 150.0),
    "heavy.shape": (1.5, 2.2),
    "heavy.end": (30.0, 200.0),
    "drift.drift_sd": (0.06, 0.15),
    "drift.drift_memory_s": (10.0, 60.0),
    "retrograde.retrograde": (0.1, 0.6),
    "retrograde.retrograde_ms": (20.0, 200.0),
    "two_modes.slow_mode_share": (0.25, 0.75),
    "two_modes.slow_mode_factor": (1.1, 1.6),
}
"""Least and most; see `_LOG` for those drawn uniformly in their logarithm."""

_LOG = {
    "service_ms",
    "drift_memory_s",
    "cold_s",
    "stalls_per_s",
    "heavy.end",
    "drift.drift_memory_s",
    "retrograde.retrograde_ms",
}

WORKERS = (1, 2, 3, 4, 6, 8, 12, 16)
"""Equally often."""
CPU_SHARE = 0.25
"""Share of the servers with a shared processor, which alone would limit them to between once and
three times what the workers can."""
STALLING_SHARE = 0.25
"""Share of the servers that stall now and then."""


class Member(msgspec.Struct, frozen=True, kw_only=True):
    """One server of the population."""

    index: int
    kind: StrEnum
    """A `Kind`, or a mechanism of the other family."""
    server: SimulatedServer

    @property
    def name(self) -> str:
        """As tables print it."""
        return f"{self.index:03d} {self.kind.value}"


def population(count: int = 200, seed: int = 1) -> tuple[Member, ...]:
    """Return the first servers of the population with this seed."""
    return tuple(member(index, seed) for index in range(count))


STALL_MS, STALL_EVERY_S = (20.0, 500.0), (5.0, 120.0)


def stalling_population(count: int, seed: int) -> tuple[Member, ...]:
    """Return servers of a population, every second of which stands still now and then."""
    return tuple(
        _with_stalls(each, seed) if each.index % 2 else each for each in population(count, seed)
    )


def _with_stalls(each: Member, seed: int) -> Member:
    random = Random(f"leadline stalls {seed} {each.index}")
    ms, every_s = (low * (high / low) ** random.random() for low, high in (STALL_MS, STALL_EVERY_S))
    stalls = {"stall_ms": float(f"{ms:.4g}"), "stalls_per_s": float(f"{1 / every_s:.4g}")}
    server = SimulatedServer(system=dict(each.server.system) | stalls)
    return msgspec.structs.replace(each, server=server)


def member(index: int, seed: int = 1) -> Member:
    """Return one server of the population; it depends on nothing but these two."""
    random = Random(f"leadline server {seed} {index}")
    kind = _ORDER[index % len(_ORDER)]
    system = dict(_any_server(random)) | dict(_of_its_kind(kind, random))
    return Member(index=index, kind=kind, server=SimulatedServer(system=system))


def _drawn(name: str, random: Random) -> float:
    """Four digits: the numbers are to be read."""
    low, high = RANGES[name]
    place = random.random()
    value = low * (high / low) ** place if name in _LOG else low + (high - low) * place
    return float(f"{value:.4g}")


def _any_server(random: Random) -> Iterator[tuple[str, Any]]:
    workers = WORKERS[math.floor(random.random() * len(WORKERS))]
    service_ms = _drawn("service_ms", random)
    yield "workers", workers
    yield "service_ms", service_ms
    yield "service", _service(random)
    for name in ("drift_sd", "drift_memory_s", "between_trials_sd", "cold_frac", "cold_s"):
        yield name, _drawn(name, random)
    shared, stalling = random.random() < CPU_SHARE, random.random() < STALLING_SHARE
    cpu_ms = service_ms / workers * _drawn("cpu_share_of_limit", random)
    stalls = [(name, _drawn(name, random)) for name in ("stalls_per_s", "stall_ms")]
    if shared and workers > 1:
        yield "cpu_ms", float(f"{cpu_ms:.4g}")
    if stalling:
        yield from stalls


def _service(random: Random) -> dict[str, Any]:
    which = math.floor(random.random() * 3)
    cv = _drawn("lognormal_cv", random)
    share, factor = (_drawn(f"hit_miss_slow_{name}", random) for name in ("share", "factor"))
    found: tuple[dict[str, Any], ...] = (
        {"kind": "exponential"},
        {"kind": "lognormal", "cv": cv},
        {"kind": "two_modes", "slow_share": share, "slow_factor": factor},
    )
    return found[which]


def _of_its_kind(kind: Kind, random: Random) -> Iterator[tuple[str, Any]]:
    if kind is Kind.HEAVY_TAILS:
        shape, end = _drawn("heavy.shape", random), _drawn("heavy.end", random)
        yield "service", {"kind": "pareto", "shape": shape, "end": end}
    prefix = f"{kind.value.replace(' ', '_')}."
    for name in RANGES:
        if name.startswith(prefix):
            yield name.removeprefix(prefix), _drawn(name, random)
