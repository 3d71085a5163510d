"""An experiment as it is kept, and as it is told from what is kept of it."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from leadline.record import Status, point_id
from leadline.record.workbench import (
    EXPERIMENT,
    CurveEnded,
    Experiment,
    ExperimentAnswer,
    ExperimentStart,
    LengthEnded,
    PeakKnown,
    PeakRate,
    Prior,
    Sample,
    SampleBegun,
    SamplePeak,
    Trial,
    TrialEnded,
)
from leadline.store import Keeper, Store, Stored
from leadline.studies.workbench.answer import explain

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
