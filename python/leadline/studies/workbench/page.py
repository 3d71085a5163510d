"""An experiment as a page: a peak rate with its curve, or a surface with its maps."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from leadline.charts.embedding import page_parts, render_page
from leadline.charts.paged import Sheet, paged_pdf
from leadline.charts.saving import Forms
from leadline.inert import to_csv
from leadline.record import Status
from leadline.record.workbench import Experiment, SurfaceCell, Trial
from leadline.store import Store
from leadline.studies.facts import fact_rows
from leadline.studies.workbench import text as peak_table
from leadline.studies.workbench.answer import say_sample
from leadline.studies.workbench.charts import experiment_charts, is_wide_chart
from leadline.studies.workbench.stored import experiment_of
from leadline.studies.workbench.surface import text as surface_table
from leadline.studies.workbench.surface.text import sample_costs
from leadline.studies.workbench.tables import LENGTH_HEADS, run_length_lines, trial_rows
from leadline.studies.workbench.text import experiment_title, peak_of

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
        "cost_s": costs.get(say_sample(cell.sample)),
    }


def save_study(store: Store, study: Experiment, path: Path, beside: Sequence[str]) -> None:
    """Draw a study to a file, with others below it."""
    save_experiment(study, path, [experiment_of(store, ref) for ref in beside])


def charts_of(study: Experiment) -> dict[str, Any]:
    """Return every chart of its page by name, the one to look at first before the others."""
    return experiment_charts(study)
