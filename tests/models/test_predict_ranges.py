"""What a predictor answers, what it marks, and what it refuses."""

from __future__ import annotations

import math
from typing import Any

import msgspec
import pytest

import survey_fixture
from leadline.models.model import PredictionRefused
from leadline.models.predictor import MODELS, NAMED, Predictor, iops_of, response_us_of
from leadline.models.product import NoFamilies
from leadline.record import BYTES_MAX, Survey, Workload, WorkloadError
from survey_fixture import MIB, points, two_region

WORK = Workload(unique_bytes=64 * MIB, size_mean=65536, process_num=2)


def predictor(survey: Survey | None = None, *, extrapolate: bool = False) -> Predictor:
    survey = survey or two_region()
    return Predictor(survey, points(survey), model="product", extrapolate=extrapolate)


def without_disk_curves() -> Survey:
    whole = two_region()
    return msgspec.structs.replace(whole, families=whole.families[:1])


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"unique_bytes": 200 * 2**30}, "unique_bytes=200 GiB"),
        ({"unique_bytes": MIB, "size_mean": 1024}, "unique_bytes=1 MiB"),
        ({"size_mean": 8 * MIB}, "size_mean=8 MiB"),
        ({"size_mean": 512}, "size_mean=512 B"),
        ({"process_num": 64}, "process_num=64"),
    ],
)
def test_a_value_outside_what_was_surveyed_is_refused_by_name(
    change: dict[str, int], said: str
) -> None:
    work = msgspec.structs.replace(WORK, **change)
    with pytest.raises(PredictionRefused) as refused:
        predictor().predict(work)
    message = str(refused.value)
    assert message.startswith(said)
    assert "lies outside the surveyed" in message
    assert "--extrapolate" in message
    assert refused.value.exit_code == 2


def test_more_data_than_surveyed_names_the_option_that_surveys_it() -> None:
    with pytest.raises(PredictionRefused, match="--max-bytes"):
        predictor().predict(WORK.with_value("unique_bytes", 2**40))


def test_a_request_that_would_span_its_data_was_not_surveyed() -> None:
    asked = predictor(survey_fixture.three_region())
    inside = Workload(unique_bytes=256 * 1024, size_mean=64 * 1024, process_num=2)
    assert asked.predict(inside).extrapolated is False
    with pytest.raises(PredictionRefused, match=r"size_mean=96 KiB .* 1 KiB to 64 KiB"):
        asked.predict(inside.with_value("size_mean", 96 * 1024))


def test_extrapolation_is_marked_and_less_sure_the_farther_it_goes() -> None:
    asked = predictor(extrapolate=True)
    top = int(asked.ranges.unique_bytes.high)
    found = asked.predict_all([WORK.with_value("unique_bytes", top * x) for x in (1, 2, 8)])
    assert [item.extrapolated for item in found] == [False, True, True]
    assert found[0].ln_sd < found[1].ln_sd < found[2].ln_sd
    assert str(found[1].findings[0]).startswith("extrapolated: unique_bytes=")
    assert found[1].region is None


def test_a_region_without_curves_is_refused_and_may_be_guessed() -> None:
    beyond = WORK.with_value("unique_bytes", 2**30)
    with pytest.raises(PredictionRefused, match=r"no curves in the region 'disk'.*--resume"):
        predictor(without_disk_curves()).predict(beyond)
    guess = predictor(without_disk_curves(), extrapolate=True).predict(beyond)
    assert guess.extrapolated
    assert "a guess from what was measured elsewhere" in str(guess.findings[0])
    assert guess.ln_sd > 0.5
    assert guess.region is None


@pytest.mark.parametrize("missing", [0, 1, 2])
def test_bytes_of_a_region_that_has_no_focal_reading_yet_are_nobodys(missing: int) -> None:
    whole = survey_fixture.three_region()
    unread = whole.regions[missing]
    survey = msgspec.structs.replace(
        whole,
        regions=tuple(region for region in whole.regions if region != unread),
        families=tuple(family for family in whole.families if family.region != unread.index),
    )
    middle = round(math.sqrt(unread.low_bytes * unread.high_bytes))
    asked = WORK.with_value("unique_bytes", middle).with_value("size_mean", 8192)
    assert predictor(whole).predict(asked).region == missing
    with pytest.raises(PredictionRefused, match=r"no region with curves at .*--resume"):
        predictor(survey).predict(asked)
    guess = predictor(survey, extrapolate=True).predict(asked)
    assert (guess.region, guess.extrapolated) == (None, True)
    assert not predictor(survey).ranges.holds(asked)


@pytest.mark.parametrize("model", MODELS)
def test_a_survey_without_points_is_refused_by_every_model(model: str) -> None:
    with pytest.raises(PredictionRefused, match="--resume"):
        Predictor(survey_fixture.empty(), (), model=model)


def test_a_survey_without_a_region_is_refused() -> None:
    with pytest.raises(NoFamilies, match="--resume"):
        predictor(survey_fixture.empty(), extrapolate=True)


def test_processes_that_wait_were_not_surveyed() -> None:
    work = msgspec.structs.replace(WORK, think_time_s=0.1)
    with pytest.raises(PredictionRefused, match="leadline measure /srv/data"):
        predictor(extrapolate=True).predict(work)


def test_a_deep_queue_is_taken_as_more_processes_and_says_so() -> None:
    deep = predictor().predict(msgspec.structs.replace(WORK, process_num=1, queue_depth=8))
    wide = predictor().predict(WORK.with_value("process_num", 8))
    assert deep.throughput_mb_s == wide.throughput_mb_s
    assert deep.workload.queue_depth == 8
    assert str(deep.findings[0]).startswith("not surveyed: queue_depth=8")
    with pytest.raises(PredictionRefused, match="process_num=128"):
        predictor().predict(msgspec.structs.replace(WORK, process_num=2, queue_depth=64))


def test_more_requests_at_once_than_any_survey_has_are_refused_as_asked() -> None:
    work = msgspec.structs.replace(WORK, process_num=1024, queue_depth=4096)
    with pytest.raises(PredictionRefused, match=r"4194304 requests at once.*at most 1024"):
        predictor(extrapolate=True).predict(work)


@pytest.mark.parametrize("model", MODELS)
def test_the_largest_workload_there_is_may_be_guessed(model: str) -> None:
    survey = two_region()
    asked = Predictor(survey, points(survey), model=model, extrapolate=True)
    assert asked.predict(WORK.with_value("unique_bytes", BYTES_MAX)).extrapolated
    with pytest.raises(WorkloadError, match=r"unique_bytes is .*2\^60"):
        WORK.with_value("unique_bytes", BYTES_MAX + 1)


def test_fixed_sizes_are_predicted_with_a_warning() -> None:
    found = predictor().predict(msgspec.structs.replace(WORK, size_dist="fixed"))
    assert str(found.findings[0]).startswith("not surveyed: sizes of one fixed value")
    assert predictor().predict(WORK).findings == ()


@pytest.mark.parametrize(
    ("size_mean", "start", "told_apart"),
    [
        (16384, {}, True),
        (5120, {}, False),  # no whole pages
        (16384, {"direct": True}, False),
        (16384, {"backend": "simulated"}, False),
    ],
)
def test_whole_pages_past_a_page_cache_are_told_from_scattered_sizes(
    size_mean: int, start: dict[str, Any], *, told_apart: bool
) -> None:
    """They touch fewer pages, and a write of them reads none first."""
    survey = two_region()
    survey = msgspec.structs.replace(survey, start=msgspec.structs.replace(survey.start, **start))
    asked = Predictor(survey, points(survey))
    work = msgspec.structs.replace(WORK, unique_bytes=2**30, size_mean=size_mean)
    scattered = asked.predict(work)
    whole = asked.predict(msgspec.structs.replace(work, size_dist="fixed"))
    faster = whole.throughput_mb_s.value > 1.01 * scattered.throughput_mb_s.value
    assert faster == told_apart
    assert (whole.findings == ()) == told_apart
    assert whole.workload.size_dist == "fixed"


def test_a_workload_near_a_boundary_is_warned_of() -> None:
    survey = two_region()
    boundary = survey.boundaries[0].bytes
    assert boundary.low is not None
    assert boundary.high is not None
    near = predictor().predict(WORK.with_value("unique_bytes", 1.2 * boundary.high))
    assert str(near.findings[0]).startswith("region boundary: unique_bytes=")
    for far in (0.9 * boundary.low, 1.4 * boundary.high):
        assert predictor().predict(WORK.with_value("unique_bytes", far)).findings == ()


def test_the_region_is_the_one_that_holds_the_bytes() -> None:
    survey = two_region()
    edge = survey.regions[0].high_bytes
    found = predictor().predict_all(
        [WORK.with_value("unique_bytes", x) for x in (edge, edge + 4096)]
    )
    assert [item.region for item in found] == [0, 1]


def test_an_unknown_model_is_refused_with_those_there_are() -> None:
    survey = two_region()
    with pytest.raises(PredictionRefused, match=r"'oracle'.*product"):
        Predictor(survey, points(survey), model="oracle")


def test_rates_and_response_times_obey_littles_law() -> None:
    found = predictor().predict(msgspec.structs.replace(WORK, process_num=2, queue_depth=4))
    iops, response = iops_of(found), response_us_of(found)
    assert iops.value == pytest.approx(found.throughput_mb_s.value * 1e6 / WORK.size_mean)
    assert iops.value * response.value / 1e6 == pytest.approx(8)
    assert iops.high is not None
    assert response.low is not None
    assert iops.high * response.low / 1e6 == pytest.approx(8)
    run_high = iops_of(found, run=True).high
    assert run_high is not None
    assert run_high > iops.high


@pytest.mark.parametrize("model", MODELS)
def test_no_question_has_no_answer(model: str) -> None:
    survey = two_region()
    assert Predictor(survey, points(survey), model=model).predict_all([]) == ()


def test_the_named_workloads_are_those_of_the_paper() -> None:
    # CP94 Fig. 16: uniqueBytes MB, seqFrac, readFrac, sizeMean KB, processNum.
    paper = {
        "workstation": (1, 0.8, 0.8, 4, 1),
        "large_utility": (10, 0.9, 0.6, 8, 1),
        "scientific_write": (250, 0.5, 0.2, 100, 1),
        "scientific_read": (250, 0.5, 0.8, 100, 1),
        "database": (500, 0.1, 0.2, 4, 2),
    }
    ours = {
        name: (w.unique_bytes / MIB, w.seq_frac, w.read_frac, w.size_mean / 1024, w.process_num)
        for name, w in NAMED.items()
    }
    assert ours == paper
