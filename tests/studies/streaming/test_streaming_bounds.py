"""No run is faster than its bound, and the bound is by the resource that the truth has busiest."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest

from leadline.record import Interval
from leadline.record.streaming import CapacityResult
from leadline.studies.streaming.measured import bound
from leadline.studies.streaming.plan import capacities_of as capacities_from
from leadline.studies.streaming.resources import DiskRates, path_is_short, striped, together
from stream_fixture import ATLAS, BOREAS, PLATFORMS, Machine, capacities_of, options_of, run_of

EXACT = replace(ATLAS, noise_frac=0.0)


def exact(value: float) -> Interval:
    return Interval(value, None, None, 1)


@pytest.mark.parametrize(
    ("machine", "resource"),
    [
        (replace(EXACT, disk_read_mb_s=50.0, disk_write_mb_s=40.0), "disks"),
        (replace(EXACT, disk_read_mb_s=9000.0, disk_write_mb_s=9000.0), "cpu"),
        (replace(EXACT, shared_path_mb_s=60.0), "io_path"),
        (
            replace(
                EXACT, memory_copy_mb_s=600.0, disk_read_mb_s=5e3, disk_write_mb_s=5e3, counted=True
            ),
            "memory",
        ),
    ],
)
@pytest.mark.parametrize("passes", [1, 2])
def test_the_bound_is_the_truth_of_a_machine_without_noise(
    machine: Machine, resource: str, passes: int
) -> None:
    options = options_of(machine, "sort", "threads")
    run = run_of(machine, options, 4, passes=passes)
    found = bound(run.result, options, capacities_of(machine, 4), 4)
    assert found is not None
    assert found.resource == resource
    assert found.seconds.value == pytest.approx(run.result.seconds, rel=0.02)
    moved = sum(phase.bytes_moved for phase in run.result.phases) / 1e6
    assert found.mb_s.value == pytest.approx(moved / run.result.seconds, rel=0.02)
    assert found.by_resource[resource].value == pytest.approx(found.mb_s.value, rel=0.1)
    assert [phase.phase for phase in found.phases] == [one.name for one in run.result.phases]


def test_the_network_of_ranks_bounds_a_cluster() -> None:
    slow = replace(EXACT, network_mb_s=40.0, processors=4, disk_read_mb_s=5e3)
    options = options_of(slow, "sort", "cluster")
    run = run_of(slow, options, 4)
    found = bound(run.result, options, capacities_of(slow, 4, network=True), 4)
    assert found is not None
    assert found.phases[0].resource == "network"
    assert found.phases[0].seconds.value == pytest.approx(run.result.phases[0].seconds, rel=0.02)


@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize("machine", [EXACT, replace(BOREAS, noise_frac=0.0)])
def test_nothing_is_faster_than_its_bound(machine: Machine, platform: str) -> None:
    for kernel in ("scan", "sort", "transpose"):
        for disks in (1, 4):
            options = options_of(machine, kernel, platform)  # type: ignore[arg-type]
            run = run_of(machine, options, disks)
            capacities = capacities_of(machine, 4, network=platform == "cluster")
            found = bound(run.result, options, capacities, disks)
            assert found is not None
            assert found.seconds.value <= 1.001 * run.result.seconds


def test_nothing_moved_has_no_bound() -> None:
    options = options_of(ATLAS, "scan", "process")
    result = msgspec.structs.replace(run_of(ATLAS, options, 1).result, phases=())
    assert bound(result, options, capacities_of(ATLAS, 1), 1) is None


def test_the_bound_carries_the_capacities_interval() -> None:
    options = options_of(ATLAS, "scan", "threads")
    found = bound(run_of(ATLAS, options, 1).result, options, capacities_of(ATLAS, 1), 1)
    assert found is not None
    assert found.mb_s.low is not None
    assert found.mb_s.high is not None
    assert found.mb_s.low < found.mb_s.value < found.mb_s.high


def test_disks_that_do_both_at_once() -> None:
    turns = DiskRates(exact(100.0), exact(50.0), exact(2 / (1 / 100 + 1 / 50)))
    assert turns.seconds(100.0, 0.0).value == pytest.approx(1)
    assert turns.seconds(100.0, 100.0).value == pytest.approx(1 + 2)
    duplex = DiskRates(exact(100.0), exact(100.0), exact(200.0))
    assert duplex.seconds(100.0, 100.0).value == pytest.approx(1)
    assert duplex.seconds(200.0, 100.0).value == pytest.approx(2)
    uneven = DiskRates(exact(100.0), exact(50.0), exact(100.0))
    assert uneven.seconds(200.0, 100.0).value == pytest.approx(2 + 1), "what is left is read"
    assert uneven.seconds(50.0, 100.0).value == pytest.approx(1 + 1), "what is left is written"
    disturbed = DiskRates(exact(100.0), exact(100.0), exact(40.0))
    assert disturbed.seconds(100.0, 100.0).value == pytest.approx(2)
    assert turns.seconds(0.0, 0.0).value == 0


def test_the_slowest_disk_decides_stripes() -> None:
    capacities = capacities_of(EXACT, 3)
    slow = msgspec.structs.replace(capacities.disks[2], read_mb_s=exact(100.0))
    capacities = msgspec.structs.replace(capacities, disks=(*capacities.disks[:2], slow))
    assert striped(capacities, 2).read.value == pytest.approx(2 * 520)
    assert striped(capacities, 3).read.value == pytest.approx(3 * 100)
    assert together(capacities).read.value == pytest.approx(3 * 520)


def test_a_path_is_short_when_all_disks_give_surely_less_than_their_sum() -> None:
    assert not path_is_short(capacities_of(ATLAS, 4), 100.0, 0.0)
    assert path_is_short(capacities_of(BOREAS, 4), 100.0, 0.0)
    assert not path_is_short(capacities_of(BOREAS, 2), 100.0, 0.0)


def test_capacities_with_intervals() -> None:
    readings = CapacityResult(
        memory_copy_bytes_s=(9e9, 9.1e9, 8.9e9),
        memory_read_bytes_s=(12e9,),
        disk_read_bytes_s=((1e8, 1.02e8), (2e8, 2.02e8)),
        disk_write_bytes_s=((1e8,), (1e8,)),
        all_read_bytes_s=(3e8,),
        all_write_bytes_s=(2e8,),
        all_both_bytes_s=(2.5e8,),
        disk_devices=(("sda",), ("sdb",)),
        processors=2.0,
    )
    found = capacities_from(readings, ("/a", "/b"), network_bytes_s=(1e9, 1.1e9))
    assert found.disks[1].directory == "/b"
    assert found.disks[1].read_mb_s.value == pytest.approx(201, rel=0.01)
    assert found.disks[0].write_mb_s.low is not None, "its noise is that of all disks"
    assert found.memory_copy_mb_s.covers(9000)
    assert found.network_mb_s is not None
    assert found.network_mb_s.n == 2
    alone = msgspec.structs.replace(
        readings, disk_read_bytes_s=((1e8,), (2e8,)), memory_copy_bytes_s=(9e9,)
    )
    assert capacities_from(alone, ("/a", "/b")).disks[0].read_mb_s.low is None
    assert capacities_from(alone, ("/a", "/b")).network_mb_s is None
