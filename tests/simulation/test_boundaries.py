"""Boundaries on simulated curves, placed adaptively; bench/boundaries.py is the long form."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "bench"))

import boundaries as bench

SEEDS = [(0,), pytest.param((1, 2), marks=pytest.mark.long)]
POINTS = 16
CASES = {case.name: case for case in bench.CASES}


@pytest.mark.parametrize(
    ("name", "median_error_max"),
    [
        ("two-level 2%", 0.02),
        ("two-level 10%", 0.05),
        ("two-level step", 0.05),
        ("two-level smeared", 0.05),
        ("seeks grow a little", 0.02),
        ("weak slope", 0.02),
        ("Sprite 3-level 3%", 0.04),
        ("Sprite 3-level 6%", 0.05),
        ("three-level wide", 0.04),
        ("four-level", 0.03),
        ("write-through 1.7", 0.06),
        ("write-through 2.2", 0.06),
    ],
)
@pytest.mark.parametrize("seeds", SEEDS, ids=["one", "more"])
def test_every_boundary_is_found_near_its_place(
    name: str, median_error_max: float, seeds: tuple[int, ...]
) -> None:
    errors = []
    for seed in seeds:
        fit, truths = bench.scan(CASES[name], POINTS, seed)
        assert len(fit.boundaries) == len(truths), (seed, fit.model, fit.alternatives[:3])
        for boundary, truth in zip(fit.boundaries, truths, strict=True):
            errors.append(abs(boundary.bytes.value / truth - 1))
    assert np.median(errors) < median_error_max
    assert np.mean(np.array(errors) < 0.10) >= 0.8


@pytest.mark.parametrize(
    "name",
    ["no cache 3%", "no cache 10%", "no cache, seeks", "power 0.3 3%", "power 0.15", "log slope"],
)
@pytest.mark.parametrize("seeds", SEEDS, ids=["one", "more"])
def test_a_smooth_curve_has_no_boundary(name: str, seeds: tuple[int, ...]) -> None:
    for seed in seeds:
        fit, _ = bench.scan(CASES[name], POINTS, seed)
        assert fit.boundaries == (), (seed, fit.model, fit.alternatives[:3])


@pytest.mark.long
def test_intervals_of_boundaries_cover_the_truth() -> None:
    names = ("two-level 5%", "Sprite 3-level 3%", "write-through 2.2")
    covered = [
        boundary.bytes.covers(truth)
        for name in names
        for seed in range(100, 106)
        for fit, truths in [bench.scan(CASES[name], 14, seed)]
        if len(fit.boundaries) == len(truths)
        for boundary, truth in zip(fit.boundaries, truths, strict=True)
    ]
    assert len(covered) >= 22
    assert 0.85 <= np.mean(covered) <= 1.0
