"""MLRsearch with response-time goals: the semantics of RFC 9971, which are about packet loss.

A trial is *bad* when its response exceeds the threshold, when it completed less than 98% of what
was due, when it was given up as saturated, or when the server was lost. A load is classified once
the trials still missing to the duration sum cannot change it: a *lower bound* if at most the exceed
ratio of its time can be bad, an *upper bound* if more must be (RFC 9971, Load Classification).
Trials shorter than the target's count against a load only as far as good short ones do not balance
them. The *relevant* upper bound is the lowest load classified as one, the relevant lower bound the
highest below it: an inversion is resolved for the upper bound, as the RFC is conservative there.

The goal is reached coarse to fine, over two preceding targets: four times and twice the width (so
that halving one gives the next), at a ninth and a third of the duration sum. Each begins in the
middle of what the one before has left, then measures its lower end before its upper one; what it
does not find there it looks for outside, in steps that double. The first load is the prior's, if
there is one; the first overload says with its completion rate where to go next (RFC: the forwarding
rate at the highest load).

The answer is the middle of the relevant bounds, without an interval: MLRsearch makes no statement
of confidence. With an exceed ratio of one half it looks for the load at which half of the trials
are bad, where the peak rate is that at which their mean is at the threshold; and its trials are
shorter than `run_length_s`: queues have less time to build up, a cold start weighs more.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum

from leadline.record import Interval
from leadline.record.finding import Finding
from leadline.record.workbench import (
    Goal,
    Load,
    PeakVerdict,
    Prior,
    Trial,
    TrialRequest,
    TrialState,
)
from leadline.studies.workbench.conversation import Conversation, Ending
from leadline.studies.workbench.loads import threshold_ratio

EXCEED_RATIO = 0.5
COMPLETED_MIN = 0.98
_PRECEDING_TARGETS = 2
_INITIAL_FRAC, _FINAL_FRAC = 1 / 9, 1 / 3
"""Of the run length, which is the duration sum: 20 s, 60 s and 180 s."""
_FIRST_STEP = 16.0
"""A search that knows nothing looks for its first bound in factors of this."""
_FAR_WIDTHS = 4
"""Bounds further apart than so many widths are not halved when there is better to do."""
_ABORT_RATIO = 4.0
_CLEARLY_GOOD, _CLEARLY_BAD = 0.6, 2.0
"""Responses over the threshold that noise about a peak does not reach both of."""
_TRIALS_MAX = 400


@dataclass(frozen=True)
class Target:
    """One stage of the search (RFC 9971: a search goal, or one preceding it)."""

    width_frac: float
    """The bounds are to be so close, as a fraction of the upper one."""
    trial_s: float
    """Shorter trials are short trials."""
    sum_s: float
    """Duration sum: enough trials to classify a load."""


def targets(goal: Goal) -> tuple[Target, ...]:
    """Return the targets, coarse to fine.

    The last is half the error that is asked for wide, and rests on as much time at a load as one
    trial of `run_length_s` takes. With the defaults: 5%, trials of 60 s, 180 s in all.
    """
    last_s = goal.run_length_s * _FINAL_FRAC
    first_s = goal.run_length_s * _INITIAL_FRAC
    found = []
    for before in range(_PRECEDING_TARGETS, -1, -1):
        sum_s = goal.run_length_s * (first_s / goal.run_length_s) ** (before / _PRECEDING_TARGETS)
        width_frac = 1 - math.pow(1 - goal.error_frac / 2, 2**before)
        found.append(Target(width_frac, min(last_s, sum_s), sum_s))
    return tuple(found)


class Bound(Enum):
    """What a load is to a target (RFC 9971, Load Classification)."""

    LOWER = "lower"
    UPPER = "upper"
    UNDECIDED = "undecided"


def classify(trials: list[tuple[float, bool]], target: Target) -> Bound:
    """Classify a load by its trials: their intended durations and whether they were bad."""
    good_full = good_short = bad_full = bad_short = 0.0
    for seconds, bad in trials:
        full = seconds >= target.trial_s * (1 - 1e-9)
        bad_full += seconds if full and bad else 0.0
        bad_short += seconds if not full and bad else 0.0
        good_full += seconds if full and not bad else 0.0
        good_short += seconds if not full and not bad else 0.0
    balanced = good_short * EXCEED_RATIO / (1 - EXCEED_RATIO)
    bad_s = bad_full + max(0.0, bad_short - balanced)
    whole_s = max(good_full + bad_s, target.sum_s)
    allowed_s = whole_s * EXCEED_RATIO * (1 + 1e-9)
    if whole_s - good_full <= allowed_s:
        return Bound.LOWER
    return Bound.UPPER if bad_s > allowed_s else Bound.UNDECIDED


class MlrSearch(Conversation):
    """A search for the relevant bounds of one goal."""

    states_interval = False

    def __init__(self, goal: Goal, seed: int, prior: Prior | None) -> None:
        super().__init__("mlrsearch", goal, seed)
        self._targets = targets(goal)
        self._start = self.first_load_per_s(prior)
        self._first_step = _FIRST_STEP if prior is None else 1 + self._targets[0].width_frac
        self._outcomes: dict[float, list[tuple[float, bool]]] = {}

    def _learn(self, trial: Trial) -> None:
        bad = is_bad(self.goal, trial)
        if bad is not None:
            rate = trial.request.rate_per_s
            self._outcomes.setdefault(rate, []).append((trial.request.seconds, bad))

    def _decide(self) -> TrialRequest | Ending:
        if len(self.trials) >= _TRIALS_MAX:
            return Ending(PeakVerdict.GAVE_UP, f"Gave up after {_TRIALS_MAX} trials.")
        before: tuple[float | None, float | None] = (None, None)
        for target in self._targets:
            lower, upper = self._bounds(target)
            if lower is None or upper is None or not _narrow(lower, upper, target):
                return self._toward(target, before)
            before = (lower, upper)
        lower, upper = before
        assert lower is not None and upper is not None  # noqa: S101, PT018
        return self._found(lower, upper)

    def _found(self, lower: float, upper: float) -> Ending:
        if self.loads[upper].kills:
            sentence = f"Not saturated at {lower:.6g} requests/s; lost at {upper:.6g}."
            return Ending(PeakVerdict.SERVER_LOST, sentence)
        sentence = (
            f"Most trials are good at {lower:.6g} requests/s and bad at {upper:.6g}: the relevant "
            "bounds of RFC 9971, which are not an interval of stated confidence."
        )
        return Ending(PeakVerdict.FOUND, sentence)

    def _class(self, rate_per_s: float, target: Target) -> Bound:
        return classify(self._outcomes.get(rate_per_s, []), target)

    def _bounds(self, target: Target) -> tuple[float | None, float | None]:
        """Return the relevant bounds of a target: (lower, upper), where known."""
        classes = {rate: self._class(rate, target) for rate in self._outcomes}
        upper = min((r for r, bound in classes.items() if bound is Bound.UPPER), default=None)
        lower = max(
            (
                rate
                for rate, bound in classes.items()
                if bound is Bound.LOWER and (upper is None or rate < upper)
            ),
            default=None,
        )
        return lower, upper

    def _toward(
        self, target: Target, before: tuple[float | None, float | None]
    ) -> TrialRequest | Ending:
        """Say what brings this target's bounds closer, given those of the one before."""
        lower, upper = self._bounds(target)
        contested = self._contested(target, lower, upper)
        if contested is not None:
            return self._trial(contested, target)
        if lower is not None and upper is not None:
            return self._trial(self._between(lower, upper, target), target)
        rate = self._untried(target, before, lower, upper)
        if rate is None:
            rate = self._outside(target, lower, upper)
        ceiling = self.ceiling_per_s
        if rate >= ceiling:
            if lower is not None and lower >= 0.999 * ceiling:
                return self._at_ceiling()
            rate = ceiling
        floor = self.floor_per_s(self._start)
        if upper is not None and upper <= floor * 1.001:
            return self._at_floor()
        return self._trial(min(max(rate, floor), ceiling), target)

    def _contested(self, target: Target, lower: float | None, upper: float | None) -> float | None:
        """Return a load between the bounds whose full trials went both ways and do not tell yet."""
        for rate, trials in self._outcomes.items():
            inside = (lower is None or rate > lower) and (upper is None or rate < upper)
            full = {bad for seconds, bad in trials if seconds >= target.trial_s * (1 - 1e-9)}
            if inside and len(full) > 1 and not self._told(rate, target):
                return rate
        return None

    def _untried(
        self,
        target: Target,
        before: tuple[float | None, float | None],
        lower: float | None,
        upper: float | None,
    ) -> float | None:
        """Return the middle, the lower or the upper end of what the target before has left."""
        low, high = before
        if low is None or high is None:
            return None
        middle = math.sqrt(low * high)
        wide = not _narrow(low, high, target)
        if lower is None and upper is None and wide:
            return middle
        if lower is None and (upper is None or low < upper) and not self._told(low, target):
            return low
        if upper is None and (lower is None or high > lower) and not self._told(high, target):
            return high
        return None

    def _told(self, rate_per_s: float, target: Target) -> bool:
        return self._class(rate_per_s, target) is not Bound.UNDECIDED

    def _outside(self, target: Target, lower: float | None, upper: float | None) -> float:
        """Look for a bound where none is: the further, the larger the steps."""
        if lower is None and upper is None:
            return self._start
        first = self._first_step if target is self._targets[0] else 1 + target.width_frac
        if upper is None:
            assert lower is not None  # noqa: S101
            return lower * self._step(first, Bound.LOWER, target)
        hint = self._capacity_hint(upper)
        if hint is not None:
            return hint * (1 - target.width_frac)
        return upper / self._step(first, Bound.UPPER, target)

    def _step(self, first: float, bound: Bound, target: Target) -> float:
        """Factor of the next step outwards: squared with each load that was of no use."""
        passed = sum(self._class(rate, target) is bound for rate in self._outcomes)
        return min(math.pow(first, 2 ** min(max(0, passed - 1), 6)), max(first, 16.0))

    def _capacity_hint(self, upper: float) -> float | None:
        """Completion rate of an overload, if it points below the bound and was not followed yet."""
        load = self.loads[upper]
        completed = [
            trial.measured.completed_per_s
            for trial in load.trials
            if trial.measured is not None and trial.measured.completed_per_s > 0
        ]
        if not completed or max(completed) > COMPLETED_MIN * upper:
            return None
        return max(completed)

    def _between(self, lower: float, upper: float, target: Target) -> float:
        """Return the middle of the bounds; from afar, the capacity that an overload has shown."""
        middle = math.sqrt(lower * upper)
        step = 1 - target.width_frac
        hint = self._capacity_hint(upper)
        if hint is None or lower >= hint or lower >= upper * step**_FAR_WIDTHS:
            return middle
        if lower < hint * step**2:
            return hint * step
        return min(max(hint, lower / step), middle)

    def _trial(self, rate_per_s: float, target: Target) -> TrialRequest:
        threshold = self.goal.threshold
        bound_ms = threshold.mean_ms if threshold.mean_ms is not None else threshold.limit_ms
        return TrialRequest(
            rate_per_s=rate_per_s,
            seconds=target.trial_s,
            abort_above_ms=None if bound_ms is None else _ABORT_RATIO * bound_ms,
        )

    def _at_floor(self) -> Ending:
        lowest = min(self._outcomes)
        verdict = PeakVerdict.ALWAYS_SATURATED
        if self.loads[lowest].lost:
            verdict = PeakVerdict.SERVER_LOST
        return Ending(verdict, f"Bad at every load, even at {lowest:.6g} requests/s.")

    def _estimate(self) -> Interval | None:
        lower, upper = self._finest_bounds()
        if lower is None or upper is None:
            return None
        count = len(self._outcomes[lower]) + len(self._outcomes[upper])
        return Interval((lower + upper) / 2, None, None, count)

    def _relevant_bounds(self, rows: tuple[Load, ...]) -> tuple[float | None, float | None]:
        return self._finest_bounds()

    def _finest_bounds(self) -> tuple[float | None, float | None]:
        """Return the relevant bounds of the finest target that has both, or one at least."""
        found = [self._bounds(target) for target in reversed(self._targets)]
        whole = [bounds for bounds in found if None not in bounds]
        some = [bounds for bounds in found if bounds != (None, None)]
        return next(iter(whole + some), (None, None))

    def _findings(self) -> tuple[Finding, ...]:
        last = self._targets[-1]
        classes = {rate: self._class(rate, last) for rate in self._outcomes}
        upper = min((r for r, bound in classes.items() if bound is Bound.UPPER), default=None)
        above = [r for r, b in classes.items() if b is Bound.LOWER and upper and r > upper]
        found = []
        if above and upper is not None:
            bounds = {"upper_per_s": upper, "lower_per_s": max(above)}
            found.append(Finding.of("bounds_irregular", **bounds))
        return (*found, *self._contradictions())

    def _contradictions(self) -> list[Finding]:
        """Name the lowest load clearly bad in a trial, if one there or above was clearly good."""
        loads = [load for load in self.loads.values() if load.ratios]
        bad = [load.rate_per_s for load in loads if max(load.ratios) > _CLEARLY_BAD]
        good = [load.rate_per_s for load in loads if min(load.ratios) < _CLEARLY_GOOD]
        if not bad or not good or max(good) < min(bad):
            return []
        ends = {"bad_per_s": min(bad), "good_per_s": max(good)}
        return [Finding.of("trials_contradict", **ends)]


def _narrow(lower: float, upper: float, target: Target) -> bool:
    return 1 - lower / upper <= target.width_frac * (1 + 1e-9)


def is_bad(goal: Goal, trial: Trial) -> bool | None:
    """Whether a trial speaks against its load; None when it says nothing of the server."""
    if trial.state in (TrialState.ABORTED, TrialState.SERVER_LOST):
        return True
    ratio = threshold_ratio(goal.threshold, trial)
    if ratio is None or trial.measured is None:
        return None
    return ratio > 1 or _fell_short(goal, trial)


def _fell_short(goal: Goal, trial: Trial) -> bool:
    """Whether less than 98% of what was due completed, beyond what may be under way at the end."""
    measured = trial.measured
    if measured is None:
        return False
    threshold = goal.threshold
    under_way_s = max(threshold.mean_ms or 0.0, threshold.limit_ms or 0.0) / 1e3
    completed = measured.completed_per_s * measured.seconds
    under_way = trial.request.rate_per_s * under_way_s
    return completed < COMPLETED_MIN * measured.due - under_way


def mlrsearch(goal: Goal, seed: int, prior: Prior | None = None) -> MlrSearch:
    """Return a search that begins at the prior's rate, if there is one."""
    return MlrSearch(goal, seed, prior)
