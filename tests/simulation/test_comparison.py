"""Comparisons of simulated systems against the truth (CP94 Fig. 17).

`bench/comparison.py` does the same with 200 repetitions.
"""

from __future__ import annotations

import functools
from itertools import combinations

import pytest

from leadline.models.predictor import Predictor
from leadline.studies.comparison.document import named_questions
from proving.comparison import PAPER_MACHINES, HeldRatio, held_comparison, random_questions
from shared_surveys import SEED, surveyed


@functools.cache
def predictor(profile: str, seed: int = SEED, *, model: str | None = None) -> Predictor:
    """Fit a model to a survey; it may be asked beyond it."""
    run = surveyed(profile, seed)
    return Predictor(run.survey, run.points, model=model, extrapolate=True)


CLEAR = 1.15
"""True ratios beyond this must be seen (issue 4)."""


def on_named(model: str, seed: int = SEED) -> list[HeldRatio]:
    """Every pair of the paper's machines on the five named workloads."""
    found: list[HeldRatio] = []
    for a, b in combinations(PAPER_MACHINES, 2):
        one, other = (predictor(name, seed, model=model) for name in (a, b))
        found += held_comparison((a, b), (one, other), named_questions())[1]
    return found


def wrong(held: list[HeldRatio], clear: float) -> list[HeldRatio]:
    return [
        each
        for each in held
        if max(each.true_ratio, 1 / each.true_ratio) > clear and not each.right_winner
    ]


@pytest.mark.long
def test_where_the_joint_model_has_the_wrong_winner_it_says_that_it_cannot_tell() -> None:
    """Far outside what was surveyed one of fifty ratios may lie on the other side of 1."""
    held = on_named("joint")
    assert len(held) == 50
    mistaken = wrong(held, CLEAR)
    assert len(mistaken) <= 1
    assert all(each.verdict == "inconclusive" and each.covered for each in mistaken), mistaken
    assert not any(each.wrong_verdict for each in held)


@pytest.mark.long
def test_the_joint_model_names_the_right_winner_of_every_pair_on_every_named_workload() -> None:
    """From the surveys that issue 4 was accepted with; other seeds miss one far guess."""
    held = on_named("joint", 1)
    assert len(held) == 50
    assert wrong(held, CLEAR) == []


@pytest.mark.long
def test_the_product_model_errs_only_where_it_guesses_far_outside_and_systems_are_alike() -> None:
    held = on_named("product")
    assert wrong(held, 1.2) == []
    assert {each.title for each in wrong(held, CLEAR)} <= {"database"}
    assert not any(each.wrong_verdict for each in held)


@pytest.mark.long
@pytest.mark.parametrize("model", ["product", "joint"])
def test_intervals_of_ratios_hold_the_truth_on_random_workloads(model: str) -> None:
    covered = []
    for number, (a, b) in enumerate(combinations(PAPER_MACHINES, 2)):
        pair = (predictor(a, model=model), predictor(b, model=model))
        questions = random_questions(pair, 10, number)
        covered += [each.covered for each in held_comparison((a, b), pair, questions)[1]]
    assert len(covered) == 100
    assert sum(covered) >= 85, "95% intervals; the binomial leaves 90, correlated errors more"


def test_two_surveys_of_one_system_cannot_be_told_apart() -> None:
    profile = "sparcstation-1plus"
    pair = (predictor(profile), predictor(profile, 12))
    document, held = held_comparison(
        (profile, profile), pair, [*named_questions(), *random_questions(pair, 10, 5)]
    )
    assert len(held) == 15
    assert {each.true_ratio for each in held} == {1.0}
    assert {pair.verdict for pair in document.pairs} == {"inconclusive"}
