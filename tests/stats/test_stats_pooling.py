"""Several runs as one answer: what adds up, what is weighed, and whether the interval covers."""

from __future__ import annotations

from math import exp, log
from random import Random

import msgspec
import pytest

from leadline.record import (
    CacheEvents,
    EngineResult,
    Generator,
    Interval,
    IntervalRecord,
    LatencyUs,
    Level,
    MovedBytes,
    Network,
    OperationSummary,
    OtherLoad,
    Preconditioned,
    Provenance,
    Realised,
    SpansUs,
    Stall,
    WarmUp,
    WrittenBytes,
)
from leadline.record.finding import Finding
from leadline.stats import pooled_result, pooling, student_t
from leadline.stats.intervals import ALIKE, alike_factor
from proving.samples import sample_result


def run(mb_s: float, half_frac: float = 0.02, **changes: object) -> EngineResult:
    rate = Interval(mb_s, mb_s * (1 - half_frac), mb_s * (1 + half_frac), 20)
    return msgspec.structs.replace(sample_result(mb_s=mb_s), throughput_mb_s=rate, **changes)


@pytest.mark.parametrize(
    ("kind", "rules"),
    [
        (EngineResult, pooling.RESULT),
        (Realised, pooling.REALISED),
        (WarmUp, pooling.WARM_UP),
        (Provenance, pooling.PROVENANCE),
        (OtherLoad, pooling.OTHER_LOAD),
        (Generator, pooling.GENERATOR),
        (Network, pooling.NETWORK),
    ],
)
def test_every_field_says_how_it_is_pooled(
    kind: type[msgspec.Struct], rules: pooling.Rules
) -> None:
    assert set(rules) == set(kind.__struct_fields__)


def test_a_field_without_a_rule_is_not_left_out_silently() -> None:
    with pytest.raises(KeyError, match="plateau"):
        pooling.by_field(Preconditioned, {"bytes": len, "seconds": len}, ())


def test_one_run_speaks_for_itself() -> None:
    alone = run(100.0)
    assert pooled_result([alone]) is alone


def test_no_run_is_no_answer() -> None:
    with pytest.raises(ValueError, match="no run"):
        pooled_result([])


def test_counts_add_up_and_shares_weigh_by_what_they_are_shares_of() -> None:
    short = run(90.0, wall_s=1.0, cpu_user=1.0, written_bytes=WrittenBytes(5, 0, 1))
    long = run(110.0, wall_s=3.0, cpu_user=0.0, written_bytes=WrittenBytes(0, 0, 2))
    pooled = pooled_result([short, long])
    assert pooled.wall_s == 4.0
    assert pooled.cpu_user == pytest.approx(0.25)
    assert pooled.written_bytes == WrittenBytes(5, 0, 3)
    assert pooled.read.operations == 2 * short.read.operations
    assert pooled.workload_bytes.read == pooled.read.bytes
    assert pooled.device_bytes is None, "not known in one is not known in all"
    assert pooled.throughput_mb_s.value == pytest.approx((90 * 110) ** 0.5)


def test_what_one_run_found_wrong_is_said_of_the_whole_and_once() -> None:
    broken, same = Finding.of("littles_law", error_frac=0.1), Finding.of("no_interval")
    other = Finding.of("stall", target_s=1.0, start_s=2.0)
    good = run(100.0, findings=(same,))
    bad = run(100.0, admissible=False, findings=(broken, same, other))
    pooled = pooled_result([good, bad])
    assert not pooled.admissible
    assert pooled.findings == (same, broken, other)
    assert (pooled.reasons, pooled.warnings) == ((str(broken),), (str(same), str(other)))


def test_levels_and_stalls_stand_on_one_clock() -> None:
    first = run(100.0, wall_s=2.0, levels=(Level(0.0, 1.0, 110.0), Level(1.0, 1.0, 90.0)))
    second = run(
        100.0, wall_s=1.0, levels=(Level(0.0, 1.0, 90.0),), stalls=(Stall(0.5, 0.2, False),)
    )
    pooled = pooled_result([first, second])
    assert [level.start_s for level in pooled.levels] == [0.0, 1.0, 2.0]
    assert pooled.stalls == (Stall(2.5, 0.2, generator=False),)


def test_runs_that_are_steady_each_are_one_level_together() -> None:
    runs = [run(mb_s, wall_s=1.0, levels=(Level(0.0, 1.0, mb_s),)) for mb_s in (100.0, 120.0)]
    (level,) = pooled_result(runs).levels
    assert (level.start_s, level.seconds) == (0.0, 2.0)


def test_percentiles_come_from_the_merged_histograms() -> None:
    def summary(bucket: int, us: float, count: int) -> OperationSummary:
        latency = LatencyUs(us, us, us, us, us, us)
        return OperationSummary(count, count * 4096, latency, ((bucket, count),))

    none = OperationSummary(0, 0, None)
    # Bucket 100 holds 100 ns, bucket 10 * 128 + 0 holds 2^16 ns and the 511 above it.
    quick = run(100.0, read=summary(100, 0.1, 980), write=none)
    slow = run(100.0, read=summary(1280, 65.8, 20), write=none)
    latency = pooled_result([quick, slow]).latency_us
    assert (latency.p50, latency.p90) == (0.1, 0.1)
    assert latency.p99 == pytest.approx(65.8, rel=1 / 256)
    assert latency.max == 65.8
    assert latency.mean == pytest.approx((980 * 0.1 + 20 * 65.8) / 1000)


def test_the_share_found_weighs_by_lookups() -> None:
    held = Provenance(probed=300, found_share=1.0, probed_random=100, found_random_share=0.8)
    missed = Provenance(
        probed=100, found_share=0.0, probed_random=300, found_random_share=0.4, unchecked=("x",)
    )
    some, more = run(100.0, provenance=held), run(100.0, provenance=missed)
    provenance = pooled_result([some, more]).provenance
    assert (provenance.probed, provenance.found_share) == (400, 0.75)
    assert provenance.probed_random == 400
    assert provenance.found_random_share == pytest.approx(0.5)
    assert provenance.unchecked == ("x",)


@pytest.mark.parametrize(("within", "between"), [(0.03, 0.08), (0.03, 0.01), (0.01, 0.15)])
@pytest.mark.parametrize("alike", [0.0, ALIKE])
def test_the_interval_covers_the_truth_whatever_differs(
    within: float, between: float, alike: float
) -> None:
    """Each run claims its own noise only; five in a row must cover 92% of the time."""
    random = Random(8)
    covered = 0
    for _ in range(400):
        runs = []
        drift = random.gauss(0, between)
        for _ in range(5):
            value = 1000 * exp(drift) * random.lognormvariate(0, within)
            runs.append(run(value, half_frac=1.96 * within))
            drift = alike * drift + random.gauss(0, between * (1 - alike**2) ** 0.5)
        interval = pooled_result(runs).throughput_mb_s
        covered += interval.low <= 1000 <= interval.high  # type: ignore[operator]
    assert covered >= 368


def test_runs_that_are_independent_need_no_widening() -> None:
    assert alike_factor(5, 0.0) == 1.0
    assert alike_factor(2, 0.5) == pytest.approx((1.5 / 0.5) ** 0.5)
    assert alike_factor(5) == pytest.approx(1.79, abs=0.01)
    assert all(1.7 < alike_factor(runs) < 1.8 for runs in range(2, 100))


def summary(operations: int, size: int, us: float, bucket: int = 100) -> OperationSummary:
    latency = LatencyUs(us, us, us, us, us, us)
    return OperationSummary(operations, operations * size, latency, ((bucket, operations),))


def test_the_share_from_cache_weighs_by_bytes_read_whatever_the_runs_took() -> None:
    """The slow run read little, for it missed: by time the cache would look a third as good."""
    quick = run(100.0, wall_s=1.0, read=summary(30, 1000, 1.0), cached_share=1.0)
    slow = run(100.0, wall_s=3.0, read=summary(10, 1000, 1.0), cached_share=0.0)
    assert pooled_result([quick, slow]).cached_share == 0.75
    unknown = msgspec.structs.replace(slow, cached_share=None)
    assert pooled_result([quick, unknown]).cached_share == 1.0, "of what is known"
    assert pooled_result([unknown, unknown]).cached_share is None


FIRST = run(
    100.0,
    iops=Interval(10.0, 9.0, 11.0, 20),
    read=summary(30, 1000, 2.0),
    write=summary(10, 100, 6.0, 101),
    wall_s=1.0,
    total_s=3.0,
    prepare_s=1.5,
    cpu_user=0.1,
    cpu_system=0.2,
    io_share=0.9,
    littles_law_error_frac=0.01,
    foreign_cpu=None,
    device_bytes=MovedBytes(7, 8),
    realised=Realised(1000.0, 0.5, 0.75, None),
    warm_up=WarmUp(2.0, True, (IntervalRecord(0.0, 0.1, 1, 2),)),
    intervals=(IntervalRecord(0.25, 0.5, 3, 4),),
    levels=(Level(0.0, 1.0, 100.0),),
    precondition=Preconditioned(bytes=9, seconds=1.0, plateau=True, rounds=()),
    provenance=Provenance(
        process_bytes=MovedBytes(1, 2),
        probed=0,
        cached_share_from="device",
        unchecked=("a", "b"),
        cache_events=CacheEvents(
            charged_pages=1, uncharged_pages=2, refaulted_pages=None, major_faults=4
        ),
    ),
    other_load=OtherLoad(
        cpu_pressure=0.1, io_pressure=0.2, memory_pressure=0.3, steal_cpu=0.4, runnable=5
    ),
    generator=Generator(1e6, bound=True),
    network=Network(
        sent_bytes=1,
        received_bytes=2,
        payload_sent_bytes=3,
        payload_received_bytes=4,
        lost_requests=5,
        retransmitted_segments=None,
        round_trip_us=60.0,
        stable_share=0.0,
        commit_s=0.5,
    ),
)
SECOND = run(
    200.0,
    iops=Interval(20.0, 19.0, 21.0, 20),
    read=summary(10, 1000, 4.0),
    write=summary(30, 100, 8.0, 101),
    wall_s=3.0,
    total_s=5.0,
    prepare_s=0.5,
    cpu_user=0.5,
    cpu_system=0.6,
    io_share=0.5,
    littles_law_error_frac=0.03,
    foreign_cpu=0.4,
    device_bytes=MovedBytes(70, 80),
    realised=Realised(200.0, 0.9, 0.25, 0.5),
    warm_up=WarmUp(1.0, False, (IntervalRecord(0.0, 0.2, 5, 6),)),
    intervals=(IntervalRecord(0.5, 0.5, 5, 6),),
    levels=(Level(0.0, 3.0, 200.0),),
    provenance=Provenance(
        process_bytes=MovedBytes(10, 20),
        probed=8,
        found_share=0.5,
        cached_share_from="residency",
        cache_events=CacheEvents(
            charged_pages=10, uncharged_pages=20, refaulted_pages=30, major_faults=40
        ),
        unchecked=("b", "c"),
    ),
    other_load=OtherLoad(
        cpu_pressure=0.5, io_pressure=0.6, memory_pressure=0.7, steal_cpu=None, runnable=3
    ),
    generator=Generator(2e6, bound=False),
    network=Network(
        sent_bytes=10,
        received_bytes=20,
        payload_sent_bytes=30,
        payload_received_bytes=40,
        lost_requests=50,
        retransmitted_segments=60,
        round_trip_us=50.0,
        stable_share=1.0,
        commit_s=1.5,
    ),
)


def test_every_field_of_two_runs_is_added_or_weighed_by_hand() -> None:
    """Weights: seconds 1 and 3, requests 40 and 40, bytes written 1000 and 3000."""
    pooled = pooled_result([FIRST, SECOND])
    assert pooled.iops.value == pytest.approx(200**0.5)
    assert (pooled.wall_s, pooled.total_s, pooled.prepare_s) == (4.0, 8.0, 2.0)
    shares = (pooled.cpu_user, pooled.cpu_system, pooled.io_share)
    assert shares == pytest.approx((0.4, 0.5, 0.6))
    assert pooled.foreign_cpu == pytest.approx(0.4)
    assert pooled.littles_law_error_frac == 0.03
    assert (pooled.read.operations, pooled.write.operations) == (40, 40)
    assert pooled.workload_bytes == MovedBytes(40_000, 4000)
    assert pooled.device_bytes == MovedBytes(77, 88)
    assert pooled.latency_us.mean == pytest.approx((30 * 2 + 10 * 6 + 10 * 4 + 30 * 8) / 80)
    assert pooled.latency_us.max == 8.0
    realised = pooled.realised
    assert (realised.size_mean, realised.size_cv) == pytest.approx((600.0, 0.7))
    assert (realised.read_frac, realised.seq_frac) == (0.5, 0.5)
    assert pooled.warm_up == WarmUp(3.0, False, FIRST.warm_up.intervals)
    assert [part.start_s for part in pooled.intervals] == [0.25, 1.5]
    assert [msgspec.structs.astuple(level) for level in pooled.levels] == [
        pytest.approx((0.0, 4.0, 0.044 / 4))
    ]
    assert pooled.precondition == FIRST.precondition


def test_where_the_bytes_came_from_and_who_else_was_there_are_pooled_by_hand() -> None:
    pooled = pooled_result([FIRST, SECOND])
    assert pooled.provenance == Provenance(
        process_bytes=MovedBytes(11, 22),
        probed=8,
        found_share=0.5,
        cached_share_from="residency",
        unchecked=("a", "b", "c"),
        cache_events=CacheEvents(
            charged_pages=11, uncharged_pages=22, refaulted_pages=None, major_faults=44
        ),
    )
    load = pooled.other_load
    pressures = (load.cpu_pressure, load.io_pressure, load.memory_pressure, load.steal_cpu)
    assert pressures == pytest.approx((0.4, 0.5, 0.6, 0.4))
    assert load.runnable == 5
    assert pooled.generator == Generator(2e6, bound=True)
    assert pooled.network == Network(
        sent_bytes=11,
        received_bytes=22,
        payload_sent_bytes=33,
        payload_received_bytes=44,
        lost_requests=55,
        retransmitted_segments=None,
        round_trip_us=50.0,
        stable_share=0.75,
        commit_s=1.0,
    )


def test_what_one_run_does_not_know_the_whole_does_not_either() -> None:
    without = msgspec.structs.replace(
        SECOND, network=None, generator=None, provenance=Provenance(), other_load=OtherLoad()
    )
    pooled = pooled_result([FIRST, without])
    assert pooled.network is None
    assert pooled.generator == FIRST.generator
    assert pooled.provenance.process_bytes is None
    assert pooled.provenance.cache_events is None
    assert pooled.other_load == FIRST.other_load
    assert pooled_result([without, without]).generator is None
    assert SECOND.network is not None
    commits = msgspec.structs.replace(SECOND.network, commit_s=None)
    silent = msgspec.structs.replace(SECOND, network=commits)
    assert pooled_result([silent, silent]).network.commit_s is None  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("each", "whole"), [((True, True), True), ((True, False), False), ((True, None), None)]
)
def test_runs_were_steady_together_if_each_was_known_to_be(
    each: tuple[bool | None, ...], whole: bool | None
) -> None:
    runs = [run(100.0, warm_up=WarmUp(1.0, steady)) for steady in each]
    assert pooled_result(runs).warm_up.steady is whole


def test_the_spans_of_a_request_are_those_of_the_merged_histograms() -> None:
    spans = SpansUs(None, LatencyUs(9, 9, 9, 9, 9, 9), None)
    pooled = pooled_result([FIRST, msgspec.structs.replace(SECOND, spans_us=spans)])
    assert pooled.spans_us == SpansUs(None, pooled.latency_us, None)
    assert pooled_result([FIRST, SECOND]).spans_us is None


def test_runs_of_nothing_have_no_interval_and_no_response_time() -> None:
    idle, busy = run(0.0), run(100.0)
    assert pooled_result([idle, busy]).throughput_mb_s == Interval(50.0, None, None, 2)
    none = OperationSummary(0, 0, None)
    empty = run(100.0, read=none, write=none)
    with pytest.raises(ValueError, match="without any request"):
        pooled_result([empty, empty])


def test_the_interval_of_two_runs_by_hand() -> None:
    """Both claim next to nothing, so what differs between them is all there is."""
    pooled = pooled_result([run(90.0, 1e-6), run(110.0, 1e-6)]).throughput_mb_s
    variance = (log(110 / 90) ** 2 / 2 + 0.3 * 0.03**2) / 1.3
    half = student_t(1.3) * (3 * variance / 2) ** 0.5
    assert pooled.n == 2
    assert log(pooled.high / pooled.value) == pytest.approx(half)  # type: ignore[operator]
    assert log(pooled.value / pooled.low) == pytest.approx(half)  # type: ignore[operator]


def test_a_bucket_stands_for_its_middle() -> None:
    """Whole nanoseconds to 255, then 128 buckets an octave (crates/base/src/histogram.rs)."""
    for bucket, middle_ns in [(0, 0.0), (255, 255.0), (256, 256.5), (383, 510.5), (384, 513.5)]:
        part = OperationSummary(1, 1, LatencyUs(1e3, 1e3, 1e3, 1e3, 1e3, 1e3), ((bucket, 1),))
        pooled = pooled_result([run(100.0, read=part), run(100.0, read=part)])
        assert pooled.read.latency_us is not None
        assert pooled.read.latency_us.p50 == middle_ns / 1e3


def test_a_percentile_is_the_first_bucket_that_reaches_it_and_never_above_the_largest() -> None:
    counts = ((10, 500), (20, 400), (30, 90), (40, 9), (50, 1))
    latency = LatencyUs(0.015, 0.01, 0.02, 0.03, 0.04, 0.045)
    half = OperationSummary(1000, 1000, latency, counts)
    none = OperationSummary(0, 0, None)
    found = pooled_result([run(100.0, read=half, write=none)] * 2).latency_us
    assert (found.p50, found.p90, found.p99, found.p99_9) == (0.01, 0.02, 0.03, 0.04)
    lower = msgspec.structs.replace(half, latency_us=msgspec.structs.replace(latency, max=0.025))
    assert pooled_result([run(100.0, read=lower, write=none)] * 2).latency_us.p99_9 == 0.025


def test_a_share_of_nothing_is_none_of_it() -> None:
    writes = msgspec.structs.replace(FIRST.realised, read_frac=0.0)
    idle = run(100.0, cpu_user=0.0, cpu_system=0.0, io_share=0.0, realised=writes)
    pooled = pooled_result([idle, idle])
    assert (pooled.cpu_user, pooled.cpu_system, pooled.io_share) == (0.0, 0.0, 0.0)
    assert pooled.realised.read_frac == 0.0


def test_of_two_requests_half_are_within_the_shorter_and_nine_tenths_within_the_longer() -> None:
    shorter, longer = (
        run(100.0, read=summary(1, 1, us, bucket), write=OperationSummary(0, 0, None))
        for us, bucket in ((0.1, 100), (0.2, 200))
    )
    latency = pooled_result([shorter, longer]).latency_us
    assert (latency.p50, latency.p90, latency.p99) == (0.1, 0.2, 0.2)


def test_a_share_of_nothing_stays_nothing() -> None:
    idle = run(
        100.0, cpu_user=0.0, cpu_system=0.0, io_share=0.0, realised=Realised(0.0, 0.0, 0.0, 0.0)
    )
    pooled = pooled_result([idle, idle])
    assert (pooled.cpu_user, pooled.cpu_system, pooled.io_share) == (0.0, 0.0, 0.0)
    assert pooled.realised == idle.realised


def test_requests_that_nobody_counted_by_time_have_percentiles_of_nothing() -> None:
    latency = LatencyUs(7.0, 7.0, 7.0, 7.0, 7.0, 7.0)
    part = OperationSummary(5, 5, latency)
    pooled = pooled_result([run(100.0, read=part, write=part)] * 2)
    assert (pooled.latency_us.mean, pooled.latency_us.p50, pooled.latency_us.max) == (7.0, 0.0, 7.0)
