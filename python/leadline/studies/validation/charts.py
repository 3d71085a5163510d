"""A validation drawn: its charts (CP94 Figs. 12-14 and 24) and its page."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import altair as alt

from leadline.charts.axes import on_field, parameter_x, throughput_xy
from leadline.charts.layers import (
    LOW_PX,
    NARROW_PX,
    TALL_PX,
    WIDE_PX,
    AnyChart,
    finish,
    tooltips,
    values,
)
from leadline.charts.plain_page import PlainPage, PlainTable, save_plain
from leadline.charts.saving import Forms
from leadline.charts.theme import SYSTEM_DASHES
from leadline.record import PARAMETERS, BinError, Interval, ModelScore, ParameterError, Validation
from leadline.record.wording import (
    PARAMETER_TITLES,
    format_interval,
    format_number,
    format_share,
    format_value,
    format_workload,
)
from leadline.record.workload import FRACTIONS
from leadline.store import Store
from leadline.studies.survey.page import Checked
from leadline.studies.validation.run import load_validation
from leadline.units import format_percent, format_rate, format_span

# Charts of a validation: scatter, errors, coverage (CP94 Figs. 12-14 and 24).

ERROR_FRAC_MIN = 0.001
"""Where the log axis of errors begins; a smaller error is drawn there."""
_PERCENT = "format(100 * datum.value, '~r') + '%'"
_TICKS = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
_ROW_PX = 38
AWAY, AT_BOUNDARY = "away from region boundaries", "at a region boundary"


def validation_charts(validation: Validation) -> dict[str, alt.LayerChart]:
    """Return every chart the validation allows, under stable names.

    `validation-scatter`, `validation-models`, `validation-coverage` and
    `validation-error-<parameter>`; none while too little is measured to score anything.
    """
    score = validation.score(validation.model)
    if score is None:
        return {}
    found = {
        "validation-scatter": scatter_chart(validation, score),
        "validation-models": models_chart(validation),
    }
    if score.coverage:
        found["validation-coverage"] = coverage_chart(validation)
    for parameter in PARAMETERS:
        found[f"validation-error-{parameter}"] = error_chart(validation, score, parameter)
    return found


def validation_rows(validation: Validation) -> list[tuple[str, ...]]:
    """Return the cells of the page's table, a row per model or rival."""
    return [
        (
            score.model,
            str(score.readings),
            format_share(score.median_error),
            format_percent(score.p75_error.value),
            format_percent(score.p90_error.value),
            format_percent(score.enhanced_median_error.value)
            if score.enhanced_median_error
            else "-",
            format_number(score.amplification.value) if score.amplification else "-",
            " / ".join(f"{100 * item.share.value:.0f}" for item in score.coverage) or "-",
        )
        for score in validation.scores
    ]


def scatter_chart(validation: Validation, score: ModelScore) -> alt.LayerChart:
    """Draw predicted against measured throughput with 95% intervals (CP94 Fig. 12)."""
    rows = forecast_rows(validation, score.model)
    rates = [float(row[key]) for row in rows for key in ("x", "y")]
    singles = [
        {
            "y": forecast.throughput_mb_s,
            "name": item.model,
            "rate": format_rate(forecast.throughput_mb_s),
        }
        for item in validation.scores
        if item.kind == "single"
        for forecast in _first(validation, item.model)
    ]
    least = min(rates + [float(row["y"]) for row in singles])
    most = max(rates + [float(row["y"]) for row in singles])
    x, y, ends = throughput_xy(least, most, "Measured", "Predicted")
    both = alt.Scale(domain=[AWAY, AT_BOUNDARY], range=["circle", "triangle-up"])
    # The corner above the diagonal is empty, and a legend below is wider than a phone.
    zone = alt.Legend(title=None, orient="top-left", columns=1)
    tips = tooltips(
        workload="Workload", measured="Measured", predicted="Predicted (95% CI)", error="Error"
    )
    chart = alt.Chart(values(rows))
    layers: list[AnyChart] = [
        alt.Chart(values([{"x": end, "y": end} for end in ends]))
        .mark_line(style="average")
        .encode(x=x, y=y),
        *_single_lines(singles, y),
        chart.transform_filter("isValid(datum.low)")
        .mark_rule(strokeWidth=1, opacity=0.45, clip=True)
        .encode(x=x, y=on_field(y, "low"), y2=alt.Y2("high:Q"), color=_zone_colour(zone)),
        chart.mark_point(filled=True, size=46, opacity=0.9).encode(
            x=x,
            y=y,
            color=_zone_colour(zone),
            shape=alt.Shape("zone:N", scale=both, legend=zone),
            tooltip=tips,
        ),
    ]
    return finish(
        layers,
        f"Half of {validation.n} workloads within {format_percent(score.median_error.value)}",
        f"The {score.model} model; bars: 95% intervals; dotted: single-number benchmarks.",
        (NARROW_PX, NARROW_PX),
    )


def _single_lines(singles: list[dict[str, Any]], y: alt.Y) -> list[AnyChart]:
    if not singles:
        return []
    names = [str(row["name"]) for row in singles]
    dashes = [[1, 3], [4, 3], [8, 3], [8, 3, 2, 3]]
    dash = alt.StrokeDash(
        "name:N",
        scale=alt.Scale(domain=names, range=[dashes[at % 4] for at in range(len(names))]),
        legend=alt.Legend(title=None, symbolType="stroke", symbolStrokeWidth=1.6, symbolSize=300),
    )
    tips = tooltips(name="Single number", rate="Says")
    chart = alt.Chart(values(singles))
    return [chart.mark_rule(style="single").encode(y=y, strokeDash=dash, tooltip=tips)]


def _zone_colour(legend: alt.Legend) -> alt.Color:
    return alt.Color("zone:N", scale=alt.Scale(domain=[AWAY, AT_BOUNDARY]), legend=legend)


def models_chart(validation: Validation) -> alt.LayerChart:
    """Draw the errors of all models and rivals side by side, the inherent error as a line."""
    rows = [_score_row(score) for score in validation.scores]
    names = [str(row["name"]) for row in rows]
    found = [float(row[key]) for row in rows for key in ("low", "high", "p90", "median")]
    if validation.inherent_error is not None:
        found.append(validation.inherent_error.value)
    x = _error_x(min(found) / 1.3, max(found) * 1.3)
    y = alt.Y("name:N", sort=names, axis=alt.Axis(title=None, labelLimit=130, grid=False))
    tips = tooltips(
        name="Model or rival",
        said="Median error (95% CI)",
        said75="75% within",
        said90="90% within",
        readings="Points it used",
    )
    chart = alt.Chart(values(rows))
    layers: list[AnyChart] = [
        chart.mark_rule(style="spread").encode(y=y, x=on_field(x, "median"), x2=alt.X2("p90:Q")),
        *(
            chart.mark_tick(style="spread-end", orient="vertical", size=size, thickness=2).encode(
                y=y, x=on_field(x, key), tooltip=tips
            )
            for key, size in (("p75", 9), ("p90", 13))
        ),
        chart.mark_rule(style="interval", strokeWidth=5, clip=True).encode(
            y=y, x=on_field(x, "low"), x2=alt.X2("high:Q")
        ),
        chart.mark_point(style="mean", size=70).encode(y=y, x=on_field(x, "median"), tooltip=tips),
    ]
    inherent = validation.inherent_error
    if inherent is not None:
        row = {"x": inherent.value, "said": format_share(inherent)}
        tip = alt.Tooltip("said:N", title="The same workload read twice")
        layers.insert(
            0,
            alt.Chart(values([row]))
            .mark_rule(style="focal-rule")
            .encode(x=on_field(x, "x"), tooltip=tip),
        )
    best = min(validation.scores, key=lambda item: item.median_error.value)
    return finish(
        layers,
        f"Least median error: {best.model}, {format_percent(best.median_error.value)}",
        "Dot and bar: median, 95%; ticks: 75 and 90%; dashed: inherent error.",
        (NARROW_PX, max(120, _ROW_PX * len(rows))),
    )


def coverage_chart(validation: Validation) -> alt.LayerChart:
    """Draw the share of measured values inside intervals of every confidence, model by model."""
    scores = [score for score in validation.scores if score.coverage]
    names = [score.model for score in scores]
    rows = [row for score in scores for row in _level_rows(validation, score.model)]
    whole = alt.Scale(domain=[0, 1])
    x_axis, y_axis = (
        alt.Axis(title=title, labelExpr=_PERCENT, tickCount=5)
        for title in ("Confidence stated", "Measured values inside")
    )
    x, y = alt.X("x:Q", scale=whole, axis=x_axis), alt.Y("y:Q", scale=whole, axis=y_axis)
    legend = alt.Legend(title="Model", symbolType="stroke", symbolStrokeWidth=2)
    colour = alt.Color("model:N", scale=alt.Scale(domain=names), legend=legend)
    dashes = [SYSTEM_DASHES[at % len(SYSTEM_DASHES)] for at in range(len(names))]
    dash = alt.StrokeDash("model:N", scale=alt.Scale(domain=names, range=dashes), legend=legend)
    marks = [
        {
            "x": item.confidence,
            "y": item.share.value,
            "low": item.share.low,
            "high": item.share.high,
            "model": score.model,
            "said": format_share(item.share),
        }
        for score in scores
        if score.model == validation.model
        for item in score.coverage
    ]
    tips = tooltips(model="Model", said="Inside (95% CI)")
    marked = alt.Chart(values(marks))
    layers: list[AnyChart] = [
        alt.Chart(values([{"x": end, "y": end} for end in (0, 1)]))
        .mark_line(style="average")
        .encode(x=x, y=y),
        alt.Chart(values(rows))
        .mark_line(interpolate="step-after", strokeWidth=2)
        .encode(x=x, y=y, color=colour, strokeDash=dash),
        marked.mark_rule(strokeWidth=1.6, clip=True).encode(
            x=x, y=on_field(y, "low"), y2=alt.Y2("high:Q"), color=colour
        ),
        marked.mark_point(filled=True, size=60, opacity=1).encode(
            x=x, y=y, color=colour, tooltip=tips
        ),
    ]
    return finish(
        layers,
        _coverage_title(next(s for s in validation.scores if s.model == validation.model)),
        f"Dots: {validation.model} at 50, 90, 95%, with 95% intervals; dashed: ideal.",
        (NARROW_PX, LOW_PX),
    )


def _coverage_title(score: ModelScore) -> str:
    ninety = next(item for item in score.coverage if item.confidence == 0.9)
    return f"90% intervals hold {format_percent(ninety.share.value)} of the measured values"


def error_chart(validation: Validation, score: ModelScore, parameter: str) -> alt.LayerChart:
    """Draw the error of every workload against one parameter, and medians (CP94 Fig. 13)."""
    rows = forecast_rows(validation, score.model)
    for row in rows:
        row["x"] = row[parameter]
        row["y"] = max(ERROR_FRAC_MIN, abs(float(row["signed"])))
    found = next(item for item in score.by_parameter if item.parameter == parameter)
    bins = [
        {
            **_widened(parameter, item),
            "y": item.median_error.value,
            "least": item.median_error.low,
            "most": item.median_error.high,
            "said": format_share(item.median_error),
            "where": format_span(
                format_value(parameter, item.low), format_value(parameter, item.high)
            ),
        }
        for item in found.bins
    ]
    x = parameter_x(parameter, [float(row["x"]) for row in rows])
    errors = [float(row["y"]) for row in rows]
    y = alt.Y(
        "y:Q",
        scale=_error_scale(min(errors), max(errors)),
        axis=alt.Axis(title="Error (log scale)", values=list(_TICKS), labelExpr=_PERCENT),
    )
    tips = tooltips(workload="Workload", error="Error")
    bin_tips = tooltips(where="From", said="Median (95% CI)")
    chart, medians = alt.Chart(values(rows)), alt.Chart(values(bins))
    wide = parameter == "unique_bytes"
    layers: list[AnyChart] = [
        medians.mark_rect(style="band").encode(
            x=on_field(x, "low"),
            x2=alt.X2("high:Q"),
            y=on_field(y, "least"),
            y2=alt.Y2("most:Q"),
            tooltip=bin_tips,
        ),
        chart.mark_point(style="reading").encode(x=x, y=y, tooltip=tips),
        medians.mark_rule(style="curve", strokeWidth=3).encode(
            x=on_field(x, "low"), x2=alt.X2("high:Q"), y=y, tooltip=bin_tips
        ),
    ]
    if wide:
        boundaries = [{"x": item.high_bytes} for item in validation.start.ranges[:-1]]
        layers.insert(0, alt.Chart(values(boundaries)).mark_rule(style="boundary").encode(x=x))
    return finish(
        layers,
        _error_title(found),
        "Rings: workloads; lines: medians, 95%"
        + ("; dashed: region boundaries" if wide else "")
        + ("; 0.1% or less at the foot." if min(errors) <= ERROR_FRAC_MIN else "."),
        (WIDE_PX if wide else NARROW_PX, TALL_PX if wide else LOW_PX),
    )


def _widened(parameter: str, item: BinError) -> dict[str, float]:
    """The ends of a bin; one that holds a single value is drawn wide enough to be seen."""
    if item.low < item.high:
        return {"low": item.low, "high": item.high}
    if parameter in FRACTIONS:
        return {"low": item.low - 0.02, "high": item.high + 0.02}
    return {"low": item.low / 1.06, "high": item.high * 1.06}


def _error_title(found: ParameterError) -> str:
    title = PARAMETER_TITLES[found.parameter].lower()
    if not found.matters:
        return f"Error is not shown to depend on {title}"
    low, *_, high = sorted(item.median_error.value for item in found.bins)
    return f"Error varies with {title}: {format_span(format_percent(low), format_percent(high))}"


def _first(validation: Validation, model: str) -> Sequence[Any]:
    """The first forecast of a model; a single number says the same of every workload."""
    return [f for row in validation.workloads for f in row.forecasts if f.model == model][:1]


def forecast_rows(validation: Validation, model: str) -> list[dict[str, Any]]:
    """Return every workload that a model predicted: numbers for a chart, words for a reader."""
    rows = []
    for item in validation.workloads:
        for forecast in item.forecasts:
            if forecast.model != model or item.measured_mb_s is None:
                continue
            said = Interval(forecast.throughput_mb_s, forecast.low_mb_s, forecast.high_mb_s, 1)
            rows.append(
                {
                    **{name: getattr(item.workload, name) for name in PARAMETERS},
                    "x": item.measured_mb_s,
                    "y": forecast.throughput_mb_s,
                    "low": forecast.low_mb_s,
                    "high": forecast.high_mb_s,
                    "zone": AT_BOUNDARY if item.boundary_zone else AWAY,
                    "signed": forecast.error_frac,
                    "workload": format_workload(item.workload),
                    "measured": format_rate(item.measured_mb_s),
                    "predicted": format_interval(said, format_rate),
                    "error": format_percent(forecast.error_frac, signed=True),
                }
            )
    return rows


def _score_row(score: ModelScore) -> dict[str, Any]:
    median = score.median_error
    return {
        "name": score.model,
        "median": _floor(median.value),
        "low": _floor(median.value if median.low is None else median.low),
        "high": _floor(median.value if median.high is None else median.high),
        "p75": _floor(score.p75_error.value),
        "p90": _floor(score.p90_error.value),
        "said": format_share(median),
        "said75": format_percent(score.p75_error.value),
        "said90": format_percent(score.p90_error.value),
        "readings": str(score.readings),
    }


def _floor(error_frac: float) -> float:
    return max(ERROR_FRAC_MIN, error_frac)


def _level_rows(validation: Validation, model: str) -> list[dict[str, Any]]:
    """Steps of the share of measured values inside against the confidence stated."""
    levels = sorted(
        forecast.level
        for row in validation.workloads
        for forecast in row.forecasts
        if forecast.model == model and forecast.level is not None
    )
    count = len(levels)
    steps = [(0.0, 0.0), *((x, (at + 1) / count) for at, x in enumerate(levels)), (1.0, 1.0)]
    return [{"x": x, "y": y, "model": model} for x, y in steps]


def _error_x(low: float, high: float) -> alt.X:
    axis = alt.Axis(
        title="Error (log scale)",
        values=list(_TICKS),
        labelExpr=_PERCENT,
        grid=True,
        labelOverlap="parity",
    )
    return alt.X("x:Q", scale=_error_scale(low, high), axis=axis)


def _error_scale(low: float, high: float) -> alt.Scale:
    low = max(ERROR_FRAC_MIN / 1.2, low / 1.15)
    return alt.Scale(type="log", domain=[low, max(high * 1.15, 2 * low)], nice=False)


# A validation as a page: how far predictions were off, then every contestant and workload.

HEADS = (
    "Model or rival",
    "Points",
    "Median error (95% CI)",
    "75%",
    "90%",
    "Enhanced",
    "A",
    "In 50 / 90 / 95%",
)
_WORKLOADS = ("Workload", "Measured", "Predicted (95% CI)", "Error")


_FORMS = Forms(
    "a validation",
    ".html, .svg, .png or .pdf",
    nothing="too little was measured yet: go on with leadline validate … --resume",
)
require_format = _FORMS.require


def validation_page(validation: Validation) -> PlainPage:
    """Return what the page says, in its order."""
    start = validation.start
    of = f"survey {start.parent[:8]}"
    return PlainPage(
        brand="validation",
        title=f"How well {start.system} is predicted",
        sub=f"{of} · {start.started_at[:10]} · validation {start.study_id[:8]}",
        status=validation.status,
        sentences=validation.sentences,
        warnings=validation.findings,
        charts=validation_charts(validation),
        tables=[
            PlainTable("Models and rivals", HEADS, validation_rows(validation)),
            PlainTable("Every workload", _WORKLOADS, _workloads(validation), folded=True),
        ],
        document=validation,
    )


def _workloads(validation: Validation) -> list[tuple[str, ...]]:
    """Return a row for each workload that the validation's own model predicted."""
    return [
        tuple(str(row[name]) for name in ("workload", "measured", "predicted", "error"))
        for row in forecast_rows(validation, validation.model)
    ]


def save_study(_store: Store, study: Validation, path: Path, _beside: Sequence[str]) -> None:
    """Draw a study to a file; nothing is drawn beside it."""
    save_plain(_FORMS, path, lambda: validation_page(study))


def charts_of(study: Validation) -> dict[str, Any]:
    """Return every chart of its page by name, the one to look at first before the others."""
    return validation_charts(study)


def checked_in(store: Store, survey_id: str) -> Checked | None:
    """Return what the newest validation of a survey says on its page; None where there is none."""
    return checked_by(load_validation(store, survey_id))


def checked_by(validation: Validation | None) -> Checked | None:
    """Return what a validation says on its survey's page; None of none."""
    if validation is None:
        return None
    return Checked(validation, validation_charts(validation), validation_rows(validation))
