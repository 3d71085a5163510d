"""An experiment as rows, on a terminal and as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from rich.console import RenderableType
from rich.table import Table

from leadline.charts.terminal import Terminal, on_terminal
from leadline.record import Interval
from leadline.record.wording import format_interval
from leadline.record.workbench import (
    EXPERIMENT,
    Experiment,
    Load,
    PeakRate,
    ResponseMs,
    Sample,
    SamplePeak,
    Trial,
)
from leadline.studies.registry import Kind, first
from leadline.studies.workbench.answer import experiment_of, stored_experiment
from leadline.studies.workbench.run_lengths import (
    NEEDED_MAX,
    CurvePoint,
    RunLength,
    latency_curve,
    run_length_rows,
)
from leadline.studies.workbench.study import Variation, format_value, spent_s
from leadline.studies.workbench.surface.models import surface_error
from leadline.studies.workbench.surface.text import print_surface
from leadline.studies.workbench.text import (
    CURVE_HEADS,
    FARE_HEADS,
    VERDICTS,
    curve_rows,
    fare_rows,
    format_cost,
    format_peak,
    format_response,
    has_curve,
    load_heads,
    load_rows,
    peak_of,
)
from leadline.units import format_percent, format_seconds

# An experiment as flat rows, one for every trial, for other tools.


def trial_rows(experiment: Experiment) -> list[dict[str, Any]]:
    """Return one flat dictionary per trial, all with the same keys in the same order.

    Factors have their own names with `factor_` before. Batches are left out: `leadline show --json`
    has them.
    """
    return [
        _row(experiment, own.sample, trial)
        for own in experiment.peaks
        for trial in (*own.trials, *own.lengths)
    ]


def _row(experiment: Experiment, sample: Sample, trial: Trial) -> dict[str, Any]:
    start, request, measured = experiment.start, trial.request, trial.measured
    response = measured.response_ms if measured is not None else None
    return {
        "experiment_id": start.study_id,
        "name": start.system,
        "policy": start.policy,
        **{f"factor_{factor.name}": sample.get(factor.name) for factor in start.factors},
        "order": trial.order,
        "started_at": trial.started_at,
        "worker": trial.worker,
        # As text: other tools read numbers over 2^53 wrongly.
        "seed": str(trial.seed),
        "purpose": request.purpose,
        "rate_per_s": request.rate_per_s,
        "seconds_asked": request.seconds,
        "state": trial.state.value,
        "failure": trial.failure,
        "cost_s": trial.cost_s,
        "seconds": measured and measured.seconds,
        "warm_up_s": measured and measured.warm_up_s,
        "due": measured and measured.due,
        "offered_per_s": measured and measured.offered_per_s,
        "completed_per_s": measured and measured.completed_per_s,
        "unanswered": measured and measured.unanswered,
        "failed": measured and measured.failed,
        "sent_late_ms_p99": measured and measured.sent_late_ms_p99,
        **{
            f"response_ms_{name}": response and getattr(response, name)
            for name in ResponseMs.__struct_fields__
        },
    }


# Experiments with several goals or policies as one table: what each cost.


@on_terminal
def render_varied(
    terminal: Terminal, variations: Sequence[Variation], found: Sequence[Experiment]
) -> Iterable[RenderableType]:
    """Tell a row for each combination, in the order in which they ran."""
    names = list(variations[0])
    heads = [*(name.capitalize() for name in names), "Test time", "Of least", "Trials", "Found"]
    least = min(map(spent_s, found))
    rows = [
        [
            *(format_value(variation[name]) for name in names),
            format_cost(spent_s(each)),
            f"{spent_s(each) / least:.2f}" if least > 0 else "",
            str(sum(len(own.trials) for own in each.peaks)),
            _found(each),
        ]
        for variation, each in zip(variations, found, strict=True)
    ]
    yield terminal.table(heads, rows)


def _found(experiment: Experiment) -> str:
    if experiment.start.design is not None:
        return f"{len(experiment.peaks)} of {len(experiment.start.samples)} measured"
    peak = experiment.peaks[0].peak if experiment.peaks else None
    if peak is None:
        return "nothing"
    if peak.rate_per_s is None:
        return VERDICTS[peak.verdict]
    return format_peak(peak.rate_per_s)


# A study of run lengths as plain rows.

LENGTH_HEADS = (
    "Of peak",
    "Run length",
    "Trials",
    "Mean response",
    "Spread (sd)",
    "Trials needed",
    "Test time",
    "As the longest",
)
_NONE = "\N{EN DASH}"
_ALIKE = {True: "yes", False: "no", None: _NONE}


def run_length_lines(experiment: Experiment) -> list[tuple[str, ...]]:
    """Return a row for each load and length; none where nobody asked for the study."""
    return [_line(row) for row in run_length_rows(experiment)]


def format_needed(needed: Interval | None) -> str:
    """Write `4 [3, 9]`: how many trials an accuracy takes."""
    if needed is None:
        return f"over {NEEDED_MAX:,}"
    if needed.low is None or needed.high is None:
        return f"{needed.value:.0f}"
    return format_interval(needed, "{:.0f}".format)


def _line(row: RunLength) -> tuple[str, ...]:
    return (
        format_percent(row.part_of_peak),
        format_seconds(row.seconds),
        str(row.trials),
        format_response(row.response_ms),
        _NONE if row.sd_frac is None else format_interval(row.sd_frac, format_percent),
        _NONE if row.sd_frac is None else format_needed(row.needed),
        _NONE if row.cost_s is None else format_interval(row.cost_s, format_cost),
        _ALIKE[row.reads_as_longest],
    )


# A search for a peak rate on a terminal: its sentences, its loads, how the policies would fare.

_BAR = 12
"""Columns of the bar that stands for the peak's load."""


@on_terminal
def render_experiment(terminal: Terminal, experiment: Experiment) -> Iterable[RenderableType]:
    """Tell a search, or a surface."""
    tell = _tell_peak if experiment.start.design is None else print_surface
    return tell(terminal, experiment)


def _tell_peak(terminal: Terminal, experiment: Experiment) -> Iterator[RenderableType]:
    """Tell the sentences, the loads and the warnings; all of it: the policies."""
    yield from terminal.sentences(experiment.sentences)
    peak = peak_of(experiment)
    if peak is not None and peak.loads:
        yield _loads(terminal, experiment, peak)
    if has_curve(experiment) and (rows := curve_rows(experiment.peaks[0])):
        even = bool(experiment.peaks[0].curve)
        yield terminal.text(
            "The load-latency curve, at even parts of the peak:"
            if even
            else "The load-latency curve, from the trials that kept their rate:"
        )
        yield terminal.table(["Offered/s", *CURVE_HEADS[1:]], rows)
    if lengths := run_length_lines(experiment):
        yield terminal.text("How long a trial should be, by independent trials of each length:")
        yield terminal.table(LENGTH_HEADS, lengths)
    if terminal.verbose and experiment.fares:
        yield terminal.text(f"Policy comparison, on {experiment.fares_on}:")
        yield terminal.table(FARE_HEADS, fare_rows(experiment))
    elif terminal.verbose and experiment.fares_on:
        yield terminal.text(f"Policy comparison: {experiment.fares_on}")
    yield from terminal.warnings(experiment.findings)


def _loads(terminal: Terminal, experiment: Experiment, peak: PeakRate) -> Table:
    """Return the loads, each with a bar as long as its load; the peak's is `_BAR` columns."""
    threshold = experiment.start.goal.threshold
    unit = peak.rate_per_s.value if peak.rate_per_s is not None else peak.loads[-1].rate_per_s
    sign = "#" if terminal.plain else "\N{BOX DRAWINGS HEAVY HORIZONTAL}"
    rows = [
        [*row, sign * min(round(_BAR * load.rate_per_s / unit), 2 * _BAR)]
        for load, row in zip(peak.loads, load_rows(peak, threshold), strict=True)
    ]
    return terminal.table(["Offered/s", *load_heads(threshold)[1:], ""], rows)


# An experiment as JSON.


def experiment_document(experiment: Experiment) -> dict[str, Any]:
    """The keys DESIGN.md promises for `peak --json`, and more beside them.

    Of a surface those of a peak are in `samples`, one entry for each sample that was begun.
    """
    start = experiment.start
    document = {
        "experiment": start.study_id,
        "name": start.system,
        "status": experiment.status,
        "policy": start.policy,
        "seed": start.seed,
        "server": start.server,
        "goal": start.goal,
        "factors": start.factors,
        "deadline_s": start.deadline_s,
        "wall_s": experiment.wall_s,
        "facts": start.facts,
        "sentences": experiment.sentences,
        "findings": [each.document() for each in experiment.findings],
    }
    if start.design is None:
        own = experiment.peaks[0] if experiment.peaks else None
        lengths = {"run_lengths": run_length_rows(experiment)} if start.run_lengths else {}
        peak = _sample(own) if own is not None else {"sample": start.samples[0]} | _peak(None)
        fares = {"policies": experiment.fares, "policies_on": experiment.fares_on}
        return (
            {"experiment": start.study_id, "name": start.system} | peak | document | lengths | fares
        )
    return document | {
        "design": start.design,
        "error_asked_frac": start.surface_error_frac,
        "surface": experiment.surface,
        "error": surface_error(experiment),
        "cost_s": sum(trial.cost_s for own in experiment.peaks for trial in own.trials),
        "samples": [_sample(own) for own in experiment.peaks],
    }


def _sample(own: SamplePeak) -> dict[str, Any]:
    known = {"cost_s": sum(trial.cost_s for trial in own.trials), "trials": len(own.trials)}
    return (
        {"sample": own.sample}
        | _peak(own.peak)
        | known
        | {"prior": own.prior, "trial_records": own.trials}
        | {"curve": [_curve_point(point) for point in latency_curve(own)]}
        | {"curve_records": own.curve}
        | ({"length_records": own.lengths} if own.lengths else {})
    )


def _curve_point(point: CurvePoint) -> dict[str, Any]:
    """Return response times at a rate; the curve is of the even points, or of the search."""
    return {
        "rate": point.rate_per_s,
        "part_of_peak": point.part_of_peak,
        "trials": point.trials,
        "completed_per_s": point.completed_per_s,
        "response_ms": point.response_ms,
    }


def _peak(peak: PeakRate | None) -> dict[str, Any]:
    if peak is None:
        names = ("peak_rate", "accuracy", "confidence", "limited_by", "verdict")
        return dict.fromkeys(names) | {"cost_s": 0.0, "trials": 0, "loads": []}
    return {
        "peak_rate": peak.rate_per_s,
        "accuracy": peak.accuracy,
        "confidence": peak.confidence,
        "cost_s": peak.cost_s,
        "trials": peak.trials,
        "loads": [_load(load) for load in peak.loads],
        "limited_by": peak.limited_by,
        "verdict": peak.verdict,
        "lower_bound_per_s": peak.lower_bound_per_s,
        "upper_bound_per_s": peak.upper_bound_per_s,
        "run_length_s": peak.run_length_s,
        "peak_findings": [each.document() for each in peak.findings],
    }


def _load(load: Load) -> dict[str, Any]:
    return {
        "rate": load.rate_per_s,
        "trials": load.trials,
        "response_ms": load.response_ms,
        "percentile_ms": load.percentile_ms,
        "saturated": load.saturated,
    }


KIND = Kind(
    EXPERIMENT,
    load=experiment_of,
    document=experiment_document,
    render=render_experiment,
    rows=lambda store, study_id: trial_rows(stored_experiment(store, study_id)),
    page="leadline.studies.workbench.page",
    ending=".html",
    headline=lambda experiment: first(experiment.sentences),
)
