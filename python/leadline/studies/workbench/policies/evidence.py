"""What the trials of a search say of the peak: beliefs, steps, crossings, stalls, contradictions.

A trial far below the peak that stalls decide (`stalled_trial`) is tried again at the same rate; if
the response is far below the threshold then, or stalls decide again, neither is the load's doing.
Where stalls come back they are the server's own: the answer has the rate with them and without.

A device whose response is at its floor until it steps over the threshold has no queue that the
posterior could know; nor has one whose percentiles rise by a factor while the load rises by a fifth
(`crossing`).
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import stdtr

from leadline.record import Interval
from leadline.record.finding import Finding
from leadline.record.workbench import Goal, Load, Prior, Threshold, Trial, TrialState
from leadline.studies.workbench.belief import Posterior
from leadline.studies.workbench.conversation import Conversation
from leadline.studies.workbench.loads import (
    CLEAR,
    StalledTrial,
    contradiction,
    measured_ratio,
    mode_findings,
    stalled_trial,
    stalls_of,
    stood_still,
    threshold_ratio,
)
from leadline.studies.workbench.reading import Aim, Floats, aims, read

STOP_FRAC = 0.85
"""Part of the error asked for at which an early posterior's half width is enough: it is the less
certain of its own width the fewer trials it rests on."""
_PATIENT_TRIALS = 8
TRIALS_MIN = 5
"""A second mode that half of the trials are in shows in so many."""
CONTRADICTED_MIN = 12
"""Where trials contradict each other and the posterior knows of one mode only, it is surer of its
interval than it should be."""
_OVERLOAD_RATIO = 2.0
_WIDER = 2.5
"""The interval of a search that ends unsettled is so many times the posterior's, which is surer of
itself than it should be where it does not explain the trials (chosen on 300 servers that stall)."""
ALONE_MIN, ALONE = 0.1, 0.5
"""Probability that stalls alone break the target: above the first, loads go where the peak would be
without them; above the second, no rate is the answer."""
_ASIDE_MAX = 6
"""Beyond, a trial counts as it is: else a server that stalls in each would never be answered."""
_FLAT, _STEEP = 1.5, 5.0
_STEP_LOADS_MIN = 6
"""Of so many loads, most near the peak, a queue's response would have risen at some."""
_FAR_BELOW = 0.7
"""Part of the peak above which a queue that builds up once is the load's doing, not a stall's."""


class Evidence(Conversation):
    """A conversation that learns from its trials; which load comes next is its subclass's.

    Attributes:
        loads: the trials that count, by their load.
        aside: places of trials that stalls decided.

    """

    def __init__(self, goal: Goal, seed: int, prior: Prior | None) -> None:
        """Begin; a prior's rate is where the first load goes."""
        super().__init__("curve", goal, seed)
        self._beliefs: list[Belief] = [
            (aim, Posterior(aim, goal.run_length_s, seed, prior)) for aim in aims(goal.threshold)
        ]
        self._start = goal.rate_start_per_s if prior is None else 1.2 * prior.rate_per_s
        self._limit_ms = 1e3 * max(aim.limit_s for aim in aims(goal.threshold))
        self._stalled_trials: list[StalledTrial] = []
        self._stalls_seen = False
        self._crossing: Interval | None = None

    def tell(self, trial: Trial) -> None:
        """Learn of the trial that was asked last, however it ended."""
        super().tell(trial)
        self._crossing = self._crossing_found()

    def _sets_aside(self, trial: Trial) -> bool:
        found = stalled_trial(trial, self.goal.threshold)
        if found is None or len(self._stalled_trials) == _ASIDE_MAX:
            return False
        if self._overloaded and not stood_still(trial):
            peak = math.exp(self._quantiles(self._unstalled_log_peaks())[1])
            if trial.request.rate_per_s > _FAR_BELOW * peak:
                return False
        self._stalled_trials.append(found)
        return True

    def _retries(self, place: int) -> bool:
        """Whether the trial of this place repeats the one before, which was set aside."""
        first, rate = place - 1, self.trials[place].request.rate_per_s
        repeated = first in self.aside and self.trials[first].request.rate_per_s == rate
        return repeated and not self._retries(first)

    def _learn(self, trial: Trial) -> None:
        place, threshold = len(self.trials) - 1, self.goal.threshold
        ratio, again = threshold_ratio(threshold, trial), place in self.aside
        if self._retries(place):
            first = self.trials[place - 1]
            calm = again or ratio is None or ratio <= CLEAR
            if not calm:
                self._stalled_trials.pop()
                self.aside.pop()
                self.loads[first.request.rate_per_s].add(first, threshold)
            if ratio is not None:
                self._take_in(first, calm=calm)
        elif again:
            return  # its retry tells
        self._take_in(trial)

    def _take_in(self, trial: Trial, *, calm: bool = True) -> None:
        if trial.state not in (TrialState.DONE, TrialState.ABORTED):
            return
        stalls = stalls_of(trial, self.goal.threshold) if calm else None
        self._stalls_seen |= stalls is not None and len(stalls.excess_s) > 0
        for aim, posterior in self._beliefs:
            reading = read(trial, aim, stalls)
            if reading is not None:
                posterior.learn(reading)

    def _without_stalls(self, rate_per_s: float) -> list[float]:
        """Return the threshold ratios at a load, but of trials that stalls took over it."""
        threshold = self.goal.threshold
        return [
            ratio
            for trial in self.loads[rate_per_s].trials
            if (ratio := threshold_ratio(threshold, trial)) is not None
            and (ratio <= 1 or not (stood_still(trial) or stalled_trial(trial, threshold)))
        ]

    @property
    def _unstalled_ratios(self) -> dict[float, float]:
        """Mean threshold ratio at each load that trials without stalls tell of."""
        told = {rate: self._without_stalls(rate) for rate in self.loads}
        return {rate: sum(each) / len(each) for rate, each in told.items() if each}

    @property
    def _clear_per_s(self) -> float:
        """Highest load that was seen far below the threshold; 0 if none was."""
        ratios = self._unstalled_ratios.items()
        return max((rate for rate, ratio in ratios if ratio <= CLEAR), default=0.0)

    def _is_clear(self, trial: Trial) -> bool:
        ratio = threshold_ratio(self.goal.threshold, trial)
        return ratio is not None and ratio <= CLEAR

    def _crossing_found(self) -> Interval | None:
        """Return the peak of a device from trials beside it alone; None while they do not tell."""
        if not self.on_storage or self._stalls_alone > ALONE:
            return None
        trials = [trial for trial in self._counted() if not stood_still(trial)]
        points = [point(self.goal.threshold, trial, self.run_length_s) for trial in trials]
        return crossing([each for each in points if each is not None], self.goal.confidence)

    @property
    def _crossed(self) -> bool:
        """Whether trials beside the threshold tell the peak as well as was asked."""
        beside = self._crossing
        half = None if beside is None else beside.half_width_frac
        return half is not None and half <= self.goal.error_frac

    @property
    def _told(self) -> int:
        """How many trials say something of their load."""
        return sum(len(load.ratios) for load in self.loads.values())

    @property
    def _half(self) -> float:
        """Half the width of the posterior's interval, as a fraction."""
        alone = self._stalls_alone > ALONE
        peaks = self._unstalled_log_peaks() if alone else self._log_peaks()
        low, middle, high = self._quantiles(peaks)
        return (math.exp(high - middle) - math.exp(low - middle)) / 2

    @property
    def _puzzled(self) -> bool:
        """Whether trials contradict each other, and no second mode explains it."""
        return self._contradiction is not None and not self._knows_two_modes

    @property
    def _settled(self) -> bool:
        """Whether the posterior is as narrow as asked, of enough trials.

        Of a device it never is: where no queue is like it, five trials may agree on a wrong one.
        """
        enough = STOP_FRAC if self._told < _PATIENT_TRIALS else 1.0
        least = CONTRADICTED_MIN if self._puzzled else TRIALS_MIN
        narrow = self._half <= enough * self.goal.error_frac and self._told >= least
        return narrow and not self.on_storage

    @property
    def _step(self) -> tuple[float, float] | None:
        """Loads on either side of a step: far below the threshold, and the next one, over it.

        There is one where the posterior's whole interval (of a device, its median) lies below a
        load seen clear; or, of a device, where all responses are at their floor or many times over
        the threshold although several loads were tried near the peak. (A server of many workers may
        look so, while what is expected of it hangs on rare trials that collapse: the posterior
        counts those.)
        """
        ratios, clear = self._unstalled_ratios, self._clear_per_s
        above = [rate for rate, ratio in ratios.items() if ratio > 1 and rate > clear]
        if not clear or not above or any(r > 1 and at < clear for at, r in ratios.items()):
            return None
        floor = _FLAT * min(ratios.values())
        all_or_none = all(ratio <= floor or ratio > _STEEP for ratio in ratios.values())
        doubted = clear > math.exp(self._quantiles(self._log_peaks())[1 if self.on_storage else 2])
        doubted &= not self._knows_two_modes and self._contradiction is None
        many = self.on_storage and len(ratios) >= _STEP_LOADS_MIN
        if doubted or (many and all_or_none):
            return clear, min(above)
        return None

    @property
    def _overloaded(self) -> bool:
        """Whether some trial asked for clearly more than the server does."""
        return any(self._overloads(trial) for trial in self._counted())

    def _overloads(self, trial: Trial) -> bool:
        ratio = threshold_ratio(self.goal.threshold, trial)
        return ratio is not None and ratio > _OVERLOAD_RATIO

    def _held(self, rate_per_s: float) -> bool:
        """Whether the server was seen below the threshold at this load."""
        load = self.loads.get(rate_per_s)
        ratio = None if load is None else load.ratio
        return ratio is not None and ratio < 1

    @property
    def _highest_held(self) -> float:
        return max((rate for rate in self.loads if self._held(rate)), default=0.0)

    @property
    def _kills_at(self) -> float:
        """Lowest load that the server does not survive."""
        return min((rate for rate, load in self.loads.items() if load.kills), default=math.inf)

    def _log_peaks(self) -> Floats:
        """Posterior of the peak's logarithm, sorted: of two thresholds the lower, quantile-wise."""
        return _lower([belief.log_peak for _, belief in self._beliefs])

    def _unstalled_log_peaks(self) -> Floats:
        """Return the same, did the server never stand still."""
        return _lower([belief.log_peak_unstalled for _, belief in self._beliefs])

    @property
    def _stalls_alone(self) -> float:
        """Probability that no rate meets the target, for stalls that come at any and were seen."""
        if not (self._stalls_seen or self._stalled_trials):
            return 0.0
        return max(belief.stalls_alone for _, belief in self._beliefs)

    def _quantiles(self, peaks: Floats) -> tuple[float, float, float]:
        tail = (1 - self.goal.confidence) / 2
        low, middle, high = np.quantile(peaks, [tail, 0.5, 1 - tail])
        return float(low), float(middle), float(high)

    def _estimate(self) -> Interval | None:
        told = self._told
        if told == 0:
            return None
        if (beside := self._crossing) is not None:
            return beside
        alone = self._stalls_alone > ALONE
        if (step := self._step) is not None:
            return Interval(sum(step) / 2, 0.0 if alone else step[0], step[1], told)
        if alone:
            _, middle, high = self._quantiles(self._unstalled_log_peaks())
            return Interval(
                math.exp(middle), 0.0, math.exp(middle + _WIDER * (high - middle)), told
            )
        low, middle, high = self._quantiles(self._log_peaks())
        if self._puzzled or not self._settled:
            seen = min(low, math.log(self._clear_per_s)) if self._clear_per_s else -math.inf
            low, high = (middle + _WIDER * (end - middle) for end in (low, high))
            low = max(low, seen)
        return Interval(math.exp(middle), math.exp(low), math.exp(high), told)

    def _relevant_bounds(self, rows: tuple[Load, ...]) -> tuple[float | None, float | None]:
        if (beside := self._crossing) is None:
            return super()._relevant_bounds(rows)
        # Trials beside it fall on either side by chance: what lies beyond it bounds nothing.
        met = [row.rate_per_s for row in rows if row.saturated is False]
        missed = [row.rate_per_s for row in rows if row.saturated]
        return (
            max((rate for rate in met if rate < beside.value), default=None),
            min((rate for rate in missed if rate > beside.value), default=None),
        )

    def _findings(self) -> tuple[Finding, ...]:
        modes = [] if self._step is not None else self._modes()
        return (*self._disturbed(), *modes)

    def _disturbed(self) -> list[Finding]:
        return [
            Finding.of(
                "trial_disturbed",
                trial=place + 1,
                rate_per_s=stall.rate_per_s,
                at_s=stall.at_s,
                longest_ms=stall.longest_ms,
                after=self._retried(place),
                **_stalled(self.trials[place]),
            )
            for place, stall in zip(self.aside, self._stalled_trials, strict=True)
        ]

    def _retried(self, place: int) -> str:
        if place + 1 == len(self.trials) or not self._retries(place + 1):
            return "not retried"
        met = self._is_clear(self.trials[place + 1])
        return f"retried at the same rate: {'target met' if met else 'stalled again'}"

    def _modes(self) -> list[Finding]:
        found = mode_findings(self.loads.values())
        if not found and self._knows_two_modes:
            found = [Finding.of("trials_of_two_kinds")]
        if not found and (seen := self._contradiction) is not None:
            found = [Finding.of("saturated_below_clear", low_per_s=seen[0], high_per_s=seen[1])]
        return found

    @property
    def _knows_two_modes(self) -> bool:
        return any(posterior.two_modes > 0.5 for _, posterior in self._beliefs)

    @property
    def _contradiction(self) -> tuple[float, float] | None:
        return contradiction(self._counted(), self.goal.threshold)

    def _counted(self) -> list[Trial]:
        """Return the trials that were not set aside."""
        aside = set(self.aside)
        return [trial for place, trial in enumerate(self.trials) if place not in aside]


Belief = tuple[Aim, Posterior]
"""What is believed of a server with regard to one limit."""


_STALLED = {
    "engine": "Leadline itself did not run",
    "processor": "others used the processors in its window",
    "target": "by exclusion in the device or the server",
}


def _stalled(trial: Trial) -> dict[str, str]:
    return {"stalled": _STALLED[trial.stalled_in]} if trial.stalled_in is not None else {}


def _lower(peaks: Sequence[Floats]) -> Floats:
    """Return the posterior of the peak's logarithm, of several limits the lower, quantile-wise."""
    return np.asarray(np.min(peaks, axis=0))


BESIDE_MIN = 8
_SLOPE_LN, _SLOPE_SD_LN = math.log(5.0), 0.6
"""Prior of the slope: devices have 2 to 5, a queue at 90% of its capacity 9."""
_SLOPES_LN = _SLOPE_LN + np.linspace(-2.0, 2.0, 41)
_TOGETHER_MAX, _TOGETHER_SE = 0.8, 0.7
"""Trials of one search follow each other within minutes, in which a device wanders: their errors go
together, by as much as neighbours tell and so many standard errors more (chosen so that intervals
hold nine times in ten or more at correlations up to 0.5)."""
_HALF_LN_MIN = 0.05
"""No device is the same from search to search by less."""
_NEAR_LN, _RESPONSE_LN = 0.25, 1.5
"""Trials whose load is within so much of the crossing count, or the nearest ones; a response
farther from the threshold counts as that far: in an overload it says no more of the crossing."""
_ROUNDS = 4
_WINDOW_PART = 0.9


class Point(NamedTuple):
    """Logarithms of one trial."""

    load: float
    response: float
    """Over its threshold: the mean, or the percentile."""
    counted: float
    """Of what is expected to be at its limit at the peak, over that limit: the mean, or the share
    of late requests, which rises by more than the percentile does."""


def point(threshold: Threshold, trial: Trial, run_length_s: float) -> Point | None:
    """Return what a trial says of the crossing.

    None of a trial that was cut short, or whose window is shorter than the peak's trials.
    """
    measured = trial.measured
    if trial.state is not TrialState.DONE or measured is None or measured.response_ms is None:
        return None
    if measured.seconds < _WINDOW_PART * run_length_s:
        return None
    counted = []
    if threshold.mean_ms is not None:
        counted.append(math.log(max(measured.response_ms.mean, 1e-6) / threshold.mean_ms))
    for place, within in enumerate(threshold.shares):
        over = sum(batch.over_each[place] for batch in measured.batches) + measured.failed + 0.5
        counted.append(math.log(over / (measured.due + 1) / (1 - within.percentile)))
    response = math.log(max(measured_ratio(threshold, measured), 1e-6))
    return Point(math.log(trial.request.rate_per_s), response, max(counted, default=response))


def crossing(points: Sequence[Point], confidence: float) -> Interval | None:
    """Return the load at which the expected response is at the threshold; None if not known.

    A device's percentiles rise by a factor while the load rises by a fifth, far below what it
    completes in an overload. Trials as long as those that define the peak need no model then: near
    the threshold the logarithm of the response is linear in that of the load. Few trials beside it
    scatter more than the line rises, so that its slope has a prior; the crossing has its
    posterior, a mixture of Student's t over slopes.

    Args:
        points: in the order in which they were measured.
        confidence: that the interval holds it.

    """
    responses = [each.response for each in points]
    if len(points) < BESIDE_MIN or not min(responses) < 0 < max(responses):
        return None
    middle, kept, low, high = statistics.median(each.load for each in points), points, 0.0, 0.0
    for _ in range(_ROUNDS):
        far = sorted(abs(each.load - middle) for each in points)[BESIDE_MIN - 1]
        kept = [each for each in points if abs(each.load - middle) <= max(far, _NEAR_LN)]
        low, middle, high = _posterior(kept, confidence)
    low, high = min(low, middle - _HALF_LN_MIN), max(high, middle + _HALF_LN_MIN)
    return Interval(math.exp(middle), math.exp(low), math.exp(high), len(kept))


def _posterior(points: Sequence[Point], confidence: float) -> tuple[float, float, float]:
    """Return low, median and high of the crossing's load, as logarithms."""
    loads, responses, counted = np.array(points).T
    responses = np.clip(responses, -_RESPONSE_LN, _RESPONSE_LN)
    count, slopes = len(points), np.exp(_SLOPES_LN)
    load, response = loads.mean(), responses.mean()
    errors = responses - response - np.outer(slopes, loads - load)
    squares = np.maximum((errors**2).sum(axis=1), 1e-12)
    wider = _widening(errors[np.argmin(squares)])
    weights = -0.5 * ((_SLOPES_LN - _SLOPE_LN) / _SLOPE_SD_LN) ** 2 - _SLOPES_LN
    weights -= (count - 1) / 2 / wider**2 * np.log(squares)
    weights = np.exp(weights - weights.max())
    # What is counted is exp(steeper * response) in a trial, and responses scatter log-normally
    # about the line: what is expected of it lies above its median.
    steeper = (counted @ responses) / (responses @ responses)
    variances = squares / (count - 2)
    middles = load - (response + steeper * variances / 2) / slopes
    scales = wider * np.sqrt(variances / count) / slopes
    places = load + np.linspace(-3 * _NEAR_LN, 3 * _NEAR_LN, 601)
    below = stdtr(count - 2, (places - middles[:, None]) / scales[:, None])
    tail = (1 - confidence) / 2
    cumulated = weights @ below / weights.sum()
    low, middle, high = np.interp((tail, 0.5, 1 - tail), cumulated, places)
    return float(low), float(middle), float(high)


def _widening(errors: Sequence[float]) -> float:
    """Return how much wider an interval is because errors that follow each other go together."""
    squares = sum(error**2 for error in errors)
    beside = sum(one * other for one, other in itertools.pairwise(errors))
    together = (max(beside / squares, 0.0) if squares else 0.0) + _TOGETHER_SE / len(errors) ** 0.5
    together = min(together, _TOGETHER_MAX)
    return math.sqrt((1 + together) / (1 - together))
