"""The five lines say what the intervals show, and nothing that they do not."""

from __future__ import annotations

import re

import msgspec
import numpy as np
import pytest

import survey_fixture as made
from leadline.record import Interval, Survey
from leadline.record.findings import compare, gain
from leadline.record.wording import format_times
from leadline.studies.survey.charts import drift_title
from leadline.studies.survey.sentences import sentences


@pytest.mark.parametrize(
    "survey",
    [
        made.two_region(),
        made.three_region(),
        made.one_region(),
        made.smooth(),
        made.drifting(),
        made.stopped(),
        made.empty(),
    ],
)
def test_every_survey_is_answered_in_five_lines(survey: Survey) -> None:
    answer = sentences(survey)
    assert len(answer) == 5
    assert all(text.endswith(".") and "nan" not in text and "None" not in text for text in answer)


def test_two_levels_name_the_cache_its_size_with_interval_and_the_cap() -> None:
    assert sentences(made.two_region())[0] == (
        "Page cache: 485 MiB, 95% CI [466, 499]; disk beyond (2 levels; from throughput; page "
        "cache capped at 512 MiB)."
    )


def test_the_sprite_reads_faster_only_on_the_middle_plateau() -> None:
    text = sentences(made.three_region())[3]
    mix = text[text.index("Reads over writes") : text.index("Sequential over")]
    assert "page cache ×4.1" in mix
    assert "write cache no significant difference" in mix
    assert sentences(made.three_region())[0].startswith("Write cache: 5.05 MiB, 95% CI [")


def test_more_processes_without_gain_are_said_once_for_all_levels() -> None:
    text = sentences(made.three_region())[3]
    assert text.startswith("Concurrency: write cache, page cache and disk no significant gain from")


def test_a_smooth_slope_is_one_level_and_still_says_how_far_it_falls() -> None:
    text = sentences(made.smooth())[0]
    assert re.match(r"One level, disk, smooth slope: no boundary from .* ×6\.\d \[", text)
    assert "slope" not in sentences(made.one_region())[0]


def test_drift_is_said_as_a_change() -> None:
    assert "; drift: −8.8% [−10, −7.1]" in sentences(made.drifting())[4]
    assert "no significant drift: −0.4% [−1.2, +0.4]" in sentences(made.two_region())[4]


def test_an_interval_that_tells_nothing_is_not_told_as_a_number() -> None:
    """An aborted survey of a slow disk: a drift of -46% [-100, +282109], ±911%."""
    survey = msgspec.structs.replace(
        made.two_region(), drift_frac=Interval(-0.46, -1.0, 2821.09, 3), accuracy_frac=9.11
    )
    sure = sentences(survey)[4]
    assert "median 95% CI half-width more than ±100%" in sure
    assert "drift unknown" in sure
    assert drift_title(survey) == "Drift unknown"
    known = msgspec.structs.replace(survey, drift_frac=Interval(0.1, -0.3, 0.9, 3))
    assert "no significant drift: +10% [−30, +90]" in sentences(known)[4]
    assert drift_title(known) == "No significant drift: +10% [−30, +90]"


def test_what_a_stopped_survey_did_not_measure_is_said_so() -> None:
    answer = sentences(made.stopped())
    assert "disk not measured" in answer[2]
    assert "stopped early, after 23 of 264 planned points" in answer[4]
    assert "focal points not settled" in answer[4]


def test_best_and_worst_of_equal_workloads_are_not_told_apart() -> None:
    survey = made.one_region()
    point = survey.unique_bytes_curve.points[0]
    points = tuple(
        msgspec.structs.replace(
            point,
            x=point.x * 2**step,
            throughput_mb_s=Interval(100 + 0.1 * step, 97 + 0.1 * step, 103 + 0.1 * step, 4),
        )
        for step in range(4)
    )
    flat = msgspec.structs.replace(survey.unique_bytes_curve, points=points)
    same = msgspec.structs.replace(survey, unique_bytes_curve=flat, families=())
    assert sentences(same)[1] == (
        "Fastest and slowest: no significant difference among 4 workloads."
    )


def test_a_curve_still_rising_at_its_end_is_not_said_to_level_off() -> None:
    text = sentences(made.two_region())[2]
    cache, disk = text.split(";")
    assert "level from 256 KiB" in cache
    assert disk.rstrip(".").endswith("still rising")
    assert "level from" not in disk


def test_a_ratio_is_shown_only_when_its_interval_excludes_one() -> None:
    base = Interval(100, 95, 105, 4)
    assert not compare(Interval(104, 99, 109, 4), base).shown
    assert compare(Interval(130, 124, 136, 4), base).faster
    assert compare(base, Interval(130, 124, 136, 4)).slower
    assert not compare(Interval(500, None, None, 1), base).shown
    assert format_times(compare(Interval(500, None, None, 1), base)) == "×5.0"


def test_picking_the_best_of_many_asks_for_more_evidence() -> None:
    one, other = Interval(107, 103, 111, 4), Interval(100, 96, 104, 4)
    assert compare(one, other).shown
    assert not compare(one, other, candidates=50).shown


def test_the_interval_of_a_ratio_covers_the_truth_as_often_as_it_says() -> None:
    rng = np.random.default_rng(8)
    hits = 0
    for _ in range(2000):
        a, b = 300 + 6 * rng.standard_normal(), 100 + 2 * rng.standard_normal()
        found = compare(Interval(a, a - 11.76, a + 11.76, 9), Interval(b, b - 3.92, b + 3.92, 9))
        hits += found.low is not None and found.high is not None and found.low <= 3 <= found.high
    assert 0.93 <= hits / 2000 <= 0.97


def test_gain_finds_where_a_curve_levels_off_and_falls() -> None:
    curve = made.two_region().families[0].curves[0]
    heights = [10.0, 50.0, 97.0, 100.0, 99.0, 60.0]
    points = tuple(
        msgspec.structs.replace(point, throughput_mb_s=Interval(y, 0.99 * y, 1.01 * y, 4))
        for point, y in zip(curve.points, heights, strict=True)
    )
    found = gain(msgspec.structs.replace(curve, points=points))
    assert found is not None
    assert found.level_x == points[2].x
    assert found.best.x == points[3].x
    assert not found.rising
    assert found.to_last.slower
