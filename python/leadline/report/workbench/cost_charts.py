"""What experiments cost beside each other (SH08 Figs. 8, 9 and 10).

By policy, by accuracy and confidence, by the width of the peak-rate region: which of the figures
there are follows from what the experiments differ in.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import fmean
from typing import Any

import altair as alt
import msgspec

from leadline.record.workbench import Experiment
from leadline.report.drawing.layers import NARROW_PX, AnyChart, finish, tooltips, values
from leadline.report.drawing.theme import SYSTEM_SHAPES
from leadline.report.workbench.rows import Row
from leadline.report.workbench.words import say_cost
from leadline.units import say_percent

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
                f"{say_percent(each.start.goal.confidence)} confidence" + _who(known, each)
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
    """Return the bench time that an experiment took: of the surface, or of all trials."""
    return sum(trial.cost_s for peak in experiment.peaks for trial in peak.trials) or (
        experiment.surface.cost_s if experiment.surface is not None else 0.0
    )


def _goal(experiment: Experiment) -> bytes:
    return msgspec.json.encode(experiment.start.goal)


def _differ(experiments: Sequence[Experiment], what: Callable[[Experiment], object]) -> bool:
    return len({what(each) for each in experiments}) > 1


def _who(experiments: Sequence[Experiment], each: Experiment) -> str:
    return f", {each.start.policy}" if _differ(experiments, lambda e: e.start.policy) else ""


def _policies(experiments: Sequence[Experiment]) -> alt.LayerChart:
    """Draw a group of bars for every workload, a bar for every policy, 1 for the cheapest."""
    least = min(bench_cost_s(each) for each in experiments)
    rows: list[Row] = [
        {
            "workload": name,
            "policy": policy,
            "times": fmean(own) / least,
            "said": f"{say_cost(fmean(own))}, ×{fmean(own) / least:.2g} the least",
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
    title = "Bench time (cheapest = 1" + (", log scale)" if log else ")")
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
    said = f"1 is {say_cost(least)}, the least of all."
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
            "said": f"{say_cost(bench_cost_s(each))}, ×{bench_cost_s(each) / least:.2g} the least",
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
    axis_y = alt.Axis(title="Bench time (cheapest = 1)", format="~r", tickCount=5)
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
    said = f"1 is {say_cost(least)}, the least of all."
    return finish(layers, title, said, (NARROW_PX, _HEIGHT_PX))
