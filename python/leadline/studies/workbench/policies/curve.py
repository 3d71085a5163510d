"""Ours: a posterior over what the server is, and a stop rule that speaks of the rate.

1. *Probe*: loads grow in large steps until one overloads the server. What it completes then is its
   capacity; two or three short trials usually do.
2. *Search*: every further load is a random quantile of the posterior of the peak rate, near its
   median (randomised quantiles: Rodriguez and Ludkovski 2020). Near the peak the response is so
   steep in the rate that a short trial of a noisy response pins the rate, wherever it falls.
3. *Stop* when the posterior's interval of the peak rate of trials of `run_length_s` is within the
   goal. The model carries short trials to that length; it is never just the length of the trial.

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

import numpy as np

from leadline.record.workbench import Goal, PeakVerdict, Prior, TrialRequest, TrialState
from leadline.studies.workbench.conversation import Ending
from leadline.studies.workbench.loads import format_stalls
from leadline.studies.workbench.policies.evidence import ALONE, ALONE_MIN, TRIALS_MIN, Evidence
from leadline.units import format_ci

PROBE_S = 10.0
SHORT_S, LONG_S = 30.0, 60.0
WIDE_FRAC = 0.15
"""Half an interval wider than this is narrowed by short trials."""
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
RECURRING_MIN = 2
"""So many stalled trials are no accident."""
_BESIDE_LN = 0.12
"""Once trials beside the threshold tell where it is crossed, further ones are so near."""
_EITHER_SIDE = 2
"""Trials at a load that is to bound the rate by itself."""


class Curve(Evidence):
    """A search by the posterior of the response curve."""

    def _decide(self) -> TrialRequest | Ending:
        again = self._lost_now() or self._stalled_now()
        if again is not None:
            return again
        return self._narrow() if self._overloaded else self._probe()

    def _in_time(self, request: TrialRequest) -> TrialRequest | Ending:
        decided = super()._in_time(request)
        if isinstance(decided, Ending) and self._stalls_alone > ALONE:
            return Ending(PeakVerdict.IRREGULAR, self._format_stalls())
        return decided

    def _narrow(self) -> TrialRequest | Ending:
        """Answer, or ask where the posterior learns most."""
        told, alone = self._told, self._stalls_alone
        peaks = self._log_peaks() if alone < ALONE_MIN else self._unstalled_log_peaks()
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

    def _between(self, random: np.random.Generator) -> float | None:
        """Return a device's next load: between those on either side of the target, then beside it.

        None while one side is missing, and of servers, whose queue the posterior knows.
        """
        if not self.on_storage:
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
        if self._stalls_alone > ALONE:
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
        if self._stalls_alone > ALONE:
            return Ending(PeakVerdict.IRREGULAR, self._format_stalls())
        if len(self.aside) >= RECURRING_MIN:
            return Ending(PeakVerdict.FOUND, self._format_stalls())
        if (beside := self._crossing) is not None and self._crossed:
            trials = f"{beside.n} trials beside this rate"
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
        if self._stalls_alone > ALONE:
            return f"Stalls alone miss the target at any rate ({often}). Without: {without}."
        return f"Stalls recur ({often}). Peak rate without: {without}; with: {together}."

    def _gave_up(self) -> Ending:
        """End a search that costs more than it tells; where trials are of two kinds, say that."""
        found, trials = self._estimate(), f"{len(self.trials)} trials"
        half = None if found is None else found.half_width_frac
        known = "not known" if half is None else f"known to {half:.1%} only"
        if len(self.aside) >= RECURRING_MIN or self._stalls_alone > ALONE:
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
    def _spent(self) -> float:
        """What all trials cost, over the cost of a long one."""
        if not self.trials:
            return 0.0
        asked_s = sum(trial.measured.seconds for trial in self.trials if trial.measured is not None)
        overhead_s = (self.cost_s - asked_s) / len(self.trials)
        return self.cost_s / (LONG_S + overhead_s)


def curve(goal: Goal, seed: int, prior: Prior | None = None) -> Curve:
    """Return a search by the posterior of the response curve."""
    return Curve(goal, seed, prior)
