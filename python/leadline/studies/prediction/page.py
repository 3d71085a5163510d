"""Predictions as a file: the page, or a chart of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import altair as alt
import msgspec

from leadline.charts.bars import bar, bars
from leadline.charts.drawable import Drawn
from leadline.charts.plain_page import PlainPage, PlainTable, save_plain
from leadline.charts.saving import Forms
from leadline.charts.scale import wants_log
from leadline.models.predictor import iops_of, response_us_of
from leadline.record import Status
from leadline.record.application.prediction import ApplicationPrediction
from leadline.record.wording import format_interval, format_rate_ci, format_workload
from leadline.studies.prediction.text import (
    TERM_NAMES,
    Predicted,
    sentences_of,
    stream_rows,
    term_rows,
)
from leadline.units import format_rate, format_seconds

_FORMS = Forms(
    "predictions",
    ".html, .svg, .png or .pdf",
    nothing="nothing was predicted, so there is nothing to draw",
)
require_prediction_format = _FORMS.require
_HEADS = ("Workload", "Throughput (95% CI)", "Requests/s", "Response (95% CI)", "Level")


def save_predictions(found: Predicted, path: Path) -> None:
    """Write predictions, as `save_plain` does."""
    save_plain(_FORMS, path, lambda: _page(found))


def save_application_prediction(found: ApplicationPrediction, path: Path, document: Any) -> None:
    """Write how long an application would take, as `save_plain` does."""
    save_plain(_FORMS, path, lambda: _application(found, _term_charts(found), document))


def _charts(found: Predicted) -> dict[str, Drawn]:
    """Draw the throughput of each with the interval of its mean."""
    if not found.predictions:
        return {}
    rows = [
        bar(name, each.throughput_mb_s, format_rate_ci(each.throughput_mb_s))
        for name, each in found.items()
    ]
    if len(rows) == 1:
        (_, only), *_ = found.items()
        run = only.run_throughput_mb_s
        rows = [
            rows[0] | {"name": "mean of many runs"},
            bar("one run of it", run, format_rate_ci(run)),
        ]
    rates = [float(row["x"]) for row in rows]
    span = f"{format_rate(min(rates))} to {format_rate(max(rates))}"
    title = (
        "Predicted throughput" if len(found.predictions) == 1 else f"Predicted throughput: {span}"
    )
    log = wants_log(min(rates), max(rates))
    axis = alt.Axis(title=f"Throughput (MB/s{', log scale' if log else ''})", tickCount=5)
    return {"predicted": bars(rows, axis, title, "Lines: 95% intervals.", log=log)}


def _page(found: Predicted) -> PlainPage:
    start = found.survey.start
    regions = {region.index: region.name for region in found.survey.regions}
    several = len(found.predictions) > 1
    rows = [
        (
            f"{name}: {format_workload(each.workload)}"
            if several
            else format_workload(each.workload),
            format_rate_ci(each.throughput_mb_s),
            f"{iops_of(each).value:,.0f}",
            format_interval(response_us_of(each), lambda us: format_seconds(us / 1e6)),
            "none" if each.region is None else regions[each.region],
        )
        for name, each in found.items()
    ]
    return PlainPage(
        brand="prediction",
        title=f"Predicted for {start.system}",
        sub=f"from survey {start.study_id[:8]} of {start.target} · {start.started_at[:10]}",
        status=Status.DONE,
        sentences=_sentences(found),
        warnings=[
            msgspec.structs.replace(one, where=name) if several else one
            for name, each in found.items()
            for one in each.findings
        ],
        charts=_charts(found),
        tables=[
            PlainTable("The workloads", _HEADS, rows),
            PlainTable("Not predicted", ("Workload", "Why"), list(found.refused.items())),
        ],
        document=found.document,
    )


def _sentences(found: Predicted) -> list[str]:
    """Say the one prediction; of several the fastest and the slowest."""
    if not found.predictions:
        return ["None of the workloads was surveyed."]
    ordered = sorted(found.items(), key=lambda item: -item[1].throughput_mb_s.value)
    (best, fast), (worst, slow) = ordered[0], ordered[-1]
    if len(ordered) == 1:
        response = format_interval(response_us_of(fast), lambda us: format_seconds(us / 1e6))
        rate = format_rate_ci(fast.throughput_mb_s, level=True)
        iops = f"{iops_of(fast).value:,.0f} requests/s"
        return [f"{format_workload(fast.workload)}: {rate}, {iops}, a mean response of {response}."]
    model = f"Predicted by the {fast.model} model from {fast.throughput_mb_s.n} readings."
    said = (
        f"Of {len(ordered)} workloads {best} is fastest, at "
        f"{format_rate_ci(fast.throughput_mb_s)}; {worst} is slowest, at "
        f"{format_rate_ci(slow.throughput_mb_s)}."
    )
    return [said, model]


def _term_charts(found: ApplicationPrediction) -> dict[str, Drawn]:
    """Draw the time in I/O of each kind of call that was surveyed."""
    rows = [
        bar(TERM_NAMES[term.name], term.seconds, format_interval(term.seconds, format_seconds))
        for term in found.terms
        if term.seconds is not None and term.seconds.value > 0
    ]
    if not rows:
        return {}
    title = f"Time in I/O: {format_interval(found.io_s, format_seconds)}"
    axis = alt.Axis(title="Seconds in I/O", tickCount=5)
    return {"terms": bars(rows, axis, title, "Lines: 95% intervals.")}


def _application(
    found: ApplicationPrediction, charts: Mapping[str, Drawn], document: Sequence[Any]
) -> PlainPage:
    term_heads, terms = term_rows(found)
    stream_heads, streams = stream_rows(found)
    return PlainPage(
        brand="prediction",
        title=f"{found.application} on {found.system}",
        sub=f"by the {found.model} model, from {found.io_s.n} readings",
        status=Status.DONE,
        sentences=list(sentences_of(found)),
        warnings=found.findings,
        charts=charts,
        tables=[
            PlainTable("What takes the time", term_heads, terms),
            PlainTable("Streams", stream_heads, streams),
        ],
        document=document,
    )
