"""Experiments as documents, from real searches on simulated servers: for the report's tests."""

from __future__ import annotations

import functools
import hashlib
import math
from collections.abc import Mapping
from typing import Any

import msgspec

from leadline.record import Interval, Status
from leadline.record.finding import Finding
from leadline.record.workbench import (
    Experiment,
    ExperimentStart,
    Factor,
    Fare,
    Goal,
    Level,
    PeakRate,
    PeakVerdict,
    Prior,
    Sample,
    SamplePeak,
    SimulatedServer,
    SurfaceCell,
    Threshold,
    Trial,
    TrialOrder,
)
from leadline.servers import run_trial
from leadline.studies.workbench.answer import explain
from leadline.studies.workbench.policies import open_policy
from leadline.studies.workbench.surface.design import open_design
from shared_results import once

SYSTEM: dict[str, Any] = {
    "workers": 4,
    "service_ms": 5.0,
    "service": {"kind": "exponential"},
    "drift_sd": 0.0,
    "between_trials_sd": 0.01,
    "cold_frac": 0.5,
}
DISKS: dict[str, Any] = {
    "workers": 8,
    "service_ms": 0.4,
    "service": {"kind": "exponential"},
    "cpu_ms": 0.5,
    "cpu_contention_frac": 0.002,
    "disks": 1,
    "disk_share": 0.6,
    "disk_ms": 7.0,
    "between_trials_sd": 0.01,
}
MEAN = Goal(threshold=Threshold(mean_ms=40.0))
PERCENTILE = Goal(threshold=Threshold(percentile=0.95, limit_ms=60.0))
BOTH = Goal(accuracy=0.8, threshold=Threshold(mean_ms=40.0, percentile=0.95, limit_ms=150.0))
HOSTILE = "</script><img src=x onerror=alert(1)>\x1b[31m"

DISK_LEVELS: tuple[Level, ...] = (1, 2, 3, 4)
THREAD_LEVELS: tuple[Level, ...] = (1, 2, 4, 8, 16, 32, 64, 100)
FACTORS = (
    Factor(name="disks", role="resource", levels=DISK_LEVELS),
    Factor(name="workers", role="configuration", levels=THREAD_LEVELS),
)


def search(
    server: SimulatedServer,
    goal: Goal,
    *,
    policy: str = "binary",
    sample: Sample | None = None,
    seed: int = 1,
    prior: Prior | None = None,
) -> SamplePeak:
    """Return a whole search, run as the loop does by whichever process of the tests asks first."""

    def run() -> SamplePeak:
        found = open_policy(policy, goal, seed, prior)
        trials: list[Trial] = []
        while not isinstance(asked := found.ask(), PeakRate):
            order = TrialOrder(
                server=server,
                sample=sample or {},
                threshold=goal.threshold,
                request=asked,
                order=len(trials),
                seed=seed * 1000 + len(trials),
            )
            trials.append(run_trial(order))
            found.tell(trials[-1])
        return SamplePeak(sample=sample or {}, trials=tuple(trials), peak=asked, prior=prior)

    told = msgspec.json.encode((server, goal, policy, sample, seed, prior))
    return once(f"search-{hashlib.sha256(told).hexdigest()}", run)


def peak_experiment(
    goal: Goal = MEAN,
    *,
    policy: str = "binary",
    name: str = "atlas",
    seed: int = 1,
    start_per_s: float | None = None,
    server: Mapping[str, Any] | None = None,
) -> Experiment:
    """One search on a server with four workers of 5 ms: its peak is near 770 requests/s."""
    simulated = SimulatedServer(**{"system": SYSTEM} | dict(server or {}))
    prior = None if start_per_s is None else Prior(rate_per_s=start_per_s)
    found = search(simulated, goal, policy=policy, seed=seed, prior=prior)
    peak = found.peak
    assert peak is not None
    start = ExperimentStart(
        study_id="0b8e3c5f21d44a6f9a7d3f0e6c1b2a90",
        system=name,
        server=simulated,
        goal=goal,
        policy=policy,
        samples=({},),
        seed=seed,
        started_at="2026-11-22T04:00:00Z",
        facts={"host": "atlas", "kernel": "6.18"},
        text="[experiment]\n",
    )
    found_all = Experiment(start=start, status=Status.DONE, peaks=(found,), wall_s=3.2)
    return msgspec.structs.replace(
        explain(found_all), fares=fares(peak), fares_on="a simulated server with 4 workers"
    )


def fares(peak: PeakRate) -> tuple[Fare, ...]:
    """How seven policies might have fared; the numbers are made."""
    rate = 770.0 if peak.rate_per_s is None else peak.rate_per_s.value
    made = (
        ("linear", 1.01, 310.0, 40),
        ("linear-seeded", 0.99, 64.0, 19),
        ("binary", 1.0, 52.0, 16),
        ("binary-seeded", 1.005, 41.0, 12),
        ("model-guided", 0.97, 88.0, 27),
        ("mlrsearch", 1.002, 11.0, 6),
        ("curve", 0.998, 5.4, 4),
    )
    return tuple(
        Fare(
            policy=name,
            verdict=PeakVerdict.FOUND,
            rate_per_s=rate * factor,
            cost_s=minutes * 60,
            cost_low_s=minutes * 45,
            cost_high_s=minutes * 90,
            trials=trials,
            repetitions=20,
        )
        for name, factor, minutes, trials in made
    )


@functools.cache
def full_surface(policy: str = "binary") -> Experiment:
    """All 32 peaks of disks x threads, each measured."""
    return surface_experiment("full-grid", policy=policy)


def surface_experiment(
    design: str,
    *,
    policy: str = "binary",
    factors: tuple[Factor, ...] = FACTORS,
    goal: Goal = MEAN,
    name: str = "DB_TP",
    system: Mapping[str, Any] | None = None,
    seed: int = 1,
    error_frac: float | None = None,
) -> Experiment:
    """Map a surface as the loop does, one sample after another."""
    server = SimulatedServer(system=DISKS | dict(system or {}))
    chosen = open_design(design, factors, goal, seed=seed, error_frac=error_frac)
    peaks: list[SamplePeak] = []
    while samples := chosen.ask(1):
        sample, prior = samples[0], chosen.prior_for(samples[0])
        found = search(
            server, goal, policy=policy, sample=sample, seed=seed + len(peaks), prior=prior
        )
        peaks.append(found)
        assert found.peak is not None
        chosen.tell(sample, found.peak)
    surface = chosen.surface()
    start = ExperimentStart(
        study_id="5d1f7a2c9be04e6c8f3a1d2b4c5e6f70",
        system=name,
        server=server,
        goal=goal,
        policy=policy,
        factors=factors,
        design=design,
        seed=seed,
        surface_error_frac=error_frac,
        samples=tuple(cell.sample for cell in surface.cells),
        started_at="2026-11-22T04:00:00Z",
    )
    return explain(
        Experiment(
            start=start, status=Status.DONE, peaks=tuple(peaks), surface=surface, wall_s=12.0
        )
    )


def partly(experiment: Experiment, every: int = 4) -> Experiment:
    """Take most measured cells for predicted ones, 8% wide; the first of them for unknown."""
    surface = experiment.surface
    assert surface is not None
    cells: list[SurfaceCell] = []
    kept = []
    for number, cell in enumerate(surface.cells):
        rate = cell.rate_per_s
        if number % every == 0 or rate is None:
            cells.append(cell)
            kept.append(cell.sample)
            continue
        wide = Interval(rate.value * 1.01, rate.value / 1.09, rate.value * 1.09, 8)
        unknown = number == 1
        cells.append(
            SurfaceCell(sample=cell.sample, rate_per_s=None if unknown else wide, measured=False)
        )
    return explain(
        msgspec.structs.replace(
            experiment,
            peaks=tuple(peak for peak in experiment.peaks if peak.sample in kept),
            surface=msgspec.structs.replace(
                surface,
                cells=tuple(cells),
                model="soft-min",
                error_frac=0.06,
                cost_s=sum(
                    sum(t.cost_s for t in p.trials) for p in experiment.peaks if p.sample in kept
                ),
            ),
        )
    )


def with_costs(experiment: Experiment, factor: float, **start: Any) -> Experiment:
    """The same experiment under another policy or goal, as much dearer."""
    surface = experiment.surface
    assert surface is not None
    assert math.isfinite(factor)
    return msgspec.structs.replace(
        experiment,
        start=msgspec.structs.replace(experiment.start, **start),
        surface=msgspec.structs.replace(surface, cost_s=surface.cost_s * factor),
    )


@functools.cache
def one_factor() -> Experiment:
    """A surface of one factor: a line."""
    factors = (Factor(name="workers", role="configuration", levels=(1, 2, 4, 8)),)
    return surface_experiment("full-grid", factors=factors, system={"disks": 2})


@functools.cache
def three_factors() -> Experiment:
    """A surface of three factors, one a category: planes."""
    factors = (
        Factor(name="disks", role="resource", levels=(1, 2)),
        Factor(name="workers", role="configuration", levels=(1, 4, 16)),
        Factor(name="disk_share", role="workload", levels=(0.3, 0.6), scale="category"),
    )
    return surface_experiment("full-grid", factors=factors)


def hostile(experiment: Experiment) -> Experiment:
    """The same experiment, with names of a stranger who means harm wherever there can be one."""
    replace = msgspec.structs.replace
    first = experiment.peaks[0]
    trial = replace(first.trials[0], failure=HOSTILE, worker=HOSTILE)
    return replace(
        experiment,
        start=replace(experiment.start, system=HOSTILE, text=HOSTILE, facts={HOSTILE: HOSTILE}),
        peaks=(replace(first, trials=(trial, *first.trials[1:])), *experiment.peaks[1:]),
        sentences=(HOSTILE, *experiment.sentences),
        findings=(Finding.of("trials_failed", trials=1, why=HOSTILE),),
        fares_on=HOSTILE,
    )


_LOW = Goal(threshold=Threshold(mean_ms=3.0))
ENDINGS: dict[str, dict[str, Any]] = {
    "never-saturated": {"goal": msgspec.structs.replace(MEAN, rate_max_per_s=300.0)},
    "always-saturated": {"goal": _LOW},
    "server-lost": {"server": {"dies_above_per_s": 500.0}},
    "generator-limited": {"server": {"generator_max_per_s": 500.0}},
    "deadline": {"goal": msgspec.structs.replace(MEAN, deadline_s=1200.0)},
}
"""Searches that end otherwise than with a peak rate."""


def ending(name: str) -> Experiment:
    """A search that ended so."""
    found = peak_experiment(**ENDINGS[name])
    return msgspec.structs.replace(found, fares=(), fares_on="not compared: too few trials")
