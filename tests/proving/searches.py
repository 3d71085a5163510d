"""Searches for the peak rates of simulated servers, and how they are held against the truth."""

from __future__ import annotations

import math
import time
from random import Random

import msgspec

from leadline.record.workbench import Goal, PeakRate, Prior, SimulatedServer, TrialOrder
from leadline.servers import run_trial
from leadline.studies.workbench.policies import open_policy

PRIOR_SD_LOG = 0.25
"""A seed is off by a quarter, one standard deviation: as far as one sample's peak is from the
next one's on a surface."""
TRIALS_MAX = 3000
"""A search that runs longer does not end by itself."""


class Search(msgspec.Struct, frozen=True, kw_only=True):
    """One finished search of one server, with what only a simulation knows."""

    policy: str
    server: str
    kind: str
    seed: int
    truth_per_s: float
    truth_se_frac: float
    verdict: str
    """Of the answer; "endless" or "fault: …" where there is none."""
    rate_per_s: float | None = None
    low_per_s: float | None = None
    high_per_s: float | None = None
    accuracy: float | None = None
    lower_bound_per_s: float | None = None
    upper_bound_per_s: float | None = None
    response_ms: float | None = None
    """Mean response seen at the load nearest to the rate."""
    cost_s: float = 0.0
    trials: int = 0
    loads_per_s: tuple[float, ...] = ()
    """In the order they were tried, one for each trial."""
    policy_s: float = 0.0
    """Processor time of the policy itself."""

    @property
    def error_frac(self) -> float | None:
        """Of the rate, as a fraction of the truth."""
        return None if self.rate_per_s is None else self.rate_per_s / self.truth_per_s - 1.0

    @property
    def has_interval(self) -> bool:
        """Whether it stated one."""
        return self.low_per_s is not None and self.high_per_s is not None

    @property
    def covers(self) -> bool:
        """Whether the stated interval holds the truth."""
        low, high = self.low_per_s, self.high_per_s
        return low is not None and high is not None and low <= self.truth_per_s <= high

    @property
    def bounds_hold(self) -> bool | None:
        """Whether the truth lies between both bounds; None where one is missing."""
        low, high = self.lower_bound_per_s, self.upper_bound_per_s
        return None if low is None or high is None else low <= self.truth_per_s <= high

    def within(self, frac: float) -> bool:
        """Whether the rate is that near the truth; a search without a rate is not."""
        error = self.error_frac
        return error is not None and abs(error) <= frac


def seed_for(truth_per_s: float, seed: int, sd_log: float = PRIOR_SD_LOG) -> Prior:
    """Return what a neighbour on a surface would say of this peak."""
    random = Random(f"leadline prior {seed} {truth_per_s!r}")
    rate_per_s = truth_per_s * math.exp(random.gauss(0.0, sd_log))
    return Prior(rate_per_s=rate_per_s, sd_log=sd_log)


def simulate_search(
    policy: str, server: SimulatedServer, goal: Goal, seed: int, prior: Prior | None = None
) -> tuple[PeakRate | None, tuple[float, ...], float]:
    """Run one search in virtual time.

    Args:
        policy: one of `POLICIES`.
        server: the server searched.
        goal: what is to be reached; its deadline is kept.
        seed: of the policy, and of the trials: their order gives each its own.
        prior: what the policy is told beforehand.

    Returns:
        The answer, or None after `TRIALS_MAX` trials; the loads tried; and the processor time
        of the policy in seconds.

    """
    begin_s = time.process_time()
    search = open_policy(policy, goal, seed, prior)
    policy_s = time.process_time() - begin_s
    loads: list[float] = []
    while len(loads) < TRIALS_MAX:
        begin_s = time.process_time()
        asked = search.ask()
        policy_s += time.process_time() - begin_s
        if isinstance(asked, PeakRate):
            return asked, tuple(loads), policy_s
        trial = run_trial(
            TrialOrder(
                server=server,
                sample={},
                threshold=goal.threshold,
                request=asked,
                order=len(loads),
                seed=seed * 1_000_003 + len(loads),
            )
        )
        loads.append(asked.rate_per_s)
        begin_s = time.process_time()
        search.tell(trial)
        policy_s += time.process_time() - begin_s
    return None, tuple(loads), policy_s
