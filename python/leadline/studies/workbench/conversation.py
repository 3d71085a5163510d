"""A policy's conversation: asked for a load, told a trial; its contract and refusals."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Literal, NamedTuple, Protocol

from leadline.errors import LeadlineError
from leadline.record import Interval
from leadline.record.finding import Finding
from leadline.record.workbench import (
    Goal,
    Load,
    PeakRate,
    PeakVerdict,
    Prior,
    Trial,
    TrialRequest,
    TrialState,
)
from leadline.studies.workbench.loads import LoadTrials, bounds, load_rows

# What can be wrong with an experiment before or while it runs.


class ExperimentRefused(LeadlineError):
    """The experiment file, or what was asked of it, makes no sense; nothing was started."""

    exit_code = 2


class ReplayRefused(LeadlineError):
    """The stored trials are not those this policy would ask for; they are kept as they are."""

    exit_code = 2


# The contract of every policy that looks for a peak rate: ask, run a trial, tell.
#
# A policy is a pure, seeded conversation. It starts nothing, knows no clock, and sees only what it
# is told; so it can be replayed from the stored trials, which is how an experiment is resumed.


class Policy(Protocol):
    """One search for one peak rate. Made by `policies.open_policy`."""

    name: str

    def ask(self) -> TrialRequest | PeakRate:
        """Return the next trial, or the answer. Asked again without a `tell`, it says the same."""

    def tell(self, trial: Trial) -> None:
        """Learn of the trial that was asked last, however it ended."""

    def answer_now(self) -> PeakRate:
        """Return the best answer so far: the deadline has come, or the user wants to see it."""


# What every policy of this package keeps and must mind, whatever loads it picks.
#
# A policy decides from the trials alone, so that replaying stored ones brings it to the same point.
# This class keeps them, minds the deadline, the generator's limit and trials that fail, and writes
# the answer; a policy adds `_decide` and `_estimate`.

ROUNDING = 1e-9
"""An interval that is wider than was asked by no more is as wide as was asked."""
HIGHEST_PER_S = 1e6
"""No search goes higher when nobody says what the generator can offer."""
_REQUESTS_MIN = 100
_START_MIN_PER_S = 0.01
_DESCENT_MAX = 1024.0
_FAILED_IN_A_ROW_MAX = 3
_LIMITED_MAX = 8
_LOST_MAX = 16
_BELOW_OFFERED = 0.95
"""A generator that fell short is asked for this part of what it offered."""

_LIMITED_BY: dict[PeakVerdict, Literal["server", "generator", "time", "unknown"]] = {
    PeakVerdict.FOUND: "server",
    PeakVerdict.DEADLINE: "time",
    PeakVerdict.GAVE_UP: "server",
    PeakVerdict.NEVER_SATURATED: "generator",
    PeakVerdict.ALWAYS_SATURATED: "server",
    PeakVerdict.GENERATOR_LIMITED: "generator",
    PeakVerdict.SERVER_LOST: "server",
    PeakVerdict.IRREGULAR: "server",
    PeakVerdict.FAILED: "unknown",
}

_LIMITED_TRIALS = 2
"""A machine that was busy for a moment holds a generator back at any load; so many trials at one
load are the load's doing."""


class Ending(NamedTuple):
    """Why a search is over, in one sentence."""

    verdict: PeakVerdict
    sentence: str


class Conversation(ABC):
    """A search for one peak rate: the trials so far, and what follows from them."""

    states_interval = True
    """Whether its answer comes with an interval; without one, "found" claims no accuracy."""
    interval_notes: tuple[str, ...] = ()
    """What a reader must know of the interval, wherever one is stated."""

    on_storage = False
    """Whether it is storage, whose response may step over the threshold as no queue's does."""

    def __init__(
        self, name: str, goal: Goal, seed: int, *, run_length_s: float | None = None
    ) -> None:
        self.name = name
        self.goal = goal
        self.seed = seed
        self.run_length_s = goal.run_length_s if run_length_s is None else run_length_s
        """Of the trials that define the peak."""
        self.trials: list[Trial] = []
        self.aside: list[int] = []
        """Places of the trials that count neither for a load nor for the rate."""
        self.loads: dict[float, LoadTrials] = {}
        self._said: TrialRequest | PeakRate | None = None

    def ask(self) -> TrialRequest | PeakRate:
        """Return the next trial, or the answer; the same again until a trial is told."""
        if self._said is None:
            decided = self._obstacle() or self._decide()
            if isinstance(decided, TrialRequest):
                decided = self._in_time(decided)
            self._said = self._answer(decided) if isinstance(decided, Ending) else decided
        return self._said

    def tell(self, trial: Trial) -> None:
        """Learn of the trial that was asked last, however it ended."""
        self.trials.append(trial)
        rate = trial.request.rate_per_s
        if self._sets_aside(trial):
            self.aside.append(len(self.trials) - 1)
        elif trial.state not in (TrialState.GENERATOR_LIMITED, TrialState.FAILED):
            self.loads.setdefault(rate, LoadTrials(rate)).add(trial, self.goal.threshold)
        self._learn(trial)
        self._said = None

    def answer_now(self) -> PeakRate:
        """Return the final answer if there is one, otherwise what is known so far."""
        if isinstance(self._said, PeakRate):
            return self._said
        return self._answer(Ending(PeakVerdict.DEADLINE, "Stopped before the search was over."))

    @abstractmethod
    def _decide(self) -> TrialRequest | Ending:
        """Say what to try next, from the trials alone."""

    @abstractmethod
    def _estimate(self) -> Interval | None:
        """Return the peak rate as far as it is known."""

    def _sets_aside(self, trial: Trial) -> bool:
        """Whether a trial says nothing of its load; for policies that look for stalls."""
        return False

    def _learn(self, trial: Trial) -> None:  # noqa: B027
        """Take note of a trial; for policies that keep more than the loads."""

    def _findings(self) -> tuple[Finding, ...]:
        """What a reader of the answer must know besides."""
        return ()

    def _relevant_bounds(self, rows: tuple[Load, ...]) -> tuple[float | None, float | None]:
        """Return the lower and the upper bound of the peak rate, as far as loads were told."""
        return bounds(rows)

    @property
    def cost_s(self) -> float:
        """Test time of all trials so far."""
        return sum(trial.cost_s for trial in self.trials)

    @property
    def ceiling_per_s(self) -> float:
        """Highest load to ask for: what the generator may, and was seen to, offer."""
        ceiling = self.goal.rate_max_per_s or HIGHEST_PER_S
        held = max((rate for rate, load in self.loads.items() if load.ratios), default=0.0)
        limited = [trial for trial in self.trials if trial.state is TrialState.GENERATOR_LIMITED]
        for trial in limited:
            if _times_at(trial.request.rate_per_s, limited) >= _LIMITED_TRIALS:
                ceiling = min(ceiling, max(_can_offer(trial), held))
        return ceiling

    def first_load_per_s(self, prior: Prior | None) -> float:
        """Load to begin with: the prior's, as far as a trial there can tell anything."""
        if prior is None:
            return self.goal.rate_start_per_s
        floor = self.floor_per_s(self.goal.rate_start_per_s)
        return min(max(prior.rate_per_s, floor), self.ceiling_per_s)

    def floor_per_s(self, start_per_s: float) -> float:
        """Lowest load to ask for in a search that began at `start_per_s`.

        Fewer requests in a trial have no mean response worth the name.
        """
        highest = self.goal.rate_max_per_s or HIGHEST_PER_S
        start = min(max(start_per_s, _START_MIN_PER_S), self.goal.rate_start_per_s, highest)
        fewest = _REQUESTS_MIN / self.run_length_s
        return max(min(fewest, start / 16), start / _DESCENT_MAX)

    def _at_ceiling(self) -> Ending:
        """End a search that wants more load than can be offered."""
        ceiling = self.ceiling_per_s
        if any(trial.state is TrialState.GENERATOR_LIMITED for trial in self.trials):
            sentence = (
                f"The generator offers no more than about {ceiling:.6g} requests/s, and the server "
                "is not saturated there."
            )
            return Ending(PeakVerdict.GENERATOR_LIMITED, sentence)
        sentence = f"Not saturated at {ceiling:.6g} requests/s, the highest rate it may be offered."
        return Ending(PeakVerdict.NEVER_SATURATED, sentence)

    def _obstacle(self) -> TrialRequest | Ending | None:
        """What trials that say nothing make necessary, whatever the policy."""
        states = [trial.state for trial in self.trials]
        if not states:
            return None
        if states[-_FAILED_IN_A_ROW_MAX:] == [TrialState.FAILED] * _FAILED_IN_A_ROW_MAX:
            why = self.trials[-1].failure or "no reason given"
            sentence = f"{_FAILED_IN_A_ROW_MAX} trials in a row failed: {why}"
            return Ending(PeakVerdict.FAILED, sentence)
        if states[-1] is TrialState.FAILED or self._limited_by_chance():
            return self.trials[-1].request
        if states.count(TrialState.GENERATOR_LIMITED) >= _LIMITED_MAX:
            sentence = "The generator fell short of the rate again and again."
            return Ending(PeakVerdict.GENERATOR_LIMITED, sentence)
        if states.count(TrialState.SERVER_LOST) >= _LOST_MAX:
            sentence = f"The server was lost in {_LOST_MAX} trials."
            return Ending(PeakVerdict.SERVER_LOST, sentence)
        return None

    def _limited_by_chance(self) -> bool:
        """Whether the generator fell short in the last trial, for the first time at its load."""
        last = self.trials[-1]
        limited = [trial for trial in self.trials if trial.state is TrialState.GENERATOR_LIMITED]
        return last in limited and _times_at(last.request.rate_per_s, limited) < _LIMITED_TRIALS

    def _in_time(self, request: TrialRequest) -> TrialRequest | Ending:
        """Keep within the deadline: a trial that cannot end before it is not begun."""
        deadline_s = self.goal.deadline_s
        if deadline_s is None:
            return request
        extra_s = [
            trial.cost_s - trial.measured.seconds
            for trial in self.trials
            if trial.measured is not None
        ]
        expected_s = request.seconds + (sum(extra_s) / len(extra_s) if extra_s else 0.0)
        if self.cost_s + expected_s <= deadline_s:
            return request
        sentence = (
            f"The next trial would not end within the deadline of {deadline_s:.6g} s; "
            f"{self.cost_s:.6g} s are spent."
        )
        return Ending(PeakVerdict.DEADLINE, sentence)

    def _as_asked(self, ending: Ending, half: float | None) -> Ending:
        """Keep "found" to answers whose interval is within the error that was asked for."""
        if ending.verdict is not PeakVerdict.FOUND or not self.states_interval:
            return ending
        if half is not None and half <= self.goal.error_frac * (1 + ROUNDING):
            return ending
        known = "has no interval" if half is None else f"is known to {half:.1%} only"
        sentence = f"{ending.sentence} But the rate {known}; {self.goal.error_frac:.1%} was asked."
        return Ending(PeakVerdict.GAVE_UP, sentence)

    def _answer(self, ending: Ending) -> PeakRate:
        threshold = self.goal.threshold
        rows = load_rows(self.loads.values(), threshold, self.goal.confidence)
        lower, upper = self._relevant_bounds(rows)
        rate = self._estimate() if ending.verdict in _NUMBERED else None
        half = rate.half_width_frac if rate is not None else None
        ending = self._as_asked(ending, half)
        return PeakRate(
            policy=self.name,
            verdict=ending.verdict,
            rate_per_s=rate,
            accuracy=None if half is None else max(0.0, 1 - half),
            confidence=self.goal.confidence,
            cost_s=self.cost_s,
            trials=len(self.trials),
            loads=rows,
            limited_by=_LIMITED_BY[ending.verdict],
            run_length_s=self.run_length_s,
            lower_bound_per_s=lower,
            upper_bound_per_s=upper,
            sentences=(ending.sentence, *([] if half is None else self.interval_notes)),
            findings=self._findings(),
            disturbed=tuple(self.aside),
        )


_NUMBERED = (PeakVerdict.FOUND, PeakVerdict.DEADLINE, PeakVerdict.GAVE_UP, PeakVerdict.IRREGULAR)
"""Verdicts that can come with a number."""


def _can_offer(trial: Trial) -> float:
    """Rate to ask of a generator that fell short in this trial."""
    asked = trial.request.rate_per_s
    if trial.can_offer_per_s is not None:
        return min(trial.can_offer_per_s, asked) * _BELOW_OFFERED
    if trial.measured is None or not 0 < trial.measured.offered_per_s < asked:
        return asked / 2
    return trial.measured.offered_per_s * _BELOW_OFFERED


def _times_at(rate_per_s: float, trials: Sequence[Trial]) -> int:
    return sum(trial.request.rate_per_s == rate_per_s for trial in trials)
