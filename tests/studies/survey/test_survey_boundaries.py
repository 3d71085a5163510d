"""Which boundaries a survey has: the counted end of the page cache, others by throughput."""

from __future__ import annotations

import dataclasses

import msgspec
import pytest

from counted_fixture import MIB, mixed_point
from leadline.record import Interval, Measurement
from leadline.stats import FittedBoundary
from leadline.studies.cache.explain import find_in_survey
from leadline.studies.survey.boundaries import _overlap, _seen, decide, decide_again
from leadline.studies.survey.explain import _cache_bytes, _cached_share
from leadline.studies.survey.strategy import Surveyor
from shared_surveys import studied, surveyed

PLACES = (64, 110, 180, 240, 320, 390, 450, 520, 590, 640, 870, 1130, 1480, 2400, 3300, 4200)
HELD = 680 * MIB


def rate(place: float, *ends: tuple[float, float]) -> float:
    """Throughput in MB/s of places drawn uniformly: (size, times as long where it is missed)."""
    seconds = 1.0 + sum(times * max(0.0, 1 - size / place) for size, times in ends)
    return 4000.0 / seconds


def curve(*ends: tuple[float, float], held: float | None = HELD) -> list[Measurement]:
    """Points whose throughput falls at `ends`, while reads found what the cache held."""
    return [
        mixed_point(
            place,
            mb_s=rate(place, *ends) * (1.01 if order % 2 else 0.99),
            found=None if held is None else min(1.0, held / place),
            order=order,
        )
        for order, place in enumerate(place * MIB for place in PLACES)
    ]


def test_the_count_stands_where_the_throughput_fell_before_the_cache_was_full() -> None:
    """The issue's survey: 470 by throughput, while every byte came from cache at 565 MiB."""
    decided = decide(curve((470 * MIB, 12.0)), seed=1, memory_bytes=700 * MIB)
    (boundary,) = decided.boundaries
    assert boundary.basis == "counted"
    assert boundary.bytes.value == pytest.approx(HELD, rel=0.01)
    assert decided.curve.boundaries[0].bytes.value == pytest.approx(470 * MIB, rel=0.03)
    assert "the throughput fell before the page cache was full" in str(decided.doubt)


def test_the_count_stands_where_the_throughput_fell_after_the_cache_was_full() -> None:
    held = 300 * MIB
    decided = decide(curve((470 * MIB, 12.0), held=held), seed=1, memory_bytes=None)
    (boundary,) = decided.boundaries
    assert boundary.bytes.value == pytest.approx(held, rel=0.01)
    assert "the throughput fell only after the page cache was full" in str(decided.doubt)


def test_of_two_boundaries_by_throughput_the_nearer_one_is_the_counted_one_seen_less_well() -> None:
    fit = decide(curve((470 * MIB, 12.0)), seed=1, memory_bytes=None)
    assert fit.counted is not None
    near, far = (
        FittedBoundary(Interval(size * MIB, None, None, 9), "uniform", 2.0, 30.0)
        for size in (700, 500)
    )
    for boundaries in ((far, near), (near, far)):
        assert _seen(dataclasses.replace(fit.curve, boundaries=boundaries), fit.counted) is near


def test_throughput_decides_where_nothing_is_counted() -> None:
    decided = decide(curve((470 * MIB, 12.0), held=None), seed=1, memory_bytes=700 * MIB)
    (boundary,) = decided.boundaries
    assert boundary.basis == "throughput"
    assert boundary.bytes.value == pytest.approx(470 * MIB, rel=0.03)
    assert decided.doubt is None


def test_a_device_cache_behind_the_file_cache_keeps_its_boundary_by_throughput() -> None:
    held = 150 * MIB
    decided = decide(curve((held, 3.0), (1000 * MIB, 60.0), held=held), seed=1, memory_bytes=None)
    assert [boundary.basis for boundary in decided.boundaries] == ["counted", "throughput"]
    assert decided.boundaries[0].bytes.value == pytest.approx(held, rel=0.01)
    assert decided.boundaries[1].bytes.value == pytest.approx(1000 * MIB, rel=0.05)
    assert decided.doubt is None


@pytest.mark.parametrize(("further", "boundaries"), [(1.7, 1), (2.6, 2)])
def test_boundaries_within_a_factor_of_two_are_one(further: float, boundaries: int) -> None:
    held = 300 * MIB
    points = curve((held * further, 12.0), held=held)
    decided = decide(points, seed=1, memory_bytes=None)
    assert len(decided.curve.boundaries) == 1
    assert decided.curve.boundaries[0].bytes.value == pytest.approx(held * further, rel=0.08)
    assert len(decided.boundaries) == boundaries


def test_no_counted_boundary_lies_beyond_the_memory() -> None:
    decided = decide(curve((HELD, 12.0)), seed=1, memory_bytes=600 * MIB)
    assert decided.boundaries[0].bytes.value == 600 * MIB


def test_a_boundary_that_only_counts_show_is_there_and_told() -> None:
    """A device as fast as memory: reads leave the cache, and nobody gets slower."""
    decided = decide(curve(), seed=1, memory_bytes=None)
    assert [boundary.basis for boundary in decided.boundaries] == ["counted"]
    assert decided.boundaries[0].time_ratio == pytest.approx(1.0, abs=0.05)
    assert "shows no boundary" in str(decided.doubt)


def test_a_boundary_that_no_read_left_the_cache_at_is_not_its_end() -> None:
    points = [
        msgspec.structs.replace(
            point, result=msgspec.structs.replace(point.result, cached_share=1.0)
        )
        for point in curve((470 * MIB, 12.0), held=None)
    ]
    decided = decide(points, seed=1, memory_bytes=None)
    assert [boundary.basis for boundary in decided.boundaries] == ["throughput"]
    assert "no read left the page cache" in str(decided.doubt)


def test_later_readings_move_the_boundaries_and_leave_their_number() -> None:
    ends = ((150 * MIB, 3.0), (1000 * MIB, 60.0))
    points = curve(*ends, held=150 * MIB)
    decided = decide(points, seed=1, memory_bytes=None)
    more = [
        mixed_point(300 * MIB, mb_s=rate(300 * MIB, *ends), found=0.52, order=20 + again)
        for again in range(6)
    ]
    again, contradicted = decide_again(decided, [*points, *more], seed=1, memory_bytes=None)
    assert not contradicted
    assert [boundary.basis for boundary in again.boundaries] == ["counted", "throughput"]
    assert again.boundaries[0].bytes.value > decided.boundaries[0].bytes.value
    flat = [
        msgspec.structs.replace(
            point,
            result=msgspec.structs.replace(
                point.result,
                throughput_mb_s=msgspec.structs.replace(point.result.throughput_mb_s, value=500.0),
            ),
        )
        for point in points
    ]
    again, contradicted = decide_again(decided, flat, seed=1, memory_bytes=None)
    assert contradicted
    assert "shows no boundary" in str(again.doubt)
    assert [b.bytes for b in again.boundaries] == [b.bytes for b in decided.boundaries]


def test_later_readings_of_the_throughput_move_its_boundary_and_bring_no_second() -> None:
    decided = decide(curve((470 * MIB, 12.0), held=None), seed=1, memory_bytes=None)
    moved, contradicted = decide_again(
        decided, curve((560 * MIB, 12.0), held=None), seed=1, memory_bytes=None
    )
    assert not contradicted
    assert moved.boundaries[0].bytes.value == pytest.approx(560 * MIB, rel=0.05)
    two = curve((150 * MIB, 3.0), (1000 * MIB, 60.0), held=None)
    assert len(decide(two, seed=1, memory_bytes=None).boundaries) == 2
    one, contradicted = decide_again(decided, two, seed=1, memory_bytes=None)
    assert not contradicted
    assert len(one.boundaries) == 1


def test_a_count_that_would_change_the_order_of_levels_is_told_and_not_taken() -> None:
    ends = ((150 * MIB, 3.0), (1000 * MIB, 60.0))
    decided = decide(curve(*ends, held=150 * MIB), seed=1, memory_bytes=None)
    again, contradicted = decide_again(
        decided, curve(*ends, held=1500 * MIB), seed=1, memory_bytes=None
    )
    assert not contradicted
    assert again.boundaries == decided.boundaries
    assert "the throughput fell before" in str(again.doubt)


def test_the_counted_boundary_is_as_steep_as_the_throughput_shows() -> None:
    decided = decide(curve((600 * MIB, 12.0)), seed=1, memory_bytes=None)
    (boundary,) = decided.boundaries
    (seen,) = decided.curve.boundaries
    assert decided.counted is not None
    assert boundary.time_ratio == seen.time_ratio
    assert boundary.time_ratio != decided.counted.boundary.time_ratio
    assert decided.doubt is None, "within a factor of 1.25"


def test_later_readings_do_not_take_the_boundary_beyond_the_memory() -> None:
    points = curve((HELD, 12.0))
    decided = decide(points, seed=1, memory_bytes=700 * MIB)
    again, _ = decide_again(decided, points, seed=1, memory_bytes=600 * MIB)
    assert again.boundaries[0].bytes.value == 600 * MIB


@pytest.mark.parametrize(
    ("one", "other", "shared"),
    [
        ((90.0, 110.0), (105.0, 120.0), True),
        ((90.0, 110.0), (111.0, 120.0), False),
        ((111.0, 120.0), (90.0, 110.0), False),
        ((90.0, 110.0), (110.0, 120.0), True),
        ((None, None), (300.0, 320.0), True),
        ((90.0, None), (300.0, 320.0), True),
    ],
)
def test_intervals_that_share_a_value_do_not_contradict(
    one: tuple[float | None, float | None], other: tuple[float | None, float | None], shared: bool
) -> None:
    ends = [
        FittedBoundary(Interval(100.0, *each, 9), "uniform", 2.0, 30.0) for each in (one, other)
    ]
    assert _overlap(*ends) is shared


@pytest.mark.parametrize("profile", ["two-level", "three-level"])
def test_the_survey_ends_its_levels_where_its_points_were_chosen_for(profile: str) -> None:
    """Strategy and explanation decide in one place: the first by count, others by throughput."""
    run = surveyed(profile)
    survey = run.survey
    assert survey.boundaries[0].basis == "counted"
    assert {boundary.basis for boundary in survey.boundaries[1:]} <= {"throughput"}
    assert survey.boundaries[0].bytes == survey.cache_bytes
    decided = Surveyor(survey.start, run.points).strategy.decided
    assert decided is not None
    assert [b.basis for b in decided.boundaries] == [b.basis for b in survey.boundaries]
    for early, late in zip(decided.boundaries, survey.boundaries, strict=True):
        assert early.bytes.value == pytest.approx(late.bytes.value, rel=0.1)


@pytest.mark.parametrize("profile", ["two-level", "hp-730"])
def test_a_survey_and_a_cache_study_do_not_contradict_each_other(profile: str) -> None:
    survey, study = surveyed(profile).survey, studied(profile).study
    size, reads = survey.cache_bytes, study.cache.reads.bytes
    assert size is not None
    assert reads is not None
    assert size.low is not None
    assert size.high is not None
    assert reads.low is not None
    assert reads.high is not None
    shared = max(size.low, reads.low) <= min(size.high, reads.high)
    assert shared or size.value == pytest.approx(reads.value, rel=0.03)


def test_a_boundary_beyond_the_memory_is_not_called_the_file_caches() -> None:
    run = surveyed("two-level")
    boundaries = tuple(
        msgspec.structs.replace(boundary, basis="throughput") for boundary in run.survey.boundaries
    )
    start = msgspec.structs.replace(run.survey.start, system_profile=None)
    for limit, none in ((2**28, True), (2**31, False)):
        small = msgspec.structs.replace(start, cache_limit_bytes=limit)
        survey = msgspec.structs.replace(run.survey, start=small, boundaries=boundaries)
        size = _cache_bytes(survey.boundaries, survey.regions, limit)
        reads = find_in_survey(survey, run.points).reads
        assert (size is None, reads.bytes is None) == (none, none)
        assert ("beyond the memory" in reads.reason) == none


def test_cache_hits_are_by_lookups_where_the_file_system_counts_no_bytes() -> None:
    points = [mixed_point(64 * MIB, found=share) for share in (0.98, 1.0)]
    uncounted = [
        msgspec.structs.replace(
            point, result=msgspec.structs.replace(point.result, cached_share=None)
        )
        for point in points
    ]
    assert _cached_share(uncounted) == pytest.approx(0.99)
    assert _cached_share([mixed_point(64 * MIB, fetched=0.75)]) == pytest.approx(0.25)
    assert _cached_share([mixed_point(64 * MIB)]) is None
