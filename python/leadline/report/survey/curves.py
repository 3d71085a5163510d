"""The curves of one survey: bytes touched, its slope, and the family of each region."""

from __future__ import annotations

import altair as alt

from leadline.record import Curve, Family, Region, Survey
from leadline.record.findings import average_slope, ends, gain
from leadline.record.wording import (
    FRACTION_ENDS,
    join_words,
    say_border,
    say_number,
    say_place,
    say_times,
    say_value,
    say_workload,
)
from leadline.report.drawing.axes import bytes_x, parameter_x, throughput_y
from leadline.report.drawing.layers import (
    LOW_PX,
    NARROW_PX,
    TALL_PX,
    WIDE_PX,
    AnyChart,
    border_marks,
    curve_layers,
    finish,
    focal_mark,
    good_band,
    throughput_range,
    tooltips,
    values,
)
from leadline.report.drawing.scale import wants_log
from leadline.units import format_bytes

FAMILY_PARAMETERS = ("size_mean", "read_frac", "process_num", "seq_frac")
"""The four curves of one region, in the order of CP94 Fig. 7 (a) to (d)."""
_NARROW_FROM_PX = 520
"""Below this width names break into lines and labels are staggered."""


def unique_bytes_chart(survey: Survey) -> alt.LayerChart:
    """Throughput against bytes touched, with the borders and the names of the levels."""
    curve = survey.unique_bytes_curve
    least, most = throughput_range([curve])
    log = wants_log(least, most)
    x = bytes_x([point.x for point in curve.points], "Bytes touched (unique_bytes, log scale)")
    y = throughput_y(least, most, headroom=1.24, log=log)
    layers = [*border_layers(survey, x), *curve_layers(curve, x, y), *_region_labels(survey, x)]
    focal = say_workload(curve.focal).partition(", ")[2]
    subtitle = f"At {focal}. Bars: 95 % intervals; small rings: single readings."
    return finish(layers, _levels_title(survey), subtitle, (WIDE_PX, TALL_PX))


def _levels_title(survey: Survey) -> str:
    if survey.borders:
        text = join_words(
            [
                f"{region.name} ends at {format_bytes(border.bytes.value)}"
                for region, border in zip(survey.regions, survey.borders, strict=False)
            ]
        )
        return text[:1].upper() + text[1:]
    return "No border shown: one level" if survey.regions else "Throughput so far"


def border_layers(survey: Survey, x: alt.X, *, labelled: bool = True) -> list[AnyChart]:
    """Return the ends of the levels as dashed rules, their intervals as bands, none without."""
    borders = [
        (border.bytes, format_bytes(border.bytes.value), say_border(border))
        for border in survey.borders
    ]
    title = "The level ends at (95 %)"
    return border_marks(borders, x, title, label_y=_label_y, labelled=labelled)


def _label_y(index: int) -> dict[str, str]:
    """Put border labels under the region names, staggered where the chart is narrow."""
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
            "slope": f"{say_number(point.slope_mb_s_per_mb)} MB/s per MB",
        }
        for point in survey.slope
    ]
    curve_xs = [point.x for point in survey.unique_bytes_curve.points]
    x = bytes_x(curve_xs, "Bytes touched (unique_bytes, log scale)")
    y = alt.Y("y:Q", axis=alt.Axis(title="Slope (MB/s per MB touched)", format="~r", tickCount=5))
    tips = tooltips(where="At", slope="Slope")
    layers: list[AnyChart] = border_layers(survey, x, labelled=False)
    chart = alt.Chart(values(rows))
    layers += [
        chart.mark_line(style="curve").encode(x=x, y=y),
        chart.mark_point(style="mean").encode(x=x, y=y, tooltip=tips),
    ]
    subtitle = "Borders are sought where the curve falls faster than on average."
    if average is not None:
        steep = [row for row in rows if float(str(row["y"])) < average]
        line = alt.Chart(values([{"y": average}])).mark_rule(style="average").encode(y=y)
        marks = alt.Chart(values(steep)).mark_point(style="steep")
        layers += [line, marks.encode(x=x, y=y, tooltip=tips)]
        subtitle = (
            f"Dashed: the average slope, {say_number(average)} MB/s per MB; "
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
    place = say_place(region)
    subtitle = f"{place[0].upper()}{place[1:]}. Shaded: 75 % of the best or more; diamond: focal."
    return finish(layers, _family_title(curve), subtitle, (NARROW_PX, LOW_PX))


def _family_title(curve: Curve) -> str:
    """Say what is seen on a curve, only as far as its intervals show it."""
    if curve.parameter in FRACTION_ENDS:
        high, low = FRACTION_ENDS[curve.parameter]
        comparison = ends(curve)
        if comparison is None or not comparison.shown:
            return f"{high.capitalize()} against {low}: no difference shown"
        fast, slow, shown = (high, low, comparison)
        if comparison.slower:
            fast, slow, shown = low, high, comparison.inverse()
        return f"{fast.capitalize()} over {slow}: {say_times(shown)}"
    what = "Bigger requests" if curve.parameter == "size_mean" else "More processes"
    found = gain(curve)
    if found is None or not found.to_best.faster:
        return f"{what}: no gain shown"
    tail = ", still rising" if found.rising else ""
    if not tail and found.level_x < found.last.x:
        tail = f", level from {say_value(curve.parameter, found.level_x)}"
    return f"{what}: {say_times(found.to_best)}{tail}"
