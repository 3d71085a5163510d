"""Ours: a posterior over what the server is, and a stop rule that speaks of the rate.

1. *Probe*: loads grow in large steps until one overloads the server. What it completes then is its
   capacity; two or three short trials usually do.
2. *Search*: every further load is a random quantile of the posterior of the peak rate, near its
   median (randomised quantiles: Rodriguez and Ludkovski 2020). Near the peak the response is so
   steep in the rate that a short trial of a noisy response pins the rate, wherever it falls.
3. *Stop* when the posterior's interval of the peak rate of trials of `run_length_s` is within the
   goal. The model carries short trials to that length; it is never just the length of the trial.

A trial far below the peak that stalls decide (`stalled_trial`) is tried again at the same rate; if
the response is far below the threshold then, or stalls decide again, neither is the load's doing.
Where stalls come back they are the server's own: the answer has the rate with them and without.
Where stalls alone break a percentile, at any rate, loads go where the peak would be without them;
that is then told, with an interval down to 0, and the verdict is *irregular*.

A device whose response is at its floor until it steps over the threshold has no queue that the
posterior could know. Where no response lies in between, or a load was seen far below the threshold
beyond the posterior's whole interval, the step is bisected; the interval is that of its two sides.

See `leadline.studies.workbench.belief` for the model, and docs/concepts/peak-rate.md for what it
reaches.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from leadline.record import Interval
from leadline.record.finding import Finding
from leadline.record.workbench import Goal, PeakVerdict, Prior, Trial, TrialRequest, TrialState
from leadline.studies.workbench.belief import Aim, Floats, Posterior, aims, read
from leadline.studies.workbench.conversation import Conversation, Ending
from leadline.studies.workbench.crossing import crossing, point
from leadline.studies.workbench.loads import (
    CLEAR,
    StalledTrial,
    contradiction,
    format_stalls,
    mode_findings,
    stalled_trial,
    stalls_of,
    stood_still,
    threshold_ratio,
)
from leadline.units import format_ci

PROBE_S = 10.0
SHORT_S, LONG_S = 30.0, 60.0
WIDE_FRAC = 0.15
"""Half an interval wider than this is narrowed by short trials."""
STOP_FRAC = 0.85
"""Part of the error asked for at which an early posterior's half width is enough: it is the less
certain of its own width the fewer trials it rests on."""
_PATIENT_TRIALS = 8
TRIALS_MIN = 5
"""A second mode that half of the trials are in shows in so many."""
CONTRADICTED_MIN = 12
"""Where trials contradict each other and the posterior knows of one mode only, it is surer of its
interval than it should be."""
TRIALS_MAX = 20
SPENT_MAX = 8.25
"""After so many trials, or when all cost as much as so many of `LONG_S`, a server that still keeps
its secret is answered with what was reached: at 15 s of set-up, 10.3 minutes."""
OVERLOAD_S = 20.0
_OVERLOAD_EVERY = 3
_OVERLOAD = 1.15
"""Over the capacity: completions tell the speed and how it wanders, which no response near the
peak can, least of all of a server that gets less done under a backlog."""
OVERLOAD_FAR = 2.0
"""So far above the peak an overload tells nothing of it: something other than speed saturates, as
where clients who waited too long send their requests again."""
_STEP_MIN, _STEP_MAX = 2.0, 8.0
_STEP_DOWN = 4.0
_BEYOND_CAPACITY = 1.2
_CAPACITY_QUANTILE = 0.75
_PROBE_ABORT, _ABORT, _DEEP_ABORT = 10.0, 25.0, 100.0
"""A trial is given up at this many times the threshold."""
_QUANTILES = (0.35, 0.65)
_SURVIVED = 0.95
_LOST_WIDTH = 1.15
"""A load that the server holds and one that it is lost at are so close when the search ends."""
_HELD_PART = 0.6
"""Below this part of a load that was held, nothing is to be learnt."""
_OVERLOAD_RATIO = 2.0
_WIDER = 2.5
"""The interval of a search that ends unsettled is so many times the posterior's, which is surer of
itself than it should be where it does not explain the trials (chosen on 300 servers that stall)."""
RECURRING_MIN = 2
"""So many stalled trials are no accident."""
_ALONE_MIN, _ALONE = 0.1, 0.5
"""Probability that stalls alone break the target: above the first, loads go where the peak would be
without them; above the second, no rate is the answer."""
_ASIDE_MAX = 6
"""Beyond, a trial counts as it is: else a server that stalls in each would never be answered."""
_FLAT, _STEEP = 1.5, 5.0
_STEP_LOADS_MIN = 6
"""Of so many loads, most near the peak, a queue's response would have risen at some."""
_BESIDE_LN = 0.12
"""Once trials beside the threshold tell where it is crossed, further ones are so near."""
_EITHER_SIDE = 2
"""Trials at a load that is to bound the rate by itself."""
_FAR_BELOW = 0.7
"""Part of the peak above which a queue that builds up once is the load's doing, not a stall's."""


class Curve(Conversation):
    """A search by the posterior of the response curve."""

    def __init__(self, goal: Goal, seed: int, prior: Prior | None) -> None:
        """Begin; a prior's rate is where the first load goes."""
        super().__init__("curve", goal, seed)
        self._beliefs: list[Belief] = [
            (aim, Posterior(aim, goal.run_length_s, seed, prior)) for aim in aims(goal.threshold)
        ]
        self._start = goal.rate_start_per_s if prior is None else 1.2 * prior.rate_per_s
        self._limit_ms = 1e3 * max(aim.limit_s for aim in aims(goal.threshold))
        self._stalled_trials: list[StalledTrial] = []

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

    def _decide(self) -> TrialRequest | Ending:
        again = self._lost_now() or self._stalled_now()
        if again is not None:
            return again
        return self._narrow() if self._overloaded else self._probe()

    def _in_time(self, request: TrialRequest) -> TrialRequest | Ending:
        decided = super()._in_time(request)
        if isinstance(decided, Ending) and self._stalls_alone > _ALONE:
            return Ending(PeakVerdict.IRREGULAR, self._format_stalls())
        return decided

    def _narrow(self) -> TrialRequest | Ending:
        """Answer, or ask where the posterior learns most."""
        told, alone = self._told, self._stalls_alone
        peaks = self._log_peaks() if alone < _ALONE_MIN else self._unstalled_log_peaks()
        middle, half = self._quantiles(peaks)[1], self._half
        crossed = self._crossed
        settled = crossed or self._settled
        spent = told >= TRIALS_MAX or self._spent >= SPENT_MAX
        if (step := self._step) is not None and not spent and not crossed:
            return self._bisect(*step)
        if self._highest_held == 0.0 and (settled or spent):
            # The model would have a peak anywhere; one that holds must have been seen.
            seconds = min(SHORT_S, self.goal.run_length_s)
            return self._within_reach(min(self.loads) / _STEP_DOWN, seconds, _ABORT)
        if settled:
            puzzled = self._puzzled and not crossed
            return self._contradicted() if puzzled else self._found(math.exp(middle))
        if spent:
            return self._gave_up()
        random = np.random.default_rng([self.seed, len(self.trials)])
        between = self._between(random)
        capacity = max(np.median(posterior.log_capacity) for _, posterior in self._beliefs)
        rate = _OVERLOAD * math.exp(float(capacity))
        near = rate <= OVERLOAD_FAR * math.exp(middle) and between is None
        if told % _OVERLOAD_EVERY == 0 and told >= TRIALS_MIN and near:
            return self._within_reach(rate, min(OVERLOAD_S, self.goal.run_length_s), _DEEP_ABORT)
        rate = math.exp(float(np.quantile(peaks, random.uniform(*_QUANTILES))))
        rate = between or max(rate, _HELD_PART * self._highest_held)
        seconds = min(SHORT_S if half > WIDE_FRAC else LONG_S, self.goal.run_length_s)
        return self._within_reach(rate, seconds, _ABORT)

    @property
    def _crossing(self) -> Interval | None:
        """The peak of a device from trials beside it alone; None while they do not tell."""
        if not self.may_step or self._stalls_alone > _ALONE:
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
        alone = self._stalls_alone > _ALONE
        peaks = self._unstalled_log_peaks() if alone else self._log_peaks()
        low, middle, high = self._quantiles(peaks)
        return (math.exp(high - middle) - math.exp(low - middle)) / 2

    @property
    def _puzzled(self) -> bool:
        """Whether trials contradict each other, and no second mode explains it."""
        return self._contradiction is not None and not self._knows_two_modes

    @property
    def _settled(self) -> bool:
        """Whether the posterior is as narrow as asked, of enough trials."""
        enough = STOP_FRAC if self._told < _PATIENT_TRIALS else 1.0
        least = CONTRADICTED_MIN if self._puzzled else TRIALS_MIN
        return self._half <= enough * self.goal.error_frac and self._told >= least

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
        doubted = clear > math.exp(self._quantiles(self._log_peaks())[1 if self.may_step else 2])
        doubted &= not self._knows_two_modes and self._contradiction is None
        many = self.may_step and len(ratios) >= _STEP_LOADS_MIN
        if doubted or (many and all_or_none):
            return clear, min(above)
        return None

    def _between(self, random: np.random.Generator) -> float | None:
        """Return a device's next load: between those on either side of the target, then beside it.

        None while one side is missing, and of servers, whose queue the posterior knows.
        """
        if not self.may_step:
            return None
        ratios = self._unstalled_ratios.items()
        below = max((rate for rate, ratio in ratios if ratio <= 1), default=0.0)
        above = min((rate for rate, ratio in ratios if ratio > 1 and rate > below), default=0.0)
        if not below or not above:
            return None
        if (beside := self._crossing) is not None:
            return beside.value * math.exp(random.uniform(-_BESIDE_LN, _BESIDE_LN))
        beside_ln = 0.0 if above > below * math.exp(2 * _BESIDE_LN) else _BESIDE_LN
        return math.sqrt(below * above) * math.exp(random.uniform(-beside_ln, beside_ln))

    def _bisect(self, clear: float, over: float) -> TrialRequest | Ending:
        """Narrow a step down to the error asked for, and see either side of it a whole run long."""
        seconds = min(SHORT_S, self.goal.run_length_s)
        if over - clear > self.goal.error_frac * (over + clear):
            return self._within_reach(math.sqrt(clear * over), seconds, _ABORT)
        for rate in (clear, over):
            if len(self._without_stalls(rate)) < _EITHER_SIDE:
                return self._within_reach(rate, self.goal.run_length_s, _ABORT)
        if self._stalls_alone > _ALONE:
            return Ending(PeakVerdict.IRREGULAR, self._format_stalls())
        return Ending(
            PeakVerdict.FOUND,
            f"The response steps over the target between {clear:.6g} and {over:.6g} requests/s, "
            f"each seen {_EITHER_SIDE} times or more; the rate is their middle.",
        )

    def _found(self, rate_per_s: float) -> Ending:
        """End the search, unless nothing was seen on this side of what the server survives."""
        if rate_per_s >= self._kills_at:
            return self._lost_ending()
        if self._stalls_alone > _ALONE:
            return Ending(PeakVerdict.IRREGULAR, self._format_stalls())
        if len(self.aside) >= RECURRING_MIN:
            return Ending(PeakVerdict.FOUND, self._format_stalls())
        if (beside := self._crossing) is not None and self._crossed:
            trials = f"{beside.n} trials within 25% of this rate"
            return Ending(PeakVerdict.FOUND, f"The response crosses the target among {trials}.")
        return Ending(
            PeakVerdict.FOUND,
            f"Trials of {self.goal.run_length_s:.6g} s are expected at the threshold at this rate; "
            "shorter ones were carried to that length by the model.",
        )

    def _format_stalls(self) -> str:
        """Write how often the server stalls, and its rate without."""
        level, often = self.goal.confidence, format_stalls(self.trials, self.goal.threshold)
        without, together = (
            format_ci(
                *(f"{math.exp(end):,.0f} requests/s" for end in (middle, low, high)), level=level
            )
            for low, middle, high in map(
                self._quantiles, (self._unstalled_log_peaks(), self._log_peaks())
            )
        )
        if self._stalls_alone > _ALONE:
            return f"Stalls alone miss the target at any rate ({often}). Without: {without}."
        return f"Stalls recur ({often}). Peak rate without: {without}; with: {together}."

    def _gave_up(self) -> Ending:
        """End a search that costs more than it tells; where trials are of two kinds, say that."""
        found, trials = self._estimate(), f"{len(self.trials)} trials"
        half = None if found is None else found.half_width_frac
        known = "not known" if half is None else f"known to {half:.1%} only"
        if len(self.aside) >= RECURRING_MIN or self._stalls_alone > _ALONE:
            return Ending(PeakVerdict.IRREGULAR, self._format_stalls())
        if self._knows_two_modes or self._contradiction is not None:
            return Ending(
                PeakVerdict.IRREGULAR,
                f"{trials} are of two kinds, and no one rate answers for both: it is {known}.",
            )
        return Ending(
            PeakVerdict.GAVE_UP,
            f"{trials} differ so much that the rate is {known}; more would cost more than they "
            "tell.",
        )

    def _contradicted(self) -> Ending:
        """End a search whose trials the posterior cannot explain: its interval is not to be had."""
        return Ending(
            PeakVerdict.IRREGULAR,
            f"{len(self.trials)} trials contradict each other, and no second mode explains it.",
        )

    def _within_reach(self, rate: float, seconds: float, abort: float) -> TrialRequest | Ending:
        """Ask for a load, unless it is beyond what can be offered, survived or told from none."""
        held = self._highest_held
        if rate > _SURVIVED * self._kills_at:
            if self._kills_at <= _LOST_WIDTH * held:
                return self._lost_ending()
            rate = math.sqrt(self._kills_at * max(held, self._kills_at / 16))
        if rate >= self.ceiling_per_s:
            rate = self.ceiling_per_s
            if self._held(rate):
                return self._at_ceiling()
            seconds = max(seconds, min(SHORT_S, self.goal.run_length_s))
        floor, lowest = self.floor_per_s(self._start), min(self.loads, default=math.inf)
        if rate < floor < lowest / _STEP_DOWN and not held:
            # The model says that no load is held; it is believed once one so low was tried.
            rate = lowest / _STEP_DOWN
        if rate < floor:
            sentence = f"Saturated at every load, even at {lowest:.6g} requests/s."
            lost = self.loads[lowest].kills
            return Ending(
                PeakVerdict.SERVER_LOST if lost else PeakVerdict.ALWAYS_SATURATED, sentence
            )
        return self._request(rate, seconds, abort)

    def _lost_now(self) -> TrialRequest | None:
        """Try a load once more that the server was lost at: it may have been chance."""
        last = self.trials[-1] if self.trials else None
        if last is None or last.state is not TrialState.SERVER_LOST:
            return None
        load = self.loads[last.request.rate_per_s]
        return None if load.kills or load.ratios else last.request

    def _stalled_now(self) -> TrialRequest | None:
        """Try a load once more where one stall decided."""
        if not self.aside or self.aside[-1] != len(self.trials) - 1:
            return None
        return None if self._retries(len(self.trials) - 1) else self.trials[-1].request

    @property
    def _kills_at(self) -> float:
        """Lowest load that the server does not survive."""
        return min((rate for rate, load in self.loads.items() if load.kills), default=math.inf)

    def _lost_ending(self) -> Ending:
        return Ending(
            PeakVerdict.SERVER_LOST,
            f"The server is lost at {self._kills_at:.6g} requests/s before it is saturated.",
        )

    def _probe(self) -> TrialRequest | Ending:
        """Look for an overload in large steps, upwards."""
        seconds = min(PROBE_S, self.goal.run_length_s)
        tried = [*self.loads, *(self.trials[place].request.rate_per_s for place in self.aside)]
        if not tried:
            return self._request(min(self._start, self.ceiling_per_s), seconds, _PROBE_ABORT)
        highest = max(tried)
        capacity = max(
            float(np.quantile(posterior.log_capacity, _CAPACITY_QUANTILE))
            for _, posterior in self._beliefs
        )
        rate = _BEYOND_CAPACITY * math.exp(min(capacity, 50.0))
        rate = min(max(rate, _STEP_MIN * highest), _STEP_MAX * highest)
        return self._within_reach(rate, seconds, _PROBE_ABORT)

    def _request(self, rate_per_s: float, seconds: float, abort: float) -> TrialRequest:
        return TrialRequest(
            rate_per_s=rate_per_s,
            seconds=seconds,
            abort_above_ms=abort * self._limit_ms,
            purpose="search" if self._overloaded else "probe",
        )

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

    def _log_peaks(self) -> Floats:
        """Posterior of the peak's logarithm, sorted: of two thresholds the lower, quantile-wise."""
        return _lower([belief.log_peak for _, belief in self._beliefs])

    def _unstalled_log_peaks(self) -> Floats:
        """Return the same, did the server never stand still."""
        return _lower([belief.log_peak_unstalled for _, belief in self._beliefs])

    @property
    def _stalls_alone(self) -> float:
        """Probability that no rate meets the target, for stalls that come at any."""
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
        alone = self._stalls_alone > _ALONE
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
    def _spent(self) -> float:
        """What all trials cost, over the cost of a long one."""
        if not self.trials:
            return 0.0
        asked_s = sum(trial.measured.seconds for trial in self.trials if trial.measured is not None)
        overhead_s = (self.cost_s - asked_s) / len(self.trials)
        return self.cost_s / (LONG_S + overhead_s)

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


def curve(goal: Goal, seed: int, prior: Prior | None = None) -> Curve:
    """Return a search by the posterior of the response curve."""
    return Curve(goal, seed, prior)
