"""A search for a peak rate as plain rows: what it found, its loads, its trials, what was asked."""

from __future__ import annotations

from typing import Any

from leadline.record import Access
from leadline.record.wording import say_count, say_workload
from leadline.record.workbench import (
    CommandServer,
    Experiment,
    ExperimentStart,
    Fare,
    Load,
    NfsServer,
    PeakRate,
    SamplePeak,
    ServerSpec,
    SimulatedServer,
    StorageServer,
    Threshold,
    Trial,
)
from leadline.report.workbench.rows import measures
from leadline.report.workbench.words import (
    STATES,
    VERDICTS,
    say_cost,
    say_half,
    say_load,
    say_ms,
    say_peak,
    say_response,
)
from leadline.studies.workbench.answer import say_quantile, say_sample, say_threshold
from leadline.studies.workbench.latency_curve import latency_curve
from leadline.units import format_seconds, say_percent, say_span

_SATURATED = {True: "yes", False: "no", None: "cannot tell"}
TRIAL_HEADS = ("#", "Load (1/s)", "For", "Mean", "p50", "p99", "Ended", "Took", "On")


def load_heads(threshold: Threshold) -> tuple[str, ...]:
    """Return the heads of the table of loads: a response for each thing the threshold judges."""
    heads = ["Load (requests/s)", "Trials"]
    if "mean" in measures(threshold):
        heads.append("Mean response")
    if "percentile" in measures(threshold):
        heads.append(f"{say_quantile(threshold.percentile or 0)} within")
    return (*heads, "Saturated")


def load_rows(peak: PeakRate, threshold: Threshold) -> list[tuple[str, ...]]:
    """Return a row for every load, lowest first."""
    return [_load_row(load, threshold) for load in peak.loads]


CURVE_HEADS = ("Load (requests/s)", "Of peak", "Done/s", "Mean", "p50", "p99", "p99.9")


def curve_rows(found: SamplePeak) -> list[tuple[str, ...]]:
    """Return the load-latency curve, lowest rate first: a row for each rate that was kept."""
    return [
        (
            say_load(point.rate_per_s),
            "\N{EN DASH}" if point.part_of_peak is None else f"{100 * point.part_of_peak:.0f} %",
            say_load(point.completed_per_s),
            *(
                say_ms(ms)
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
        say_load(load.rate_per_s),
        str(load.trials),
        *(say_response(found[measure]) for measure in measures(threshold)),
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
        else tuple(say_ms(value) for value in (response.mean, response.p50, response.p99))
    )
    ended = STATES[trial.state]
    if disturbed:
        ended += ", disturbed by one stall: not counted"
    if trial.failure:
        ended += f": {trial.failure}"
    return (
        str(trial.order + 1),
        say_load(trial.request.rate_per_s),
        format_seconds(trial.request.seconds),
        *times,
        ended,
        say_cost(trial.cost_s),
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
        half = say_half(peak.rate_per_s)
        tiles = [
            (f"{say_load(peak.rate_per_s.value)}/s", "peak rate"),
            (half or "none", f"half its interval; ±{say_percent(goal.error_frac)} was asked"),
            (say_percent(peak.confidence), "confidence"),
        ]
    return [
        *tiles,
        (say_cost(cost_s), f"bench time of {say_count(len(found.trials), 'trial')}"),
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
    asked = f"± {say_percent(goal.error_frac)} of the rate at {say_percent(goal.confidence)}"
    rows = [
        ("Saturated when", say_threshold(goal.threshold)),
        ("Peak-rate region", f"± {say_percent(goal.threshold.width_frac)} of the threshold"),
        ("Asked", asked),
        ("A trial", format_seconds(goal.run_length_s)),
        ("Policy", start.policy),
        ("Server", say_server(start.server)),
        ("Seed", str(start.seed)),
        ("Started", start.started_at.replace("T", " ").replace("Z", " UTC")),
        ("Experiment", start.study_id),
    ]
    if start.design is not None:
        rows.insert(5, ("Design", start.design))
    if start.design is None and start.samples and start.samples[0]:
        rows.insert(0, ("Configuration", say_sample(start.samples[0])))
    deadline_s = start.deadline_s or goal.deadline_s
    if deadline_s is not None:
        rows.insert(4, ("Deadline", format_seconds(deadline_s)))
    return rows


def say_server(server: ServerSpec) -> str:
    """Say in a line what was under load."""
    match server:
        case SimulatedServer():
            said = ", ".join(f"{name} {_short(value)}" for name, value in server.system.items())
            return f"simulated: {said}"
        case NfsServer():
            return f"NFS, workload {server.workload}, in {server.directory}"
        case StorageServer():
            reached = Access.kept_by(server).discipline
            asked = [say_workload(server.workload), *server.workload.beyond()]
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
            say_took(fare),
            str(fare.trials),
            "\N{EN DASH}" if fare.rate_per_s is None else f"{say_load(fare.rate_per_s)}/s",
            VERDICTS[fare.verdict],
        )
        for fare in sorted(experiment.fares, key=lambda fare: fare.cost_s)
    ]


def say_took(fare: Fare) -> str:
    """Write the bench time that a policy would have taken: `52 min (39 to 78 min)`."""
    span = say_span(say_cost(fare.cost_low_s), say_cost(fare.cost_high_s))
    return f"{say_cost(fare.cost_s)} ({span})"


FARE_HEADS = ("Policy", "Bench time", "Trials", "Rate", "Ended")


def answer_rows(experiments: list[Experiment]) -> list[tuple[str, ...]]:
    """Return a row for every experiment that is shown beside others."""
    rows: list[tuple[str, ...]] = []
    for each in experiments:
        cost_s = sum(trial.cost_s for peak in each.peaks for trial in peak.trials)
        peak = each.peaks[0].peak if each.peaks and each.start.design is None else None
        found = say_peak(None if peak is None else peak.rate_per_s)
        if each.start.design is not None:
            found = f"{len(each.peaks)} of {len(each.start.samples)} measured"
        rows.append((each.start.system, each.start.policy, found, say_cost(cost_s)))
    return rows


ANSWER_HEADS = ("Experiment", "Policy", "Found", "Bench time")
