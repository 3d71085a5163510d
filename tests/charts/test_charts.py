"""Charts draw what was measured, with units, intervals and every raw reading, and nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import survey_fixture as made
from leadline.charts.images import ReportError, save_chart
from leadline.studies.survey.charts import charts, not_measured, summary_chart
from leadline.studies.survey.page import save_all_charts, save_report

FAMILY = ("size_mean", "read_frac", "process_num", "seq_frac")


def _layers(chart: Any) -> list[dict[str, Any]]:
    spec = chart.to_dict(validate=False)
    datasets = spec.get("datasets", {})
    layers = []
    for layer in spec["layer"]:
        data = layer.get("data", spec.get("data", {}))
        rows = data.get("values", datasets.get(data.get("name"), []))
        mark = layer["mark"]
        layers.append({"rows": rows, "style": mark.get("style"), **layer})
    return layers


def _rows(chart: Any, style: str) -> list[dict[str, Any]]:
    return [row for layer in _layers(chart) if layer["style"] == style for row in layer["rows"]]


def test_names_are_stable() -> None:
    expected = {"unique_bytes", "slope", "summary", "sentinels"}
    expected |= {f"region-{region}-{name}" for region in (0, 1) for name in FAMILY}
    assert set(charts(made.two_region())) == expected
    assert not_measured(made.two_region()) == {}


def test_what_was_not_measured_has_no_chart_but_a_reason() -> None:
    survey = made.stopped()
    drawn, missing = charts(survey), not_measured(survey)
    assert not set(drawn) & set(missing)
    assert {"region-1-size_mean", "region-0-seq_frac", "sentinels"} <= set(missing)
    assert all(reason.startswith("not measured: ") for reason in missing.values())
    assert charts(made.empty()) == {}
    assert set(not_measured(made.empty())) == {"unique_bytes", "slope", "summary", "sentinels"}


def test_every_reading_is_drawn_and_every_mean_has_its_interval() -> None:
    survey = made.two_region()
    curve = survey.unique_bytes_curve
    chart = charts(survey)["unique_bytes"]
    drawn = sorted(row["y"] for row in _rows(chart, "reading"))
    assert drawn == sorted(reading for point in curve.points for reading in point.readings_mb_s)
    bars = {(row["x"], row["low"], row["high"]) for row in _rows(chart, "interval")}
    assert bars == {
        (point.x, point.throughput_mb_s.low, point.throughput_mb_s.high) for point in curve.points
    }


def test_boundaries_and_region_names_are_drawn_where_they_are() -> None:
    survey = made.three_region()
    chart = charts(survey)["unique_bytes"]
    assert [row["x"] for row in _rows(chart, "boundary")] == [
        b.bytes.value for b in survey.boundaries
    ]
    bands = [(row["low"], row["high"]) for row in _rows(chart, "boundary-band")]
    assert bands == [(boundary.bytes.low, boundary.bytes.high) for boundary in survey.boundaries]
    names = {row["name"]: row["x"] for row in _rows(chart, "region-label")}
    assert list(names) == ["write cache", "page cache", "disk"]
    for region in survey.regions:
        assert region.low_bytes <= names[region.name] <= region.high_bytes


def test_a_family_shares_one_axis_from_zero() -> None:
    drawn = charts(made.two_region())
    domains = set()
    for name in FAMILY:
        for layer in _layers(drawn[f"region-1-{name}"]):
            scale = layer["encoding"].get("y", {}).get("scale")
            if scale:
                domains.add(tuple(scale["domain"]))
    assert len(domains) == 1
    assert next(iter(domains))[0] == 0


def test_the_good_range_is_shaded_and_the_focal_point_marked() -> None:
    survey = made.two_region()
    for curve in survey.families[1].curves:
        chart = charts(survey)[f"region-1-{curve.parameter}"]
        good = _rows(chart, "good")
        assert [(row["low"], row["high"]) for row in good] == [(curve.good_low, curve.good_high)]
        assert {row["x"] for row in _rows(chart, "focal")} == {
            float(getattr(curve.focal, curve.parameter))
        }


def test_the_slope_chart_holds_its_average() -> None:
    survey = made.two_region()
    first, last = survey.unique_bytes_curve.points[0], survey.unique_bytes_curve.points[-1]
    rise = last.throughput_mb_s.value - first.throughput_mb_s.value
    average = _rows(charts(survey)["slope"], "average")[0]["y"]
    assert average == pytest.approx(rise / ((last.x - first.x) / 1e6))


@pytest.mark.parametrize("survey", [made.two_region(), made.three_region(), made.one_region()])
def test_every_axis_says_its_unit_and_every_chart_its_finding(survey: Any) -> None:
    for name, chart in charts(survey).items():
        spec = chart.to_dict(validate=False)
        assert spec["title"]["text"], name
        assert spec["description"], name
        for layer in _layers(chart):
            for side in ("x", "y"):
                axis = layer["encoding"].get(side, {}).get("axis")
                if axis:
                    known = ("MB/s", "%", "log scale", "count", "min")
                    assert any(unit in axis["title"] for unit in known), (name, axis)


def test_levels_far_apart_get_a_log_axis_and_near_ones_start_at_zero() -> None:
    far = _layers(charts(made.two_region())["unique_bytes"])
    near = _layers(charts(made.three_region())["unique_bytes"])
    scales = [
        next(layer["encoding"]["y"]["scale"] for layer in layers if layer["style"] == "mean")
        for layers in (far, near)
    ]
    assert scales[0]["type"] == "log"
    assert scales[1]["domain"][0] == 0


def test_the_summary_tells_systems_apart_without_colour() -> None:
    chart = summary_chart([made.two_region(), made.three_region(), made.two_region()])
    point = next(layer for layer in _layers(chart) if layer["mark"].get("type") == "point")
    names = point["encoding"]["shape"]["scale"]["domain"]
    assert names == ["atlas (7f3a9c2e)", "sprite", "atlas (7f3a9c2e)"]
    assert len(set(point["encoding"]["shape"]["scale"]["range"])) == 3
    line = next(layer for layer in _layers(chart) if layer["mark"].get("type") == "line")
    assert len({str(dash) for dash in line["encoding"]["strokeDash"]["scale"]["range"]}) == 3
    with pytest.raises(ValueError, match="nothing to draw"):
        summary_chart([made.empty()])


def test_charts_and_reports_are_saved_by_suffix(tmp_path: Path) -> None:
    survey = made.stopped()
    paths = save_all_charts(survey, tmp_path / "charts", "svg")
    assert {path.stem for path in paths} == set(charts(survey))
    assert all("<svg" in path.read_text(encoding="utf-8") for path in paths)
    chart = charts(survey)["unique_bytes"]
    save_chart(chart, tmp_path / "a.png")
    save_chart(chart, tmp_path / "a.pdf")
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "a.pdf").read_bytes().startswith(b"%PDF")
    save_report(survey, made.points(survey), tmp_path / "r.pdf")
    assert (tmp_path / "r.pdf").read_bytes().startswith(b"%PDF")
    with pytest.raises(ReportError, match=r"use \.html, \.pdf, \.svg or \.png"):
        save_report(survey, (), tmp_path / "r.doc")
    with pytest.raises(ReportError, match="not measured"):
        save_report(made.empty(), (), tmp_path / "r.svg")
