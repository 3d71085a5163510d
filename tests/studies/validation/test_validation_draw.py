"""What a validation measures: drawn fairly over what was surveyed, in a fair order."""

from __future__ import annotations

import math
import subprocess
import sys
import zlib

import msgspec
import numpy as np
import pytest

import shared_surveys
from leadline.models.ranges import Ranges
from leadline.record import DrawnRange, Interval, ValidationStart, Workload
from leadline.studies.validation.plan import (
    ANCHORS,
    ORTHOGONAL,
    PASSES,
    SINGLES,
    Space,
    draw,
    drawn_ranges,
    drawn_workloads,
    grid_levels,
    grid_workloads,
    plan_stages,
    requests,
    single_numbers,
)
from proving.samples import sample_validation_start
from proving.simulation import SimulatedSurvey

MIB = 2**20


@pytest.fixture(scope="module")
def surveyed() -> SimulatedSurvey:
    return shared_surveys.surveyed("hp-730")


def made_range(region: int, low_mib: int, high_mib: int) -> DrawnRange:
    return DrawnRange(
        region=region,
        name=f"level {region}",
        low_bytes=low_mib * MIB,
        high_bytes=high_mib * MIB,
        size_mean_min=4096,
        size_mean_max=MIB,
        process_num_max=16,
        focal=Workload(unique_bytes=(low_mib + high_mib) // 2 * MIB, size_mean=32768),
        surveyed_mb_s=Interval(100.0, 95.0, 105.0, 5),
    )


def made_start(count: int = 12, grids: tuple[tuple[int, ...], ...] = ()) -> ValidationStart:
    ranges = (made_range(0, 8, 64), made_range(1, 64, 512))
    singles = single_numbers(Space(ranges))
    plan = msgspec.structs.replace(
        sample_validation_start().plan,
        stages=plan_stages(ranges, count, grids, len(singles)),
        grids=grids,
    )
    return msgspec.structs.replace(
        sample_validation_start(), ranges=ranges, singles=singles, plan=plan, count=count, seed=5
    )


def test_everything_drawn_was_surveyed(surveyed: SimulatedSurvey) -> None:
    space, held = Space(drawn_ranges(surveyed.survey)), Ranges(surveyed.survey)
    drawn = draw(space, 500, seed=3)
    grid = grid_workloads(space, (3, 3, 3, 3, 2))
    singles = [item.workload for item in single_numbers(space)]
    outside = [w for w in (*drawn, *grid, *singles) if not held.holds(w)]
    assert outside == []
    assert all(4 * w.size_mean <= w.unique_bytes for w in drawn)
    assert {space.at(w.unique_bytes).region for w in drawn} == {0, 1}


def test_the_draw_is_uniform_along_every_axis() -> None:
    from scipy import stats  # noqa: PLC0415 - every process of a run would load it for this alone

    space = Space(made_start().ranges)
    drawn = draw(space, 1500, seed=1)
    chances = [
        stats.kstest(
            np.log([w.unique_bytes for w in drawn]),
            stats.uniform(math.log(8 * MIB), math.log(64)).cdf,
        ).pvalue,
        stats.kstest([w.read_frac for w in drawn], stats.uniform.cdf).pvalue,
        stats.kstest([w.seq_frac for w in drawn], stats.uniform.cdf).pvalue,
        stats.kstest([space.coordinates(w)[1] for w in drawn], stats.uniform.cdf).pvalue,
    ]
    assert min(chances) > 0.01
    few = sum(w.process_num < 4 for w in drawn) / len(drawn)
    assert few == pytest.approx(math.log(3.5) / math.log(16), abs=0.04), "not logarithmic"


def test_coordinates_lead_back_to_the_workload() -> None:
    space = Space(made_start().ranges)
    for workload in draw(space, 200, seed=2):
        assert space.workload(space.coordinates(workload)) == workload


def test_a_seed_draws_the_same_in_another_process_and_another_seed_does_not() -> None:
    start = made_start()
    assert drawn_workloads(start) == drawn_workloads(made_start())
    program = (
        "import sys, zlib; sys.path.insert(0, 'tests/studies/validation'); "
        "from test_validation_draw import *; "
        "print(zlib.crc32(str(requests(made_start())).encode()))"
    )
    told = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    ).stdout
    assert int(told) == zlib.crc32(str(requests(start)).encode())
    other = msgspec.structs.replace(start, seed=6)
    assert not set(drawn_workloads(start)) & set(drawn_workloads(other))


def test_every_workload_is_measured_once_in_each_of_two_passes_of_different_order() -> None:
    start = made_start()
    script = requests(start)
    passes = [[item.workload for item in script if item.stage == stage] for stage in PASSES]
    assert set(passes[0]) == set(passes[1]) == set(drawn_workloads(start))
    assert len(passes[0]) == len(passes[1]) == start.count
    assert passes[0] != passes[1]
    last_of_first = max(item.order for item in script if item.stage == PASSES[0])
    assert last_of_first < min(item.order for item in script if item.stage == PASSES[1])
    assert len({item.seed for item in script}) == len(script)


def test_focal_points_come_first_in_the_middle_and_last() -> None:
    start = made_start()
    script = requests(start)
    at = [item.order for item in script if item.stage == ANCHORS]
    each = len(start.ranges) * 2
    middle = at[each : 2 * each]
    assert at[:each] == list(range(each))
    assert middle == list(range(middle[0], middle[0] + each))
    assert at[2 * each :] == list(range(len(script) - each, len(script)))
    assert {item.workload for item in script[:each]} == {item.focal for item in start.ranges}


def test_the_plan_counts_what_the_script_asks() -> None:
    start = made_start(grids=((4, 3, 2, 2, 2), (3, 3, 3, 3, 2)))
    script = requests(start)
    counted = {stage.name: stage.points for stage in start.plan.stages}
    assert counted == {
        name: sum(item.stage == name for item in script)
        for name in (ANCHORS, *PASSES, SINGLES, ORTHOGONAL)
    }
    assert len(script) == start.plan.points


def test_rivals_are_spread_over_both_passes() -> None:
    script = requests(made_start(grids=((3, 3, 2, 2, 2),)))
    boundary = min(item.order for item in script if item.stage == PASSES[1])
    rivals = [item.order for item in script if item.stage == ORTHOGONAL]
    assert abs(sum(order < boundary for order in rivals) - len(rivals) / 2) <= 8


@pytest.mark.parametrize(("wanted", "points"), [(84, 96), (168, 162), (32, 32), (34, 48)])
def test_a_grid_is_the_smallest_balanced_one_that_costs_as_much(wanted: int, points: int) -> None:
    found = grid_levels(wanted)
    assert math.prod(found) == points
    assert max(found) - min(found) <= 2
    assert min(found) >= 2
