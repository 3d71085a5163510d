"""The report as one page that needs nothing but a browser: no network, no files beside it.

Everything a stranger controls (names, facts, warnings) reaches the page through Jinja's autoescape
or as JSON with `<`, `>` and `&` written as escapes. A content security policy allows only the
scripts written here, by their hash, and no connection at all.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import altair as alt
import msgspec
import numpy as np

from leadline.charts.axes import parameter_x
from leadline.charts.drawable import Drawn
from leadline.charts.embedding import data_uri, page_parts, render_page, script_json
from leadline.charts.images import CHART_FORMATS, ReportError, save_chart
from leadline.charts.layers import LOW_PX, NARROW_PX, AnyChart, finish, tooltips, values
from leadline.charts.paged import Sheet, paged_pdf
from leadline.charts.saving import Forms
from leadline.charts.scale import LOG_THROUGHPUT_RATIO
from leadline.charts.series import series
from leadline.errors import LeadlineError
from leadline.models.predictor import Predictor
from leadline.models.ranges import SIZE_SHARE_MAX, Ranges
from leadline.record import PARAMETERS, Curve, Measurement, Region, Survey, Workload
from leadline.record.validation import VALIDATION
from leadline.record.wording import PARAMETER_TITLES, format_place, format_value
from leadline.record.workload import FRACTIONS
from leadline.stats import student_t
from leadline.store import Store
from leadline.studies.cache.explain import find_in_survey
from leadline.studies.facts import fact_rows
from leadline.studies.registry import KINDS
from leadline.studies.survey import text as tables
from leadline.studies.survey.charts import (
    FAMILY_PARAMETERS,
    charts,
    drift_title,
    not_measured,
    summary_chart,
    what_if_charts,
)
from leadline.studies.survey.explain import (
    PointLatency,
    every_curve,
    format_curve,
    latencies,
    latency_at,
)
from leadline.studies.survey.study import load_survey
from leadline.studies.survey.text import StoredSurvey
from leadline.units import format_bytes, format_percent, format_seconds


class Checked(NamedTuple):
    """What a validation says on the page of its survey."""

    validation: Any
    charts: dict[str, Drawn]
    rows: Sequence[Sequence[str]]


def render_html(
    survey: Survey,
    points: Sequence[Measurement],
    others: Sequence[Survey] = (),
    checked: Checked | None = None,
    *,
    model: str | None = None,
) -> str:
    """Render the page.

    Args:
        survey: what it shows.
        points: its points.
        others: surveys of other systems for the summary chart (CP94 Fig. 10).
        checked: by its validation, for a section of its own (CP94 §9).
        model: the one that the what-if section predicts with; None is the default.

    """
    slow = latency_charts(survey, points)
    drawn = charts(survey) | slow
    if checked is not None:
        drawn |= checked.charts
    if others:
        drawn["summary"] = summary_chart([survey, *others])
    else:
        drawn.pop("summary", None)
    asked = what_if_document(survey, points, model)
    scripts = () if isinstance(asked, str) else ("what_if_models.js", "what_if.js")
    data = {"survey": survey, "points": [_light(point) for point in points]}
    return render_page(
        "template.html.j2",
        survey=survey,
        status=survey.status.value,
        lead=next(iter(survey.sentences), ""),
        answer=survey.sentences[1:],
        tiles=tables.tile_rows(survey),
        levels=tables.level_rows(survey),
        families=_families(survey),
        validation=checked.validation if checked else None,
        validation_rows=checked.rows if checked else (),
        what_if=asked,
        what_if_json=script_json(asked),
        latencies=list(slow),
        cache=find_in_survey(survey, points),
        sure=tables.sure_rows(survey, points, drift_title(survey)),
        plan=tables.plan_rows(survey, points),
        run=tables.run_rows(survey, points),
        facts=fact_rows(survey.start.facts),
        point_heads=tables.POINT_HEADS,
        points=tables.point_rows(points),
        csv_href=data_uri("text/csv", tables.points_csv(points).encode()),
        **page_parts(drawn, data, scripts, survey.findings)
        | {"missing": not_measured(survey), "first": "unique_bytes"},
    )


def _light(point: Measurement) -> Measurement:
    """The point without its histograms and slices, which are most of its bytes.

    `leadline export` has them whole.
    """
    result = point.result
    return msgspec.structs.replace(
        point,
        result=msgspec.structs.replace(
            result,
            read=msgspec.structs.replace(result.read, histogram=()),
            write=msgspec.structs.replace(result.write, histogram=()),
            warm_up=msgspec.structs.replace(result.warm_up, intervals=()),
            intervals=(),
        ),
    )


def _families(survey: Survey) -> list[dict[str, Any]]:
    return [
        {
            "name": region.name,
            "place": format_place(region),
            "charts": [f"region-{region.index}-{name}" for name in FAMILY_PARAMETERS],
        }
        for region in survey.regions
    ]


# A survey as files: the page, the poster, its charts.

_FORMS = Forms("a report", ".html, .pdf, .svg or .png")
require_format = _FORMS.require


def save_all_charts(
    survey: Survey,
    directory: Path,
    image_format: str,
    checked: Checked | None = None,
    check: Callable[[Path], object] = Path,
) -> tuple[Path, ...]:
    """Write every chart as `<name>.<format>` in `directory`, made when missing.

    Args:
        survey: what is drawn.
        directory: where.
        image_format: svg, png or pdf.
        checked: by a validation, drawn beside it.
        check: is asked of every file before the first is written; what it raises stops all.

    Raises:
        ReportError: another format, or something cannot be written.

    """
    if image_format not in CHART_FORMATS:
        raise ReportError(f"cannot write charts as {image_format!r}; use svg, png or pdf")
    drawn = charts(survey) | (checked.charts if checked else {})
    paths = tuple(directory / f"{name}.{image_format}" for name in drawn)
    for path in paths:
        check(path)
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for path, chart in zip(paths, drawn.values(), strict=True):
            save_chart(chart, path)
    except OSError as error:
        raise ReportError(
            f"charts cannot be written to {directory}: {error.strerror}; give another directory"
        ) from error
    return paths


def save_report(
    survey: Survey,
    points: Sequence[Measurement],
    path: Path,
    others: Sequence[Survey] = (),
    checked: Checked | None = None,
) -> None:
    """Write the report; the suffix of `path` decides what.

    .html: the whole page. .pdf: sentences and all charts on A4. .svg or .png: the chart of
    throughput against the working set. `others` join the page's summary of several systems (CP94
    Fig. 10), `checked` has a section of its own there.
    """
    _FORMS.save(
        path,
        html=lambda: render_html(survey, points, others, checked),
        pdf=lambda: _pdf(survey, checked),
        charts=lambda: _levels(survey),
    )


_FIRST = ("unique_bytes", "slope", "sentinels")


def _pdf(survey: Survey, checked: Checked | None) -> bytes:
    """Put the sentences and every chart on paper."""
    start = survey.start
    drawn: dict[str, Drawn] = dict(charts(survey))
    drawn.pop("summary", None)  # of one survey it is the first chart again
    first = {name: drawn.pop(name) for name in _FIRST if name in drawn}
    return paged_pdf(
        Sheet(
            title=start.system,
            sub=f"{start.target} · {start.started_at[:10]} · {survey.status.value}",
            sentences=survey.sentences,
            warnings=survey.findings,
            charts={**first, **drawn, **(checked.charts if checked else {})},
            notes=list(not_measured(survey).values()),
        )
    )


def _levels(survey: Survey) -> dict[str, AnyChart]:
    chart = charts(survey).get("unique_bytes")
    if chart is None:
        raise ReportError(not_measured(survey)["unique_bytes"])
    return {"unique_bytes": chart}


# What-if in the page: the document from which a browser predicts as `Predictor` does.
#
# Everything that needs a library stays here (the fitted model, Student's t, the charts' looks);
# `what_if_models.js` evaluates the model and `what_if.js` guards the ranges and draws.

_STEPS_PER_OCTAVE = {"unique_bytes": 8, "size_mean": 4, "process_num": 4}
_EVERY_COUNT_TO = 32
"""Processes are counted one by one up to here."""
_PACKED = ("whitening", "jacobian")
"""Matrices of a model that travel as the bytes of their numbers: half the length, every bit."""


def what_if_document(
    survey: Survey, points: Sequence[Measurement], model: str | None = None
) -> dict[str, Any] | str:
    """Return what the page predicts from, or a sentence that says why it cannot.

    `model` is one of `leadline.models.predictor.MODELS`; None is the default.

    Keys: `survey_id`; `model` (`Model.embedded()`, its matrices packed by `pack`); `t`, the 95%
    quantile for the model's df; `sliders`, every parameter with the values it can take and where
    it starts; `kinds`, requests of the application that it was surveyed for, with a place of every
    slider; `regions` with the range of each parameter (`spans`); `unique_bytes`, the range over
    all; `size_share_max` and `boundary_zones` as in `leadline.models.ranges`; `chart_bytes`, where
    the chart over unique_bytes is evaluated; `charts`, a Vega-Lite specification per parameter,
    with a linear and a log axis; `log_ratio`, most over least throughput from which log is chosen.
    """
    ranges = Ranges(survey)
    regions = [region for region in survey.regions if ranges.is_surveyed(region.index)]
    if not regions:
        remedy = f"finish it: leadline survey {survey.start.target} --resume"
        return f"no level of this survey has curves yet; {remedy}"
    try:
        predictor = Predictor(survey, points, model=model)
    except LeadlineError as reason:
        return str(reason)
    sliders = [_slider(predictor, regions, parameter) for parameter in PARAMETERS]
    return {
        "survey_id": survey.start.study_id,
        "model": pack(predictor.model.embedded()),
        "t": student_t(predictor.model.df),
        "sliders": sliders,
        "kinds": [_kind(each, sliders) for each in survey.start.needed],
        "regions": [_region(predictor, region) for region in survey.regions],
        "unique_bytes": [predictor.ranges.unique_bytes.low, predictor.ranges.unique_bytes.high],
        "size_share_max": SIZE_SHARE_MAX,
        "boundary_zones": [list(zone) for zone in predictor.ranges.boundary_zones],
        "chart_bytes": _chart_bytes(sliders[0]["values"], regions),
        "charts": what_if_charts(survey, {item["parameter"]: item["values"] for item in sliders}),
        "log_ratio": LOG_THROUGHPUT_RATIO,
    }


def pack(embedded: dict[str, Any]) -> dict[str, Any]:
    """Write the matrices of a model as base64 of little-endian float64, row after row.

    `{"rows", "columns", "triangular", "float64"}`; a square one with nothing above its diagonal
    keeps only the rows' parts up to there, and says so by `"triangular": true`.
    """
    packed = dict(embedded)
    for name in _PACKED:
        if name in embedded:
            packed[name] = _packed(np.asarray(embedded[name], dtype="<f8"))
    return packed


def _packed(matrix: np.ndarray[Any, np.dtype[np.float64]]) -> dict[str, Any]:
    rows, columns = matrix.shape
    triangular = rows == columns and not np.triu(matrix, 1).any()
    numbers = matrix[np.tril_indices(rows)] if triangular else matrix
    return {
        "rows": rows,
        "columns": columns,
        "triangular": triangular,
        "float64": base64.b64encode(np.ascontiguousarray(numbers).tobytes()).decode(),
    }


def _region(predictor: Predictor, region: Region) -> dict[str, Any]:
    spans = {name: predictor.ranges.of(region.index, name) for name in PARAMETERS[1:]}
    return {
        "index": region.index,
        "name": region.name,
        "high_bytes": region.high_bytes,
        "surveyed": predictor.ranges.is_surveyed(region.index),
        "focal_size": region.focal.size_mean,
        "spans": {name: [span.low, span.high] for name, span in spans.items()},
    }


def _slider(predictor: Predictor, regions: list[Region], parameter: str) -> dict[str, Any]:
    """Return the values a slider can take: a ladder over the range, every region's ends on it."""
    values = _values(predictor, regions, parameter)
    focal = float(getattr(regions[0].focal, parameter))
    start = int(np.abs(np.asarray(values) - focal).argmin())
    return {
        "parameter": parameter,
        "title": PARAMETER_TITLES[parameter],
        "values": values,
        "start": start,
    }


def _kind(workload: Workload, sliders: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Name an application's kind of requests, with the place of each slider nearest to it."""
    does = "reads" if workload.read_frac >= 0.5 else "writes"
    said = f"{does} of {format_bytes(workload.size_mean)}"
    if workload.seq_frac > 0:
        said += f", {format_percent(workload.seq_frac)} sequential"
    if workload.process_num > 1:
        said += f", {workload.process_num} at once"
    return {"said": said, "wished": {each["parameter"]: _place(workload, each) for each in sliders}}


def _place(workload: Workload, slider: Mapping[str, Any]) -> int:
    values = np.asarray(slider["values"])
    return int(np.abs(values - getattr(workload, slider["parameter"])).argmin())


def _values(predictor: Predictor, regions: list[Region], parameter: str) -> list[float]:
    ranges = predictor.ranges
    if parameter == "unique_bytes":
        own = ranges.unique_bytes
        ends = {own.nearest(region.high_bytes) for region in regions}
        steps = {*_ladder(parameter, own.low, own.high), *ends}
        homes = {step: ranges.region_of(step) for step in steps}
        return sorted(step for step, home in homes.items() if home in regions)
    spans = [ranges.of(region.index, parameter) for region in regions]
    ends = {end for span in spans for end in (span.low, span.high)}
    return sorted({*_ladder(parameter, min(ends), max(ends)), *ends})


def _ladder(parameter: str, low: float, high: float) -> list[float]:
    """Return low, high and steps between: of one percent, one process, a part of an octave."""
    if parameter in FRACTIONS:
        steps: list[float] = [percent / 100 for percent in range(101)]
    else:
        parts = _STEPS_PER_OCTAVE[parameter]
        powers = range(math.floor(parts * math.log2(low)), math.ceil(parts * math.log2(high)) + 1)
        steps = [float(round(2 ** (power / parts))) for power in powers]
    if parameter == "process_num":
        every = range(1, _EVERY_COUNT_TO + 1)
        steps = [*map(float, every), *(step for step in steps if step > _EVERY_COUNT_TO)]
    return sorted({low, high, *(step for step in steps if low < step < high)})


def _chart_bytes(values: Sequence[float], regions: list[Region]) -> list[float]:
    """Return the slider's values and both sides of each region's end: a model may jump there."""
    edges = (float(region.high_bytes + side) for region in regions for side in (0, 1))
    return sorted({*values, *(edge for edge in edges if values[0] <= edge <= values[-1])})


# Charts of p50 and p99 along the curves of a survey.

_QUANTILES = ("p50", "p99")


_TAKEN_TOGETHER = "mean over the readings"


def latency_charts(survey: Survey, points: Sequence[Measurement]) -> dict[str, alt.LayerChart]:
    """Return a chart of p50 and p99 along each curve, under its throughput chart's name.

    `unique_bytes-latency`, `region-<index>-<parameter>-latency`; along the number of processes it
    is against requests per second, which is the load that they make.
    """
    known = latencies(points)
    charts: dict[str, alt.LayerChart] = {}
    for curve in every_curve(survey):
        rows = _rows(curve, known)
        if len({row["x"] for row in rows}) < 2:
            continue
        own = "unique_bytes" if curve.region is None else f"region-{curve.region}-{curve.parameter}"
        loads = curve.region is not None and curve.parameter == "process_num"
        charts[f"{own}-latency"] = (_against_iops if loads else _along)(survey, curve, rows)
    return charts


Row = dict[str, float | str]


def _rows(curve: Curve, known: Mapping[str, PointLatency]) -> list[Row]:
    rows: list[Row] = []
    for point in curve.points:
        own = latency_at(point, known)
        if own is None:
            continue
        for name, us in zip(_QUANTILES, (own.p50_us, own.p99_us), strict=True):
            rows.append(
                {
                    "x": point.x,
                    "iops": own.iops,
                    "y": us,
                    "which": name,
                    "where": format_value(curve.parameter, point.x),
                    "rate": f"{own.iops:,.0f} requests/s",
                    "said": format_seconds(us / 1e6),
                }
            )
    return [row for row in rows if float(row["y"]) > 0]


def _along(survey: Survey, curve: Curve, rows: list[Row]) -> alt.LayerChart:
    x = parameter_x(curve.parameter, [point.x for point in curve.points])
    title = f"Response time: {format_curve(survey, curve)}"
    subtitle = f"p50 and p99 of the closed loop, {_TAKEN_TOGETHER}; log axis."
    return finish(_layers(rows, x), title, subtitle, (NARROW_PX, LOW_PX))


def _against_iops(survey: Survey, curve: Curve, rows: list[Row]) -> alt.LayerChart:
    most = max(float(row["iops"]) for row in rows)
    x = alt.X(
        "iops:Q",
        scale=alt.Scale(domain=[0, most * 1.06], nice=False),
        axis=alt.Axis(title="Requests per second", format="~s", tickCount=5),
    )
    region = next(each for each in survey.regions if each.index == curve.region)
    title = f"Response time against load, {format_place(region)}"
    subtitle = f"Each mark has more processes than the one before; {_TAKEN_TOGETHER}; log axis."
    return finish(_layers(rows, x, order=True), title, subtitle, (NARROW_PX, LOW_PX))


def _layers(rows: list[Row], x: alt.X, *, order: bool = False) -> list[AnyChart]:
    y = alt.Y(
        "y:Q",
        scale=alt.Scale(type="log", nice=False, padding=12),
        axis=alt.Axis(title="Response time (µs)", format="~s", labelOverlap="greedy", tickCount=5),
    )
    colour, shape, dash = series(_QUANTILES)
    tips = tooltips(which="This is", where="At", rate="At a rate of", said="Response")
    chart = alt.Chart(values(rows))
    line = chart.mark_line(strokeWidth=2).encode(x=x, y=y, color=colour, strokeDash=dash)
    return [
        line.encode(order=alt.Order("x:Q")) if order else line,
        chart.mark_point(filled=True, size=46, opacity=0.95).encode(
            x=x, y=y, color=colour, shape=shape, tooltip=tips
        ),
    ]


def save_study(store: Store, study: StoredSurvey, path: Path, beside: Sequence[str]) -> None:
    """Draw a study to a file, with others below it."""
    others = [load_survey(store, ref)[0] for ref in beside]
    checked = KINDS[VALIDATION.kind].drawn.checked_in(store, study.start.study_id)
    save_report(study.survey, study.points, path, others, checked)


def charts_of(study: StoredSurvey) -> dict[str, Any]:
    """Return every chart of its page by name, the one to look at first before the others."""
    return charts(study.survey)
