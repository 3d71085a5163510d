"""What an experiment found, in sentences, and the stored experiment as it is told."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from leadline.record import Status, point_id
from leadline.record.finding import Finding
from leadline.record.wording import format_count, format_level, join_words
from leadline.record.workbench import (
    EXPERIMENT,
    CurveEnded,
    Experiment,
    ExperimentAnswer,
    ExperimentStart,
    Goal,
    LengthEnded,
    Load,
    PeakKnown,
    PeakRate,
    PeakVerdict,
    Prior,
    Sample,
    SampleBegun,
    SamplePeak,
    StorageServer,
    Threshold,
    Trial,
    TrialEnded,
    TrialState,
)
from leadline.record.workload import Interval
from leadline.store import Keeper, Store, Stored
from leadline.studies.workbench.loads import threshold_ratio
from leadline.studies.workbench.run_lengths import run_length_sentences
from leadline.studies.workbench.surface.models import format_error, surface_error
from leadline.units import format_ci, format_percent, format_seconds

# What an experiment found, in plain sentences: the rate, what limited it, what it cost.

_WAITED_FRAC = 0.1
"""Part of a response that is waiting before the target, from which on it is worth a finding."""
_LATE_MS = 1.0
"""A generator that sends later than this, at its 99th percentile, is worth a finding."""


def explain(experiment: Experiment) -> Experiment:
    """Return the experiment with its sentences and findings; nothing else of it changes."""
    tell = _tell_peak if experiment.start.design is None else _tell_surface
    sentences = list(tell(experiment))
    if experiment.status is Status.STOPPED:
        sentences.insert(0, "It was stopped early; --resume goes on from here.")
    return msgspec.structs.replace(
        experiment, sentences=tuple(sentences), findings=_findings(experiment)
    )


def format_requests(rate_per_s: float) -> str:
    """Write `412 requests/s`, with three digits or all before the point."""
    return f"{_digits(rate_per_s)} requests/s"


def format_peak(rate: Interval, confidence: float) -> str:
    """Write `412 requests/s, 95% CI [395, 430]`."""
    if rate.low is None or rate.high is None:
        return f"{format_requests(rate.value)} (no interval)"
    ends = _digits(rate.low), _digits(rate.high)
    return format_ci(format_requests(rate.value), *ends, level=confidence)


def format_target(threshold: Threshold) -> str:
    """Write what a server keeps up to its peak, to follow `at`."""
    said = []
    if threshold.mean_ms is not None:
        said.append(f"mean response time {_digits(threshold.mean_ms)} ms")
    said += [
        f"{format_quantile(within.percentile)} of responses within {_digits(within.limit_ms)} ms"
        for within in threshold.shares
    ]
    return " and ".join(said)


def format_quantile(share: float) -> str:
    """Write a share as many nines as it has: `99.9%`."""
    return f"{100 * share:.6g}%"


def format_sample(sample: Sample) -> str:
    """Write `threads=8, disks=2`; nothing for a sample without factors."""
    return ", ".join(f"{name}={format_level(name, level)}" for name, level in sample.items())


def _tell_peak(experiment: Experiment) -> list[str]:
    if not experiment.peaks:
        return ["No trial was begun."]
    own = experiment.peaks[0]
    start = experiment.start
    at = format_sample(own.sample)
    name = f"{start.system} ({at})" if at else start.system
    if own.peak is None:
        return [f"{name}: no answer yet, after {_effort(own.trials)}."]
    peak = own.peak
    said = [_verdict(name, start.goal, peak), *peak.sentences, *_beyond(peak)]
    return [*said, f"{_limit(peak)} {_cost(own)}", *_lengths(experiment)]


def _verdict(name: str, goal: Goal, peak: PeakRate) -> str:
    if peak.verdict in (PeakVerdict.FOUND, PeakVerdict.DEADLINE, PeakVerdict.GAVE_UP):
        return _reached(name, goal, peak)
    if peak.verdict is PeakVerdict.IRREGULAR:
        rate = peak.rate_per_s
        about = "" if rate is None else f" About {format_peak(rate, peak.confidence)}."
        return f"{name}: no single peak rate, its trials contradict each other.{about}"
    lowest = min((load.rate_per_s for load in peak.loads), default=0.0)
    bound = f"peak rate {_at_least(peak)}"
    return {
        PeakVerdict.NEVER_SATURATED: f"{name}: not saturated at any load; {bound}.",
        PeakVerdict.ALWAYS_SATURATED: (
            f"{name}: saturated at every load tried, down to {format_requests(lowest)}; "
            f"target: {format_target(goal.threshold)}.{_unloaded(peak)}"
        ),
        PeakVerdict.GENERATOR_LIMITED: (
            f"{name}: not saturated, the load generator is the bottleneck; {bound}."
        ),
        PeakVerdict.SERVER_LOST: f"{name}: died or stopped answering under load; {bound}.",
        PeakVerdict.FAILED: f"{name}: no answer, trials failed repeatedly.",
    }[peak.verdict]


def _reached(name: str, goal: Goal, peak: PeakRate) -> str:
    if peak.rate_per_s is None:
        gave_up = peak.verdict is PeakVerdict.GAVE_UP
        ended = "the policy gave up" if gave_up else "the time ended"
        return f"{name}: no peak rate, {ended} first."
    takes = (
        f"{name}: peak rate {format_peak(peak.rate_per_s, peak.confidence)}, at "
        f"{format_target(goal.threshold)}{_bounds(peak)}"
    )
    if peak.verdict is PeakVerdict.FOUND:
        return f"{takes}."
    gave_up = peak.verdict is PeakVerdict.GAVE_UP
    allowed = "as far as the policy could tell" if gave_up else "as far as the time allowed"
    if peak.accuracy is not None and peak.accuracy >= goal.accuracy:
        return f"{takes}; not confirmed, {allowed}."
    reached = "no accuracy" if peak.accuracy is None else f"accuracy {peak.accuracy:.2g}"
    return f"{takes}; {allowed}, {reached} of {goal.accuracy:.2g}."


def _unloaded(peak: PeakRate) -> str:
    """Say what the responses are with next to no load, which is less than anything asked."""
    load = min(peak.loads, key=lambda load: load.rate_per_s, default=None)
    if load is None:
        return ""
    found = [
        f"{what} is {_digits(of.value)} ms"
        for what, of in (("the mean", load.response_ms), ("the share's time", load.percentile_ms))
        if of is not None
    ]
    return f" There {join_words(found)}: the target is below unloaded latency." if found else ""


def _at_least(peak: PeakRate) -> str:
    if peak.lower_bound_per_s is None:
        return "not known"
    return f"at least {format_requests(peak.lower_bound_per_s)}"


def _bounds(peak: PeakRate) -> str:
    low, high = peak.lower_bound_per_s, peak.upper_bound_per_s
    if low is None or high is None or high <= low:
        return ""
    return f" (met at {_digits(low)}, exceeded at {format_requests(high)})"


def _beyond(peak: PeakRate) -> list[str]:
    """Say why a peak lies above a load found saturated, or below one found unsaturated.

    Both are statements at a confidence: that of a load rests on the trials there, that of the peak
    on all of them, and neither is wrong because the other differs.
    """
    rate = peak.rate_per_s
    if rate is None:
        return []
    told = rate.value
    above = [load for load in peak.loads if load.saturated is False and load.rate_per_s > told]
    below = [load for load in peak.loads if load.saturated is True and load.rate_per_s < told]
    said = []
    if below:
        said.append(_contrary(min(below, key=_rate), "saturated", "above", peak, rate))
    if above:
        said.append(_contrary(max(above, key=_rate), "unsaturated", "below", peak, rate))
    return said


def _contrary(load: Load, found: str, where: str, peak: PeakRate, rate: Interval) -> str:
    at = format_percent(peak.confidence)
    apart = format_percent(abs(1 - load.rate_per_s / rate.value))
    if rate.low is None or rate.high is None:
        held = "the peak is told without an interval"
    elif rate.covers(load.rate_per_s):
        held = f"{format_requests(load.rate_per_s)} lies in the peak's interval, so they agree"
    else:
        held = (
            f"{format_requests(load.rate_per_s)} lies outside of the peak's interval, so they "
            "contradict each other; another --seed says which holds"
        )
    by = "one reading of a response that varies" if load.trials == 1 else f"at {at}"
    return (
        f"The peak lies {apart} {where} a load that was found {found}, by "
        f"{format_count(load.trials, 'trial')} at {format_requests(load.rate_per_s)}, {by}; the "
        f"peak is what all {format_count(peak.trials, 'trial')} say together, at {at}. "
        f"{held[0].upper()}{held[1:]}."
    )


def _rate(load: Load) -> float:
    return load.rate_per_s


def _limit(peak: PeakRate) -> str:
    if peak.verdict is PeakVerdict.GAVE_UP:
        return "Bottleneck: server; another seed or policy may narrow the interval."
    limited = {
        "server": "Bottleneck: server.",
        "generator": "Bottleneck: load generator, not the server.",
        "time": "Limited by time: a longer deadline would narrow the interval.",
        "unknown": "Bottleneck: unknown.",
    }
    return limited[peak.limited_by]


def _cost(own: SamplePeak) -> str:
    goal_s = own.peak.run_length_s if own.peak is not None else 0.0
    return f"Test time: {_effort(own.trials)}; peak rate of {format_seconds(goal_s)} trials."


def _lengths(experiment: Experiment) -> list[str]:
    said = run_length_sentences(experiment)
    return [*said, f"Run-length study: {_effort(experiment.peaks[0].lengths)}."] if said else []


def _effort(trials: tuple[Trial, ...]) -> str:
    cost_s = sum(trial.cost_s for trial in trials)
    return f"{format_seconds(cost_s)}, {format_count(len(trials), 'trial')}"


def _tell_surface(experiment: Experiment) -> list[str]:
    start, surface = experiment.start, experiment.surface
    ended = [own for own in experiment.peaks if own.peak is not None]
    trials = sum(len(own.trials) for own in experiment.peaks)
    cost_s = sum(trial.cost_s for own in experiment.peaks for trial in own.trials)
    measured = f"{len(ended)} of {format_count(len(start.samples), 'sample')} measured"
    effort = f"{format_seconds(cost_s)}, {format_count(trials, 'trial')}"
    said = [f"{start.system}: {measured}; test time: {effort}."]
    if surface is None:
        return said
    asked = start.surface_error_frac
    if surface.error_frac is not None and len(ended) < len(start.samples):
        wanted = "" if asked is None else f"; {format_percent(asked)} was asked"
        said.append(
            f"Others by model {surface.model}: expected mean error "
            f"{format_percent(surface.error_frac)}{wanted}."
        )
    error = surface_error(experiment)
    if error is not None:
        said.append(format_error(error, start.goal.confidence))
    if surface.ideal is not None:
        said.insert(0, _ideal(experiment, surface.ideal))
    said += [f"{sentence}." for sentence in surface.flat]
    if asked is not None and (surface.error_frac is None or surface.error_frac > asked):
        said.append("Requested error not reached; a longer deadline may.")
    return said


def _ideal(experiment: Experiment, ideal: Sample) -> str:
    surface = experiment.surface
    cells = () if surface is None else surface.cells
    cell = next((cell for cell in cells if cell.sample == ideal), None)
    if cell is None or cell.rate_per_s is None:
        return f"Smallest configuration at peak: {format_sample(ideal)}."
    how = "measured" if cell.measured else "by the model"
    rate = format_peak(cell.rate_per_s, experiment.start.goal.confidence)
    return f"Smallest configuration at peak: {format_sample(ideal)}: {rate}, {how}."


def _findings(experiment: Experiment) -> tuple[Finding, ...]:
    trials = [trial for own in experiment.peaks for trial in own.trials]
    found = []
    for state, code in _ENDINGS.items():
        ended = [trial for trial in trials if trial.state is state]
        if ended:
            why = ended[-1].failure or "no reason given"
            found.append(Finding.of(code, trials=len(ended), why=why))
    late = [
        trial.measured.sent_late_ms_p99 or 0.0
        for trial in trials
        if trial.measured is not None and (trial.measured.sent_late_ms_p99 or 0.0) > _LATE_MS
    ]
    if late:
        late_ms = _digits(max(late))
        found.append(Finding.of("trials_sent_late", late_ms=late_ms, trials=len(late)))
    found += [
        msgspec.structs.replace(each, where=format_sample(own.sample))
        for own in experiment.peaks
        if own.peak is not None
        for each in own.peak.findings
    ]
    return (*found, *_waited(experiment, trials), *_without_number(experiment))


_ENDINGS = {
    TrialState.FAILED: "trials_failed",
    TrialState.SERVER_LOST: "trials_server_lost",
    TrialState.GENERATOR_LIMITED: "trials_generator_short",
}
"""What is said of trials that ended so."""


def _waited(experiment: Experiment, trials: list[Trial]) -> list[Finding]:
    """Find a peak that is that of the requests under way: their own queue stood before it."""
    server, threshold = experiment.start.server, experiment.start.goal.threshold
    waited = [
        trial.waited_frac or 0.0
        for trial in trials
        if (threshold_ratio(threshold, trial) or 2.0) < 1
    ]
    if not isinstance(server, StorageServer) or max(waited, default=0.0) <= _WAITED_FRAC:
        return []
    slots = server.workload.process_num * server.workload.queue_depth
    return [Finding.of("trials_waited", waited_frac=max(waited), slots=slots)]


def _without_number(experiment: Experiment) -> list[Finding]:
    if experiment.start.design is None:
        return []
    none = [
        own
        for own in experiment.peaks
        if own.peak is not None and own.peak.verdict is not PeakVerdict.FOUND
    ]
    if not none:
        return []
    listed = [f"{format_sample(own.sample)} ({own.peak.verdict.value})" for own in none if own.peak]
    shown = listed[:5] + ([f"{len(listed) - 5} more"] if len(listed) > 5 else [])
    return [Finding.of("samples_not_found", samples=join_words(shown))]


def _digits(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


# An experiment as it is kept, and as it is told from what is kept of it.

Event = SampleBegun | TrialEnded | PeakKnown | CurveEnded | LengthEnded


class KeptExperiment:
    """Keeps an experiment while it runs, and knows what it has kept."""

    def __init__(self, store: Keeper, start: ExperimentStart, stored: Experiment | None) -> None:
        self._store, self._id = store, start.study_id
        self._peaks = {_group(own.sample): own for own in stored.peaks} if stored else {}

    @property
    def peaks(self) -> tuple[SamplePeak, ...]:
        """Samples in the order in which they began."""
        return tuple(self._peaks.values())

    def begin_sample(self, sample: Sample, prior: Prior | None) -> None:
        """Keep that a sample's search begins, and what was known before it."""
        in_order = dict(sorted(sample.items()))
        self._add(sample, SampleBegun(sample=in_order, prior=prior))

    def add_trial(self, sample: Sample, trial: Trial) -> None:
        """Keep a trial that ended."""
        own = point_id(f"{self._id}:{_group(sample)}", trial.order)
        self._add(sample, TrialEnded(item_id=own, trial=trial))

    def end_sample(self, sample: Sample, peak: PeakRate) -> None:
        """Keep the answer of a sample's search."""
        order = 1 + len(self._peaks[_group(sample)].trials)
        self._add(sample, PeakKnown(order=order, peak=peak))

    def add_curve_trial(self, sample: Sample, trial: Trial) -> None:
        """Keep a trial at an even part of a peak that is known."""
        own = self._peaks[_group(sample)]
        order = 2 + len(own.trials) + len(own.curve)
        item_id = point_id(f"{self._id}:{_group(sample)}", order)
        self._add(sample, CurveEnded(order=order, item_id=item_id, trial=trial))

    def add_length_trial(self, sample: Sample, trial: Trial) -> None:
        """Keep a trial of one of several lengths at a part of a peak that is known."""
        own = self._peaks[_group(sample)]
        order = 2 + len(own.trials) + len(own.curve) + len(own.lengths)
        item_id = point_id(f"{self._id}:{_group(sample)}", order)
        self._add(sample, LengthEnded(order=order, item_id=item_id, trial=trial))

    def end(self, experiment: Experiment) -> None:
        """Keep the answer of all, stopped or done."""
        said = {name: getattr(experiment, name) for name in ExperimentAnswer.__struct_fields__}
        self._store.end(self._id, ExperimentAnswer(**said), experiment.status)

    def _add(self, sample: Sample, event: Event) -> None:
        group = _group(sample)
        self._store.add(self._id, event, group)
        self._peaks[group] = _with_event(self._peaks.get(group), event)


def stored_experiment(store: Store, ref: str) -> Experiment:
    """Return a stored experiment as it is.

    Raises:
        StoreError: no experiment, or several, go by this reference.

    """
    found = store.find(ref, EXPERIMENT)
    return experiment_from(found, store.items(found.start.study_id))


def experiment_of(store: Store, ref: str) -> Experiment:
    """Return a stored experiment, explained as far as it went; raises as `stored_experiment`."""
    found = stored_experiment(store, ref)
    if found.status is Status.RUNNING:
        return explain(msgspec.structs.replace(found, status=Status.STOPPED))
    return found


def experiment_from(
    found: Stored[ExperimentStart, ExperimentAnswer], items: Sequence[Event]
) -> Experiment:
    """Return the experiment that start, items and answer make together."""
    peaks: list[SamplePeak] = []
    for item in items:
        # A beginning opens a group, and groups follow each other.
        before = None if isinstance(item, SampleBegun) else peaks.pop()
        peaks.append(_with_event(before, item))
    answer = msgspec.structs.asdict(found.answer) if found.answer else {}
    return Experiment(start=found.start, status=found.status, peaks=tuple(peaks), **answer)


def _with_event(before: SamplePeak | None, event: Event) -> SamplePeak:
    if isinstance(event, SampleBegun):
        return SamplePeak(sample=event.sample, trials=(), peak=None, prior=event.prior)
    if before is None:
        raise ValueError("a trial or a peak of a sample that was never begun")
    if isinstance(event, TrialEnded):
        return msgspec.structs.replace(before, trials=(*before.trials, event.trial))
    if isinstance(event, CurveEnded):
        return msgspec.structs.replace(before, curve=(*before.curve, event.trial))
    if isinstance(event, LengthEnded):
        return msgspec.structs.replace(before, lengths=(*before.lengths, event.trial))
    return msgspec.structs.replace(before, peak=event.peak)


def _group(sample: Sample) -> str:
    return msgspec.json.encode(sample, order="sorted").decode()
