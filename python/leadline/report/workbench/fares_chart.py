"""What each policy would have cost on the same server, and the rate it would have found."""

from __future__ import annotations

from typing import Any

import altair as alt

from leadline.record.wording import say_count
from leadline.record.workbench import Experiment, Fare, PeakVerdict
from leadline.report.drawing.axes import on_field
from leadline.report.drawing.layers import NARROW_PX, AnyChart, finish, tooltips, values
from leadline.report.workbench.table import say_took
from leadline.report.workbench.time_chart import Clock
from leadline.report.workbench.words import VERDICTS, say_cost, say_load

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
        axis=alt.Axis(title=f"Bench time ({clock.name})", format=",~r", tickCount=5, grid=True),
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
        "On a simulated server fitted to these trials: median bench time,",
        "the least and the most of the repetitions, and the rate found.",
    ]
    title = "How the policies would have fared"
    return finish(layers, title, subtitle, (NARROW_PX, _ROW_PX * len(rows)))


def _row(fare: Fare, clock: Clock, *, own: bool) -> dict[str, Any]:
    return {
        "policy": fare.policy,
        "cost": fare.cost_s / clock.seconds,
        "low": fare.cost_low_s / clock.seconds,
        "high": fare.cost_high_s / clock.seconds,
        "own": own,
        "said": f"{say_cost(fare.cost_s)}, {say_found(fare)}{' (used)' if own else ''}",
        "took": f"{say_took(fare)}, {say_count(fare.trials, 'trial')}",
        "finds": say_found(fare),
        "runs": say_count(fare.repetitions, "repetition"),
    }


def say_found(fare: Fare) -> str:
    """Write the rate a policy would find, or why it would end without one."""
    if fare.rate_per_s is None:
        return VERDICTS[fare.verdict]
    rate = f"{say_load(fare.rate_per_s)}/s"
    return rate if fare.verdict is PeakVerdict.FOUND else f"{rate}, {VERDICTS[fare.verdict]}"
