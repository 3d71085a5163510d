"""The search for peak rates: policy and trials for a sample, samples from a design."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import suppress
from typing import Protocol

import msgspec

from leadline.errors import LeadlineError
from leadline.record import Interval, Status, derive_seed
from leadline.record.finding import Finding
from leadline.record.workbench import (
    Experiment,
    ExperimentStart,
    Goal,
    PeakRate,
    PeakVerdict,
    Prior,
    Sample,
    StorageServer,
    Surface,
    Trial,
    TrialOrder,
    is_simulated,
)
from leadline.servers import held_open, release_server, run_trial
from leadline.store import Keeper
from leadline.studies.workbench.answer import KeptExperiment, explain
from leadline.studies.workbench.conversation import Conversation, ReplayRefused
from leadline.studies.workbench.fitted_server import with_fares
from leadline.studies.workbench.policies import open_policy
from leadline.studies.workbench.pool import Pool
from leadline.studies.workbench.run_lengths import even_orders, length_orders
from leadline.studies.workbench.surface.design import open_design

# The search for one sample's peak rate: a policy on one side, whole trials on the other.
#
# It starts nothing itself: the loop below runs the trials that it orders. What it orders
# follows from the start record, the sample, the prior and the trials told; so telling it the stored
# trials again brings it to where it was.


class PeakSearch:
    """One search; ask for the next trial or the answer, and tell how the trial ended."""

    def __init__(self, start: ExperimentStart, sample: Sample, prior: Prior | None = None) -> None:
        """Begin it.

        Raises:
            UnknownPolicy: the start names one that is not there.

        """
        place = start.samples.index(sample)
        self.start, self.sample, self.prior = start, sample, prior
        self._trial_seed = derive_seed(start.seed, 2 * place + 1)
        self._policy = open_policy(
            start.policy, start.goal, derive_seed(start.seed, 2 * place), prior
        )
        if isinstance(self._policy, Conversation):
            self._policy.on_storage = isinstance(start.server, StorageServer)
        self.trials: list[Trial] = []
        self._clock = _Clock(simulated=is_simulated(start.server))

    def ask(self, left_s: float | None = None, overhead_s: float = 0.0) -> TrialOrder | PeakRate:
        """Return the next trial, or the answer.

        Args:
            left_s: time left to the whole experiment; a trial that would end later is not
                ordered, and what is known then is the answer.
            overhead_s: most that a trial of other samples cost beside its window.

        """
        asked = self._policy.ask()
        if isinstance(asked, PeakRate):
            return self._answered(asked)
        if self._too_late(asked.seconds + self._overhead_s(overhead_s), left_s):
            return self._answered(self._reached())
        order = len(self.trials)
        return TrialOrder(
            server=self.start.server,
            sample=self.sample,
            threshold=self.start.goal.threshold,
            request=asked,
            order=order,
            seed=derive_seed(self._trial_seed, order),
        )

    def tell(self, trial: Trial) -> None:
        """Learn of the trial that was asked last, however it ended."""
        self.trials.append(trial)
        self._policy.tell(trial)

    def replay(self, trials: Sequence[Trial]) -> None:
        """Learn of trials that were stored before.

        Raises:
            ReplayRefused: they are not those that this search would have ordered.

        """
        for trial in trials:
            asked = self._policy.ask()
            if isinstance(asked, PeakRate) or asked != trial.request:
                raise ReplayRefused(
                    f"trial {trial.order} of {self.start.study_id} is stored with "
                    f"{trial.request.rate_per_s:g} requests/s for {trial.request.seconds:g} s, but "
                    f"the policy {self.start.policy!r} of this Leadline asks otherwise: it cannot "
                    "go on. What was measured is kept; begin anew without --resume"
                )
            self.tell(trial)
        self._clock.replayed_s = sum(trial.cost_s for trial in trials)

    def _answered(self, peak: PeakRate) -> PeakRate:
        storage = isinstance(self.start.server, StorageServer)
        return within_seen(peak, self.start.goal) if storage else peak

    @property
    def cost_s(self) -> float:
        """Test time of its trials."""
        return sum(trial.cost_s for trial in self.trials)

    def _too_late(self, expected_s: float, left_s: float | None) -> bool:
        if left_s is not None and expected_s > left_s:
            return True
        deadline_s = self.start.goal.deadline_s
        return deadline_s is not None and self._clock.spent_s(self.cost_s) + expected_s > deadline_s

    def _overhead_s(self, elsewhere_s: float) -> float:
        """Most that a trial cost beside its window, so far."""
        return max(map(overhead_s, self.trials), default=elsewhere_s)

    def _reached(self) -> PeakRate:
        """What is known when the time is over: never an accuracy that was not reached."""
        found = self._policy.answer_now()
        if found.verdict is not PeakVerdict.FOUND:
            return found
        return msgspec.structs.replace(found, verdict=PeakVerdict.DEADLINE, limited_by="time")


def within_seen(peak: PeakRate, goal: Goal) -> PeakRate:
    """Return the answer with its rate between the loads that were seen on either side of it.

    A device that is throttled, or a cache that runs full, steps over the target within a few per
    cent of load; a model of queues, whose response rises by and by, then puts the rate beyond the
    step. The interval stays as it is, unless it lies beyond the loads seen: then it is widened to
    hold them, and the verdict is that no one rate explains what was seen.
    """
    rate, low, high = peak.rate_per_s, peak.lower_bound_per_s, peak.upper_bound_per_s
    if rate is None or low is None or high is None or low <= rate.value <= high or low >= high:
        return peak
    seen = msgspec.structs.replace(rate, value=math.sqrt(low * high))
    half = seen.half_width_frac
    if half is None:
        return peak
    if not seen.covers(seen.value):
        return _widened(peak, rate, low, high)
    said = (
        f"The model's rate was {rate.value:.6g} requests/s; told is the middle of the loads that "
        "were seen on either side of the target."
    )
    kept = half <= goal.error_frac or peak.verdict is not PeakVerdict.FOUND
    return msgspec.structs.replace(
        peak,
        rate_per_s=seen,
        accuracy=1 - half,
        verdict=peak.verdict if kept else PeakVerdict.GAVE_UP,
        sentences=(*peak.sentences, said),
    )


def _widened(peak: PeakRate, rate: Interval, low: float, high: float) -> PeakRate:
    """Return the answer with an interval that holds the model's and the loads seen."""
    lows = [low, *([] if rate.low is None else [rate.low])]
    highs = [high, *([] if rate.high is None else [rate.high])]
    wide = Interval(math.sqrt(low * high), min(lows), max(highs), rate.n)
    half = wide.half_width_frac
    said = (
        f"The model's rate was {rate.value:.6g} requests/s, beyond the loads seen: the target was "
        f"met at {low:.6g} and missed at {high:.6g}. The interval holds both."
    )
    return msgspec.structs.replace(
        peak,
        rate_per_s=wide,
        accuracy=None if half is None else 1 - half,
        verdict=PeakVerdict.IRREGULAR,
        sentences=(*peak.sentences, said),
    )


def overhead_s(trial: Trial) -> float:
    """Return what a trial cost beside its window: set-up, warm-up, tear-down."""
    return 0.0 if trial.measured is None else trial.cost_s - trial.measured.seconds


class _Clock:
    """What a search has spent: test time on simulated servers, elapsed time on real ones."""

    def __init__(self, *, simulated: bool) -> None:
        self._simulated = simulated
        self._began_s = time.monotonic()
        self.replayed_s = 0.0

    def spent_s(self, cost_s: float) -> float:
        if self._simulated:
            return cost_s
        return max(cost_s, self.replayed_s + time.monotonic() - self._began_s)


# The loop of an experiment: samples from a design, trials on a pool, every one kept as it ends.
#
# A peak search is an experiment of one sample. Whoever is killed loses at most the trials in
# flight: the stored ones bring policies and design back to where they were.


class TrialWatcher:
    """Is told of trials and peaks; whoever wants to know overrides what it wants to know."""

    def on_trial(self, sample: Sample, trial: Trial) -> None:
        """A trial ended and is kept."""

    def on_curve(self, sample: Sample, trial: Trial) -> None:
        """A trial at an even part of the peak ended and is kept."""

    def on_length(self, sample: Sample, trial: Trial) -> None:
        """A trial of one of several lengths ended and is kept."""

    def on_peak(self, sample: Sample, peak: PeakRate, surface: Surface | None) -> None:
        """A sample's search ended and is kept; a surface as it is known by now."""


class _Choice(Protocol):
    """What of a design the loop uses."""

    def ask(self, count: int = 1, in_flight: Sequence[Sample] = ()) -> tuple[Sample, ...]:
        """Return the next samples, none at the end."""

    def tell(self, sample: Sample, peak: PeakRate) -> None:
        """Learn of a sample's peak."""

    def prior_for(self, sample: Sample) -> Prior | None:
        """Return what is known of a sample's peak."""


class _OneSample:
    """The design of a single peak."""

    def __init__(self, sample: Sample, prior: Prior | None) -> None:
        self._left = [sample]
        self._prior = prior

    def ask(self, count: int = 1, in_flight: Sequence[Sample] = ()) -> tuple[Sample, ...]:
        return tuple(sample for sample in self._left if sample not in in_flight)

    def tell(self, sample: Sample, peak: PeakRate) -> None:
        self._left.remove(sample)

    def prior_for(self, sample: Sample) -> Prior | None:
        return self._prior


def run_experiment(
    start: ExperimentStart,
    store: Keeper,
    pool: Pool,
    *,
    stored: Experiment | None = None,
    prior: Prior | None = None,
    at_once: int | None = None,
    watcher: TrialWatcher | None = None,
    compare: bool = True,
) -> Experiment:
    """Run a peak search or a surface to its end, and keep it.

    Args:
        start: what decides it; kept already.
        store: where samples, trials and answers are kept.
        pool: where trials run.
        stored: what is kept of it, to go on from there.
        prior: what is known of a single peak beforehand.
        at_once: most samples at a time; as many as the pool has machines without one.
        watcher: is told of every trial and peak.
        compare: compare a single peak with the other policies; takes seconds.

    Raises:
        ReplayRefused: the stored trials are not those that would be ordered.
        UnknownPolicy, UnknownDesign, GridError: the start names what is not there.
        TargetRefused: a server or a factor makes no sense here; trials before it are kept.
        PoolLost: no machine is left; the same.

    """
    kept = KeptExperiment(store, start, stored)
    running = _Run(start, kept, pool, prior, watcher or TrialWatcher())
    try:
        with held_open(start.server):
            if stored is not None:
                running.go_on_from(stored)
            running.run(at_once)
            running.run_curve()
            running.run_lengths()
    except BaseException:
        running.cancel()
        kept.end(running.document(Status.STOPPED))
        raise
    found = running.document(Status.DONE)
    _release(start)
    try:
        if compare and start.design is None:
            found = with_fares(found)
    finally:  # whoever does not wait for the comparison has the answer nevertheless
        kept.end(found)
    return found


def _release(start: ExperimentStart) -> None:
    """Remove from this machine what the trials kept for each other; an answer does not hang on it.

    On other machines of a pool it stays: what commands keep for a day, a data set until it is used
    again or removed by hand.
    """
    with suppress(LeadlineError):
        release_server(start.server, start.samples)


class _Run:
    def __init__(
        self,
        start: ExperimentStart,
        kept: KeptExperiment,
        pool: Pool,
        prior: Prior | None,
        watcher: TrialWatcher,
    ) -> None:
        self._start, self._kept, self._pool, self._watcher = start, kept, pool, watcher
        self._began_s = time.monotonic()
        self._elapsed_before_s = 0.0
        self._spent_s = self._overhead_s = 0.0
        self._running: dict[Future[Trial], PeakSearch] = {}
        self._waiting: list[PeakSearch] = []
        self._design = None
        self._choice: _Choice
        if start.design is None:
            self._choice = _OneSample(start.samples[0], prior)
            return
        self._choice = self._design = open_design(
            start.design,
            start.factors,
            start.goal,
            samples=start.samples,
            error_frac=start.surface_error_frac,
            seed=start.seed,
        )

    def go_on_from(self, stored: Experiment) -> None:
        self._elapsed_before_s = max(stored.wall_s, _longest_s(stored))
        for kept in stored.peaks:
            for trial in kept.trials:
                self._count(trial)
            if kept.peak is not None:
                self._choice.tell(kept.sample, kept.peak)
                continue
            search = PeakSearch(self._start, kept.sample, kept.prior)
            search.replay(kept.trials)
            self._waiting.append(search)

    @property
    def elapsed_s(self) -> float:
        """Wall time so far, that of runs before this one included as far as it is known."""
        return self._elapsed_before_s + time.monotonic() - self._began_s

    def run(self, at_once: int | None) -> None:
        while True:
            machines = max(1, self._pool.machines)
            self._begin((at_once or machines) - len(self._running))
            if not self._running:
                return
            done, _ = wait(self._running, return_when=FIRST_COMPLETED)
            for future in done:
                self._take(self._running.pop(future), future.result())

    def run_curve(self) -> None:
        """Run the trials at even parts of a peak that is known now, one after the other."""
        if self._design is not None or not self._kept.peaks:
            return
        own = self._kept.peaks[0]
        for order in even_orders(self._start, own):
            trial = self._pool.submit(run_trial, order).result()
            self._kept.add_curve_trial(own.sample, trial)
            self._watcher.on_curve(own.sample, trial)

    def run_lengths(self) -> None:
        """Run the trials of several lengths at parts of a peak that is known now."""
        if self._design is not None or not self._kept.peaks:
            return
        own = self._kept.peaks[0]
        for order in length_orders(self._start, own):
            trial = self._pool.submit(run_trial, order).result()
            self._kept.add_length_trial(own.sample, trial)
            self._watcher.on_length(own.sample, trial)

    def cancel(self) -> None:
        """Give up what still runs: nobody waits for it."""
        for future in self._running:
            future.cancel()

    def document(self, status: Status) -> Experiment:
        """All that is kept, explained."""
        found = explain(
            Experiment(
                start=self._start,
                status=status,
                peaks=self._kept.peaks,
                surface=self.surface(),
                wall_s=self.elapsed_s,
            )
        )
        lost = self._pool.lost_trials
        if lost == 0:
            return found
        moved = Finding.of("trials_moved", trials=lost)
        return msgspec.structs.replace(found, findings=(*found.findings, moved))

    def surface(self) -> Surface | None:
        return None if self._design is None else self._design.surface()

    def _begin(self, free: int) -> None:
        """Begin as many searches as machines are free; one that needs no trial frees it again."""
        while free > 0 and (search := self._next()) is not None:
            free -= self._step(search)

    def _next(self) -> PeakSearch | None:
        if self._waiting:
            return self._waiting.pop(0)
        left_s = self._left_s
        if left_s is not None and left_s <= 0:
            return None
        in_flight = [search.sample for search in self._running.values()]
        asked = self._choice.ask(1, in_flight)
        if not asked:
            return None
        sample = asked[0]
        prior = self._choice.prior_for(sample)
        search = PeakSearch(self._start, sample, prior)
        if left_s is not None and isinstance(search.ask(left_s, self._overhead_s), PeakRate):
            return None  # not even its first trial would end in time
        self._kept.begin_sample(sample, prior)
        return search

    def _step(self, search: PeakSearch) -> bool:
        """Send a search's next trial to the pool, or keep its answer; True when it still runs."""
        asked = search.ask(self._left_s, self._overhead_s)
        if not isinstance(asked, PeakRate):
            self._running[self._pool.submit(run_trial, asked)] = search
            return True
        self._kept.end_sample(search.sample, asked)
        self._choice.tell(search.sample, asked)
        self._watcher.on_peak(search.sample, asked, self.surface())
        return False

    def _take(self, search: PeakSearch, trial: Trial) -> None:
        self._kept.add_trial(search.sample, trial)
        self._count(trial)
        search.tell(trial)
        self._watcher.on_trial(search.sample, trial)
        self._step(search)

    def _count(self, trial: Trial) -> None:
        self._spent_s += trial.cost_s
        self._overhead_s = max(self._overhead_s, overhead_s(trial))

    @property
    def _left_s(self) -> float | None:
        """Time left to the experiment: test time if simulated, otherwise what has passed."""
        if self._start.deadline_s is None or self._start.design is None:
            return None
        if is_simulated(self._start.server):
            return self._start.deadline_s - self._spent_s
        return self._start.deadline_s - self.elapsed_s


def _longest_s(stored: Experiment) -> float:
    """Least wall time that the stored trials can have taken: the busiest machine's.

    Zero on simulated servers, whose trials take no time.
    """
    busy_s: dict[str | None, float] = {}
    for kept in stored.peaks:
        for trial in kept.trials:
            busy_s[trial.worker] = busy_s.get(trial.worker, 0.0) + trial.cost_s
    simulated = is_simulated(stored.start.server)
    return 0.0 if simulated else max(busy_s.values(), default=0.0)
