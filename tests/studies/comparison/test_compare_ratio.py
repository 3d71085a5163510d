"""A ratio's interval holds the truth as often as it says, and its verdict is never a guess."""

from __future__ import annotations

import math

import numpy as np
import pytest

from leadline.record import Interval, Prediction, Workload
from leadline.stats import student_t
from leadline.studies.comparison.ratio import (
    LogRatio,
    holm,
    paired_ratio,
    predicted,
    studies_ratio,
    verdict_of,
)

WORK = Workload(unique_bytes=2**20, size_mean=4096)


def prediction(mb_s: float, ln_sd: float, df: float, n: int = 84) -> Prediction:
    half = student_t(df) * ln_sd if ln_sd > 0 else 0.0
    rate = Interval(mb_s, mb_s * math.exp(-half), mb_s * math.exp(half), n)
    return Prediction(
        workload=WORK,
        throughput_mb_s=rate,
        run_throughput_mb_s=rate,
        ln_sd=ln_sd,
        run_ln_sd=ln_sd,
        df=df,
        region=0,
        model="product",
    )


def ratio_of(a: Prediction, b: Prediction) -> LogRatio:
    ratio = studies_ratio(predicted([a]), predicted([b]))
    assert ratio is not None
    return ratio


def estimated(rng: np.random.Generator, truth: float, sd: float, df: int) -> Prediction:
    """A prediction whose standard error was itself estimated with so many degrees of freedom."""
    known_sd = sd * math.sqrt(rng.chisquare(df) / df)
    return prediction(truth * math.exp(sd * rng.standard_normal()), known_sd, df)


@pytest.mark.parametrize(
    ("sd_a", "df_a", "sd_b", "df_b"), [(0.05, 4, 0.05, 4), (0.02, 30, 0.1, 5), (0.1, 9, 0.03, 60)]
)
def test_the_interval_of_a_predicted_ratio_holds_the_truth_in_95_percent(
    sd_a: float, df_a: int, sd_b: float, df_b: int
) -> None:
    rng = np.random.default_rng(1994)
    held = [
        ratio_of(estimated(rng, 30.0, sd_a, df_a), estimated(rng, 10.0, sd_b, df_b))
        .interval()
        .covers(3.0)
        for _ in range(1500)
    ]
    assert 0.93 <= np.mean(held) <= 0.965


@pytest.mark.parametrize(("surveys_a", "surveys_b"), [(3, 3), (3, 2), (5, 1)])
def test_several_surveys_hold_the_truth_although_each_boot_differs(
    surveys_a: int, surveys_b: int
) -> None:
    """Boots differ by 6%, of which a survey that is sure of itself to 1.5% knows nothing."""
    rng = np.random.default_rng(41)

    def surveyed(truth: float) -> Prediction:
        return estimated(rng, truth * math.exp(0.06 * rng.standard_normal()), 0.015, 12)

    several, alone = [], []
    for _ in range(1500):
        a = [surveyed(30.0) for _ in range(surveys_a)]
        b = [surveyed(10.0) for _ in range(surveys_b)]
        ratio = studies_ratio(predicted(a), predicted(b))
        assert ratio is not None
        several.append(ratio.interval().covers(3.0))
        alone.append(ratio_of(a[0], b[0]).interval().covers(3.0))
    assert np.mean(alone) < 0.6
    assert 0.92 <= np.mean(several) <= 0.985


def test_the_less_known_side_decides_the_degrees_of_freedom() -> None:
    equal = ratio_of(prediction(10, 0.05, 8), prediction(10, 0.05, 8))
    assert equal.df == pytest.approx(16)
    uneven = ratio_of(prediction(10, 0.2, 8), prediction(10, 0.001, 100))
    assert uneven.df == pytest.approx(8, rel=0.01)
    assert equal.sd == pytest.approx(math.hypot(0.05, 0.05))
    assert equal.interval().n == 168


def test_the_interval_and_the_p_value_agree() -> None:
    for a in (9.0, 10.0, 11.0, 12.0):
        ratio = ratio_of(prediction(a, 0.05, 12), prediction(10, 0.04, 12))
        outside = not ratio.interval().covers(1.0)
        assert (ratio.p_value() < 0.05) == outside
        assert ratio.inverse().interval().value == pytest.approx(10 / a)
        below = ratio.interval().high or 0.0
        assert ratio.p_value_below(below) == pytest.approx(0.05)


def test_without_a_spread_there_is_no_ratio() -> None:
    good = prediction(10, 0.05, 8)
    for one, other in (
        (good, prediction(10, 0.0, 8)),
        (good, prediction(10, math.nan, 8)),
        (good, prediction(0.0, 0.05, 8)),
    ):
        assert studies_ratio(predicted([one]), predicted([other])) is None


def test_what_is_not_a_number_shows_nothing() -> None:
    ratio = LogRatio(mean=1.0, sd=math.nan, df=5.0, n=2)
    assert verdict_of(ratio, ratio.p_value()) == "inconclusive"
    assert holm([math.nan, 0.01]) == [1.0, 0.02]


def test_a_verdict_names_the_faster_one_only_below_5_percent() -> None:
    assert verdict_of(LogRatio(0.3, 0.1, 30, 4), 0.049) == "a"
    assert verdict_of(LogRatio(-0.3, 0.1, 30, 4), 0.049) == "b"
    assert verdict_of(LogRatio(-0.3, 0.1, 30, 4), 0.05) == "inconclusive"


def test_holm_matches_the_step_down_by_hand() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.2]) == [0.2]
    assert holm([]) == []
    assert holm([0.9, 0.8]) == [1.0, 1.0]


def test_many_verdicts_on_equal_systems_go_wrong_in_at_most_5_percent_of_comparisons() -> None:
    rng = np.random.default_rng(7)
    alone, together = [], []
    for _ in range(400):
        ratios = [
            ratio_of(estimated(rng, 10.0, 0.05, 20), estimated(rng, 10.0, 0.05, 20))
            for _ in range(10)
        ]
        p_values = [ratio.p_value() for ratio in ratios]
        alone.append(min(p_values) < 0.05)
        together.append(min(holm(p_values)) < 0.05)
    assert np.mean(alone) > 0.3
    assert np.mean(together) <= 0.07


@pytest.mark.parametrize("pairs", [4, 6, 12])
def test_the_interval_of_a_paired_ratio_holds_the_truth_in_95_percent(pairs: int) -> None:
    rng = np.random.default_rng(pairs)
    held, wide = [], []
    for _ in range(1200):
        shared = np.exp(0.2 * rng.standard_normal(pairs))
        own = np.exp(0.04 * rng.standard_normal((2, pairs)))
        ratio = paired_ratio(list(zip(20 * shared * own[0], 10 * shared * own[1], strict=True)))
        assert ratio is not None
        held.append(ratio.interval().covers(2.0))
        wide.append(ratio.interval().half_width_frac or 9.0)
    assert 0.93 <= np.mean(held) <= 0.97
    assert np.median(wide) < 0.15, "what both halves of a pair share must not widen the interval"


def test_two_lucky_pairs_are_not_exact() -> None:
    ratio = paired_ratio([(20.0, 10.0), (20.0, 10.0)])
    assert ratio is not None
    assert not ratio.interval().covers(1.0)
    assert (ratio.interval().half_width_frac or 0.0) > 0.01


def test_a_reading_of_nothing_or_a_single_pair_gives_no_ratio() -> None:
    assert paired_ratio([(20.0, 10.0)]) is None
    assert paired_ratio([(20.0, 0.0), (20.0, 10.0)]) is None
