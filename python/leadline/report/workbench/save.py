"""Experiments as files: the page, the numbers, the charts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from leadline.inert import to_csv
from leadline.record.workbench import Experiment, SurfaceCell
from leadline.report.drawing.paged import Sheet, paged_pdf
from leadline.report.drawing.saving import Forms
from leadline.report.workbench.catalogue import experiment_charts, is_wide_chart
from leadline.report.workbench.page import render_experiment_html
from leadline.report.workbench.surface.table import sample_costs
from leadline.report.workbench.words import experiment_title
from leadline.studies.workbench.answer import say_sample
from leadline.studies.workbench.trial_rows import trial_rows

_FORMS = Forms(
    "an experiment",
    ".html, .csv, .svg, .png or .pdf",
    nothing="nothing was measured that can be drawn; give a .csv or .html file",
)
require_experiment_format = _FORMS.require


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
