"""A search for a peak rate as rows: its trials as points and in time, its loads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

from leadline.record.wording import say_count
from leadline.record.workbench import PeakRate, Threshold, Trial, TrialState
from leadline.report.workbench.words import STATES, say_cost, say_load, say_ms
from leadline.studies.workbench.threshold import percentile_ms, threshold_ratio

Measure = Literal["mean", "percentile"]
Row = dict[str, Any]


class Span(NamedTuple):
    """When a trial ran, on the bench's own clock: from when the first one began."""

    trial: Trial
    begin_s: float
    end_s: float


def spans(trials: Sequence[Trial]) -> tuple[Span, ...]:
    """Put the trials of a search after one another, each as long as it cost."""
    found, at_s = [], 0.0
    for trial in trials:
        found.append(Span(trial, at_s, at_s + trial.cost_s))
        at_s += trial.cost_s
    return tuple(found)


def measures(threshold: Threshold) -> tuple[Measure, ...]:
    """Return what the threshold judges: the mean, the percentile, or both."""
    wanted: list[Measure] = []
    if threshold.mean_ms is not None:
        wanted.append("mean")
    if threshold.percentile is not None:
        wanted.append("percentile")
    return tuple(wanted)


def limit_ms(threshold: Threshold, measure: Measure) -> float:
    """Return R_sat, or L_sat."""
    limit = threshold.mean_ms if measure == "mean" else threshold.limit_ms
    if limit is None:
        raise ValueError(f"the threshold does not judge the {measure}")
    return limit


def response_ms(trial: Trial, threshold: Threshold, measure: Measure) -> float | None:
    """Return what one trial found; None when it says nothing of the server's response."""
    measured = trial.measured
    if measured is None or measured.response_ms is None:
        return None
    if trial.state not in (TrialState.DONE, TrialState.ABORTED):
        return None
    found = measured.response_ms.mean
    if measure == "percentile":
        found = percentile_ms(threshold, measured)
    return found if found > 0 else None


def trial_row(span: Span, threshold: Threshold, measure: Measure) -> Row:
    """Return a trial as a point, with the words of its tooltip."""
    trial = span.trial
    found = response_ms(trial, threshold, measure)
    ratio = threshold_ratio(threshold, trial)
    more = "at least " if trial.state is TrialState.ABORTED else ""
    return {
        "x": trial.request.rate_per_s,
        "y": found,
        "begin": span.begin_s,
        "end": span.end_s,
        "over": ratio is not None and ratio > 1,
        "too_much": trial.state is TrialState.SERVER_LOST or (ratio is not None and ratio > 1),
        "state": trial.state.value,
        "number": f"trial {trial.order + 1}",
        "load": f"{say_load(trial.request.rate_per_s)} requests/s",
        "said": STATES[trial.state] if found is None else f"{more}{say_ms(found)}",
        "took": say_cost(trial.cost_s),
        "ended": STATES[trial.state],
    }


def load_points(peak: PeakRate, measure: Measure) -> list[Row]:
    """Return the loads with their mean over trials and its interval, where there is one."""
    rows = []
    for load in peak.loads:
        found = load.response_ms if measure == "mean" else load.percentile_ms
        if found is None or found.value <= 0:
            continue
        known = found.low is not None and found.high is not None and load.trials > 1
        rows.append(
            {
                "x": load.rate_per_s,
                "y": found.value,
                "low": max(found.low, found.value / 10) if known and found.low else found.value,
                "high": found.high if known and found.high else found.value,
                "load": f"{say_load(load.rate_per_s)} requests/s",
                "said": say_ms(found.value)
                + (
                    f" ({say_ms(found.low)} to {say_ms(found.high)})"
                    if known and found.low is not None and found.high is not None
                    else ""
                ),
                "trials": say_count(load.trials, "trial"),
            }
        )
    return rows
