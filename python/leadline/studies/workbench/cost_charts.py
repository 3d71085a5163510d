"""What experiments cost beside each other (SH08 Figs. 8, 9 and 10).

By policy, by accuracy and confidence, by the width of the peak-rate region: which of the figures
there are follows from what the experiments differ in.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import fmean
from typing import Any, NamedTuple

import altair as alt
import msgspec

from leadline.charts.axes import on_field
from leadline.charts.layers import NARROW_PX, WIDE_PX, AnyChart, finish, tooltips, values
from leadline.charts.theme import SYSTEM_SHAPES
from leadline.record.wording import format_count
from leadline.record.workbench import Experiment, Fare, PeakVerdict, SamplePeak, Threshold
from leadline.studies.workbench.response_charts import trial_tips
from leadline.studies.workbench.text import (
    VERDICTS,
    Row,
    format_cost,
    format_load,
    format_took,
    measures,
    peak_of,
    spans,
    trial_row,
)
from leadline.units import format_percent

_HEIGHT_PX = 240
_LOG_SPREAD = 12.0
"""Costs further apart than this are only seen together on a logarithmic axis."""


def cost_charts(experiments: Sequence[Experiment]) -> dict[str, alt.LayerChart]:
    """Return those of `cost-policies`, `cost-accuracy` and `cost-width` that say something."""
    known = [each for each in experiments if bench_cost_s(each) > 0]
    charts: dict[str, alt.LayerChart] = {}
    if _differ(known, lambda each: each.start.policy) and not _differ(known, _goal):
        charts["cost-policies"] = _policies(known)
    if _differ(known, lambda each: each.start.goal.accuracy):
        charts["cost-accuracy"] = _against(
            known,
            at=lambda each: 100 * each.start.goal.accuracy,
            series=lambda each: (
                f"{format_percent(each.start.goal.confidence)} confidence"
                + (f", {each.start.policy}" if _differ(known, lambda e: e.start.policy) else "")
            ),
            title="Cost against accuracy",
            axis="Target accuracy (%)",
        )
    if _differ(known, lambda each: each.start.goal.threshold.width_frac):
        charts["cost-width"] = _against(
            known,
            at=lambda each: 100 * each.start.goal.threshold.width_frac,
            series=lambda each: each.start.policy,
            title="Cost against the peak-rate region",
            axis="Half its width, s (% of R_sat)",
        )
    return charts


def bench_cost_s(experiment: Experiment) -> float:
    """Return the test time that an experiment took: of the surface, or of all trials."""
    return sum(trial.cost_s for peak in experiment.peaks for trial in peak.trials) or (
        experiment.surface.cost_s if experiment.surface is not None else 0.0
    )


def _goal(experiment: Experiment) -> bytes:
    return msgspec.json.encode(experiment.start.goal)


def _differ(experiments: Sequence[Experiment], what: Callable[[Experiment], object]) -> bool:
    return len({what(each) for each in experiments}) > 1


def _policies(experiments: Sequence[Experiment]) -> alt.LayerChart:
    """Draw a group of bars for every workload, a bar for every policy, 1 for the cheapest."""
    least = min(bench_cost_s(each) for each in experiments)
    rows: list[Row] = [
        {
            "workload": name,
            "policy": policy,
            "times": fmean(own) / least,
            "said": f"{format_cost(fmean(own))}, ×{fmean(own) / least:.2g} the least",
            "number": f"{fmean(own) / least:.2g}",
        }
        for name in dict.fromkeys(each.start.system for each in experiments)
        for policy in dict.fromkeys(each.start.policy for each in experiments)
        if (
            own := [
                bench_cost_s(each)
                for each in experiments
                if (each.start.system, each.start.policy) == (name, policy)
            ]
        )
    ]
    policies = list(dict.fromkeys(row["policy"] for row in rows))
    most = max(row["times"] for row in rows)
    log = most > _LOG_SPREAD
    place: dict[str, Any] = {
        "x": alt.X(
            "workload:N",
            sort=None,
            axis=alt.Axis(title=None, labelAngle=0, ticks=False, labelLimit=160),
        ),
        "xOffset": alt.XOffset("policy:N", sort=policies),
    }
    scale = (
        alt.Scale(type="log", domain=[0.7, most * 1.6], nice=False)
        if log
        else alt.Scale(domain=[0, most * 1.14], nice=False)
    )
    title = "Test time (cheapest = 1" + (", log scale)" if log else ")")
    y = alt.Y("times:Q", scale=scale, axis=alt.Axis(title=title, format="~r", tickCount=5))
    colour = alt.Color(
        "policy:N", scale=alt.Scale(domain=policies), legend=alt.Legend(title=None, columns=2)
    )
    tips = tooltips(workload="Workload", policy="Policy", said="Took")
    chart = alt.Chart(values(rows))
    shapes = [SYSTEM_SHAPES[number % len(SYSTEM_SHAPES)] for number in range(len(policies))]
    shape = alt.Shape(
        "policy:N",
        scale=alt.Scale(domain=policies, range=shapes),
        legend=alt.Legend(title=None, columns=2),
    )
    marks: AnyChart = (
        chart.mark_point(filled=True, size=90, opacity=1).encode(
            **place, y=y, color=colour, shape=shape, tooltip=tips
        )
        if log
        else chart.mark_bar(opacity=0.85).encode(**place, y=y, color=colour, tooltip=tips)
    )
    numbers = chart.mark_text(style="small-label", baseline="bottom", dy=-5).encode(
        **place, y=y, text=alt.Text("number:N")
    )
    said = f"1 is {format_cost(least)}, the least of all."
    return finish([marks, numbers], "Cost by policy", said, (NARROW_PX, _HEIGHT_PX))


def _against(
    experiments: Sequence[Experiment],
    *,
    at: Callable[[Experiment], float],
    series: Callable[[Experiment], str],
    title: str,
    axis: str,
) -> alt.LayerChart:
    """Draw cost against a number of the goal, a line for each series, 1 for the cheapest."""
    least = min(bench_cost_s(each) for each in experiments)
    rows: list[Row] = [
        {
            "x": at(each),
            "times": bench_cost_s(each) / least,
            "series": series(each),
            "said": f"{format_cost(bench_cost_s(each))}, "
            f"×{bench_cost_s(each) / least:.2g} the least",
            "name": each.start.system,
        }
        for each in experiments
    ]
    names = list(dict.fromkeys(row["series"] for row in rows))
    most = max(row["times"] for row in rows)
    ends = [row["x"] for row in rows]
    wide = max(0.06 * (max(ends) - min(ends)), 0.2)
    x = alt.X(
        "x:Q",
        scale=alt.Scale(domain=[min(ends) - wide, max(ends) + wide], nice=False, zero=False),
        axis=alt.Axis(title=axis, values=sorted(set(ends)), format="~r", labelOverlap="parity"),
    )
    scale = alt.Scale(domain=[0, most * 1.08], nice=False)
    axis_y = alt.Axis(title="Test time (cheapest = 1)", format="~r", tickCount=5)
    y = alt.Y("times:Q", scale=scale, axis=axis_y)
    mean_y = alt.Y("mean(times):Q", scale=scale, axis=axis_y)
    legend = alt.Legend(title=None, columns=2)
    colour = alt.Color("series:N", scale=alt.Scale(domain=names), legend=legend)
    shapes = [SYSTEM_SHAPES[number % len(SYSTEM_SHAPES)] for number in range(len(names))]
    shape = alt.Shape("series:N", scale=alt.Scale(domain=names, range=shapes), legend=legend)
    tips = tooltips(name="Experiment", series="With", said="Took")
    chart = alt.Chart(values(rows))
    layers: list[AnyChart] = [
        chart.mark_line(strokeWidth=1.8).encode(x=x, y=mean_y, color=colour),
        chart.mark_point(filled=True, size=60, opacity=1).encode(
            x=x, y=y, color=colour, shape=shape, tooltip=tips
        ),
    ]
    said = f"1 is {format_cost(least)}, the least of all."
    return finish(layers, title, said, (NARROW_PX, _HEIGHT_PX))


# What each policy would have cost on the same server, and the rate it would have found.

_ROW_PX = 38


def fares_chart(experiment: Experiment) -> alt.LayerChart | None:
    """Draw a bar for every policy, cheapest first; None when nobody tried."""
    fares = sorted(experiment.fares, key=lambda fare: fare.cost_s)
    if not fares:
        return None
    clock = Clock.for_span(max(fare.cost_high_s for fare in fares))
    rows = [_row(fare, clock, own=fare.policy == experiment.start.policy) for fare in fares]
    most = max(row["high"] for row in rows)
    x = alt.X(
        "cost:Q",
        scale=alt.Scale(domain=[0, most * 1.6], nice=False),
        axis=alt.Axis(title=f"Test time ({clock.name})", format=",~r", tickCount=5, grid=True),
    )
    order = [row["policy"] for row in rows]
    y = alt.Y("policy:N", sort=order, axis=alt.Axis(title=None, labelLimit=220, domain=False))
    tips = tooltips(policy="Policy", took="Would take", finds="Would find", runs="From")
    layers: list[AnyChart] = []
    for style, own in (("gain", False), ("short-gain", True)):
        part = [row for row in rows if row["own"] is own]
        if part:
            mark = alt.Chart(values(part)).mark_bar(style=style, height=14)
            layers.append(mark.encode(x=x, y=y, tooltip=tips))
    chart = alt.Chart(values(rows))
    layers.append(
        chart.mark_rule(style="whisker", clip=True).encode(
            x=on_field(x, "low"), x2=alt.X2("high:Q"), y=y
        )
    )
    text = chart.mark_text(style="small-label", align="left", dx=6)
    layers.append(text.encode(x=on_field(x, "high"), y=y, text=alt.Text("said:N")))
    subtitle = [
        "On a simulated server fitted to these trials: median test time,",
        "the least and the most of the repetitions, and the rate found.",
    ]
    title = "Policy comparison"
    return finish(layers, title, subtitle, (NARROW_PX, _ROW_PX * len(rows)))


def _row(fare: Fare, clock: Clock, *, own: bool) -> dict[str, Any]:
    return {
        "policy": fare.policy,
        "cost": fare.cost_s / clock.seconds,
        "low": fare.cost_low_s / clock.seconds,
        "high": fare.cost_high_s / clock.seconds,
        "own": own,
        "said": f"{format_cost(fare.cost_s)}, {format_found(fare)}{' (used)' if own else ''}",
        "took": f"{format_took(fare)}, {format_count(fare.trials, 'trial')}",
        "finds": format_found(fare),
        "runs": format_count(fare.repetitions, "repetition"),
    }


def format_found(fare: Fare) -> str:
    """Write the rate a policy would find, or why it would end without one."""
    if fare.rate_per_s is None:
        return VERDICTS[fare.verdict]
    rate = f"{format_load(fare.rate_per_s)}/s"
    return rate if fare.verdict is PeakVerdict.FOUND else f"{rate}, {VERDICTS[fare.verdict]}"


# Load factor against time (SH08 Fig. 3 and 7): where a search spends its test time.

_TIME_HEIGHT_PX = 260
_TOP_FACTOR = 2.6
"""Loads beyond this many peak rates are drawn at the edge: they would flatten the rest."""


class Clock(NamedTuple):
    """The unit of the time axis."""

    seconds: float
    name: str

    @classmethod
    def for_span(cls, longest_s: float) -> Clock:
        """Seconds, minutes or hours, whichever gives numbers that are read at a glance."""
        if longest_s < 180:
            return cls(1.0, "s")
        return cls(60.0, "min") if longest_s < 3 * 3600 else cls(3600.0, "h")


def time_chart(experiment: Experiment) -> alt.LayerChart | None:
    """Draw one search: every trial as a bar as long as it took; None without trials."""
    found = experiment.peaks[0] if experiment.peaks else None
    if found is None or not found.trials:
        return None
    rows, factor = _rows(found, experiment.start.goal.threshold)
    clock = Clock.for_span(rows[-1]["end"])
    rows = [_on(clock, row) for row in rows]
    x, y = _axes(rows, clock, factor=factor)
    layers: list[AnyChart] = [
        *(_one(found, y) if factor else []),
        alt.Chart(values(rows))
        .mark_line(style="profile", interpolate="step-after")
        .encode(x=on_field(x, "from"), y=y),
    ]
    for style, over in (("held", False), ("held-over", True)):
        part = [row for row in rows if row["too_much"] is over]
        mark = alt.Chart(values(part)).mark_rule(style=style)
        layers.append(
            mark.encode(x=on_field(x, "from"), x2=alt.X2("to:Q"), y=y, tooltip=trial_tips())
        )
    cost_s = sum(trial.cost_s for trial in found.trials)
    title = f"How it was found: {format_count(len(found.trials), 'trial')}, {format_cost(cost_s)}"
    subtitle = "Each bar is a trial, as long as it took; thick ones saturated or lost the server."
    if factor:
        subtitle += " At 1 the server is offered its peak rate; green is its interval."
        if any(row["y"] >= _TOP_FACTOR for row in rows):
            subtitle += f" Higher loads are drawn at {_TOP_FACTOR}."
    return finish(layers, title, subtitle, (WIDE_PX, _TIME_HEIGHT_PX))


def compared_time_chart(experiments: Sequence[Experiment]) -> alt.LayerChart | None:
    """Draw several searches, a line for each (SH08 Fig. 7); None unless two have a peak rate."""
    known = [each for each in experiments if _has_rate(each)]
    if len(known) < 2:
        return None
    names = _names(known)
    found: list[Row] = []
    for name, each in zip(names, known, strict=True):
        rows, _ = _rows(each.peaks[0], each.start.goal.threshold)
        found += [row | {"search": name} for row in rows]
    clock = Clock.for_span(max(row["end"] for row in found))
    found = [_on(clock, row) for row in found]
    x, y = _axes(found, clock, factor=True)
    colour = alt.Color(
        "search:N", scale=alt.Scale(domain=names), legend=alt.Legend(title=None, columns=2)
    )
    shapes = [SYSTEM_SHAPES[number % len(SYSTEM_SHAPES)] for number in range(len(names))]
    shape = alt.Shape(
        "search:N",
        scale=alt.Scale(domain=names, range=shapes),
        legend=alt.Legend(title=None, columns=2),
    )
    tips = [alt.Tooltip("search:N", title="Policy"), *trial_tips()]
    chart = alt.Chart(values(found))
    layers: list[AnyChart] = [
        alt.Chart(values([{"y": 1.0}])).mark_rule(style="good-edge").encode(y=y),
        chart.mark_line(style="profile", interpolate="step-before").encode(
            x=on_field(x, "to"), y=y, color=colour
        ),
        chart.mark_point(filled=True, size=46, opacity=0.9).encode(
            x=on_field(x, "to"), y=y, color=colour, shape=shape, tooltip=tips
        ),
    ]
    title = "Load factor against time"
    subtitle = "Each mark is a trial, where it ended; at 1 the server is offered its peak rate."
    return finish(layers, title, subtitle, (WIDE_PX, _TIME_HEIGHT_PX))


def _has_rate(experiment: Experiment) -> bool:
    peak = peak_of(experiment)
    return peak is not None and peak.rate_per_s is not None and bool(experiment.peaks[0].trials)


def _names(experiments: Sequence[Experiment]) -> list[str]:
    """Policies, with the experiment's name where two are of one policy."""
    policies = [each.start.policy for each in experiments]
    names = []
    for number, each in enumerate(experiments):
        own = each.start.policy
        if policies.count(own) > 1:
            own = f"{own}, {each.start.system}"
        names.append(f"{own} ({number + 1})" if own in names else own)
    return names


def _rows(found: SamplePeak, threshold: Threshold) -> tuple[list[Row], bool]:
    """Return the trials with their load factor, or with their load when no peak is known."""
    measure = measures(threshold)[0]
    rate = found.peak.rate_per_s if found.peak is not None else None
    unit = 1.0 if rate is None else rate.value
    rows = [trial_row(span, threshold, measure) for span in spans(found.trials)]
    top = _TOP_FACTOR if rate is not None else float("inf")
    return [
        row | {"y": min(row["x"] / unit, top), "factor": f"{row['x'] / unit:.3g}"} for row in rows
    ], rate is not None


def _on(clock: Clock, row: Row) -> Row:
    return row | {"from": row["begin"] / clock.seconds, "to": row["end"] / clock.seconds}


def _axes(rows: Sequence[Row], clock: Clock, *, factor: bool) -> tuple[alt.X, alt.Y]:
    most = max(row["to"] for row in rows)
    x = alt.X(
        "from:Q",
        scale=alt.Scale(domain=[0, most * 1.02], nice=False),
        axis=alt.Axis(title=f"Test time ({clock.name})", format=",~r", tickCount=6),
    )
    top = max(1.2 if factor else 0.0, 1.06 * max(row["y"] for row in rows))
    title = "Load factor (load / peak rate)" if factor else "Offered load (requests/s)"
    y = alt.Y(
        "y:Q",
        scale=alt.Scale(domain=[0, top], nice=False),
        axis=alt.Axis(title=title, format=",~r", tickCount=5),
    )
    return x, y


def _one(found: SamplePeak, y: alt.Y) -> list[AnyChart]:
    """Draw the peak rate at 1, and its interval."""
    rate = None if found.peak is None else found.peak.rate_per_s
    if found.peak is None or rate is None:
        return []
    line: dict[str, Any] = {"y": 1.0}
    layers: list[AnyChart] = []
    if rate.low is not None and rate.high is not None:
        band = {
            "low": rate.low / rate.value,
            "high": rate.high / rate.value,
            "said": f"{format_percent(found.peak.confidence)} sure",
        }
        tip = alt.Tooltip("said:N", title="The peak rate's interval")
        mark = alt.Chart(values([band])).mark_rect(style="good")
        layers.append(mark.encode(y=on_field(y, "low"), y2=alt.Y2("high:Q"), tooltip=tip))
    layers.append(alt.Chart(values([line])).mark_rule(style="good-edge").encode(y=y))
    return layers
