"""Sizes of a page cache: reads and writes apart, seen and unseen devices, disturbances."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from cache_fixture import MIB, cache_point
from leadline.engine import Limits, NothingCompleted, PointFailed
from leadline.record import CachePlan, CacheSize, Interval, Measurement, Workload, WritePolicy
from leadline.stats.boundaries import FittedBoundary
from leadline.studies.cache.explain import find_file_cache
from leadline.studies.cache.plan import GAP, CacheStudyRefused, Questions, make_plan
from leadline.studies.cache.sizes import KindCurve, disturbed_points, kind_curve, nearest_boundary
from leadline.studies.cache.study import fill_cache
from leadline.studies.hit_ratio import CountedBoundary
from leadline.studies.memory import memory_bytes_of
from proving.samples import sample_cache_start
from proving.simulation import simulate_cache_study
from shared_surveys import studied

PLACES = [
    16 * MIB,
    32 * MIB,
    64 * MIB,
    96 * MIB,
    120 * MIB,
    140 * MIB,
    180 * MIB,
    256 * MIB,
    512 * MIB,
    1024 * MIB,
]


def uniform(capacity: int) -> Callable[[int], float]:
    """Share of misses of random requests over an LRU cache."""
    return lambda unique_bytes: max(0.0, 1 - capacity / unique_bytes)


def points(
    reads: Callable[[int], float], writes: Callable[[int], float], *, seen: bool = True
) -> list[Measurement]:
    """Points of both kinds at every place; a miss takes fifty times as long as a hit."""
    found: list[Measurement] = []
    for place in (*PLACES, PLACES[0], PLACES[-1]):
        for kind, missed in ((1.0, reads(place)), (0.0, writes(place))):
            found.append(
                cache_point(
                    place,
                    kind,
                    order=len(found),
                    mb_s=2000.0 / (1 + 50 * missed),
                    missed=missed if seen else None,
                )
            )
    return found


def within(size: CacheSize, truth: float, share: float = 0.10) -> bool:
    return size.bytes is not None and abs(size.bytes.value / truth - 1) <= share


@pytest.mark.parametrize("seen", [True, False])
def test_two_sizes_are_found_with_or_without_the_devices_counters(seen: bool) -> None:
    made = points(uniform(128 * MIB), uniform(40 * MIB), seen=seen)
    found = find_file_cache(made, memory_bytes=256 * MIB, seed=1)
    assert within(found.reads, 128 * MIB)
    assert within(found.writes, 40 * MIB)
    assert found.reads.memory_frac is not None
    assert found.reads.memory_frac.value == pytest.approx(0.5, rel=0.1)
    assert found.policy is WritePolicy.CANCELLING
    assert "Reads over writes: ×3" in found.sentences[0]


def test_a_write_through_cache_holds_reads_alone() -> None:
    made = points(uniform(128 * MIB), lambda _: 1.0)
    found = find_file_cache(made, memory_bytes=None, seed=1)
    assert within(found.reads, 128 * MIB)
    assert found.writes.bytes is None
    assert found.policy is WritePolicy.THROUGH
    assert found.reads.memory_frac is None


def test_a_moments_disturbance_is_not_a_smaller_cache() -> None:
    """Somebody's `sync` during one point: larger workloads that missed less say so."""
    made = points(uniform(128 * MIB), uniform(128 * MIB))
    disturbed = [
        cache_point(32 * MIB, 0.0, order=99, missed=0.6)
        if point.workload.unique_bytes == 32 * MIB and point.workload.read_frac == 0.0
        else point
        for point in made
    ]
    assert within(find_file_cache(disturbed, memory_bytes=None, seed=1).writes, 128 * MIB)
    counts = [disturbed_points(kind_curve(m, 0.0, seed=1, fit=False)) for m in (made, disturbed)]
    assert counts == [0, 1]


def test_a_disturbance_at_the_boundary_itself_opens_its_interval() -> None:
    """Nothing undisturbed was measured between 64 and 140 MiB: the size lies anywhere there."""
    made = points(uniform(128 * MIB), uniform(128 * MIB))
    disturbed = [
        cache_point(point.workload.unique_bytes, 0.0, order=99, missed=0.6)
        if point.workload.unique_bytes in (96 * MIB, 120 * MIB) and point.workload.read_frac == 0.0
        else point
        for point in made
    ]
    sizes = [
        find_file_cache(each, memory_bytes=None, seed=1).writes.bytes for each in (made, disturbed)
    ]
    assert sizes[0] is not None
    assert sizes[1] is not None
    assert sizes[1].covers(128 * MIB)
    assert (sizes[1].low, sizes[1].high) == (64 * MIB, 140 * MIB)
    assert sizes[0].half_width_frac is not None
    assert sizes[0].half_width_frac < 0.1


def test_points_that_are_not_admissible_carry_nothing() -> None:
    made = points(uniform(128 * MIB), uniform(128 * MIB))
    bad = [
        cache_point(1024 * MIB, 1.0, order=200 + n, missed=0.0, admissible=False) for n in range(9)
    ]
    assert within(find_file_cache([*bad, *made], memory_bytes=None, seed=1).reads, 128 * MIB)


def test_what_was_measured_too_little_or_never_outgrown_is_said() -> None:
    small = [
        point
        for point in points(uniform(128 * MIB), uniform(128 * MIB))
        if point.workload.unique_bytes < 100 * MIB
    ]
    found = find_file_cache(small[:2], memory_bytes=None, seed=1)
    assert "too few points of reads alone" in found.reads.reason
    assert find_file_cache([], memory_bytes=None, seed=1).policy is WritePolicy.UNKNOWN
    flat = points(lambda _: 0.0, lambda _: 0.0)
    found = find_file_cache(flat, memory_bytes=None, seed=1)
    assert found.reads.bytes is None
    assert "no boundary found up to 1 GiB of reads alone" in found.reads.reason
    assert "None" not in " ".join(found.sentences)


def test_without_a_repeated_point_no_rate_has_an_interval() -> None:
    once = {p.workload: p for p in points(uniform(128 * MIB), uniform(128 * MIB))}
    found = find_file_cache(list(once.values()), memory_bytes=None, seed=1)
    assert found.read_mb_s is not None
    assert found.read_mb_s.low is None
    assert found.evidence[1].says is WritePolicy.UNKNOWN


def test_the_throughput_alone_finds_the_size_of_a_simulated_cache() -> None:
    """As on a network file system, where no device can be seen from here."""
    run = studied("decstation-5000-sprite")
    unseen = [
        msgspec.structs.replace(
            point,
            result=msgspec.structs.replace(point.result, device_bytes=None, cached_share=None),
        )
        for point in run.points
    ]
    found = find_file_cache(unseen, memory_bytes=None, seed=3)
    assert run.true_read_bytes is not None
    assert run.true_write_bytes is not None
    assert within(found.reads, run.true_read_bytes)
    assert within(found.writes, run.true_write_bytes)
    assert found.policy is WritePolicy.CANCELLING
    assert found.evidence[0].value is None


def test_a_stored_study_is_taken_up_where_it_was_left_and_another_is_refused() -> None:
    run = studied("hp-730")
    start, whole = run.study.start, list(run.points)
    for kept in (1, 17, 45):
        asked = Questions(start, whole[:kept]).ask()
        assert asked is not None
        assert (asked.stage, asked.workload) == (whole[kept].stage, whole[kept].workload)
    assert Questions(start, whole).ask() is None
    with pytest.raises(CacheStudyRefused, match="start a new"):
        Questions(start, [whole[0], whole[0]] if whole[0].workload != whole[1].workload else [])


@pytest.mark.long
def test_reads_and_writes_are_measured_at_both_rate_places() -> None:
    run = studied("two-level")
    found = run.study.cache
    assert found.inside_bytes is not None
    assert found.outside_bytes is not None
    assert found.inside_bytes < 2**30 / 2 < 2 * 2**30 <= found.outside_bytes
    rates = (found.read_mb_s, found.write_mb_s, found.disk_read_mb_s, found.disk_write_mb_s)
    assert all(rate is not None and rate.n >= 3 for rate in rates)


def test_a_boundary_that_lookups_alone_tell_places_the_rates(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The rest of the curve may be flat: on a busy host, or with few readings."""
    start = studied("two-level").study.start
    told = FittedBoundary(Interval(2**28, 2**27, 2**29, 9), "scan", 4.0, 20.0)

    def flat(_points: Any, kind: float, **_: Any) -> KindCurve:
        counted = CountedBoundary(told, "lookups") if kind == 1.0 else None
        return KindCurve((), "misses", None, counted)

    monkeypatch.setattr("leadline.studies.cache.plan.kind_curve", flat)
    assert Questions(start)._rate_places() == (2**26, 2**30)


def test_too_little_time_or_room_is_refused_with_what_to_type() -> None:
    def plan_of(budget_s: float, capacity_bytes: int = 2**34) -> CachePlan:
        return make_plan(
            budget_s=budget_s,
            capacity_bytes=capacity_bytes,
            memory_bytes=2**28,
            l3_cache_bytes=2**25,
            virtual=False,
        )

    with pytest.raises(CacheStudyRefused, match="--budget"):
        plan_of(10.0)
    with pytest.raises(CacheStudyRefused, match="--max-bytes 256 MiB"):
        plan_of(120.0, 2**25)
    plan = plan_of(120.0)
    assert plan.writes_s == 0.0
    whole = plan_of(300.0)
    assert whole.points * whole.point_s + whole.layout_bytes / 300e6 + whole.writes_s <= 300.0
    assert whole.writes_s > 0
    assert plan.unique_bytes_max == 4 * 2**28
    assert plan.layout_bytes == plan.unique_bytes_max


def test_the_memory_is_the_cap_or_the_machines_or_what_a_profile_says() -> None:
    assert memory_bytes_of(2**28, {"memory_bytes": 2**34}, None) == 2**28
    facts = {"memory_bytes": 2**34, "cgroup_memory_limit_bytes": 2**32}
    assert memory_bytes_of(None, facts, None) == 2**32
    assert memory_bytes_of(None, {}, None) is None
    assert memory_bytes_of(None, facts | {"nfs_server": "10.0.0.2:2049"}, None) is None
    profile = {"meta": {"facts": {"memory": "32 MB, 100 MB/s peak"}}}
    assert memory_bytes_of(None, facts, profile) == 32_000_000
    assert memory_bytes_of(None, facts, {"meta": {}}) is None


def test_the_gap_around_a_boundary_that_ends_at_once_is_closed() -> None:
    """A scan under LRU hits all or nothing: only readings in the gap tell where."""
    run = simulate_cache_study("four-level", 2)
    for kind in (1.0, 0.0):
        curve = kind_curve(run.points, kind, seed=2)
        boundary = nearest_boundary(curve)
        assert boundary is not None
        assert boundary.bytes.value == pytest.approx(268_435_456, rel=0.04)
        places = [place for place, _ in curve.readings]
        below = max(place for place in places if place <= boundary.bytes.value)
        above = min(place for place in places if place > boundary.bytes.value)
        assert above / below <= GAP


def test_a_wide_gap_around_the_boundary_is_halved_and_the_reading_beyond_it_repeated() -> None:
    asked = Questions(sample_cache_start())
    made = points(lambda place: float(place > 130 * MIB), lambda place: float(place > 130 * MIB))
    asked.points = made
    halved = asked._gap_around_boundary(0.0)
    assert halved == pytest.approx(math.sqrt(120 * 140) * MIB)
    asked.points = [
        *made,
        cache_point(128 * MIB, 0.0, order=90, missed=0.0),
        cache_point(134 * MIB, 0.0, order=91, missed=1.0),
    ]
    assert asked._gap_around_boundary(0.0) == 134 * MIB
    asked.points.append(cache_point(134 * MIB, 0.0, order=92, missed=1.0))
    assert asked._gap_around_boundary(0.0) is None


class Busy:
    """An engine on a disk that ends no request just now."""

    virtual = False

    def __init__(self, failure: type[PointFailed] = NothingCompleted) -> None:
        self.limits: list[Limits] = []
        self.failure = failure

    def run(self, _: Workload, *, seed: int, limits: Limits) -> Any:
        self.limits.append(limits)
        raise self.failure(f"no request completed ({seed})")


def test_a_pass_that_only_fills_the_cache_fails_no_study_however_small_the_data() -> None:
    engine: Any = Busy()
    for unique_bytes in (4096, 2**30):
        workload = Workload(unique_bytes=unique_bytes, size_mean=4096)
        fill_cache(engine, workload, sample_cache_start(), seed=1)
    assert all(limits.measure_s_max >= 0.05 for limits in engine.limits)
    assert len(engine.limits) == 2


def test_storage_that_fails_during_the_filling_pass_fails_the_study() -> None:
    engine: Any = Busy(PointFailed)
    with pytest.raises(PointFailed):
        fill_cache(
            engine, Workload(unique_bytes=2**30, size_mean=4096), sample_cache_start(), seed=1
        )
