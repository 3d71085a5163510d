"""An experiment as a page: a peak rate with its curve, or a surface with its maps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from leadline.record import Status
from leadline.record.workbench import Experiment, Trial
from leadline.report.drawing.embedding import page_parts, render_page
from leadline.report.workbench import table as peak_table
from leadline.report.workbench.catalogue import experiment_charts, is_wide_chart
from leadline.report.workbench.run_length_table import LENGTH_HEADS, run_length_lines
from leadline.report.workbench.surface import table as surface_table
from leadline.report.workbench.words import experiment_title, peak_of
from leadline.studies.facts import fact_rows

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
