"""The five machines of CP94 Fig. 2 show in a survey what the paper's figures show."""

from __future__ import annotations

import pytest

from leadline.record import Curve, Survey
from shared_surveys import surveyed

MB = 1e6


def survey_of(profile: str) -> Survey:
    return surveyed(profile).survey


def curve(survey: Survey, region: int, parameter: str) -> Curve:
    found = survey.families[region].curve(parameter)
    assert found is not None
    return found


def reads_over_writes(survey: Survey, region: int) -> float:
    points = curve(survey, region, "read_frac").points
    assert (points[0].x, points[-1].x) == (0.0, 1.0)
    return points[-1].throughput_mb_s.value / points[0].throughput_mb_s.value


def test_fig_7_the_sparcstation_has_two_regions_and_reads_faster_even_in_its_cache() -> None:
    survey = survey_of("sparcstation-1plus")
    assert len(survey.regions) == 2
    assert survey.boundaries[0].bytes.value == pytest.approx(21 * MB, rel=0.1)
    assert 1.05 < reads_over_writes(survey, 0) < 2
    sequential = curve(survey, 1, "seq_frac").points
    assert sequential[-1].throughput_mb_s.value > 1.3 * sequential[0].throughput_mb_s.value
    cached = curve(survey, 0, "seq_frac").points
    assert cached[-1].throughput_mb_s.value < 1.15 * cached[0].throughput_mb_s.value


def test_fig_8_sprite_has_three_plateaus_with_reads_faster_only_on_the_middle_one() -> None:
    survey = survey_of("decstation-5000-sprite")
    assert len(survey.regions) == 3
    assert survey.boundaries[0].bytes.value == pytest.approx(5 * MB, rel=0.15)
    assert survey.boundaries[1].bytes.value == pytest.approx(20 * MB, rel=0.15)
    assert reads_over_writes(survey, 0) == pytest.approx(1.0, abs=0.15)
    assert reads_over_writes(survey, 1) > 4
    assert reads_over_writes(survey, 2) < 1.05
    assert [region.name for region in survey.regions] == ["page cache", "read cache", "disk"]


def test_fig_20_the_hp_730_has_a_3_mb_cache_that_peaks_near_30_mb_s() -> None:
    survey = survey_of("hp-730")
    assert len(survey.regions) == 2
    assert survey.cache_bytes is not None
    assert survey.cache_bytes.value == pytest.approx(3 * MB, rel=0.1)
    largest = curve(survey, 0, "size_mean").points[-1].throughput_mb_s.value
    assert largest == pytest.approx(30, rel=0.15)


def test_fig_9a_the_convex_has_an_800_mb_cache_and_still_gains_at_1_mb_requests() -> None:
    survey = survey_of("convex-c240")
    assert survey.cache_bytes is not None
    assert survey.cache_bytes.value == pytest.approx(800 * MB, rel=0.1)
    sizes = curve(survey, 1, "size_mean").points
    below = [point for point in sizes if point.x < 1e6]
    above = [point for point in sizes if point.x >= 1e6]
    assert above, "the range scaled itself past 1 MB"
    assert above[-1].throughput_mb_s.value > 1.1 * below[-1].throughput_mb_s.value


def test_fig_9b_the_solbourne_writes_slowly_inside_its_300_mb_cache() -> None:
    survey = survey_of("solbourne-5e905")
    assert len(survey.regions) == 2, "the smooth slope is not chopped into false plateaus"
    assert survey.boundaries[0].bytes.value == pytest.approx(300 * MB, rel=0.15)
    assert reads_over_writes(survey, 0) > 3


def test_fig_10_the_hp_has_the_best_file_cache_and_the_convex_the_best_disk() -> None:
    machines = ["sparcstation-1plus", "decstation-5000-sprite", "hp-730", "convex-c240"]
    cached = {name: best(survey_of(name), 0) for name in machines}
    disk = {name: best(survey_of(name), -1) for name in machines}
    assert max(cached, key=cached.__getitem__) == "hp-730"
    assert max(disk, key=disk.__getitem__) == "convex-c240"


def best(survey: Survey, region: int) -> float:
    return max(
        point.throughput_mb_s.value
        for item in survey.families[region].curves
        for point in item.points
    )


def test_fig_4_the_75_percent_point_of_the_sparcstation_lies_at_its_caches_end() -> None:
    survey = surveyed("sparcstation-1plus", focal_mode="75%").survey
    focal = survey.regions[0].focal
    assert focal.unique_bytes == pytest.approx(21 * MB, rel=0.25)
    assert focal.process_num == 1
    assert 4e3 < focal.size_mean < 60e3
