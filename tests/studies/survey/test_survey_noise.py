"""Which readings' spread is whose noise: by region, away from boundaries, less what moved."""

from __future__ import annotations

import math

import msgspec
import numpy as np
import pytest

from leadline.record import Interval, Measurement, Workload
from leadline.stats import Noise, own_error, pooled_noise, reading_interval
from leadline.studies.survey.boundaries import SurveyReadings
from leadline.studies.survey.middle import RegionBounds
from leadline.studies.survey.sentences import NoiseModel
from proving.samples import sample_point

MIB = 2**20
REGIONS = (RegionBounds(MIB, 100 * MIB, 10 * MIB), RegionBounds(100 * MIB, 900 * MIB, 300 * MIB))


def told(*groups: tuple[float, list[float]]) -> SurveyReadings:
    """(place in MiB, readings in MB/s) of workloads, each reading at a time of its own."""
    readings = SurveyReadings()
    clock = [0.0, 7.0, 3.0, 9.0, 1.0, 5.0]
    for place, rates in groups:
        for turn, rate in enumerate(rates):
            point = sample_point(f"p{place}-{turn}", mb_s=rate)
            workload = msgspec.structs.replace(point.workload, unique_bytes=int(place * MIB))
            readings.add(msgspec.structs.replace(point, workload=workload, clock_s=clock[turn]))
    return readings


def at(mib: float) -> Workload:
    return Workload(unique_bytes=int(mib * MIB), size_mean=4096)


QUIET = [100.0, 101.0, 100.0, 101.0, 100.0]
LOUD = [10.0, 13.0, 12.0, 9.0, 11.0]
JUMPING = [100.0, 10.0, 100.0, 10.0]


def is_noise(found: Noise, *groups: list[float]) -> bool:
    wanted = pooled_noise(groups)
    return (found.sd_frac, found.df) == pytest.approx((wanted.sd_frac, wanted.df))


def test_a_region_has_its_own_noise_and_a_boundary_that_of_everything() -> None:
    model = NoiseModel(told((10, QUIET), (300, LOUD), (101, JUMPING)), REGIONS)
    assert is_noise(model.at(at(20)), QUIET)
    assert is_noise(model.at(at(500)), LOUD)
    for boundary in (100, 88, 114):
        assert is_noise(model.at(at(boundary)), QUIET, LOUD, JUMPING)
    assert is_noise(model.at(at(86)), QUIET)
    assert is_noise(model.at(at(116)), LOUD)
    assert is_noise(model.at(at(901)), QUIET, LOUD, JUMPING), "beyond every region"
    assert is_noise(model.at(at(1)), QUIET)
    assert is_noise(model.at(at(900)), LOUD)


def test_replicates_at_either_end_of_a_region_are_its_own() -> None:
    model = NoiseModel(told((1, QUIET), (900, LOUD)), REGIONS)
    assert is_noise(model.at(at(20)), QUIET)
    assert is_noise(model.at(at(500)), LOUD)
    other = [30.0, 33.0, 29.0, 31.0]
    beyond = NoiseModel(told((0.5, other), (10, QUIET), (300, LOUD), (901, other)), REGIONS)
    assert is_noise(beyond.at(at(20)), QUIET)
    assert is_noise(beyond.at(at(500)), LOUD)


def test_one_boundary_of_two_is_a_boundary_and_a_survey_without_one_has_none() -> None:
    three = (
        *REGIONS[:1],
        RegionBounds(100 * MIB, 400 * MIB, 0),
        RegionBounds(400 * MIB, 900 * MIB, 0),
    )
    groups = (10, QUIET), (200, LOUD), (101, JUMPING)
    model = NoiseModel(told(*groups), three)
    for boundary in (100, 400):
        assert is_noise(model.at(at(boundary)), QUIET, LOUD, JUMPING)
    assert is_noise(model.at(at(20)), QUIET)
    assert is_noise(model.at(at(200)), LOUD)
    edge = RegionBounds(MIB, 120 * MIB, 0), RegionBounds(120 * MIB, 900 * MIB, 0)
    edged = NoiseModel(told((10, QUIET), (300, LOUD)), edge)
    assert is_noise(edged.at(at(138)), QUIET, LOUD), "15% off is near"
    assert is_noise(edged.at(at(139)), LOUD)
    alone = NoiseModel(told((10, QUIET), (300, LOUD)), REGIONS[:1])
    assert is_noise(alone.at(at(20)), QUIET)


def test_too_few_replicates_of_its_own_and_a_region_has_everybodys() -> None:
    few = NoiseModel(told((10, QUIET), (300, LOUD[:2]), (400, LOUD[2:4])), REGIONS)
    assert is_noise(few.at(at(500)), QUIET, LOUD[:2], LOUD[2:4]), "two degrees of freedom"
    enough = NoiseModel(told((10, QUIET), (300, LOUD[:4])), REGIONS)
    assert is_noise(enough.at(at(500)), LOUD[:4]), "three"


def test_an_interval_knows_the_noise_and_the_runs_own_error() -> None:
    readings = told((10, QUIET), (300, LOUD))
    model = NoiseModel(readings, REGIONS)
    found: list[Measurement] = readings.at(at(300)) or [
        point for point in readings.all if point.workload.unique_bytes == 300 * MIB
    ]
    errors = [own_error(point.result.throughput_mb_s) for point in found]
    assert model.interval(found) == reading_interval(LOUD, errors, pooled_noise([LOUD]))
    assert model.interval([]) == Interval(0.0, None, None, 0)


def moving(change: float, *, step: bool, begin_s: float = 0.0) -> SurveyReadings:
    """Three quiet workloads in turn; a slope, or a fall half-way, over an hour."""
    readings = SurveyReadings()
    for turn in range(6):
        for place in range(3):
            clock = 600.0 * turn + 10 * place
            moved = (change if turn >= 3 else 0.0) if step else change * clock / 3020.0
            wobble = 0.001 * ((turn + place) % 2)
            point = sample_point(f"p{turn}-{place}", mb_s=100.0 * math.exp(moved + wobble))
            workload = msgspec.structs.replace(point.workload, unique_bytes=(10 + place) * MIB)
            readings.add(msgspec.structs.replace(point, workload=workload, clock_s=begin_s + clock))
    return readings


@pytest.mark.parametrize("step", [True, False])
def test_what_the_whole_system_moved_is_not_noise(step: bool) -> None:
    still = NoiseModel(moving(0.0, step=step), REGIONS).at(at(11))
    for begin_s in (0.0, 900.0):
        moved = NoiseModel(moving(-0.5, step=step, begin_s=begin_s), REGIONS).at(at(11))
        assert moved.df == pytest.approx(still.df - (2 if step else 1)), "what was fitted is spent"
        squares = [noise.df * noise.sd_frac**2 for noise in (moved, still)]
        assert squares[0] == pytest.approx(squares[1], rel=0.04)


def test_noise_beside_a_drift_is_as_large_as_without_one() -> None:
    """On average over many systems whose noise is known; a fitted drift hides a part of it."""
    sd, found = 0.05, []
    for seed in range(400):
        draw, readings = np.random.default_rng(seed), SurveyReadings()
        for place in range(4):
            for turn in range(2):
                clock = 400.0 * draw.random() + 1800.0 * turn
                rate = 100.0 * math.exp(-0.5 * clock / 2200.0 + sd * draw.standard_normal())
                point = sample_point(f"p{place}-{turn}", mb_s=rate)
                own = msgspec.structs.replace(point.workload, unique_bytes=(10 + place) * MIB)
                readings.add(msgspec.structs.replace(point, workload=own, clock_s=clock))
        noise = NoiseModel(readings, REGIONS).at(at(11))
        found.append((noise.df * noise.sd_frac**2 - 0.3 * 0.03**2) / (noise.df - 0.3))
    assert np.mean(found) == pytest.approx(sd**2, rel=0.1)


def test_a_movement_that_may_be_none_is_left_in_the_noise() -> None:
    rates = [100.0, 130.0, 90.0, 125.0, 95.0]
    assert is_noise(NoiseModel(told((10, rates)), REGIONS).at(at(20)), rates)


def test_without_replicates_the_expectation_alone_is_the_noise() -> None:
    noise = NoiseModel(told((10, [100.0]), (300, [9.0])), REGIONS).at(at(20))
    assert (noise.sd_frac, noise.df) == pytest.approx((0.03, 0.3))
