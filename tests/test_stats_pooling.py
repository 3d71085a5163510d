"""Several runs as one answer: what adds up, what is weighed, and whether the interval covers."""

from __future__ import annotations

from math import exp
from random import Random

import msgspec
import pytest

from leadline.record import (
    EngineResult,
    Interval,
    LatencyUs,
    Level,
    OperationSummary,
    Provenance,
    Stall,
    WrittenBytes,
)
from leadline.stats import pooled_result
from leadline.stats.pooling import ALIKE, alike_factor
from leadline.testing.samples import sample_result


def run(mb_s: float, half_frac: float = 0.02, **changes: object) -> EngineResult:
    rate = Interval(mb_s, mb_s * (1 - half_frac), mb_s * (1 + half_frac), 20)
    return msgspec.structs.replace(sample_result(mb_s=mb_s), throughput_mb_s=rate, **changes)


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
    good = run(100.0, warnings=("same",))
    bad = run(100.0, admissible=False, reasons=("missed",), warnings=("same", "other"))
    pooled = pooled_result([good, bad])
    assert not pooled.admissible
    assert (pooled.reasons, pooled.warnings) == (("missed",), ("same", "other"))


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
    some = run(100.0, provenance=Provenance(probed=300, found_share=1.0))
    more = run(100.0, provenance=Provenance(probed=100, found_share=0.0, unchecked=("x",)))
    provenance = pooled_result([some, more]).provenance
    assert (provenance.probed, provenance.found_share) == (400, 0.75)
    assert provenance.unchecked == ("x",)


@pytest.mark.parametrize(("within", "between"), [(0.03, 0.08), (0.03, 0.01), (0.01, 0.15)])
@pytest.mark.parametrize("alike", [0.0, ALIKE])
def test_the_interval_covers_the_truth_whatever_differs(
    within: float, between: float, alike: float
) -> None:
    """Each run claims its own noise only; five in a row must cover 92 % of the time or more."""
    random = Random(8)
    covered = 0
    for _ in range(1000):
        runs = []
        drift = random.gauss(0, between)
        for _ in range(5):
            value = 1000 * exp(drift) * random.lognormvariate(0, within)
            runs.append(run(value, half_frac=1.96 * within))
            drift = alike * drift + random.gauss(0, between * (1 - alike**2) ** 0.5)
        interval = pooled_result(runs).throughput_mb_s
        covered += interval.low <= 1000 <= interval.high  # type: ignore[operator]
    assert covered >= 920


def test_runs_that_are_independent_need_no_widening() -> None:
    assert alike_factor(5, 0.0) == 1.0
    assert alike_factor(2, 0.5) == pytest.approx((1.5 / 0.5) ** 0.5)
    assert alike_factor(5) == pytest.approx(1.79, abs=0.01)
    assert all(1.7 < alike_factor(runs) < 1.8 for runs in range(2, 100))
