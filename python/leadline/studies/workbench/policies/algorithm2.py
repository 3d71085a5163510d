"""SH08 Algorithm 2: trials at a load until it is told from the peak rate, or known to be it.

At every load there are at least two trials. As long as the Student t interval of their mean
response is clear of the peak-rate region R_sat ± s R_sat, a load-picking algorithm says which load
is next. When it overlaps, the load may be the peak rate, and trials go on there until the response
is known to the target accuracy, or until the load is told from the peak rate after all.

The paper's accuracy a is that of the *response* at the load it reports (SH08 §5.3.3: "we configure
the target accuracy of the peak rate by configuring the accuracy, a, of the response time at the
peak rate"). These policies read `Goal.accuracy` so: it is when they stop. The interval they answer
with is nevertheless one of the rate (`rate_interval`), so its accuracy is another number.

What the paper leaves open, and what is done here:

- a search that ends nowhere (its bracket closes on a step of the curve, or on a mistake): both ends
  are tried again to `_END_TRIALS`; if they stand, the peak is between them;
- more than `_LOAD_TRIALS_MAX` trials at a load, or `_TRIALS_MAX` in all: it gives up;
- loads beyond what the generator offers are cut to that.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from leadline.record import Interval
from leadline.record.finding import Finding
from leadline.record.workbench import Goal, PeakVerdict, Prior, Trial, TrialRequest, TrialState
from leadline.studies.workbench.conversation import Conversation, Ending
from leadline.studies.workbench.loads import LoadTrials, mode_findings, rate_interval, two_modes

STEP_CONFIDENCE = 0.95
"""Of the check whether a load is the peak rate, whatever the goal's (SH08 Algorithm 2, step 10)."""
_LOAD_TRIALS_MAX = 100
_TRIALS_MAX = 1000
_END_TRIALS = 4
_CLOSED_FRAC = 0.005
"""A bracket so narrow does not hold a load inside of the peak-rate region any more."""


class Visit(NamedTuple):
    """A load that was told from the peak rate, in the order of the search."""

    rate_per_s: float
    ratio: float
    """Mean response over the threshold."""


Picker = Callable[[Sequence[Visit], float], float]
"""Load-picking algorithm: from what was visited and the first load, the next load."""


class Algorithm2(Conversation):
    """SH08 Algorithm 2 around one of the load-picking algorithms 3 and 4."""

    interval_notes = (
        (
            "The interval is that of the paper's policy: it says how well the response at one "
            "load is known, and holds the peak rate in about half of the searches; --policy curve "
            "states one that is meant to hold."
        ),
    )
    """By `bench/peak.py` (docs/concepts/peak-rate.md)."""

    def __init__(
        self,
        name: str,
        pick: Picker,
        goal: Goal,
        seed: int,
        *,
        prior: Prior | None = None,
        visits_max: int = _TRIALS_MAX,
        trials_min: int = 2,
        run_length_s: float | None = None,
    ) -> None:
        super().__init__(name, goal, seed, run_length_s=run_length_s)
        self._visits_max = visits_max
        self._trials_min = trials_min
        self._pick = pick
        self._start = self.first_load_per_s(prior)
        self._order: list[float] = []
        """Loads as they were visited; one comes twice when the search came back to it."""

    def _learn(self, trial: Trial) -> None:
        rate = trial.request.rate_per_s
        says = trial.state not in (TrialState.GENERATOR_LIMITED, TrialState.FAILED)
        if says and self._order[-1:] != [rate]:
            self._order.append(rate)

    def _decide(self) -> TrialRequest | Ending:
        if len(self.trials) >= _TRIALS_MAX:
            return Ending(PeakVerdict.GAVE_UP, f"Gave up after {_TRIALS_MAX} trials.")
        if len(self._order) > self._visits_max:
            return Ending(PeakVerdict.GAVE_UP, f"Did not converge in {self._visits_max} loads.")
        if not self._order or self.trials[-1].state is TrialState.GENERATOR_LIMITED:
            return self._next_load()
        current = self.loads[self._order[-1]]
        interval = current.ratio_interval(STEP_CONFIDENCE)
        few = len(current.ratios) < self._trials_min and not current.kills
        if interval is None or few:
            return self._trial(current.rate_per_s)
        if not self._overlaps(interval):
            return self._next_load()
        return self._at_candidate(current)

    def _at_candidate(self, current: LoadTrials) -> TrialRequest | Ending:
        """Spend just enough trials on a load that may be the peak rate."""
        if self._accuracy(current) >= self.goal.accuracy:
            sentence = (
                f"The response at {current.rate_per_s:.6g} requests/s is within the peak-rate "
                f"region, known to {self._accuracy(current):.1%} from {len(current.ratios)} trials."
            )
            return Ending(PeakVerdict.FOUND, sentence)
        if len(current.trials) >= _LOAD_TRIALS_MAX:
            return self._give_up(current)
        return self._trial(current.rate_per_s)

    def _trial(self, rate_per_s: float) -> TrialRequest:
        return TrialRequest(rate_per_s=rate_per_s, seconds=self.run_length_s)

    def _overlaps(self, interval: tuple[float, float]) -> bool:
        width = self.goal.threshold.width_frac
        return interval[0] <= 1 + width and interval[1] >= 1 - width

    def _accuracy(self, load: LoadTrials) -> float:
        """Accuracy of the response at this load at the goal's confidence (SH08 eq. 2)."""
        interval = load.ratio_interval(self.goal.confidence)
        if interval is None or sum(interval) <= 0:
            return 0.0
        return 1 - (interval[1] - interval[0]) / (interval[1] + interval[0])

    def _give_up(self, load: LoadTrials) -> Ending:
        where = f"{len(load.trials)} trials at {load.rate_per_s:.6g} requests/s"
        if two_modes(load.ratios):
            return Ending(PeakVerdict.IRREGULAR, f"{where} are of two kinds: no mean stands.")
        sentence = (
            f"Gave up: {where} differ so much that their mean response is not known to "
            f"{self.goal.accuracy:.0%}."
        )
        return Ending(PeakVerdict.GAVE_UP, sentence)

    def _visits(self) -> list[Visit]:
        return [
            Visit(rate, ratio)
            for rate in self._order
            if (ratio := self.loads[rate].ratio) is not None
        ]

    def _next_load(self) -> TrialRequest | Ending:
        visits = self._visits()
        closed = self._closed_bracket(visits)
        if closed is not None:
            return closed
        ceiling = self.ceiling_per_s
        rate = self._pick(visits, self._start)
        if rate >= ceiling:
            rate = ceiling
            if any(visit.rate_per_s >= ceiling * 0.999 and visit.ratio < 1 for visit in visits):
                return self._at_ceiling()
        if rate < self.floor_per_s(self._start):
            return self._at_floor()
        return self._trial(rate)

    def _at_floor(self) -> Ending:
        if not self._order:
            return self._at_ceiling()
        lowest = min(self._order)
        if self.loads[lowest].kills:
            sentence = f"The server was lost at every load, even at {lowest:.6g} requests/s."
            return Ending(PeakVerdict.SERVER_LOST, sentence)
        sentence = f"Saturated at every load, even at {lowest:.6g} requests/s."
        return Ending(PeakVerdict.ALWAYS_SATURATED, sentence)

    def _closed_bracket(self, visits: Sequence[Visit]) -> TrialRequest | Ending | None:
        """End a search whose loads came together without one inside of the peak-rate region."""
        low, high = bracket(visits)
        if low is None or high is None:
            return None
        gap_frac = 1 - low / high
        if self.loads[high].kills and gap_frac <= self.goal.error_frac:
            sentence = (
                f"The server is not saturated at {low:.6g} requests/s and does not survive "
                f"{high:.6g}."
            )
            return Ending(PeakVerdict.SERVER_LOST, sentence)
        if gap_frac > _CLOSED_FRAC:
            return None
        for rate in (low, high):
            if len(self.loads[rate].trials) < _END_TRIALS:
                return self._trial(rate)
        sentence = (
            f"The response steps over the peak-rate region between {low:.6g} and {high:.6g} "
            "requests/s."
        )
        return Ending(PeakVerdict.FOUND, sentence)

    def _estimate(self) -> Interval | None:
        confidence = self.goal.confidence
        candidates = [
            load
            for load in self.loads.values()
            if not load.kills
            and (interval := load.ratio_interval(STEP_CONFIDENCE)) is not None
            and self._overlaps(interval)
        ]
        if candidates:
            best = max(candidates, key=lambda load: len(load.ratios))
            return rate_interval(best, self.loads.values(), confidence)
        told = [visit for visit in self._visits() if self._is_told(visit.rate_per_s)]
        low, high = bracket(told)
        if low is None or high is None:
            return None
        count = len(self.loads[low].trials) + len(self.loads[high].trials)
        value = low if 1 - low / high <= _CLOSED_FRAC else (low + high) / 2
        return Interval(value, low, high, count)

    def _is_told(self, rate_per_s: float) -> bool:
        """Whether the load is told from the peak rate: a single trial does not do that."""
        interval = self.loads[rate_per_s].ratio_interval(STEP_CONFIDENCE)
        return interval is not None and not self._overlaps(interval)

    def _findings(self) -> tuple[Finding, ...]:
        verdicts = [
            (rate, self.loads[rate].saturated(STEP_CONFIDENCE, self.goal.threshold.width_frac))
            for rate in sorted(self.loads)
        ]
        saturated = [rate for rate, verdict in verdicts if verdict is True]
        found = mode_findings(self.loads.values())
        above = [
            r for r, verdict in verdicts if verdict is False and saturated and r > saturated[0]
        ]
        if above:
            loads = {"low_per_s": saturated[0], "high_per_s": above[-1]}
            found.append(Finding.of("saturated_below", **loads))
        return tuple(found)


def bracket(visits: Sequence[Visit]) -> tuple[float | None, float | None]:
    """Return the lowest saturated load visited, and the highest below it that was not."""
    high = min((visit.rate_per_s for visit in visits if visit.ratio >= 1), default=None)
    below = (v.rate_per_s for v in visits if high is None or v.rate_per_s < high)
    low = max(below, default=None)
    return low, high
