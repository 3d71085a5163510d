"""The search for one sample's peak rate: a policy on one side, whole trials on the other.

It starts nothing itself: who runs it (`mapping`) runs the trials that it orders. What it orders
follows from the start record, the sample, the prior and the trials told; so telling it the stored
trials again brings it to where it was.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence

import msgspec

from leadline.record import Interval, derive_seed
from leadline.record.workbench import (
    ExperimentStart,
    Goal,
    PeakRate,
    PeakVerdict,
    Prior,
    Sample,
    StorageServer,
    Trial,
    TrialOrder,
    is_simulated,
)
from leadline.studies.workbench.conversation import Conversation
from leadline.studies.workbench.errors import ReplayRefused
from leadline.studies.workbench.policies import open_policy


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
            self._policy.may_step = isinstance(start.server, StorageServer)
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
        """Bench time of its trials."""
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
    """What a search has spent: bench time on simulated servers, elapsed time on real ones."""

    def __init__(self, *, simulated: bool) -> None:
        self._simulated = simulated
        self._began_s = time.monotonic()
        self.replayed_s = 0.0

    def spent_s(self, cost_s: float) -> float:
        if self._simulated:
            return cost_s
        return max(cost_s, self.replayed_s + time.monotonic() - self._began_s)
