"""SH08 §3.1, the strawman: fixed run length, fixed number of trials, fixed increment."""

from __future__ import annotations

from leadline.record import Interval
from leadline.record.finding import Finding
from leadline.record.workbench import Goal, PeakVerdict, Prior, TrialRequest, TrialState
from leadline.studies.workbench.conversation import Conversation, Ending
from leadline.studies.workbench.loads import LoadTrials, mode_findings
from leadline.studies.workbench.policies.climb import Climb, strawman_climb

_TRIALS_MAX = 2000


class Strawman(Conversation):
    """Climb until the mean response of all trials at a load is above the threshold.

    "The last load level before saturation is taken as the peak rate." It knows of no accuracy and
    answers without an interval; the first load that saturates is the upper bound.
    """

    states_interval = False

    def __init__(self, name: str, goal: Goal, seed: int, climb: Climb) -> None:
        super().__init__(name, goal, seed, run_length_s=climb.run_length_s)
        self._climbing = climb

    def _decide(self) -> TrialRequest | Ending:
        if len(self.trials) >= _TRIALS_MAX:
            return Ending(PeakVerdict.GAVE_UP, f"Gave up after {_TRIALS_MAX} trials.")
        if not self.loads or self.trials[-1].state is TrialState.GENERATOR_LIMITED:
            return self._climb()
        current = self.loads[self.trials[-1].request.rate_per_s]
        if len(current.ratios) < self._climbing.trials and not current.kills:
            return self._trial(current.rate_per_s)
        if current.ratio is None or current.ratio < 1:
            return self._climb()
        return self._at_first_saturated(current)

    def _at_first_saturated(self, current: LoadTrials) -> Ending:
        if self._unsaturated() is None:
            sentence = f"Saturated at the first load, {current.rate_per_s:.6g} requests/s."
            return Ending(PeakVerdict.ALWAYS_SATURATED, sentence)
        if current.kills:
            sentence = f"The server does not survive {current.rate_per_s:.6g} requests/s."
            return Ending(PeakVerdict.SERVER_LOST, sentence)
        sentence = f"{current.rate_per_s:.6g} requests/s is the first load that saturates."
        return Ending(PeakVerdict.FOUND, sentence)

    def _trial(self, rate_per_s: float) -> TrialRequest:
        return TrialRequest(rate_per_s=rate_per_s, seconds=self.run_length_s)

    def _climb(self) -> TrialRequest | Ending:
        held = self._unsaturated()
        ceiling = self.ceiling_per_s
        if held is None:
            return self._trial(min(self.goal.rate_start_per_s, ceiling))
        if held >= 0.999 * ceiling:
            return self._at_ceiling()
        return self._trial(min(held + self._climbing.increment_per_s, ceiling))

    def _unsaturated(self) -> float | None:
        """Highest load that all of its trials together did not saturate."""
        whole = self._climbing.trials
        held = [
            rate
            for rate, load in self.loads.items()
            if len(load.ratios) >= whole and load.ratio is not None and load.ratio < 1
        ]
        return max(held, default=None)

    def _estimate(self) -> Interval | None:
        low = self._unsaturated()
        if low is None:
            return None
        high = min((rate for rate in self.loads if rate > low), default=None)
        if high is None or (self.loads[high].ratio or 0.0) < 1:
            return None
        return Interval(low, None, None, 2 * self._climbing.trials)

    def _findings(self) -> tuple[Finding, ...]:
        return tuple(mode_findings(self.loads.values()))


def strawman(goal: Goal, seed: int, prior: Prior | None = None) -> Strawman:
    """Return a search that knows nothing before."""
    del prior
    return Strawman("strawman", goal, seed, strawman_climb(goal))
