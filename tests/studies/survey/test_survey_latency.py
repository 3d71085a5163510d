"""Response times beside throughput along the curves of a survey, and of a prediction."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest
from typer.testing import CliRunner

from leadline.app import app
from leadline.models.predictor import Predictor
from leadline.store import open_store
from leadline.studies.survey.explain import every_curve, latencies, latency_at
from leadline.studies.survey.page import latency_charts, render_html
from leadline.studies.survey.text import survey_document
from shared_surveys import keep, surveyed

PROFILE = "two-level"


@pytest.fixture
def store(tmp_path: Path) -> Path:
    path = tmp_path / "store.sqlite"
    with open_store(str(path)) as opened:
        keep(opened, surveyed(PROFILE))
    return path


def run(*arguments: str, store: Path) -> Any:
    wide = {"COLUMNS": "200"}
    return CliRunner().invoke(app, ["--store", str(store), *arguments], env=wide)


def test_a_curves_point_has_the_mean_of_its_readings() -> None:
    made = surveyed(PROFILE)
    by_id = {point.point_id: point.result for point in made.points}
    document = survey_document(made.survey, made.points)
    several = 0
    for curve, told in zip(every_curve(made.survey), document["curves"], strict=True):
        assert told["parameter"] == curve.parameter
        for point, row in zip(curve.points, told["points"], strict=True):
            own = [by_id[each] for each in point.point_ids]
            several += len(own) > 1
            assert row["iops"] == pytest.approx(fmean(each.iops.value for each in own))
            for name in ("mean", "p50", "p99"):
                each = [getattr(result.latency_us, name) for result in own]
                assert row["latency_us"][name] == pytest.approx(fmean(each))
    assert several, "some points have several readings"


def test_in_a_closed_loop_the_mean_response_follows_littles_law() -> None:
    """What `predict` prints is that law; here it is held against what was measured."""
    made = surveyed(PROFILE)
    known = latencies(made.points)
    for curve in every_curve(made.survey):
        for point in curve.points:
            own = latency_at(point, known)
            assert own is not None
            work = curve.focal.with_value(curve.parameter, point.x)
            outstanding = work.process_num * work.queue_depth
            assert own.mean_us == pytest.approx(1e6 * outstanding / own.iops, rel=0.02)
            assert own.p50_us <= own.p99_us


def test_a_point_whose_readings_are_gone_has_no_response_time() -> None:
    made = surveyed(PROFILE)
    assert latency_at(made.survey.unique_bytes_curve.points[0], {}) is None
    document = survey_document(made.survey, ())
    (first, *_) = document["curves"][0]["points"]
    assert (first["iops"], first["latency_us"]) == (None, None)


def test_every_curve_has_a_chart_of_its_response_times() -> None:
    made = surveyed(PROFILE)
    charts = latency_charts(made.survey, made.points)
    assert {name.removesuffix("-latency") for name in charts} == {
        "unique_bytes",
        *(
            f"region-{curve.region}-{curve.parameter}"
            for curve in every_curve(made.survey)
            if curve.region is not None
        ),
    }
    loads = charts["region-0-process_num-latency"].to_dict()
    assert "Requests per second" in json.dumps(loads), "its axis is the load"
    page = render_html(made.survey, made.points)
    for name in charts:
        assert f'id="chart-{name}"' in page


def test_curves_are_shown_as_tables_in_mb_s_or_requests(store: Path) -> None:
    made = surveyed(PROFILE)
    shown = run("show", PROFILE, "--curves", store=store)
    assert shown.exit_code == 0, shown.exception
    assert shown.stdout.count("p99") == len([c for c in every_curve(made.survey) if c.points])
    assert "MB/s" in shown.stdout
    counted = run("show", PROFILE, "--curves", "--iops", store=store)
    assert "Requests/s" in counted.stdout
    assert "MB/s" not in counted.stdout.replace("kB/s", "")
    first = latency_at(made.survey.unique_bytes_curve.points[0], latencies(made.points))
    assert first is not None
    assert f"{first.iops:,.0f}" in counted.stdout


@pytest.mark.parametrize(
    ("options", "said"),
    [(("--iops",), "goes with --curves"), (("--curves", "--json"), "--json has them")],
)
def test_what_has_no_curves_is_refused(options: tuple[str, ...], said: str, store: Path) -> None:
    done = run("show", PROFILE, *options, store=store)
    assert done.exit_code == 2
    assert said in done.output


def test_a_prediction_prints_its_mean_response_with_its_interval(store: Path) -> None:
    made = surveyed(PROFILE)
    work = made.survey.regions[0].focal
    text = (
        f"unique_bytes={work.unique_bytes},size_mean={work.size_mean},read_frac={work.read_frac},"
        f"seq_frac={work.seq_frac},process_num={work.process_num}"
    )
    told = json.loads(run("predict", PROFILE, "--workload", text, "--json", store=store).stdout)
    prediction = Predictor(made.survey, made.points).predict(work)
    low, high = prediction.throughput_mb_s.low, prediction.throughput_mb_s.high
    assert low is not None
    assert high is not None
    bytes_us = work.process_num * work.size_mean  # MB/s is bytes per microsecond
    assert told["response_us"]["value"] == pytest.approx(
        bytes_us / prediction.throughput_mb_s.value
    )
    assert told["response_us"]["low"] == pytest.approx(bytes_us / high)
    assert told["response_us"]["high"] == pytest.approx(bytes_us / low)
    shown = run("predict", PROFILE, "--workload", text, store=store)
    assert "Mean response (95% CI)" in shown.stdout
