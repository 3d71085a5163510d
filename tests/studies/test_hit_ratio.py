"""The counted share over unique_bytes: lookups, fetched bytes, and where one more reading tells."""

from __future__ import annotations

import math

import msgspec
import pytest

from counted_fixture import MIB, mixed_point
from leadline.record import Interval, Measurement
from leadline.studies.hit_ratio import (
    _looked_up,
    _moving,
    always_held,
    boundary_by_lookups,
    counted_boundary,
    disturbances,
    miss_readings,
    missed_frac,
    telling_place,
    within_memory,
)

PLACES = (64, 180, 400, 565, 590, 870, 1130, 1480, 2400, 4200)
HELD = 670 * MIB


def looked_up(held: float = HELD) -> list[Measurement]:
    return [
        mixed_point(place * MIB, found=min(1.0, held / (place * MIB)), order=order)
        for order, place in enumerate(PLACES)
    ]


def only_fetched(held: float = HELD, read_ahead: float = 3.3) -> list[Measurement]:
    """The device's counters alone: read-ahead fetches three times what is missed."""
    return [
        mixed_point(
            place * MIB, fetched=read_ahead * max(0.0, 1 - held / (place * MIB)), order=order
        )
        for order, place in enumerate(PLACES)
    ]


def test_lookups_tell_the_size_however_slow_or_fast_the_points_were() -> None:
    found = counted_boundary(looked_up(), seed=1)
    assert found is not None
    assert found.by == "lookups"
    assert found.boundary.bytes.value == pytest.approx(HELD, rel=0.01)
    assert found.boundary.time_ratio == 1.0


def test_fetched_bytes_tell_it_with_read_ahead_among_them() -> None:
    found = counted_boundary(only_fetched(), seed=1)
    assert found is not None
    assert found.by == "device"
    assert found.boundary.bytes.value == pytest.approx(HELD, rel=0.03)


def test_what_is_fetched_ahead_is_no_disturbance_of_the_share() -> None:
    assert missed_frac(mixed_point(4200 * MIB, fetched=2.77)) == pytest.approx(2.77)
    assert missed_frac(mixed_point(4200 * MIB)) is None


def test_no_cache_is_larger_than_its_memory() -> None:
    found = counted_boundary(looked_up(), seed=1, memory_bytes=650 * MIB)
    assert found is not None
    assert found.boundary.bytes.value == 650 * MIB
    assert found.boundary.bytes.high == 650 * MIB


def test_a_size_without_an_end_stays_without_it_within_the_memory() -> None:
    open_ = Interval(700.0, None, None, 3)
    assert within_memory(open_, 650) == Interval(650, None, None, 3)
    assert within_memory(open_, None) == open_
    assert within_memory(Interval(640.0, 600.0, 760.0, 3), 650) == Interval(640.0, 600.0, 650, 3)


def test_a_size_that_is_surely_too_large_is_not_surely_the_memory() -> None:
    cut = within_memory(Interval(800.0, 760.0, 840.0, 3), 400)
    assert cut == Interval(400, 380.0, 400, 3)


def test_bytes_that_are_fetched_alike_everywhere_show_no_end() -> None:
    alike = [
        mixed_point(place * MIB, fetched=0.5, order=order) for order, place in enumerate(PLACES)
    ]
    assert counted_boundary(alike, seed=1) is None


def test_lookups_of_half_of_the_points_are_too_few_to_count_by() -> None:
    looked = looked_up()
    unlooked = [mixed_point(place * MIB, order=20 + order) for order, place in enumerate(PLACES)]
    assert counted_boundary([*looked, *unlooked], seed=1) is None
    assert counted_boundary([*looked, *unlooked[1:]], seed=1) is not None


def test_nothing_is_counted_of_direct_or_uncounted_requests() -> None:
    direct = [
        mixed_point(place * MIB, fetched=1.0 - 0.5 * (place < 600), direct=True) for place in PLACES
    ]
    assert counted_boundary(direct, seed=1) is None
    assert counted_boundary([mixed_point(place * MIB) for place in PLACES], seed=1) is None


def test_points_that_are_not_admissible_say_nothing() -> None:
    """Ten times as many, which tell of a cache of 300 MiB."""
    bad = [
        mixed_point(place * MIB, found=min(1.0, 300 / place), admissible=False)
        for place in PLACES
        for _ in range(10)
    ]
    found = counted_boundary([*looked_up(), *bad], seed=1)
    assert found is not None
    assert found.boundary.bytes.value == pytest.approx(HELD, rel=0.01)
    alone = counted_boundary(bad, seed=1)
    assert alone is not None, "better than nothing"
    assert alone.boundary.bytes.value == pytest.approx(300 * MIB, rel=0.01)


def test_lookups_of_requests_of_many_sizes_count_as_fewer() -> None:
    """n / (1 + CV²), as large requests weigh more: Kish's effective number."""
    point = mixed_point(900 * MIB, found=0.7)
    for cv, effective in ((0.0, 4000.0), (1.0, 2000.0), (3.0, 400.0)):
        assert point.result.realised is not None
        realised = msgspec.structs.replace(point.result.realised, size_cv=cv)
        result = msgspec.structs.replace(point.result, realised=realised)
        ((_, lookups),) = _looked_up([msgspec.structs.replace(point, result=result)])
        assert lookups.count == pytest.approx(effective)


def test_a_boundary_with_nothing_measured_before_it_is_none() -> None:
    assert boundary_by_lookups(looked_up(), memory_bytes=100 * MIB) is not None
    assert boundary_by_lookups(looked_up(), memory_bytes=50 * MIB) is None


def test_more_readings_go_where_half_of_the_reads_hit_until_enough_are_there() -> None:
    points = [mixed_point(64 * MIB, found=1.0), mixed_point(4200 * MIB, found=670 / 4200)]
    asked: list[float] = []
    while (place := telling_place(points, 4200 * MIB)) is not None:
        asked.append(place / HELD)
        points.append(mixed_point(place, found=HELD / place))
    assert sorted(asked) == pytest.approx([2.0, 2.7, 3.7, 5.0], rel=0.01)
    assert telling_place(points[:2], 600 * MIB) is None
    assert telling_place(only_fetched(), 4200 * MIB) is None


def test_reads_that_never_left_the_cache_are_told_from_reads_that_were_not_counted() -> None:
    held = [mixed_point(place * MIB, fetched=0.0) for place in PLACES]
    assert always_held(held)
    assert not always_held(only_fetched())
    assert not always_held([mixed_point(64 * MIB)])
    assert not always_held([])
    assert always_held([mixed_point(64 * MIB, fetched=0.09)]), "writeback's, now and then"
    assert not always_held([mixed_point(64 * MIB, fetched=0.11)])


def test_readings_of_the_share_missed_by_hand() -> None:
    """Rates of 1 / (0.1 + share); a share is no larger than that of more data."""
    points = [
        mixed_point(place * MIB, fetched=missed, order=order)
        for order, (place, missed) in enumerate([(100, 0.0), (200, 0.52), (300, 0.4), (400, 0.7)])
    ]
    rates = [1 / 0.1, 1 / 0.5, 1 / 0.5, 1 / 0.8]
    assert [rate for _, rate in miss_readings(points)] == pytest.approx(rates)
    assert [place for place, _ in miss_readings(points)] == [x * MIB for x in (100, 200, 300, 400)]


@pytest.mark.parametrize(("missed", "disturbed"), [(0.52, False), (0.6, True)])
def test_who_misses_clearly_more_than_of_more_data_was_disturbed(
    missed: float, disturbed: bool
) -> None:
    points = [mixed_point(200 * MIB, fetched=missed), mixed_point(300 * MIB, fetched=0.4, order=1)]
    assert disturbances(points) == [(200 * MIB, disturbed), (300 * MIB, False)]
    assert len(miss_readings(points)) == 2 - disturbed


@pytest.mark.parametrize(
    ("places", "found"),
    [((64, 180, 400, 870, 1480, 2400), True), ((64, 180, 400, 870, 2400), False)],
)
def test_six_places_show_what_is_held_by_bytes_fetched(
    places: tuple[int, ...], found: bool
) -> None:
    points = [
        mixed_point(place * MIB, fetched=max(0.0, 1 - HELD / (place * MIB)), order=order)
        for order, place in enumerate(places)
    ]
    assert (counted_boundary(points, seed=1) is not None) == found


@pytest.mark.parametrize(("count", "by"), [(20, "lookups"), (19, "device")])
def test_twenty_lookups_tell_a_share(count: int, by: str) -> None:
    points = [
        msgspec.structs.replace(
            point,
            result=msgspec.structs.replace(
                point.result,
                provenance=msgspec.structs.replace(point.result.provenance, probed_random=count),
            ),
        )
        for point in looked_up()
    ]
    found = counted_boundary(points, seed=1)
    assert found is not None
    assert found.by == by


def test_a_fit_is_never_taken_for_more_exact_than_lookups_are() -> None:
    """1.96 times 1% a side; an interval that is wider already stays."""
    narrow, moves = Interval(100.0, 99.9, 100.1, 7), math.exp(0.0196)
    for size in (narrow, Interval(100.0, None, None, 7)):
        moved = _moving(size)
        assert (moved.low, moved.high) == pytest.approx((100 / moves, 100 * moves))
    assert _moving(Interval(100.0, 50.0, 300.0, 7)) == Interval(100.0, 50.0, 300.0, 7)


@pytest.mark.parametrize("by", ["lookups", "device"])
def test_how_much_longer_a_byte_takes_beyond_is_told_by_points_on_both_sides(by: str) -> None:
    points = [
        msgspec.structs.replace(
            point,
            result=msgspec.structs.replace(
                point.result,
                throughput_mb_s=msgspec.structs.replace(
                    point.result.throughput_mb_s,
                    value=900.0 if point.workload.unique_bytes < HELD else 225.0,
                ),
            ),
        )
        for point in (looked_up() if by == "lookups" else only_fetched())
    ]
    found = counted_boundary(points, seed=1)
    assert found is not None
    assert found.by == by
    assert found.boundary.time_ratio == pytest.approx(4.0)


def test_what_the_device_counts_is_no_larger_than_the_memory_either() -> None:
    found = counted_boundary(only_fetched(), seed=1, memory_bytes=600 * MIB)
    assert found is not None
    assert found.boundary.bytes.value == 600 * MIB
