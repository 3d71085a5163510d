"""Surveys of the simulated systems find what is there: a short version of bench/profiles.py.

The bench takes 200 seeds a profile and prints the table; here three seeds each keep the machinery
honest, and one for machines that differ from another profile only in their numbers. Bounds are
those of the bench, widened for so few runs.
"""

from __future__ import annotations

import functools

import msgspec
import pytest

from leadline.engine import profile_names
from leadline.testing.simulation import SimulatedSurvey, simulate_survey

SEEDS = (11, 12, 13)
ONE_SEED = frozenset(
    {
        "alpha-axp-3000", "alpha-axp-3000-cancelling", "convex-c240-cp93",
        "decstation-5000-ultrix", "hp-720-dux", "hp-730-hpux9-unflushed", "ibm-3090",
        "rs6000-550", "sparcstation-10", "sparcstation-1plus-nfs",
    }
)  # fmt: skip
"""Machines of CP93 Table 1 with two levels: a write-through or a cancelling cache and a disk."""


@functools.cache
def surveyed(profile: str, seed: int) -> SimulatedSurvey:
    return simulate_survey(profile, seed)


def seeds(profile: str) -> tuple[int, ...]:
    return SEEDS[:1] if profile in ONE_SEED else SEEDS


@pytest.mark.parametrize("profile", profile_names())
def test_regions_and_borders_are_found(profile: str) -> None:
    runs = [surveyed(profile, seed) for seed in seeds(profile)]
    right = [run for run in runs if len(run.survey.regions) == run.true_regions]
    assert len(right) >= min(2, len(runs)), [len(run.survey.regions) for run in runs]
    errors = [
        abs(border.bytes.value / truth - 1)
        for run in right
        for border, truth in zip(run.survey.borders, run.true_borders, strict=True)
    ]
    assert sum(error > 0.10 for error in errors) <= (len(runs) > 1), errors
    assert all(run.survey.points <= 84 for run in runs)


@pytest.mark.parametrize("profile", profile_names())
def test_the_stated_intervals_cover_the_truth(profile: str) -> None:
    runs = [surveyed(profile, seed) for seed in seeds(profile)]
    covered = [covers for run in runs for covers in run.covered_points()]
    assert len(covered) > 34 * len(runs)
    assert sum(covered) / len(covered) >= 0.80, f"{sum(covered)} of {len(covered)}"


def test_all_profiles_together_cover_as_stated() -> None:
    """One survey's points share one noise estimate, so only many surveys average to 95 %."""
    covered = [
        covers
        for profile in profile_names()
        for seed in seeds(profile)
        for covers in surveyed(profile, seed).covered_points()
    ]
    assert 0.92 <= sum(covered) / len(covered) <= 0.98


def test_a_drifting_system_is_called_drifting() -> None:
    for seed in SEEDS:
        drift = surveyed("drifting", seed).survey.drift_frac
        assert drift is not None
        assert drift.high is not None
        assert drift.high < 0
        assert surveyed("drifting", seed).survey.drift_step is None


def test_a_credit_cliff_is_called_a_step_and_placed() -> None:
    for seed in SEEDS:
        survey = surveyed("credit-cliff", seed).survey
        step = survey.drift_step
        assert step is not None
        assert step.change_frac.value == pytest.approx(-0.4, abs=0.04)
        assert step.after_s <= 5400 <= step.before_s or abs(step.at_s - 5400) < 1800
        assert "fell by" in survey.warnings[0]
        assert "into the survey" in survey.warnings[0]
        assert any("fell by" in sentence for sentence in survey.sentences)


def test_steady_systems_are_not_said_to_have_moved_at_one_moment() -> None:
    steady = [name for name in profile_names() if name not in {"drifting", "credit-cliff"}]
    stepped = [
        (name, seed)
        for name in steady
        for seed in seeds(name)
        if surveyed(name, seed).survey.drift_step is not None
    ]
    assert len(stepped) <= 0.05 * sum(len(seeds(name)) for name in steady), stepped


def test_a_seed_means_the_same_survey_again() -> None:
    first, again = surveyed("hp-730", SEEDS[0]).survey, simulate_survey("hp-730", SEEDS[0]).survey
    at_once = msgspec.structs.replace(again.start, started_at=first.start.started_at)
    assert msgspec.structs.replace(again, start=at_once) == first
