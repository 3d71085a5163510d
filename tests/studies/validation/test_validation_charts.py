"""Charts of a validation draw every workload that was scored, and every contestant."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

import shared_surveys
from leadline.record import PARAMETERS, Validation
from leadline.record.finding import Finding
from leadline.studies.survey.page import render_html, save_all_charts
from leadline.studies.validation.charts import checked_by, validation_charts
from proving.simulation import SimulatedSurvey, simulate_validation


@pytest.fixture(scope="module")
def surveyed() -> SimulatedSurvey:
    return shared_surveys.surveyed("hp-730")


@pytest.fixture(scope="module")
def validation(surveyed: SimulatedSurvey) -> Validation:
    return simulate_validation(surveyed, 2, count=40, model="product").validation


def rows_of(chart: Any, style: str | None = None) -> list[dict[str, Any]]:
    spec = chart.to_dict(validate=False)
    sets, found = spec.get("datasets", {}), []
    for layer in spec["layer"]:
        if style is None or layer["mark"].get("style") == style:
            data = layer.get("data", spec.get("data", {}))
            found += data.get("values", sets.get(data.get("name"), []))
    return found


def test_names_are_stable_and_nothing_is_drawn_of_nothing(validation: Validation) -> None:
    names = {"validation-scatter", "validation-models", "validation-coverage"}
    names |= {f"validation-error-{parameter}" for parameter in PARAMETERS}
    assert set(validation_charts(validation)) == names
    assert validation_charts(msgspec.structs.replace(validation, scores=())) == {}


def test_the_scatter_draws_every_scored_workload_with_its_interval(validation: Validation) -> None:
    chart = validation_charts(validation)["validation-scatter"]
    expected = {
        (row.measured_mb_s, forecast.throughput_mb_s, forecast.low_mb_s, forecast.high_mb_s)
        for row in validation.workloads
        for forecast in row.forecasts
        if forecast.model == "product"
    }
    assert len(expected) == 40
    drawn = {(r["x"], r["y"], r["low"], r["high"]) for r in rows_of(chart) if "zone" in r}
    assert drawn == expected
    lines = {row["name"]: row["y"] for row in rows_of(chart, "single")}
    assert set(lines) == {"Andrew-like", "IOStone-like", "Bonnie-like", "survey median"}


def test_every_contestant_stands_beside_the_others(validation: Validation) -> None:
    rows = rows_of(validation_charts(validation)["validation-models"], "mean")
    assert [row["name"] for row in rows] == [score.model for score in validation.scores]
    for row, score in zip(rows, validation.scores, strict=True):
        assert row["median"] == score.median_error.value
        assert row["p90"] == score.p90_error.value


@pytest.mark.parametrize("parameter", PARAMETERS)
def test_errors_are_drawn_against_the_parameter(validation: Validation, parameter: str) -> None:
    chart = validation_charts(validation)[f"validation-error-{parameter}"]
    drawn = sorted(row["x"] for row in rows_of(chart, "reading"))
    assert drawn == sorted(getattr(row.workload, parameter) for row in validation.workloads)
    errors = [abs(row.forecasts[0].error_frac) for row in validation.workloads]
    shown = [row["y"] for row in rows_of(chart, "reading")]
    assert shown == pytest.approx([max(0.001, error) for error in errors])


def test_coverage_ends_at_all_of_them(validation: Validation) -> None:
    rows = rows_of(validation_charts(validation)["validation-coverage"])
    steps = [row for row in rows if row.get("model") == "product" and "low" not in row]
    assert (steps[0]["y"], steps[-1]["y"]) == (0.0, 1.0)
    assert [row["y"] for row in steps[1:-1]] == [(at + 1) / 40 for at in range(40)]
    assert [row["y"] for row in steps] == sorted(row["y"] for row in steps)
    marks = {row["x"]: row["y"] for row in rows if "low" in row}
    score = validation.score("product")
    assert score is not None
    assert marks == {item.confidence: item.share.value for item in score.coverage}


def test_all_charts_are_written_beside_those_of_the_survey(
    surveyed: SimulatedSurvey, validation: Validation, tmp_path: Path
) -> None:
    paths = save_all_charts(surveyed.survey, tmp_path, "svg", checked_by(validation))
    names = {path.stem for path in paths}
    assert set(validation_charts(validation)) < names
    assert "unique_bytes" in names


def test_the_page_shows_sentences_warnings_and_a_row_per_contestant(
    surveyed: SimulatedSurvey, validation: Validation
) -> None:
    hostile = "drift: <script>alert(1)</script>"
    doubted = msgspec.structs.replace(
        validation, findings=(Finding.of("model_left_out", model="it", why=hostile),)
    )
    page = render_html(surveyed.survey, surveyed.points, (), checked_by(doubted))
    assert "<script>alert(1)" not in page
    assert "alert(1)" in page
    for score in validation.scores:
        assert f'<th scope="row">{score.model}</th>' in page
    assert page.count("<h2") == render_html(surveyed.survey, surveyed.points).count("<h2") + 1
