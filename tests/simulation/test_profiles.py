"""Surveys of the simulated systems find what is there: a short version of bench/profiles.py.

The bench takes 200 seeds a profile and prints the table; here one seed of every kind of profile
keeps the machinery honest, exactly: a fixed seed gives one survey, and it must be right. More
seeds, and machines that differ from another profile only in their numbers, are surveyed by
`make test-long`. Bounds are those of the bench, widened for so few runs.
"""

from __future__ import annotations

import math

import msgspec
import pytest

from leadline.engine import profile_names
from proving.simulation import simulate_survey
from shared_surveys import FAST_BUDGET_S, SEED, surveyed

MORE_SEEDS = (12, 13)
ALIKE = frozenset(
    {
        "alpha-axp-3000",
        "alpha-axp-3000-cancelling",
        "convex-c240-cp93",
        "decstation-5000-ultrix",
        "hp-720-dux",
        "hp-730-hpux9",
        "hp-730-hpux9-unflushed",
        "ibm-3090",
        "rs6000-550",
        "sparcstation-10",
        "sparcstation-1plus-nfs",
    }
)
"""Machines of CP93 Table 1 with two levels: a write-through or a cancelling cache and a disk, as
`write-through` and `two-level` have them."""
KINDS = [name for name in profile_names() if name not in ALIKE]
QUICK_KINDS = ("no-cache", "three-level", "smooth-slope", "drifting")
"""One of each thing a survey may meet: no boundary, two, one that no step marks, and speed that
moves. Many other tests have one boundary, speed that moves at once has a test of its own below;
scatter takes millions of requests."""
QUICK = [(name, (SEED,)) for name in QUICK_KINDS]
LONG = [
    *(pytest.param(name, (SEED, *MORE_SEEDS), marks=pytest.mark.long) for name in KINDS),
    *(pytest.param(name, (SEED,), marks=pytest.mark.long) for name in sorted(ALIKE)),
]


@pytest.mark.parametrize(("profile", "seeds"), [*QUICK, *LONG])
def test_regions_and_boundaries_are_found(profile: str, seeds: tuple[int, ...]) -> None:
    runs = [surveyed(profile, seed) for seed in seeds]
    right = [run for run in runs if len(run.survey.regions) == run.true_regions]
    assert len(right) >= min(2, len(runs)), [len(run.survey.regions) for run in runs]
    errors = [
        abs(boundary.bytes.value / truth - 1)
        for run in right
        for boundary, truth in zip(run.survey.boundaries, run.true_boundaries, strict=True)
    ]
    assert sum(error > 0.10 for error in errors) <= (len(runs) > 1), errors
    assert all(run.survey.points <= 84 for run in runs)


@pytest.mark.parametrize(("profile", "seeds"), LONG)
def test_the_stated_intervals_cover_the_truth(profile: str, seeds: tuple[int, ...]) -> None:
    """Over three surveys: the points of one share one noise estimate, and err together."""
    runs = [surveyed(profile, seed) for seed in seeds]
    covered = [covers for run in runs for covers in run.covered_points()]
    assert len(covered) > 34 * len(runs)
    assert sum(covered) / len(covered) >= 0.80, f"{sum(covered)} of {len(covered)}"


@pytest.mark.parametrize(
    "surveys",
    [
        pytest.param([(name, SEED) for name in QUICK_KINDS], id="one-of-each-kind"),
        pytest.param(
            [(name, SEED) for name in profile_names()]
            + [(name, seed) for name in KINDS for seed in MORE_SEEDS],
            id="all",
            marks=pytest.mark.long,
        ),
    ],
)
def test_all_profiles_together_cover_as_stated(surveys: list[tuple[str, int]]) -> None:
    """One survey's points share one noise estimate: surveys differ by 0.055 (sd)."""
    covered = [covers for each in surveys for covers in surveyed(*each).covered_points()]
    known_to = max(0.03, 2 * 0.055 / math.sqrt(len(surveys)))
    assert sum(covered) / len(covered) == pytest.approx(0.95, abs=known_to)


EVERY_SEED = pytest.mark.parametrize(
    "seed", [SEED, *(pytest.param(seed, marks=pytest.mark.long) for seed in MORE_SEEDS)]
)


@EVERY_SEED
def test_a_drifting_system_is_called_drifting(seed: int) -> None:
    drift = surveyed("drifting", seed).survey.drift_frac
    assert drift is not None
    assert drift.high is not None
    assert drift.high < 0
    assert surveyed("drifting", seed).survey.drift_step is None


CREDIT_BUDGET_S = 14_000.0
"""A survey takes all of its budget: of the usual 13 hours the credit is gone after a ninth."""


@EVERY_SEED
def test_a_credit_cliff_is_called_a_step_and_placed(seed: int) -> None:
    survey = surveyed("credit-cliff", seed, budget_s=CREDIT_BUDGET_S).survey
    step = survey.drift_step
    assert step is not None
    assert step.change_frac.value == pytest.approx(-0.4, abs=0.04)
    assert step.after_s <= 5400 <= step.before_s or abs(step.at_s - 5400) < 1800
    assert "fell by" in str(survey.findings[0])
    assert " at about " in str(survey.findings[0])
    assert any("fell by" in sentence for sentence in survey.sentences)


@EVERY_SEED
def test_steady_systems_are_not_said_to_have_moved_at_one_moment(seed: int) -> None:
    kinds = QUICK_KINDS if seed == SEED else KINDS
    steady = [name for name in kinds if name not in {"drifting", "credit-cliff"}]
    stepped = [name for name in steady if surveyed(name, seed).survey.drift_step is not None]
    assert len(stepped) <= 0.05 * len(steady), stepped


def test_a_seed_means_the_same_survey_again() -> None:
    first = surveyed("three-level").survey
    again = simulate_survey("three-level", SEED, budget_s=FAST_BUDGET_S).survey
    at_once = msgspec.structs.replace(again.start, started_at=first.start.started_at)
    assert msgspec.structs.replace(again, start=at_once) == first
