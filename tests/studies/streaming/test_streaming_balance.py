"""Scaling, balance and what-if name the resource that the truth has, and extrapolate to it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np
import pytest

from fake_disks import FakeDisks, Kept
from leadline.engine.streams.disks import Effort
from leadline.record import Interval
from leadline.record.balance import Balance, Resource, StreamBalance
from leadline.record.streaming import StreamStudy
from leadline.studies.streaming.answer import balance_of, scaling_of
from leadline.studies.streaming.balance import WhatIfRefused, balances_of, parse_changes, what_if
from leadline.studies.streaming.plan import capacities_of
from leadline.studies.streaming.study import (
    ScalingOptions,
    begin_scaling,
    pooled_readings,
    run_scaling,
)
from stream_fixture import ATLAS, BOREAS, Machine, busy_s, moved, options_of, scaling_study

LIMITED: dict[Resource, Machine] = {
    "disks": replace(ATLAS, disk_read_mb_s=60.0, disk_write_mb_s=50.0),
    "cpu": replace(ATLAS, disk_read_mb_s=900.0, disk_write_mb_s=900.0),
    "io_path": replace(ATLAS, disk_read_mb_s=100.0, disk_write_mb_s=100.0, shared_path_mb_s=150.0),
    "memory": replace(ATLAS, memory_copy_mb_s=700.0, counted=True),
}
"""Machines on which this resource is the limit of the sort by construction."""


def sort_read(said: StreamBalance) -> Balance:
    return next(one for one in said.balances if (one.kernel, one.phase) == ("sort", "read"))


def rate_of(balance: Balance, resource: Resource) -> float:
    found = next(one for one in balance.saturations if one.resource == resource)
    assert found.mb_s_per_processor is not None
    return found.mb_s_per_processor.value


@pytest.mark.parametrize("limit", sorted(LIMITED))
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_scaling_names_what_stopped_it(limit: Resource, seed: int) -> None:
    machine = replace(LIMITED[limit], seed=seed, noise_frac=0.02)
    scaling = scaling_of(balance_of(scaling_study(machine)), "sort", "read")
    assert scaling is not None
    assert scaling.limited_by == limit, scaling.sentence
    assert (scaling.stops_at is None) == (limit == "disks")
    if limit != "disks":
        last = scaling.steps[-1]
        assert last.utilisation[limit].value == pytest.approx(1, abs=0.1)
        assert last.evidence
        assert {"cpu": "CPU", "memory": "memory", "io_path": "I/O path"}[limit] in last.evidence[0]


def test_scaling_of_ranks_is_stopped_by_their_network() -> None:
    machine = replace(ATLAS, disk_read_mb_s=5e3, network_mb_s=60.0, processors=4)
    study = scaling_study(machine, "cluster")
    scaling = scaling_of(balance_of(study), "sort", "read")
    assert scaling is not None
    assert scaling.limited_by == "network"


def test_the_step_where_it_stops() -> None:
    """Of 520 MB/s each, two processors at 1.52 ns a byte sort 1316 MB/s: 2.5 disks."""
    scaling = scaling_of(balance_of(scaling_study(ATLAS)), "sort", "read")
    assert scaling is not None
    assert scaling.stops_at == 3
    assert scaling.limited_by == "cpu"
    assert [step.limited_by for step in scaling.steps] == [None, None, "cpu", "cpu"]
    gains = [step.gained_mb_s.value for step in scaling.steps]
    assert gains == pytest.approx([520, 520, 276, 0], abs=30)
    assert [step.ideal_gain_mb_s for step in scaling.steps] == pytest.approx([520] * 4, rel=0.05)
    assert "bottleneck: CPU" in scaling.sentence


def test_time_that_nothing_explains_is_said_so() -> None:
    study = scaling_study(ATLAS)
    runs = []
    for run in study.runs:
        phases = tuple(
            msgspec.structs.replace(phase, seconds=3 * phase.seconds, last_done_s=3 * phase.seconds)
            for phase in run.result.phases
        )
        result = msgspec.structs.replace(run.result, phases=phases)
        runs.append(msgspec.structs.replace(run, result=result))
    slow = msgspec.structs.replace(study, runs=tuple(runs))
    scaling = scaling_of(balance_of(slow), "scan", "read")
    assert scaling is not None
    assert scaling.limited_by is None
    assert "no measured resource is used up" in scaling.sentence


def true_rate(machine: Machine, resource: Resource, phase: str) -> float:
    """Disk bandwidth per processor at which the sort's phase uses this up, in MB/s."""
    options = options_of(machine, "sort", "threads")
    busy = busy_s(machine, options, 4, phase)[resource]
    return sum(moved("sort", phase)) / 1e6 / busy / machine.processors


@pytest.mark.parametrize("resource", ["disks", "cpu", "memory"])
@pytest.mark.parametrize("phase", ["read", "write"])
def test_extrapolated_saturation_is_the_truth(resource: Resource, phase: str) -> None:
    machine = replace(BOREAS, noise_frac=1e-6)
    said = balance_of(scaling_study(machine))
    balance = next(one for one in said.balances if (one.kernel, one.phase) == ("sort", phase))
    assert rate_of(balance, resource) == pytest.approx(
        true_rate(machine, resource, phase), rel=0.001
    )


@pytest.mark.long
def test_saturation_intervals_cover_the_truth() -> None:
    count = 400
    covered: dict[Resource, int] = {"disks": 0, "cpu": 0, "memory": 0}
    effort = Effort(data_bytes=1, memory_bytes=1, threads=1, seed=0, total_s_max=1.0)
    for seed in range(count):
        machine = replace(BOREAS, shared_path_mb_s=1e9, noise_frac=0.02, seed=seed)
        disks = FakeDisks(machine=machine, count=4)
        readings = [
            disks.capacities(msgspec.structs.replace(effort, seed=2 * seed + end)) for end in (0, 1)
        ]
        study = msgspec.structs.replace(
            scaling_study(machine, kernels=("sort",)),
            capacities=capacities_of(pooled_readings(readings), disks.directories),
        )
        balance = balances_of(study)[0]
        assert balance.phase == "read"
        for found in balance.saturations:
            if found.resource in covered and found.mb_s_per_processor is not None:
                truth = true_rate(machine, found.resource, "read")
                covered[found.resource] += found.mb_s_per_processor.covers(truth)
    assert all(0.92 <= held / count <= 0.98 for held in covered.values()), covered


def test_the_order_of_bottlenecks() -> None:
    balance = sort_read(balance_of(scaling_study(ATLAS)))
    assert balance.first == "cpu"
    assert balance.order[:2] == ("cpu", "disks")
    assert "CPU 656 MB/s, then disks" in balance.sentence
    assert "doubling disks: no gain" in balance.sentence
    path = next(one for one in balance.saturations if one.resource == "io_path")
    assert path.at_least, "a path that was never seen saturated has no place in the order"
    assert "io_path" not in balance.order


def test_a_path_that_gives_out_comes_first() -> None:
    balance = sort_read(balance_of(scaling_study(BOREAS)))
    assert balance.first == "io_path"
    assert rate_of(balance, "io_path") == pytest.approx(520 / 4, rel=0.05)


def test_without_capacities_nothing_is_made_up() -> None:
    study = msgspec.structs.replace(scaling_study(ATLAS), capacities=None)
    said = balance_of(study)
    assert not said.balances
    assert not said.scaling
    assert said.findings[0].code == "no_capacities"


def test_the_sentence_says_what_the_answer_is() -> None:
    said = balance_of(scaling_study(ATLAS))
    assert said.sentences[0].startswith("Bottleneck: CPU, sort write")
    assert said.processors == 2
    assert said.disks == 4


@pytest.mark.parametrize(
    ("changes", "limited", "gain"),
    [
        ({"cores": 2.0}, "disks", 1026 / 656 - 1),
        ({"cores": 1.5}, "cpu", 0.5),
        ({"disks": 2.0}, "cpu", 0.0),
        ({"cores": 4.0, "disks": 4.0}, "cpu", 3.0),
    ],
)
def test_what_if(changes: dict[str, float], limited: str, gain: float) -> None:
    """CPU at 656 MB/s per processor, disks at 1026, memory at 4600."""
    found = what_if(sort_read(balance_of(scaling_study(ATLAS))), changes)
    assert found is not None
    assert found.limited_before == "cpu"
    assert found.limited_after == limited
    assert found.gain_frac.value == pytest.approx(gain, abs=0.05)
    assert found.after_mb_s.value == pytest.approx(
        (1 + found.gain_frac.value) * found.before_mb_s.value
    )


def test_what_if_is_answered_by_the_machine_that_was_bought() -> None:
    """The prediction for twice the processors is what the machine with them then does."""
    said = balance_of(scaling_study(replace(ATLAS, noise_frac=1e-6)))
    predicted = what_if(sort_read(said), {"cores": 2.0})
    assert predicted is not None
    bought = scaling_study(replace(ATLAS, processors=4, noise_frac=1e-6), kernels=("sort",))
    rates = [
        phase.mb_s
        for run in bought.runs
        if run.disks == 4
        for phase in run.result.phases
        if phase.name == "read"
    ]
    assert predicted.after_mb_s.value == pytest.approx(float(np.mean(rates)), rel=0.01)


def test_changes_are_read_and_refused() -> None:
    assert parse_changes("cores=2, disks=2,memory=1.5,network=10") == {
        "cores": 2.0,
        "disks": 2.0,
        "memory": 1.5,
        "network": 10.0,
    }
    for bad in (
        "",
        "cores",
        "wheels=2",
        "cores=0",
        "cores=-1",
        "cores=x",
        "cores=nan",
        "cores=inf",
        "cores=2,cores=3",
    ):
        with pytest.raises(WhatIfRefused):
            parse_changes(bad)


def test_amdahl_and_case() -> None:
    counted = sort_read(balance_of(scaling_study(BOREAS))).amdahl
    assert counted is not None
    assert counted.mips_source == "instructions"
    user, kernel = BOREAS.costs["sort", "read"]
    mips = 1e3 * (2.6 * user + 1.1 * kernel) / (user + kernel) * BOREAS.processors
    assert counted.mips == pytest.approx(mips, rel=0.03)
    assert counted.io_mbit_s_per_mips == pytest.approx(4 * 210 * 8 / mips, rel=0.05)
    assert counted.memory_mb_per_mips == pytest.approx(25_233 / mips, rel=0.05)


def test_amdahl_by_the_clock_where_nothing_counts() -> None:
    study = scaling_study(ATLAS)
    assert sort_read(balance_of(study)).amdahl is None, "neither instructions nor a clock"
    facts = study.start.facts | {"cpu_mhz": 2600.0}
    study = msgspec.structs.replace(study, start=msgspec.structs.replace(study.start, facts=facts))
    found = sort_read(balance_of(study)).amdahl
    assert found is not None
    assert found.mips == 5200
    assert "cannot be counted" in found.mips_source
    assert "million cycles per second" in found.sentence


def test_ratios_beside_the_models() -> None:
    said = balance_of(scaling_study(BOREAS, "cluster", kernels=("sort",)))
    ratios = {(one.phase, one.bus, one.disks): one for one in said.ratios}
    io = ratios["read", "io", 4]
    assert io.modelled == pytest.approx(1 + 2 * 3 / 4)
    assert io.error_frac == pytest.approx(0, abs=0.01)
    assert "block layer" in io.tier
    memory = ratios["read", "memory", 4]
    assert memory.tier == "resctrl"
    assert memory.corrected is not None
    assert memory.corrected > memory.modelled
    assert memory.measured is not None
    assert memory.measured.value == pytest.approx(6.9, rel=0.05)
    here = balance_of(scaling_study(ATLAS, kernels=("sort",)))
    missing = next(one for one in here.ratios if one.bus == "memory")
    assert missing.measured is None
    assert missing.tier.startswith("not measurable here: neither resctrl")
    assert here.not_measurable


def test_costs_and_what_cannot_be_counted() -> None:
    counted = balance_of(scaling_study(BOREAS, kernels=("sort",))).costs[0]
    assert counted.instructions_per_byte is not None
    assert counted.cycles_per_instruction is not None
    here = balance_of(scaling_study(ATLAS, kernels=("sort",)))
    assert all(one.instructions_per_byte is None for one in here.costs)
    read = next(one for one in here.costs if (one.phase, one.disks) == ("read", 4))
    assert read.cpu_user_ns_per_byte.value == pytest.approx(1.28, rel=0.03)
    assert read.cpu_utilisation.value == pytest.approx(1, abs=0.05)


def test_io_that_a_cache_served_is_doubted() -> None:
    study = scaling_study(ATLAS, kernels=("scan",))
    runs = []
    for run in study.runs:
        phases = tuple(
            msgspec.structs.replace(phase, block_read_bytes=phase.bytes_read // 2)
            for phase in run.result.phases
        )
        result = msgspec.structs.replace(run.result, phases=phases)
        runs.append(msgspec.structs.replace(run, result=result))
    said = balance_of(msgspec.structs.replace(study, runs=tuple(runs)))
    assert any(each.code == "io_off_model" for each in said.findings)


def test_the_whole_loop_with_a_machine_of_known_truth() -> None:
    """From plan to answer: the path all disks share, 150 MB/s, stops it, and is named."""
    asked = ScalingOptions(system="s", data_bytes=512 << 20, memory_bytes=1 << 30, threads=2)
    disks = FakeDisks(machine=LIMITED["io_path"], count=4)
    start = begin_scaling([str(Path.cwd())], asked)
    study: StreamStudy = run_scaling(disks, Kept(), start, asked)
    scaling = scaling_of(balance_of(study), "sort", "read")
    assert scaling is not None
    assert scaling.stops_at == 2
    assert scaling.limited_by == "io_path"
    assert rate_of(sort_read(balance_of(study)), "io_path") == pytest.approx(75, rel=0.05)


def with_disks(study: StreamStudy, factor: float, *devices: str) -> StreamStudy:
    """The same study on disks that were measured to give `factor` of what they gave."""
    capacities = study.capacities
    assert capacities is not None

    def less(rate: Interval) -> Interval:
        return Interval(
            rate.value * factor, (rate.low or 0) * factor, (rate.high or 0) * factor, rate.n
        )

    disks = tuple(
        msgspec.structs.replace(
            disk,
            read_mb_s=less(disk.read_mb_s),
            write_mb_s=less(disk.write_mb_s),
            devices=devices or disk.devices,
        )
        for disk in capacities.disks
    )
    changed = msgspec.structs.replace(
        capacities,
        disks=disks,
        all_read_mb_s=less(capacities.all_read_mb_s),
        all_write_mb_s=less(capacities.all_write_mb_s),
        all_both_mb_s=less(capacities.all_both_mb_s),
    )
    return msgspec.structs.replace(study, capacities=changed)


def test_disks_do_not_give_out_below_what_a_run_had_of_them() -> None:
    """At a third of what they really give, a run on four uses them far above all of it."""
    study = scaling_study(replace(ATLAS, disk_read_mb_s=60.0, disk_write_mb_s=50.0))
    assert not any(each.code == "used_more_than_all" for each in balance_of(study).findings)
    said = balance_of(with_disks(study, 1 / 3))
    read = sort_read(said)
    disks = next(one for one in read.saturations if one.resource == "disks")
    reached = max(p.mb_s for run in study.runs for p in run.result.phases if p.name == "read")
    assert disks.at_least
    assert disks.mb_s_per_processor is not None
    assert disks.mb_s_per_processor.value >= reached / read.processors
    assert disks.mb_s_per_processor.low is None
    assert "disks" not in read.order
    assert any(
        w.startswith("sort read: used 3") and "was measured low" in w
        for w in map(str, said.findings)
    )


def test_directories_of_one_device_are_said_to_be_one_disk() -> None:
    study = scaling_study(ATLAS)
    assert not any(each.code == "disks_on_one_device" for each in balance_of(study).findings)
    warnings = map(str, balance_of(with_disks(study, 1.0, "vda")).findings)
    assert sum("lie on one device (vda)" in said for said in warnings) == 6, "pairs of four"
