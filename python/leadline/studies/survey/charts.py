"""The curves of one survey: working set, its slope, and the family of each region."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import altair as alt

from leadline.charts.axes import bytes_x, on_field, parameter_x, throughput_y
from leadline.charts.layers import (
    LOW_PX,
    NARROW_PX,
    TALL_PX,
    WIDE_PX,
    AnyChart,
    boundary_marks,
    curve_layers,
    finish,
    focal_mark,
    good_band,
    throughput_range,
    tooltips,
    values,
)
from leadline.charts.scale import wants_log
from leadline.charts.theme import SYSTEM_DASHES, SYSTEM_SHAPES
from leadline.record import Curve, CurvePoint, Family, Region, Survey
from leadline.record.findings import average_slope, ends, gain, told_drift
from leadline.record.wording import (
    FRACTION_ENDS,
    PARAMETER_TITLES,
    format_boundary,
    format_change,
    format_number,
    format_place,
    format_rate_ci,
    format_step,
    format_times,
    format_value,
    format_workload,
    join_words,
)
from leadline.units import format_bytes, format_rate

FAMILY_PARAMETERS = ("size_mean", "read_frac", "process_num", "seq_frac")
"""The four curves of one region, in the order of CP94 Fig. 7 (a) to (d)."""
_NARROW_FROM_PX = 520
"""Below this width names break into lines and labels are staggered."""


def unique_bytes_chart(survey: Survey) -> alt.LayerChart:
    """Throughput against the working set, with the boundaries and the names of the levels."""
    curve = survey.unique_bytes_curve
    least, most = throughput_range([curve])
    log = wants_log(least, most)
    x = bytes_x([point.x for point in curve.points], "Working set (unique_bytes, log scale)")
    y = throughput_y(least, most, headroom=1.24, log=log)
    layers = [*boundary_layers(survey, x), *curve_layers(curve, x, y), *_region_labels(survey, x)]
    focal = format_workload(curve.focal).partition(", ")[2]
    subtitle = f"At {focal}. Bars: 95% intervals; small rings: single readings."
    return finish(layers, _levels_title(survey), subtitle, (WIDE_PX, TALL_PX))


def _levels_title(survey: Survey) -> str:
    if survey.boundaries:
        text = join_words(
            [
                f"{region.name} ends at {format_bytes(boundary.bytes.value)}"
                for region, boundary in zip(survey.regions, survey.boundaries, strict=False)
            ]
        )
        return text[:1].upper() + text[1:]
    return "No boundary shown: one level" if survey.regions else "Throughput so far"


def boundary_layers(survey: Survey, x: alt.X, *, labelled: bool = True) -> list[AnyChart]:
    """Return the ends of the levels as dashed rules, their intervals as bands, none without."""
    boundaries = [
        (boundary.bytes, format_bytes(boundary.bytes.value), format_boundary(boundary))
        for boundary in survey.boundaries
    ]
    title = "The level ends at (95% CI)"
    return boundary_marks(boundaries, x, title, label_y=_label_y, labelled=labelled)


def _label_y(index: int) -> dict[str, str]:
    """Put boundary labels under the region names, staggered where the chart is narrow."""
    return {"expr": f"width < {_NARROW_FROM_PX} ? {36 + 16 * (index % 2)} : 22"}


def _region_labels(survey: Survey, x: alt.X) -> list[AnyChart]:
    xs = [point.x for point in survey.unique_bytes_curve.points]
    rows = [
        {
            "x": (max(region.low_bytes, min(xs)) * min(region.high_bytes, max(xs))) ** 0.5,
            "name": region.name,
        }
        for region in survey.regions
    ]
    if not rows:
        return []
    chart = alt.Chart(values(rows)).transform_calculate(
        shown=f"width < {_NARROW_FROM_PX} ? slice(split(datum.name, ' '), 0, 2) : datum.name"
    )
    text = chart.mark_text(style="region-label", baseline="top", limit=240)
    return [text.encode(x=x, y=alt.YValue(2), text=alt.Text("shown:N"))]


def slope_chart(survey: Survey) -> alt.LayerChart:
    """Slope of that curve against its average (CP94 Fig. 6)."""
    average = average_slope(survey.unique_bytes_curve)
    rows = [
        {
            "x": point.x_bytes,
            "y": point.slope_mb_s_per_mb,
            "where": format_bytes(point.x_bytes),
            "slope": f"{format_number(point.slope_mb_s_per_mb)} MB/s per MB",
        }
        for point in survey.slope
    ]
    curve_xs = [point.x for point in survey.unique_bytes_curve.points]
    x = bytes_x(curve_xs, "Working set (unique_bytes, log scale)")
    y = alt.Y("y:Q", axis=alt.Axis(title="Slope (MB/s per MB touched)", format="~r", tickCount=5))
    tips = tooltips(where="At", slope="Slope")
    layers: list[AnyChart] = boundary_layers(survey, x, labelled=False)
    chart = alt.Chart(values(rows))
    layers += [
        chart.mark_line(style="curve").encode(x=x, y=y),
        chart.mark_point(style="mean").encode(x=x, y=y, tooltip=tips),
    ]
    subtitle = "Boundaries are sought where the curve falls faster than on average."
    if average is not None:
        steep = [row for row in rows if float(str(row["y"])) < average]
        line = alt.Chart(values([{"y": average}])).mark_rule(style="average").encode(y=y)
        marks = alt.Chart(values(steep)).mark_point(style="steep")
        layers += [line, marks.encode(x=x, y=y, tooltip=tips)]
        subtitle = (
            f"Dashed: the average slope, {format_number(average)} MB/s per MB; "
            "triangles: steeper than the average."
        )
    lowest = min(rows, key=lambda row: float(str(row["y"])))
    title = f"Throughput falls fastest near {lowest['where']}"
    if float(str(lowest["y"])) >= 0:
        title = "Throughput falls nowhere"
    return finish(layers, title, subtitle, (NARROW_PX, LOW_PX))


def family_charts(survey: Survey, family: Family) -> dict[str, alt.LayerChart]:
    """One region's four curves on one throughput axis from zero (CP94 Fig. 7)."""
    region = next((each for each in survey.regions if each.index == family.region), None)
    curves = [curve for curve in family.curves if curve.points]
    if region is None or not curves:
        return {}
    _, most = throughput_range(curves)
    return {
        f"region-{family.region}-{curve.parameter}": _family_curve(region, curve, most)
        for curve in sorted(curves, key=lambda curve: FAMILY_PARAMETERS.index(curve.parameter))
        if curve.parameter in FAMILY_PARAMETERS
    }


def _family_curve(region: Region, curve: Curve, most_mb_s: float) -> alt.LayerChart:
    x = parameter_x(curve.parameter, [point.x for point in curve.points])
    y = throughput_y(0.0, most_mb_s)
    layers = [*good_band(curve, x), *curve_layers(curve, x, y), *focal_mark(curve, x, y)]
    place = format_place(region)
    subtitle = f"{place[0].upper()}{place[1:]}. Shaded: 75% of the best or more; diamond: focal."
    return finish(layers, _family_title(curve), subtitle, (NARROW_PX, LOW_PX))


def _family_title(curve: Curve) -> str:
    """Say what is seen on a curve, only as far as its intervals show it."""
    if curve.parameter in FRACTION_ENDS:
        high, low = FRACTION_ENDS[curve.parameter]
        comparison = ends(curve)
        if comparison is None or not comparison.shown:
            return f"{high.capitalize()} over {low}: no significant difference"
        fast, slow, shown = (high, low, comparison)
        if comparison.slower:
            fast, slow, shown = low, high, comparison.inverse()
        return f"{fast.capitalize()} over {slow}: {format_times(shown)}"
    what = "Request size" if curve.parameter == "size_mean" else "Concurrency"
    found = gain(curve)
    if found is None or not found.to_best.faster:
        return f"{what}: no significant gain"
    tail = ", still rising" if found.rising else ""
    if not tail and found.level_x < found.last.x:
        tail = f", level from {format_value(curve.parameter, found.level_x)}"
    return f"{what}: {format_times(found.to_best)}{tail}"


# Charts across systems and across time: the summary (CP94 Fig. 10) and the sentinels.

_SIGNED_EXPR = "datum.value === 0 ? '0' : format(datum.value, '+~r')"


def summary_chart(surveys: Sequence[Survey]) -> alt.LayerChart:
    """Draw the unique_bytes curves of one or several surveys on one chart (CP94 Fig. 10)."""
    drawn = [survey for survey in surveys if survey.unique_bytes_curve.points]
    if not drawn:
        raise ValueError("no survey with a curve over the working set: nothing to draw")
    return curves_chart(_names(drawn), [survey.unique_bytes_curve for survey in drawn])


def curves_chart(names: Sequence[str], curves: Sequence[Curve]) -> alt.LayerChart:
    """Draw curves over the working set on one chart, each under its system's name."""
    least, most = throughput_range(curves)
    rows = [
        system_row(name, point, format_bytes(point.x))
        for name, curve in zip(names, curves, strict=True)
        for point in curve.points
    ]
    x = bytes_x([float(str(row["x"])) for row in rows], "Working set (unique_bytes, log scale)")
    y = throughput_y(least, most, log=wants_log(least, most))
    return finish(
        system_layers(rows, names, x, y),
        _summary_title(names, least, most),
        "Each at its own focal workload; bands: 95% intervals.",
        (WIDE_PX, TALL_PX),
    )


def _summary_title(names: Sequence[str], least_mb_s: float, most_mb_s: float) -> str:
    span = f"{format_rate(most_mb_s)} at most, {format_rate(least_mb_s)} at least"
    return f"{names[0] if len(names) == 1 else f'{len(names)} systems'}: {span}"


def _names(surveys: Sequence[Survey]) -> list[str]:
    """Tell surveys of one system apart by the start of their ids."""
    systems = [survey.start.system for survey in surveys]
    return [
        name if systems.count(name) == 1 else f"{name} ({survey.start.study_id[:8]})"
        for name, survey in zip(systems, surveys, strict=True)
    ]


def system_row(name: str, point: CurvePoint, where: str) -> dict[str, Any]:
    """Return a system's point as `system_layers` draws it."""
    rate = point.throughput_mb_s
    return {
        "x": point.x,
        "y": rate.value,
        "low": rate.low,
        "high": rate.high,
        "system": name,
        "where": where,
        "rate": format_rate_ci(rate),
    }


def system_layers(
    rows: list[dict[str, Any]],
    names: Sequence[str],
    x: alt.X,
    y: alt.Y,
    *,
    between: list[dict[str, Any]] | None = None,
) -> list[AnyChart]:
    """Draw one line per system, told apart by colour, dash and shape, with bands for intervals.

    `rows` are of `system_row`; `between` has the line's own places where
    straight lines from point to point would mislead.
    """
    lined = rows if between is None else between
    series = len(names)
    # Each round of colours begins one dash and two shapes later, so that no two systems look alike.
    rounds = [at // len(SYSTEM_DASHES) for at in range(series)]
    dashes = [SYSTEM_DASHES[(at + rounds[at]) % len(SYSTEM_DASHES)] for at in range(series)]
    shapes = [SYSTEM_SHAPES[(at + 2 * rounds[at]) % len(SYSTEM_SHAPES)] for at in range(series)]
    colour = alt.Color(
        "system:N", scale=alt.Scale(domain=list(names)), legend=alt.Legend(title="System")
    )
    dash = alt.StrokeDash(
        "system:N",
        scale=alt.Scale(domain=list(names), range=dashes),
        legend=alt.Legend(title="System"),
    )
    shape = alt.Shape(
        "system:N",
        scale=alt.Scale(domain=list(names), range=shapes),
        legend=alt.Legend(title="System"),
    )
    tips = tooltips(system="System", where="At", rate="Throughput (95% CI)")
    banded = [row for row in lined if row["low"] is not None and row["high"] is not None]
    chart = alt.Chart(values(rows))
    band = alt.Chart(values(banded)).mark_area(opacity=0.16, clip=True)
    return [
        band.encode(x=x, y=on_field(y, "low"), y2=alt.Y2("high:Q"), color=colour),
        alt.Chart(values(lined))
        .mark_line(strokeWidth=2)
        .encode(x=x, y=y, color=colour, strokeDash=dash),
        chart.mark_point(filled=True, size=60, opacity=1).encode(
            x=x, y=y, color=colour, shape=shape, tooltip=tips
        ),
    ]


def sentinels_chart(survey: Survey) -> alt.LayerChart:
    """Draw the focal points measured again over time, each level against its own mean."""
    names = {region.index: region.name for region in survey.regions}
    rows = []
    for index in sorted({sentinel.region for sentinel in survey.sentinels}):
        own = [sentinel for sentinel in survey.sentinels if sentinel.region == index]
        mean = sum(sentinel.throughput_mb_s for sentinel in own) / len(own)
        rows += [
            {
                "x": sentinel.clock_s / 60,
                "y": 100 * (sentinel.throughput_mb_s / mean - 1),
                "region": names.get(index, f"region {index}"),
                "rate": f"{sentinel.throughput_mb_s:,.4g} MB/s",
            }
            for sentinel in own
            if mean > 0
        ]
    labels = list(dict.fromkeys(str(row["region"]) for row in rows))
    reach = max([abs(float(str(row["y"]))) for row in rows] + [5.0]) * 1.1
    x = alt.X("x:Q", axis=alt.Axis(title="Time since the survey began (min)", tickCount=6))
    y = alt.Y(
        "y:Q",
        scale=alt.Scale(domain=[-reach, reach], nice=False),
        axis=alt.Axis(title="Against its own mean (%)", tickCount=5, labelExpr=_SIGNED_EXPR),
    )
    shapes = list(SYSTEM_SHAPES[: len(labels)])
    colour = alt.Color("region:N", scale=alt.Scale(domain=labels), legend=alt.Legend(title="Level"))
    shape = alt.Shape(
        "region:N", scale=alt.Scale(domain=labels, range=shapes), legend=alt.Legend(title="Level")
    )
    tips = tooltips(region="Level", rate="One reading")
    chart = alt.Chart(values(rows))
    layers: list[AnyChart] = [
        alt.Chart(values([{"y": 0}])).mark_rule(style="average").encode(y=y),
        chart.mark_line(strokeWidth=1, opacity=0.6).encode(x=x, y=y, color=colour),
        chart.mark_point(filled=True, size=70, opacity=1).encode(
            x=x, y=y, color=colour, shape=shape, tooltip=tips
        ),
    ]
    return finish(
        layers, drift_title(survey), "The focal points, measured again.", (NARROW_PX, LOW_PX)
    )


def drift_title(survey: Survey) -> str:
    """Say whether the system moved during the survey."""
    if survey.drift_step is not None:
        return f"The system {format_step(survey.drift_step)}"
    drift = told_drift(survey.drift_frac)
    if drift is None:
        return "Drift unknown"
    said = "No significant drift" if drift.covers(0.0) else "Drift"
    return f"{said}: {format_change(drift)}"


# The chart of the what-if section: a prediction over one parameter, its data given by the page.

_DOMAIN = [{"expr": "bottom"}, {"expr": "top"}]


def what_if_charts(survey: Survey, values: Mapping[str, Sequence[float]]) -> dict[str, Any]:
    """Return per parameter `{"linear", "log"}`, Vega-Lite specifications as wide as their box.

    The page fills the data set `curve` with rows of x, y, low, high (MB/s), region and the words
    of a tooltip, `here` with the one row of the current workload, and the parameters `bottom`,
    `top` and `ticks` with the ends of the throughput axis and, on a log one, its ticks.
    """
    return {
        parameter: {
            "linear": _chart(survey, parameter, xs, "linear"),
            "log": _chart(survey, parameter, xs, "log"),
        }
        for parameter, xs in values.items()
    }


def _chart(
    survey: Survey, parameter: str, xs: Sequence[float], kind: Literal["linear", "log"]
) -> dict[str, Any]:
    x = parameter_x(parameter, xs)
    title = "Throughput (MB/s, log scale)" if kind == "log" else "Throughput (MB/s)"
    ticks = {"tickCount": 5} if kind == "linear" else {"values": {"expr": "ticks"}}
    y = alt.Y(
        "y:Q",
        scale=alt.Scale(type=kind, domain=_DOMAIN, nice=False, clamp=True),
        axis=alt.Axis(title=title, format=",~r", **ticks),
    )
    chart = alt.Chart(alt.NamedData("curve")).encode(x=x)
    here = alt.Chart(alt.NamedData("here")).encode(x=x)
    low = on_field(y, "low")
    tips = tooltips(where="At", rate="Throughput (95% CI)")
    layers: list[AnyChart] = boundary_layers(survey, x) if parameter == "unique_bytes" else []
    layers += [
        chart.mark_area(style="band", clip=True).encode(
            y=low, y2=alt.Y2("high:Q"), detail=alt.Detail("region:N")
        ),
        chart.mark_line(style="curve").encode(y=y, detail=alt.Detail("region:N")),
        here.mark_rule(style="focal-rule"),
        here.mark_rule(style="interval", clip=True).encode(y=low, y2=alt.Y2("high:Q")),
        here.mark_point(style="focal").encode(y=y),
        chart.mark_point(style="touch").encode(y=y, tooltip=tips),
    ]
    spec: dict[str, Any] = alt.LayerChart(layer=layers, height=TALL_PX).to_dict(validate=False)
    spec.pop("config", None)
    spec["width"] = "container"
    spec["autosize"] = {"type": "fit-x", "contains": "padding"}
    spec["params"] = [{"name": name} for name in ("bottom", "top", "ticks")]
    return spec


# The charts of a survey, by name (CP94 Figs. 4, 6, 7 and 10), and what has no chart and why.


def charts(survey: Survey) -> dict[str, alt.LayerChart]:
    """Return every chart that the survey's readings allow, under stable names.

    `unique_bytes`, `slope`, `region-<index>-<parameter>`, `summary`, `sentinels`.
    """
    found: dict[str, alt.LayerChart] = {}
    if survey.unique_bytes_curve.points:
        found["unique_bytes"] = unique_bytes_chart(survey)
        if survey.slope:
            found["slope"] = slope_chart(survey)
    for family in survey.families:
        found |= family_charts(survey, family)
    if survey.unique_bytes_curve.points:
        found["summary"] = summary_chart([survey])
    if survey.sentinels:
        found["sentinels"] = sentinels_chart(survey)
    return found


def not_measured(survey: Survey) -> dict[str, str]:
    """Say, for every chart that `charts` leaves out, what was not measured."""
    missing: dict[str, str] = {}
    if not survey.unique_bytes_curve.points:
        for name in ("unique_bytes", "slope", "summary"):
            missing[name] = "not measured: no point over the working set"
    elif not survey.slope:
        missing["slope"] = "not measured: a slope needs two points over the working set"
    families = {family.region: family for family in survey.families}
    for region in survey.regions:
        family = families.get(region.index)
        for parameter in FAMILY_PARAMETERS:
            curve = family.curve(parameter) if family else None
            if curve is None or not curve.points:
                what = PARAMETER_TITLES[parameter].lower()
                missing[f"region-{region.index}-{parameter}"] = (
                    f"not measured: {what} {format_place(region)}"
                )
    if not survey.sentinels:
        missing["sentinels"] = "not measured: the focal point was not measured again"
    return missing
