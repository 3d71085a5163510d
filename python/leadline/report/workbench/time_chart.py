"""Load factor against time (SH08 Fig. 3 and 7): where a search spends its bench time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import altair as alt

from leadline.record.wording import say_count
from leadline.record.workbench import Experiment, SamplePeak, Threshold
from leadline.report.drawing.axes import on_field
from leadline.report.drawing.layers import WIDE_PX, AnyChart, finish, values
from leadline.report.drawing.theme import SYSTEM_SHAPES
from leadline.report.workbench.response_chart import trial_tips
from leadline.report.workbench.rows import Row, measures, spans, trial_row
from leadline.report.workbench.words import peak_of, say_cost
from leadline.units import say_percent

_HEIGHT_PX = 260
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
    title = f"How it was found: {say_count(len(found.trials), 'trial')}, {say_cost(cost_s)}"
    subtitle = "Each bar is a trial, as long as it took; thick ones saturated or lost the server."
    if factor:
        subtitle += " At 1 the server is offered its peak rate; green is its interval."
        if any(row["y"] >= _TOP_FACTOR for row in rows):
            subtitle += f" Higher loads are drawn at {_TOP_FACTOR}."
    return finish(layers, title, subtitle, (WIDE_PX, _HEIGHT_PX))


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
    return finish(layers, title, subtitle, (WIDE_PX, _HEIGHT_PX))


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
        axis=alt.Axis(title=f"Bench time ({clock.name})", format=",~r", tickCount=6),
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
            "said": f"{say_percent(found.peak.confidence)} sure",
        }
        tip = alt.Tooltip("said:N", title="The peak rate's interval")
        mark = alt.Chart(values([band])).mark_rect(style="good")
        layers.append(mark.encode(y=on_field(y, "low"), y2=alt.Y2("high:Q"), tooltip=tip))
    layers.append(alt.Chart(values([line])).mark_rule(style="good-edge").encode(y=y))
    return layers
