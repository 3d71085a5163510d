"""Peak rates in words: rates, responses, durations, and why a search ended."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

from leadline.record import Access, Interval
from leadline.record.wording import format_count, format_interval, format_workload
from leadline.record.workbench import (
    CommandServer,
    Experiment,
    ExperimentStart,
    Fare,
    Load,
    NfsServer,
    PeakRate,
    PeakVerdict,
    SamplePeak,
    ServerSpec,
    SimulatedServer,
    StorageServer,
    Threshold,
    Trial,
    TrialState,
)
from leadline.studies.workbench.answer import format_quantile, format_sample, format_target
from leadline.studies.workbench.loads import percentile_ms, threshold_ratio
from leadline.studies.workbench.run_lengths import latency_curve
from leadline.units import format_ci, format_percent, format_seconds, format_span

VERDICTS: dict[PeakVerdict, str] = {
    PeakVerdict.FOUND: "found",
    PeakVerdict.DEADLINE: "accuracy not reached in time",
    PeakVerdict.GAVE_UP: "accuracy not reached",
    PeakVerdict.NEVER_SATURATED: "never saturated",
    PeakVerdict.ALWAYS_SATURATED: "saturated at every load",
    PeakVerdict.GENERATOR_LIMITED: "the generator gave out first",
    PeakVerdict.SERVER_LOST: "the server was lost",
    PeakVerdict.IRREGULAR: "trials contradict each other",
    PeakVerdict.FAILED: "trials failed",
}

STATES: dict[TrialState, str] = {
    TrialState.DONE: "done",
    TrialState.ABORTED: "given up as saturated",
    TrialState.GENERATOR_LIMITED: "the generator fell short",
    TrialState.SERVER_LOST: "the server was lost",
    TrialState.FAILED: "failed",
}


def format_load(rate_per_s: float) -> str:
    """Write `712` or `7.25`: requests per second, without the unit."""
    digits = 0 if rate_per_s >= 100 else 1 if rate_per_s >= 10 else 2
    return f"{rate_per_s:,.{digits}f}"


def format_peak(rate: Interval | None) -> str:
    """Write `712/s [705, 719]`; a dash when no number can be given."""
    if rate is None:
        return "\N{EN DASH}"
    if rate.low is None or rate.high is None:
        return f"{format_load(rate.value)}/s (no interval)"
    return format_ci(f"{format_load(rate.value)}/s", format_load(rate.low), format_load(rate.high))


def format_half(rate: Interval | None) -> str:
    """Write half an interval as `±1.4%`; nothing when there is none."""
    half = None if rate is None else rate.half_width_frac
    return "" if half is None else f"±{format_percent(half)}"


def format_half_brief(rate: Interval | None) -> str:
    """Write half an interval where there is little room: `±0.5%`, `±12%`."""
    half = None if rate is None else rate.half_width_frac
    if half is None:
        return ""
    return f"±{100 * half:.{1 if half < 0.0995 else 0}f}%"


def format_ms(value_ms: float) -> str:
    """Write `4.97 µs`, `38 ms`, `1.4 s`."""
    if value_ms >= 1000:
        return f"{value_ms / 1000:,.3g} s"
    if 0 < value_ms < 0.9995:
        return f"{value_ms * 1000:.3g} µs"
    return f"{value_ms:.3g} ms"


def format_response(response: Interval | None) -> str:
    """Write `5.03 ms (4.96 to 5.1)` for a table."""
    if response is None:
        return "\N{EN DASH}"
    return format_interval(response, lambda value_ms: format_ms(max(0.0, value_ms)))


def format_cost(cost_s: float) -> str:
    """Write test time: `45 s`, `12 min`, `3.4 h`."""
    if cost_s < 90:
        return f"{cost_s:.0f} s"
    if cost_s < 5400:
        return f"{cost_s / 60:.3g} min"
    return f"{cost_s / 3600:,.3g} h"


def peak_of(experiment: Experiment) -> PeakRate | None:
    """Return the answer of a single search; None while there is none."""
    return experiment.peaks[0].peak if experiment.peaks else None


def is_surface(start: ExperimentStart) -> bool:
    """Whether the experiment maps a surface, not one peak."""
    return start.design is not None


def experiment_title(experiment: Experiment) -> str:
    """Write `Peak rate of atlas` or `Peak rates of atlas over disks and workers`."""
    start = experiment.start
    if not is_surface(start):
        return f"Peak rate of {start.system}"
    names = [factor.name for factor in start.factors]
    over = " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))
    return f"Peak rates of {start.system} over {over}"


# A search for a peak rate as rows: its trials as points and in time, its loads.

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
        "load": f"{format_load(trial.request.rate_per_s)} requests/s",
        "said": STATES[trial.state] if found is None else f"{more}{format_ms(found)}",
        "took": format_cost(trial.cost_s),
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
                "load": f"{format_load(load.rate_per_s)} requests/s",
                "said": format_interval(found, format_ms) if known else format_ms(found.value),
                "trials": format_count(load.trials, "trial"),
            }
        )
    return rows


# A search for a peak rate as plain rows: what it found, its loads, its trials, what was asked.

_SATURATED = {True: "yes", False: "no", None: "inconclusive"}
TRIAL_HEADS = ("#", "Load (1/s)", "For", "Mean", "p50", "p99", "Ended", "Took", "On")


def load_heads(threshold: Threshold) -> tuple[str, ...]:
    """Return the heads of the table of loads: a response for each thing the threshold judges."""
    heads = ["Load (requests/s)", "Trials"]
    if "mean" in measures(threshold):
        heads.append("Mean response")
    if "percentile" in measures(threshold):
        heads.append(f"{format_quantile(threshold.percentile or 0)} within")
    return (*heads, "Saturated")


def load_rows(peak: PeakRate, threshold: Threshold) -> list[tuple[str, ...]]:
    """Return a row for every load, lowest first."""
    return [_load_row(load, threshold) for load in peak.loads]


CURVE_HEADS = ("Load (requests/s)", "Of peak", "Completed/s", "Mean", "p50", "p99", "p99.9")


def curve_rows(found: SamplePeak) -> list[tuple[str, ...]]:
    """Return the load-latency curve, lowest rate first: a row for each rate that was kept."""
    return [
        (
            format_load(point.rate_per_s),
            "\N{EN DASH}" if point.part_of_peak is None else f"{100 * point.part_of_peak:.0f}%",
            format_load(point.completed_per_s),
            *(
                format_ms(ms)
                for ms in (
                    point.response_ms.mean,
                    point.response_ms.p50,
                    point.response_ms.p99,
                    point.response_ms.p99_9,
                )
            ),
        )
        for point in latency_curve(found)
    ]


def has_curve(experiment: Experiment) -> bool:
    """Whether the load-latency curve is told: of storage, and where it was asked for."""
    start = experiment.start
    asked = start.curve_points > 0 or isinstance(start.server, StorageServer)
    return asked and start.design is None and bool(experiment.peaks)


def _load_row(load: Load, threshold: Threshold) -> tuple[str, ...]:
    found = {"mean": load.response_ms, "percentile": load.percentile_ms}
    return (
        format_load(load.rate_per_s),
        str(load.trials),
        *(format_response(found[measure]) for measure in measures(threshold)),
        _SATURATED[load.saturated],
    )


def trial_lines(found: SamplePeak) -> list[tuple[str, ...]]:
    """Return a row for every trial, in the order they ran."""
    disturbed = () if found.peak is None else found.peak.disturbed
    return [
        _trial_line(trial, disturbed=place in disturbed) for place, trial in enumerate(found.trials)
    ]


def _trial_line(trial: Trial, *, disturbed: bool) -> tuple[str, ...]:
    response = None if trial.measured is None else trial.measured.response_ms
    times = (
        ("\N{EN DASH}",) * 3
        if response is None
        else tuple(format_ms(value) for value in (response.mean, response.p50, response.p99))
    )
    ended = STATES[trial.state]
    if disturbed:
        ended += ", disturbed by one stall: not counted"
    if trial.failure:
        ended += f": {trial.failure}"
    return (
        str(trial.order + 1),
        format_load(trial.request.rate_per_s),
        format_seconds(trial.request.seconds),
        *times,
        ended,
        format_cost(trial.cost_s),
        trial.worker or "\N{EN DASH}",
    )


def peak_tiles(experiment: Experiment) -> list[tuple[str, str]]:
    """Return the figures beside the title: number and what it is."""
    found = experiment.peaks[0] if experiment.peaks else None
    peak = None if found is None else found.peak
    if found is None or peak is None:
        trials = 0 if found is None else len(found.trials)
        return [("none yet", "peak rate"), (str(trials), "trials so far")]
    cost_s = sum(trial.cost_s for trial in found.trials)
    goal = experiment.start.goal
    tiles = [(VERDICTS[peak.verdict], "how the search ended")]
    if peak.rate_per_s is not None:
        half = format_half(peak.rate_per_s)
        tiles = [
            (f"{format_load(peak.rate_per_s.value)}/s", "peak rate"),
            (half or "none", f"half its interval; ±{format_percent(goal.error_frac)} was asked"),
            (format_percent(peak.confidence), "confidence"),
        ]
    return [
        *tiles,
        (format_cost(cost_s), f"test time of {format_count(len(found.trials), 'trial')}"),
        (LIMITS[peak.limited_by], "limited it"),
    ]


LIMITS = {
    "server": "the server",
    "generator": "the generator",
    "time": "the time",
    "unknown": "not known",
}


def goal_rows(start: ExperimentStart) -> list[tuple[str, str]]:
    """Say what was asked, and how it was looked for."""
    goal = start.goal
    asked = f"± {format_percent(goal.error_frac)} of the rate at {format_percent(goal.confidence)}"
    rows = [
        ("Target", format_target(goal.threshold)),
        ("Peak-rate region", f"± {format_percent(goal.threshold.width_frac)} of the threshold"),
        ("Asked", asked),
        ("A trial", format_seconds(goal.run_length_s)),
        ("Policy", start.policy),
        ("Server", format_server(start.server)),
        ("Seed", str(start.seed)),
        ("Started", start.started_at.replace("T", " ").replace("Z", " UTC")),
        ("Experiment", start.study_id),
    ]
    if start.design is not None:
        rows.insert(5, ("Design", start.design))
    if start.design is None and start.samples and start.samples[0]:
        rows.insert(0, ("Configuration", format_sample(start.samples[0])))
    deadline_s = start.deadline_s or goal.deadline_s
    if deadline_s is not None:
        rows.insert(4, ("Deadline", format_seconds(deadline_s)))
    return rows


def format_server(server: ServerSpec) -> str:
    """Say in a line what was under load."""
    match server:
        case SimulatedServer():
            said = ", ".join(f"{name} {_short(value)}" for name, value in server.system.items())
            return f"simulated: {said}"
        case NfsServer():
            return f"NFS, workload {server.workload}, in {server.directory}"
        case StorageServer():
            reached = Access.kept_by(server).discipline
            asked = [format_workload(server.workload), *server.workload.beyond()]
            return f"{server.target}, {', '.join(asked)}, {reached}"
        case CommandServer():
            return f"any, loaded by {' '.join(server.load)}"


def _short(value: Any) -> str:
    if isinstance(value, dict):
        return " ".join(str(each) for each in value.values())
    return str(value)


def fare_rows(experiment: Experiment) -> list[tuple[str, ...]]:
    """Return what every policy would have taken and found, cheapest first."""
    return [
        (
            fare.policy + (" (used)" if fare.policy == experiment.start.policy else ""),
            format_took(fare),
            str(fare.trials),
            "\N{EN DASH}" if fare.rate_per_s is None else f"{format_load(fare.rate_per_s)}/s",
            VERDICTS[fare.verdict],
        )
        for fare in sorted(experiment.fares, key=lambda fare: fare.cost_s)
    ]


def format_took(fare: Fare) -> str:
    """Write the test time that a policy would have taken: `52 min (39 to 78 min)`."""
    span = format_span(format_cost(fare.cost_low_s), format_cost(fare.cost_high_s))
    return f"{format_cost(fare.cost_s)} ({span})"


FARE_HEADS = ("Policy", "Test time", "Trials", "Rate", "Ended")


def answer_rows(experiments: list[Experiment]) -> list[tuple[str, ...]]:
    """Return a row for every experiment that is shown beside others."""
    rows: list[tuple[str, ...]] = []
    for each in experiments:
        cost_s = sum(trial.cost_s for peak in each.peaks for trial in peak.trials)
        peak = each.peaks[0].peak if each.peaks and each.start.design is None else None
        found = format_peak(None if peak is None else peak.rate_per_s)
        if each.start.design is not None:
            found = f"{len(each.peaks)} of {len(each.start.samples)} measured"
        rows.append((each.start.system, each.start.policy, found, format_cost(cost_s)))
    return rows


ANSWER_HEADS = ("Experiment", "Policy", "Found", "Test time")
