"""An experiment drawn: its charts by name, the page, image files."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import altair as alt
import msgspec

from leadline.charts.axes import on_field
from leadline.charts.drawable import Drawn
from leadline.charts.embedding import page_parts, render_page
from leadline.charts.layers import NARROW_PX, AnyChart, finish, tooltips, values
from leadline.charts.paged import Sheet, paged_pdf
from leadline.charts.saving import Forms
from leadline.charts.theme import SYSTEM_DASHES, SYSTEM_SHAPES
from leadline.record import Status
from leadline.record.workbench import Experiment, StorageServer, SurfaceCell, Trial, TrialState
from leadline.sanitize import to_csv
from leadline.store import Store
from leadline.studies.facts import fact_rows
from leadline.studies.workbench import text as peak_table
from leadline.studies.workbench.answer import experiment_of, format_sample
from leadline.studies.workbench.cost_charts import (
    compared_time_chart,
    cost_charts,
    fares_chart,
    time_chart,
)
from leadline.studies.workbench.response_charts import latency_chart, response_charts
from leadline.studies.workbench.run_lengths import RunLength, run_length_rows
from leadline.studies.workbench.surface import text as surface_table
from leadline.studies.workbench.surface.charts import lines_chart, map_chart
from leadline.studies.workbench.surface.text import planes, sample_costs
from leadline.studies.workbench.tables import (
    LENGTH_HEADS,
    format_needed,
    run_length_lines,
    trial_rows,
)
from leadline.studies.workbench.text import Row, experiment_title, format_cost, format_ms, peak_of
from leadline.units import format_percent, format_seconds

# Spread of the response over run length, and the trials an accuracy takes (SH08 Figs. 5, 6).

_HEIGHT_PX = 260


def run_length_charts(experiment: Experiment) -> dict[str, Drawn]:
    """Draw every trial's mean over its length, and the trials needed; none without the study."""
    rows = run_length_rows(experiment)
    if not rows:
        return {}
    charts: dict[str, Drawn] = {"run-spread": _spread_chart(experiment, rows)}
    needed = [row for row in rows if row.needed is not None]
    if needed:
        charts["run-trials"] = _needed_chart(experiment, needed)
    return charts


def _spread_chart(experiment: Experiment, rows: Sequence[RunLength]) -> alt.LayerChart:
    """Draw SH08 Fig. 5: a point for each trial."""
    rate = {row.rate_per_s: row.part_of_peak for row in rows}
    points: list[Row] = [
        {
            "x": trial.request.seconds,
            "y": trial.measured.response_ms.mean,
            "which": _named(rate[trial.request.rate_per_s]),
            "length": format_seconds(trial.request.seconds),
            "said": format_ms(trial.measured.response_ms.mean),
        }
        for trial in experiment.peaks[0].lengths
        if trial.state is TrialState.DONE
        and trial.request.rate_per_s in rate
        and trial.measured is not None
        and trial.measured.response_ms is not None
        and trial.measured.response_ms.mean > 0
    ]
    y = _log_y("Mean response of a trial (ms)", [row["y"] for row in points])
    marks = alt.Chart(values(points)).mark_point(size=36, opacity=0.7)
    tips = tooltips(which="Load", length="Run length", said="Mean response")
    by = _by_load(rows)
    layers: list[AnyChart] = [
        marks.encode(x=_x(rows), y=y, tooltip=tips, color=by["color"], shape=by["shape"])
    ]
    subtitle = ["A point for each independent trial, its mean response.", "Both axes log."]
    return finish(layers, "Response over run length", subtitle, (NARROW_PX, _HEIGHT_PX))


def _needed_chart(experiment: Experiment, rows: Sequence[RunLength]) -> alt.LayerChart:
    """Draw SH08 Fig. 6: how many trials of each length reach the accuracy."""
    goal = experiment.start.goal
    points: list[Row] = [
        {
            "x": row.seconds,
            "y": row.needed.value,
            "low": row.needed.low or row.needed.value,
            "high": row.needed.high or row.needed.value,
            "which": _named(row.part_of_peak),
            "length": format_seconds(row.seconds),
            "said": format_needed(row.needed),
            "cost": "" if row.cost_s is None else format_cost(row.cost_s.value),
        }
        for row in rows
        if row.needed is not None
    ]
    y = _log_y("Trials needed", [row[end] for row in points for end in ("low", "high")])
    chart, x = alt.Chart(values(points)), _x(rows)
    by = _by_load(rows)
    line = {"color": by["color"], "strokeDash": by["strokeDash"]}
    tips = tooltips(which="Load", length="Run length", said="Trials", cost="Test time")
    layers: list[AnyChart] = [
        chart.mark_rule(style="whisker").encode(
            x=x, y=on_field(y, "low"), y2=alt.Y2("high:Q"), color=by["color"]
        ),
        chart.mark_line(strokeWidth=2).encode(x=x, y=y, **line),
        chart.mark_point(filled=True, size=50).encode(
            x=x, y=y, color=by["color"], shape=by["shape"], tooltip=tips
        ),
    ]
    subtitle = [
        f"For {100 * goal.accuracy:.4g}% accuracy at {100 * goal.confidence:.4g}%,",
        "with the interval of the spread. Both axes log.",
    ]
    title = "Trials that an accuracy takes"
    return finish(layers, title, subtitle, (NARROW_PX, _HEIGHT_PX))


def _named(part: float) -> str:
    return f"{format_percent(part)} of the peak"


def _by_load(rows: Sequence[RunLength]) -> dict[str, alt.Color | alt.Shape | alt.StrokeDash]:
    names = list(dict.fromkeys(_named(row.part_of_peak) for row in rows))
    legend = alt.Legend(title=None, columns=2)
    shapes = list(SYSTEM_SHAPES[: len(names)])
    dashes = [list(dash) for dash in SYSTEM_DASHES[: len(names)]]
    return {
        "color": alt.Color("which:N", scale=alt.Scale(domain=names), legend=legend),
        "shape": alt.Shape("which:N", scale=alt.Scale(domain=names, range=shapes), legend=legend),
        "strokeDash": alt.StrokeDash(
            "which:N", scale=alt.Scale(domain=names, range=dashes), legend=None
        ),
    }


def _x(rows: Sequence[RunLength]) -> alt.X:
    lengths = sorted({row.seconds for row in rows})
    return alt.X(
        "x:Q",
        scale=alt.Scale(type="log", domain=[lengths[0] / 1.2, lengths[-1] * 1.2], nice=False),
        axis=alt.Axis(title="Run length (s)", values=lengths, format=",~r", labelOverlap="greedy"),
    )


def _log_y(title: str, found: Sequence[float]) -> alt.Y:
    low, high = min(found) / 1.3, max(found) * 1.3
    ticks = [
        step * 10.0**power
        for power in range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
        for step in (1, 2, 5)
    ]
    return alt.Y(
        "y:Q",
        scale=alt.Scale(type="log", domain=[low, high], nice=False),
        axis=alt.Axis(
            title=title,
            format=",~r",
            labelOverlap="greedy",
            values=[tick for tick in ticks if low <= tick <= high],
        ),
    )


# The charts of an experiment by name: of one search, or of a surface.

_WIDE = ("latency", "response", "response-percentile", "time", "times", "map")


def experiment_charts(
    experiment: Experiment, others: Sequence[Experiment] = ()
) -> dict[str, Drawn]:
    """Return all charts there are, the one to look at first in front; `others` are compared."""
    own = peak_charts(experiment) if experiment.start.design is None else surface_charts(experiment)
    return own | compared_charts([experiment, *others])


def is_wide_chart(name: str) -> bool:
    """Whether a chart wants the whole width of a page."""
    return name in _WIDE


def peak_charts(experiment: Experiment) -> dict[str, Drawn]:
    """Return response against load, load factor against time, and the policies beside it."""
    if not experiment.peaks:
        return {}
    charts: dict[str, Drawn] = {}
    latency = latency_chart(experiment) if experiment.peaks[0].curve else None
    if latency is not None:
        charts["latency"] = latency
    charts |= response_charts(experiment.peaks[0], experiment.start.goal.threshold)
    charts |= run_length_charts(experiment)
    for name, chart in (("fares", fares_chart(experiment)), ("time", time_chart(experiment))):
        if chart is not None:
            charts[name] = chart
    if "latency" not in charts and isinstance(experiment.start.server, StorageServer):
        latency = latency_chart(experiment)
        charts |= {} if latency is None else {"latency": latency}
    return charts


def surface_charts(experiment: Experiment) -> dict[str, Drawn]:
    """Return a map for each plane; lines for that of the ideal configuration."""
    surface = experiment.surface
    if surface is None or not any(cell.rate_per_s for cell in surface.cells):
        return {}
    charts: dict[str, Drawn] = {}
    costs = sample_costs(experiment)
    cut = planes(experiment.start, surface)
    for number, plane in enumerate(cut):
        name = "map" if number == 0 else f"map-{number + 1}"
        if plane.y is not None:
            charts[name] = map_chart(plane, surface, costs, wide=number == 0)
        if number == 0:
            charts["lines"] = lines_chart(plane, surface)
    return charts


def compared_charts(experiments: Sequence[Experiment]) -> dict[str, Drawn]:
    """Return what several experiments say beside each other (SH08 Figs. 7 to 10)."""
    if len(experiments) < 2:
        return {}
    charts: dict[str, Drawn] = {}
    single = [each for each in experiments if each.start.design is None]
    times = compared_time_chart(single)
    if times is not None:
        charts["times"] = times
    charts |= cost_charts(experiments)
    return charts


# An experiment as a page: a peak rate with its curve, or a surface with its maps.

_STATUS = {
    Status.RUNNING: "still running",
    Status.STOPPED: "stopped early: --resume goes on",
    Status.DONE: "",
}


def render_experiment_html(experiment: Experiment, others: Sequence[Experiment] = ()) -> str:
    """Render the page; like the survey's, it holds its own data and asks nothing of the network.

    `others` are compared with it: searches in time, and what each cost (SH08 Figs. 7 to 10).
    """
    charts = experiment_charts(experiment, others)
    start = experiment.start
    more = _peak(experiment) if start.design is None else _surface(experiment)
    return render_page(
        "experiment.html.j2",
        title=experiment_title(experiment),
        start=start,
        status=_STATUS[experiment.status],
        sentences=experiment.sentences,
        wide=[name for name in charts if is_wide_chart(name)],
        narrow=[name for name in charts if not is_wide_chart(name)],
        goal=peak_table.goal_rows(start),
        facts=fact_rows(start.facts),
        compared=peak_table.answer_rows([experiment, *others]) if others else [],
        compared_heads=peak_table.ANSWER_HEADS,
        text=start.text,
        **more,
        **page_parts(charts, _light(experiment), warnings=experiment.findings),
    )


def _light(experiment: Experiment) -> Experiment:
    """Return it without the batches of its trials, which are most of its bytes.

    `leadline show --json` has them.
    """
    replace = msgspec.structs.replace
    peaks = []
    for peak in experiment.peaks:
        trials = map(_bare, peak.trials)
        beside = {
            "curve": tuple(map(_bare, peak.curve)),
            "lengths": tuple(map(_bare, peak.lengths)),
        }
        peaks.append(replace(peak, trials=tuple(trials), **beside))
    return replace(experiment, peaks=tuple(peaks))


def _bare(trial: Trial) -> Trial:
    if trial.measured is None:
        return trial
    bare = msgspec.structs.replace(trial.measured, batches=())
    return msgspec.structs.replace(trial, measured=bare)


def _peak(experiment: Experiment) -> dict[str, Any]:
    peak = peak_of(experiment)
    threshold = experiment.start.goal.threshold
    return {
        "tiles": peak_table.peak_tiles(experiment),
        "load_heads": peak_table.load_heads(threshold),
        "loads": [] if peak is None else peak_table.load_rows(peak, threshold),
        "trial_heads": peak_table.TRIAL_HEADS,
        "trials": peak_table.trial_lines(experiment.peaks[0]) if experiment.peaks else [],
        "curve_heads": peak_table.CURVE_HEADS,
        "curve": _curve(experiment),
        "length_heads": LENGTH_HEADS,
        "lengths": run_length_lines(experiment),
        "fare_heads": peak_table.FARE_HEADS,
        "fares": peak_table.fare_rows(experiment),
        "fares_on": experiment.fares_on,
    }


def _curve(experiment: Experiment) -> list[tuple[str, ...]]:
    shown = peak_table.has_curve(experiment)
    return peak_table.curve_rows(experiment.peaks[0]) if shown else []


def _surface(experiment: Experiment) -> dict[str, Any]:
    surface = experiment.surface
    names = [factor.name for factor in experiment.start.factors]
    heads = [*names, *surface_table.CELL_HEADS]
    if surface is None:
        return {"tiles": [], "cell_heads": heads, "cells": [], "model": ""}
    return {
        "tiles": surface_table.surface_tiles(experiment, surface),
        "cell_heads": heads,
        "cells": surface_table.cell_rows(experiment, surface),
        "model": surface_table.MODELS.get(surface.model, surface.model),
    }


# Experiments as files: the page, the numbers, the charts.

_FORMS = Forms(
    "an experiment",
    ".html, .csv, .svg, .png or .pdf",
    nothing="nothing was measured that can be drawn; give a .csv or .html file",
)
require_format = _FORMS.require


def save_experiment(experiment: Experiment, path: Path, others: Sequence[Experiment] = ()) -> None:
    """Write the experiment; the suffix of `path` decides what.

    .html: the page; `others` are compared with it there. .csv: a line for each configuration of a
    surface, or for each trial of a single search. .pdf: words and charts on A4. .svg or .png: the
    charts, the first of
    response against load, or the map.

    Raises:
        ReportError: another suffix, nothing to draw, or the file cannot be written.

    """
    _FORMS.save(
        path,
        html=lambda: render_experiment_html(experiment, others),
        pdf=lambda: _pdf(experiment, others),
        csv=lambda: _csv([experiment, *others]),
        charts=lambda: experiment_charts(experiment, others),
    )


def _pdf(experiment: Experiment, others: Sequence[Experiment]) -> bytes:
    start = experiment.start
    return paged_pdf(
        Sheet(
            experiment_title(experiment),
            f"Policy {start.policy} · {start.started_at[:10]} · experiment {start.study_id[:8]}",
            experiment.sentences,
            experiment.findings,
            experiment_charts(experiment, others),
            wide=is_wide_chart,
        )
    )


def _csv(experiments: Sequence[Experiment]) -> str:
    """Return a line for each configuration of surfaces, or for each trial of single searches.

    The first experiment decides which; those of the other kind are left out.
    """
    surface = experiments[0].surface is not None
    rows: list[dict[str, Any]] = []
    for each in experiments:
        if surface and each.surface is not None:
            costs = sample_costs(each)
            rows += [_cell_line(each, cell, costs) for cell in each.surface.cells]
        elif not surface and each.surface is None:
            rows += trial_rows(each)
    heads = list(dict.fromkeys(head for row in rows for head in row))
    return to_csv([{head: row.get(head) for head in heads} for row in rows])


def _cell_line(
    experiment: Experiment, cell: SurfaceCell, costs: dict[str, float]
) -> dict[str, Any]:
    rate = cell.rate_per_s
    start = experiment.start
    return {
        "experiment_id": start.study_id,
        "name": start.system,
        "policy": start.policy,
        "design": start.design,
        **{f"factor_{factor.name}": cell.sample.get(factor.name) for factor in start.factors},
        "rate_per_s": None if rate is None else rate.value,
        "rate_low_per_s": None if rate is None else rate.low,
        "rate_high_per_s": None if rate is None else rate.high,
        "confidence": start.goal.confidence,
        "measured": cell.measured,
        "cost_s": costs.get(format_sample(cell.sample)),
    }


def save_study(store: Store, study: Experiment, path: Path, beside: Sequence[str]) -> None:
    """Draw a study to a file, with others below it."""
    save_experiment(study, path, [experiment_of(store, ref) for ref in beside])


def charts_of(study: Experiment) -> dict[str, Any]:
    """Return every chart of its page by name, the one to look at first before the others."""
    return experiment_charts(study)
