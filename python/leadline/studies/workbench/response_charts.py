"""Response time against load (SH08 Fig. 4), with the threshold, its region and the peak rate."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from typing import Any, NamedTuple

import altair as alt

from leadline.charts.axes import on_field
from leadline.charts.layers import NARROW_PX, WIDE_PX, AnyChart, finish, tooltips, values
from leadline.charts.series import series
from leadline.record.workbench import Experiment, PeakRate, SamplePeak, Threshold, TrialState
from leadline.studies.workbench.answer import format_quantile
from leadline.studies.workbench.run_lengths import CurvePoint, latency_curve
from leadline.studies.workbench.text import (
    Measure,
    Row,
    format_load,
    format_ms,
    limit_ms,
    load_points,
    measures,
    spans,
    trial_row,
)
from leadline.units import format_percent

_HEIGHT_PX = 320
_NEAR_FRAC = 0.12
"""The least that the near view shows on either side of the peak rate."""
_NEAR_TRIALS = 4
_FAR_ABOVE = 2.2
"""A load so many times the peak rate would press the others together on a linear axis."""
_NEAR_TOP = 2.4
"""Where the near view ends, in thresholds."""
_LINE_CHARACTERS = 132


class View(NamedTuple):
    """The part of the plane that a chart shows."""

    low_per_s: float
    high_per_s: float
    low_ms: float
    high_ms: float
    log: bool
    log_loads: bool = False

    @property
    def middle_per_s(self) -> float:
        """The load in the middle of the chart."""
        if self.log_loads:
            return math.sqrt(self.low_per_s * self.high_per_s)
        return (self.low_per_s + self.high_per_s) / 2

    def holds(self, row: Row) -> bool:
        """Whether a point lies in it."""
        return bool(self.low_per_s <= row["x"] <= self.high_per_s and row["y"] <= self.high_ms)

    def axes(self, title: str) -> tuple[alt.X, alt.Y]:
        """Responses on a log axis over all loads, which span decades; loads where they do."""
        domain = [self.low_per_s, self.high_per_s]
        load_scale = alt.Scale(domain=domain, nice=False, zero=False)
        load_ticks: dict[str, Any] = {}
        if self.log_loads:
            load_scale = alt.Scale(type="log", domain=domain, nice=False)
            load_ticks = {"values": _decades(*domain)}
        load_axis = alt.Axis(
            title="Offered load (requests/s)",
            format=",~r",
            tickCount=6,
            labelOverlap="parity",
            **load_ticks,
        )
        x = alt.X("x:Q", scale=load_scale, axis=load_axis)
        if self.log:
            scale = alt.Scale(type="log", domain=[self.low_ms, self.high_ms], nice=False)
            ticks: dict[str, Any] = {"values": _decades(self.low_ms, self.high_ms)}
        else:
            scale = alt.Scale(domain=[self.low_ms, self.high_ms], nice=False)
            ticks = {}
        axis = alt.Axis(title=title, format=",~r", labelOverlap="greedy", tickCount=5, **ticks)
        return x, alt.Y("y:Q", scale=scale, axis=axis)


def response_charts(found: SamplePeak, threshold: Threshold) -> dict[str, alt.LayerChart]:
    """Return `response`, and `response-near` where trials lie close to the peak rate.

    A threshold on both the mean and a percentile has both of each; the second of each kind has
    `-percentile` behind its name.
    """
    charts: dict[str, alt.LayerChart] = {}
    for number, measure in enumerate(measures(threshold)):
        suffix = "-percentile" if number else ""
        rows = [trial_row(span, threshold, measure) for span in spans(found.trials)]
        points = [row for row in rows if row["y"] is not None]
        if not points:
            continue
        limit = limit_ms(threshold, measure)
        words = _Words(threshold, measure)
        view = _whole(found.peak, rows, limit)
        charts[f"response{suffix}"] = _chart(found.peak, rows, view, words, WIDE_PX)
        near = _near(found.peak, points, limit)
        if near is not None:
            charts[f"response-near{suffix}"] = _chart(found.peak, rows, near, words, NARROW_PX)
    return charts


class _Words(NamedTuple):
    threshold: Threshold
    measure: Measure

    @property
    def limit(self) -> float:
        return limit_ms(self.threshold, self.measure)

    @property
    def axis(self) -> str:
        if self.measure == "mean":
            return "Mean response (ms)"
        share = self.threshold.percentile or 0.0
        return f"{100 * share:.4g}% of responses within (ms)"

    @property
    def title(self) -> str:
        if self.measure == "mean":
            return "Mean response time against load"
        return f"Response time of {100 * (self.threshold.percentile or 0):.4g}% against load"


def _whole(peak: PeakRate | None, rows: Sequence[Row], limit: float) -> View:
    """Return the view of all trials: of loads far above the peak, on a logarithmic axis."""
    points = [row for row in rows if row["y"] is not None]
    most, least = max(row["x"] for row in rows), min(row["x"] for row in rows)
    rate = None if peak is None or peak.rate_per_s is None else peak.rate_per_s.value
    log_loads = rate is not None and most > _FAR_ABOVE * rate
    times = [limit, *(row["y"] for row in points)]
    ends = (least / 1.15, most * 1.15) if log_loads else (0.0, most * 1.04)
    low, high = ends
    return View(low, high, min(times) / 1.5, max(times) * 1.8, log=True, log_loads=log_loads)


def _near(peak: PeakRate | None, points: Sequence[Row], limit: float) -> View | None:
    if peak is None or peak.rate_per_s is None:
        return None
    rate = peak.rate_per_s
    frac = max(_NEAR_FRAC, 2.5 * (rate.half_width_frac or 0.0))
    view = View(rate.value * (1 - frac), rate.value * (1 + frac), 0.0, _NEAR_TOP * limit, log=False)
    return view if sum(view.holds(row) for row in points) >= _NEAR_TRIALS else None


def _decades(low: float, high: float) -> list[float]:
    steps = (1, 2, 5) if high < 200 * low else (1,)
    ticks = [step * 10.0**power for power in range(-3, 8) for step in steps]
    return [tick for tick in ticks if low <= tick <= high]


def _chart(
    peak: PeakRate | None, rows: Sequence[Row], view: View, words: _Words, width_px: int
) -> alt.LayerChart:
    shown = [row for row in rows if row["y"] is not None and view.holds(row)]
    lost = [
        row
        for row in rows
        if row["state"] == TrialState.SERVER_LOST.value
        and view.low_per_s <= row["x"] <= view.high_per_s
    ]
    x, y = view.axes(words.axis)
    layers: list[AnyChart] = [
        *_peak_band(peak, view, x),
        *_peak_line(peak, view, x),
        *_threshold(words, view, x, y),
        *_trials(shown, x, y),
        *_lost(lost, x),
        *_means(peak, view, words.measure, x, y),
        *_bounds(peak, view, words.limit, x, y),
    ]
    title = words.title if view.log else f"{words.title}, near the peak rate"
    return finish(
        layers, title, _subtitle(peak, shown, view, lost=bool(lost)), (width_px, _HEIGHT_PX)
    )


def _peak_band(peak: PeakRate | None, view: View, x: alt.X) -> list[AnyChart]:
    rate = None if peak is None else peak.rate_per_s
    if peak is None or rate is None or rate.low is None or rate.high is None:
        return []
    row = {
        "low": max(rate.low, view.low_per_s),
        "high": min(rate.high, view.high_per_s),
        "said": f"{format_load(rate.low)} to {format_load(rate.high)} requests/s",
    }
    tip = alt.Tooltip("said:N", title=f"Peak rate, {format_percent(peak.confidence)} sure")
    chart = alt.Chart(values([row]))
    return [
        chart.mark_rect(style="good").encode(
            x=on_field(x, "low"), x2=alt.X2("high:Q"), tooltip=tip
        ),
        *(chart.mark_rule(style="good-edge").encode(x=on_field(x, end)) for end in ("low", "high")),
    ]


def _peak_line(peak: PeakRate | None, view: View, x: alt.X) -> list[AnyChart]:
    """Draw the rate, and its number beside its interval, where the chart has more room."""
    rate = None if peak is None else peak.rate_per_s
    if rate is None:
        return []
    right = rate.value > view.middle_per_s
    end = rate.low if right else rate.high
    line = alt.Chart(values([{"x": rate.value}])).mark_rule(style="good-edge", strokeWidth=2)
    row = {"x": rate.value if end is None else end, "said": f"peak {format_load(rate.value)}/s"}
    text = alt.Chart(values([row])).mark_text(
        style="region-label",
        baseline="top",
        align="right" if right else "left",
        dx=-8 if right else 8,
    )
    return [line.encode(x=x), text.encode(x=x, y=alt.YValue(2), text=alt.Text("said:N"))]


def _threshold(words: _Words, view: View, x: alt.X, y: alt.Y) -> list[AnyChart]:
    limit, width = words.limit, words.threshold.width_frac
    said = f"{format_ms(limit)} ± {format_percent(width)}"
    region = {"low": limit * (1 - width), "high": limit * (1 + width), "said": said}
    what = "R_sat" if words.measure == "mean" else "L_sat"
    tip = alt.Tooltip("said:N", title=f"{what} and its region (SH08 §3.3)")
    top = limit * (1 + width)
    name = {"y": top, "x": view.low_per_s, "words": f"saturated above {format_ms(limit)}"}
    band = alt.Chart(values([region])).mark_rect(style="boundary-band")
    words_mark = alt.Chart(values([name])).mark_text(
        style="boundary-label", align="left", baseline="bottom", dx=6, dy=-4
    )
    return [
        band.encode(y=on_field(y, "low"), y2=alt.Y2("high:Q"), tooltip=tip),
        alt.Chart(values([{"y": limit}])).mark_rule(style="boundary").encode(y=y),
        words_mark.encode(x=x, y=y, text=alt.Text("words:N")),
    ]


def _trials(shown: Sequence[Row], x: alt.X, y: alt.Y) -> list[AnyChart]:
    """Draw the trials: below the threshold, above it, and those given up above it."""
    aborted = TrialState.ABORTED.value
    groups = {
        "reading": [row for row in shown if not row["over"]],
        "over": [row for row in shown if row["over"] and row["state"] != aborted],
        "given-up": [row for row in shown if row["over"] and row["state"] == aborted],
    }
    return [
        alt.Chart(values(rows)).mark_point(style=style).encode(x=x, y=y, tooltip=trial_tips())
        for style, rows in groups.items()
        if rows
    ]


def trial_tips() -> list[alt.Tooltip]:
    """What a trial says when it is pointed at."""
    return tooltips(number="This is", load="Offered", said="Response", ended="Ended", took="Took")


def _lost(rows: Sequence[Row], x: alt.X) -> list[AnyChart]:
    if not rows:
        return []
    chart = alt.Chart(values(rows)).mark_point(style="lost")
    return [chart.encode(x=x, y=alt.YValue(10), tooltip=trial_tips())]


def _means(
    peak: PeakRate | None, view: View, measure: Measure, x: alt.X, y: alt.Y
) -> list[AnyChart]:
    if peak is None:
        return []
    several = {load.rate_per_s for load in peak.loads if load.trials > 1}
    rows: list[dict[str, Any]] = [
        row | {"high": min(row["high"], view.high_ms), "low": max(row["low"], view.low_ms)}
        for row in load_points(peak, measure)
        if row["x"] in several and view.holds(row)
    ]
    if not rows:
        return []
    tips = tooltips(load="Offered", said="Mean over trials", trials="From")
    chart = alt.Chart(values(rows))
    bars = chart.mark_rule(style="interval", clip=True).encode(
        x=x, y=on_field(y, "low"), y2=alt.Y2("high:Q")
    )
    return [bars, chart.mark_point(style="mean").encode(x=x, y=y, tooltip=tips)]


def _bounds(peak: PeakRate | None, view: View, limit: float, x: alt.X, y: alt.Y) -> list[AnyChart]:
    """Mark the loads between which the peak lies for certain trials (RFC 9971)."""
    if peak is None:
        return []
    ends = (
        (peak.lower_bound_per_s, "triangle-right", "not saturated: highest such load"),
        (peak.upper_bound_per_s, "triangle-left", "saturated: lowest such load"),
    )
    layers: list[AnyChart] = []
    for rate, shape, said in ends:
        if rate is None or not view.low_per_s <= rate <= view.high_per_s:
            continue
        row = {"x": rate, "y": limit, "load": f"{format_load(rate)} requests/s", "said": said}
        tips = tooltips(load="Offered", said="Seen")
        mark = alt.Chart(values([row])).mark_point(style="bound", shape=shape)
        layers.append(mark.encode(x=x, y=y, tooltip=tips))
    return layers


def _subtitle(peak: PeakRate | None, shown: Sequence[Row], view: View, *, lost: bool) -> list[str]:
    """Say what the marks are, of those that are there."""
    saturated = [row for row in shown if row["over"]]
    aborted = [row for row in saturated if row["state"] == TrialState.ABORTED.value]
    said = ["Open circles are trials" + (", squares saturated ones." if saturated else ".")]
    if aborted:
        said.append("Triangles were given up as saturated, at least this slow.")
    if lost:
        said.append("Crosses: the server was lost.")
    if peak is not None and any(load.trials > 1 for load in peak.loads):
        said.append("Dots are means over trials with their intervals.")
    if peak is not None and peak.rate_per_s is not None:
        known = peak.rate_per_s.low is not None
        said.append("Green: the peak rate" + (" with its interval." if known else "."))
    if peak is not None and (peak.lower_bound_per_s or peak.upper_bound_per_s):
        said.append("Black triangles: the highest load seen unsaturated, the lowest saturated.")
    if view.log:
        axes = "Both axes are" if view.log_loads else "The response axis is"
        said.append(f"{axes} logarithmic.")
    return textwrap.wrap(" ".join(said), _LINE_CHARACTERS if view.log else _LINE_CHARACTERS // 2)


# The load-latency curve: median and tail of the response times against the rate.

_SHOWN = {"p50": "p50", "p99": "p99", "p99_9": "p99.9"}
_POINTS_MIN = 2


def latency_chart(experiment: Experiment) -> alt.LayerChart | None:
    """Draw p50, p99 and p99.9 against the rate; None with fewer than two rates kept."""
    own = experiment.peaks[0]
    points = latency_curve(own)
    if len(points) < _POINTS_MIN:
        return None
    threshold = experiment.start.goal.threshold
    rows = [row for point in points for row in _rows(point)]
    limits = [within.limit_ms for within in threshold.shares]
    limits += [threshold.mean_ms] if threshold.mean_ms is not None else []
    x, y = _axes(rows, limits, own.peak)
    colour, shape, dash = series(tuple(_SHOWN.values()))
    chart = alt.Chart(values(rows))
    tips = tooltips(which="This is", load="Offered", said="Response")
    layers: list[AnyChart] = [
        *_peak(own.peak, x),
        *_limits(threshold, x, y),
        chart.mark_line(strokeWidth=2).encode(x=x, y=y, color=colour, strokeDash=dash),
        chart.mark_point(filled=True, size=50, opacity=0.95).encode(
            x=x, y=y, color=colour, shape=shape, tooltip=tips
        ),
    ]
    said = "at even parts of the peak" if own.curve else "trials of the search"
    subtitle = (
        f"Response times from when requests were due, {said} that kept their rate; log axis. "
        "Dashed: the targets."
    )
    return finish(layers, "Response time against load", subtitle, (WIDE_PX, _HEIGHT_PX))


def _rows(point: CurvePoint) -> list[Row]:
    load = f"{format_load(point.rate_per_s)} requests/s"
    found = [(name, getattr(point.response_ms, field)) for field, name in _SHOWN.items()]
    return [
        {"x": point.rate_per_s, "y": ms, "which": name, "load": load, "said": format_ms(ms)}
        for name, ms in found
        if ms > 0
    ]


def _axes(rows: list[Row], limits: list[float], peak: PeakRate | None) -> tuple[alt.X, alt.Y]:
    most = max(row["x"] for row in rows)
    if peak is not None and peak.rate_per_s is not None:
        most = max(most, peak.rate_per_s.high or peak.rate_per_s.value)
    times = [*(row["y"] for row in rows), *limits]
    low, high = min(times) / 1.5, max(times) * 1.8
    ticks = [
        step * 10.0**power
        for power in range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
        for step in (1, 2, 5)
    ]
    x = alt.X(
        "x:Q",
        scale=alt.Scale(domain=[0, most * 1.05], nice=False),
        axis=alt.Axis(title="Offered load (requests/s)", format=",~r", tickCount=6),
    )
    y = alt.Y(
        "y:Q",
        scale=alt.Scale(type="log", domain=[low, high], nice=False),
        axis=alt.Axis(
            title="Response time (ms)",
            format=",~r",
            labelOverlap="greedy",
            values=[tick for tick in ticks if low <= tick <= high],
        ),
    )
    return x, y


def _peak(peak: PeakRate | None, x: alt.X) -> list[AnyChart]:
    rate = None if peak is None else peak.rate_per_s
    if rate is None:
        return []
    layers: list[AnyChart] = []
    if rate.low is not None and rate.high is not None:
        band = alt.Chart(values([{"low": rate.low, "high": rate.high}])).mark_rect(style="good")
        layers.append(band.encode(x=on_field(x, "low"), x2=alt.X2("high:Q")))
    line = alt.Chart(values([{"x": rate.value}])).mark_rule(style="good-edge", strokeWidth=2)
    text = alt.Chart(values([{"x": rate.value, "said": f"peak {format_load(rate.value)}/s"}]))
    label = text.mark_text(style="region-label", baseline="top", align="right", dx=-8)
    return [*layers, line.encode(x=x), label.encode(x=x, y=alt.YValue(2), text="said:N")]


def _limits(threshold: Threshold, x: alt.X, y: alt.Y) -> list[AnyChart]:
    rows = [
        {"x": 0.0, "y": within.limit_ms, "said": f"{format_quantile(within.percentile)} within "}
        for within in threshold.shares
    ]
    if threshold.mean_ms is not None:
        rows.append({"x": 0.0, "y": threshold.mean_ms, "said": "mean "})
    rows = [row | {"said": f"{row['said']}{format_ms(float(str(row['y'])))}"} for row in rows]
    chart = alt.Chart(values(rows))
    label = chart.mark_text(style="boundary-label", align="left", baseline="bottom", dx=6, dy=-4)
    return [
        chart.mark_rule(style="boundary").encode(y=y),
        label.encode(x=x, y=y, text=alt.Text("said:N")),
    ]
