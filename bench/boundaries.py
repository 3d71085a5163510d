"""Table of how well boundaries are found on simulated curves with adaptive placement.

Run: PYTHONPATH=python python bench/boundaries.py [--seeds 20] [--points 16] [--case NAME]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from figures import Cell, Column, Content, Row, add_save_option, save, slug
from leadline.stats.boundaries import BoundaryFit, fit_boundaries
from leadline.stats.placement import next_unique_bytes

MEASURES = ("python/leadline/stats", "crates/stats/src")
MB = 1e6
COLUMNS = (
    Column("case", "case"),
    Column("regions", "regions right", ("{value:.0f} of {n}",)),
    Column("median", "median error %", ("{value:.1f}",)),
    Column("p90", "p90%", ("{value:.1f}",)),
    Column("within_10", "within 10%, %", ("{value:.0f}",)),
    Column("covered", "covered %", ("{value:.0f}",)),
    Column("width", "half width %", ("{value:.1f}",)),
    Column("seconds", "s", ("{value:.2f}",)),
)


@dataclass(frozen=True)
class Case:
    """A curve whose truth is known: seconds per MB over unique_bytes."""

    name: str
    time: Callable[[float], float]
    boundaries: tuple[float, ...]
    low: float
    high: float
    noise: float


def additive(base: float, *levels: tuple[float, float]) -> Callable[[float], float]:
    """Simulate caches that see uniform random addresses: (size, time added by a miss)."""
    return lambda u: base + sum(added * (1 - min(1.0, size / u)) for size, added in levels)


def stepped(base: float, *levels: tuple[float, float]) -> Callable[[float], float]:
    """Simulate caches that see cyclic scans under LRU."""
    return lambda u: base + sum(added * (u > size) for size, added in levels)


def smeared(
    base: float, *levels: tuple[float, float], width: float = 0.2
) -> Callable[[float], float]:
    """Policies between the two."""
    return lambda u: (
        base + sum(added / (1 + np.exp(-(np.log(u / size)) / width)) for size, added in levels)
    )


def sloped(curve: Callable[[float], float], power: float) -> Callable[[float], float]:
    """Add a weak slope over the whole range."""
    return lambda u: curve(u) * (u / 50e6) ** power


def seeking(base: float, size: float, added: float, growth: float) -> Callable[[float], float]:
    """One cache over a disk whose seeks grow with the square root of the span."""
    return lambda u: base + added * (1 - min(1.0, size / u)) * (1 + growth * (u / 1e9) ** 0.5)


CASES = [
    *(
        Case(f"two-level {n:.0%}", additive(0.02, (23e6, 0.6)), (23e6,), 1e6, 1e9, n)
        for n in (0.02, 0.05, 0.1)
    ),
    Case("two-level narrow range", additive(0.02, (21e6, 0.6)), (21e6,), 2e6, 84e6, 0.04),
    Case("two-level step", stepped(0.02, (23e6, 0.6)), (23e6,), 1e6, 1e9, 0.05),
    Case("two-level smeared", smeared(0.02, (23e6, 0.6)), (23e6,), 1e6, 1e9, 0.05),
    Case("seeks grow a little", seeking(0.02, 23e6, 0.5, 0.4), (23e6,), 1e6, 1e9, 0.04),
    Case("seeks grow", seeking(0.02, 23e6, 0.5, 1.0), (23e6,), 1e6, 1e9, 0.04),
    Case("weak slope", sloped(additive(0.02, (23e6, 0.6)), 0.05), (23e6,), 1e6, 1e9, 0.04),
    *(
        Case(
            f"Sprite 3-level {n:.0%}",
            additive(0.11, (5e6, 0.25), (20e6, 0.9)),
            (5e6, 20e6),
            0.5e6,
            100e6,
            n,
        )
        for n in (0.03, 0.06)
    ),
    Case(
        "three-level wide", additive(0.01, (8e6, 0.1), (150e6, 1.0)), (8e6, 150e6), 1e6, 1.5e9, 0.05
    ),
    Case(
        "four-level",
        additive(0.005, (4e6, 0.03), (40e6, 0.25), (300e6, 2.0)),
        (4e6, 40e6, 300e6),
        1e6,
        2e9,
        0.03,
    ),
    Case("write-through 1.7", additive(0.3, (300e6, 0.21)), (300e6,), 10e6, 3e9, 0.03),
    Case("write-through 2.2", additive(0.3, (300e6, 0.36)), (300e6,), 10e6, 3e9, 0.05),
    Case("write-through 2 10%", additive(0.3, (300e6, 0.3)), (300e6,), 10e6, 3e9, 0.1),
    *(Case(f"no cache {n:.0%}", additive(0.3), (), 1e6, 1e9, n) for n in (0.03, 0.1)),
    Case("no cache, seeks", lambda u: 0.3 * (1 + 0.5 * (u / 1e9) ** 0.5), (), 1e6, 1e9, 0.03),
    *(Case(f"power 0.3 {n:.0%}", sloped(additive(0.3), 0.3), (), 1e6, 1e9, n) for n in (0.03, 0.1)),
    Case("power 0.15", sloped(additive(0.3), 0.15), (), 1e6, 1e9, 0.03),
    Case("log slope", lambda u: 0.1 + 0.05 * float(np.log(u / 1e6)), (), 1e6, 1e9, 0.03),
]


def scan(case: Case, points: int, seed: int) -> tuple[BoundaryFit, tuple[float, ...]]:
    """Measure a case adaptively and fit it; return the true boundaries too.

    Boundaries move by up to a factor of 1.5 with the seed, so that no result hangs on where they
    lie between the first readings.
    """
    rng = np.random.default_rng([seed, 7])
    moved = float(np.exp(rng.uniform(-0.4, 0.4)))
    readings: list[tuple[float, float]] = []
    for left in range(points, 0, -1):
        u = next_unique_bytes(readings, case.low, case.high, left)
        readings.append((u, float(np.exp(case.noise * rng.normal()) / case.time(u / moved))))
    fit = fit_boundaries([u for u, _ in readings], [t for _, t in readings], seed=seed)
    return fit, tuple(moved * boundary for boundary in case.boundaries)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--points", type=int, default=16)
    parser.add_argument("--first-seed", type=int, default=1000, help="below 200: used for tuning")
    parser.add_argument("--case", default="")
    add_save_option(parser, "boundaries")
    chosen = parser.parse_args()
    print(f"{chosen.points} readings per curve, {chosen.seeds} seeds")
    print(
        f"{'case':24} {'regions':>8} {'median':>7} {'p90':>6} {'within10':>8} "
        f"{'covered':>8} {'width':>6} {'s':>5}"
    )
    seeds = range(chosen.first_seed, chosen.first_seed + chosen.seeds)
    rows = [row(case, chosen.points, seeds) for case in CASES if chosen.case in case.name]
    note = f"{chosen.points} readings per curve."
    save(chosen, COLUMNS, rows, seeds=f"seeds {seeds[0]} to {seeds[-1]}", note=note)


def row(case: Case, points: int, seeds: range) -> Row:
    """Print one line of the table, and return it."""
    right, errors, covered, widths = 0, [], [], []
    started = time.perf_counter()
    for seed in seeds:
        fit, truths = scan(case, points, seed)
        if len(fit.boundaries) != len(truths):
            continue
        right += 1
        for boundary, truth in zip(fit.boundaries, truths, strict=True):
            errors.append(abs(boundary.bytes.value / truth - 1))
            covered.append(boundary.bytes.covers(truth))
            widths.append(boundary.bytes.half_width_frac or 0.0)
    took = (time.perf_counter() - started) / len(seeds)
    tail = ""
    if errors:
        tail = (
            f"{np.median(errors):7.1%} {np.quantile(errors, 0.9):6.1%} "
            f"{np.mean(np.array(errors) < 0.1):8.0%} {np.mean(covered):8.0%} "
            f"{np.median(widths):6.1%}"
        )
    print(f"{case.name:24} {right:4}/{len(seeds):<3} {tail:>40} {took:5.2f}", flush=True)
    found: dict[str, Content] = {"case": case.name, "regions": Cell(right, n=len(seeds))}
    if errors:
        found |= {
            "median": 100 * float(np.median(errors)),
            "p90": 100 * float(np.quantile(errors, 0.9)),
            "within_10": 100 * float(np.mean(np.array(errors) < 0.1)),
            "covered": 100 * float(np.mean(covered)),
            "width": 100 * float(np.median(widths)),
        }
    return Row(slug(case.name), {**found, "seconds": took})


if __name__ == "__main__":
    main()
