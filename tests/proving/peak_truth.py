"""The true peak rate of a simulated server, found by brute force, and kept.

The peak rate is a property of trials of a stated length (`Goal.run_length_s`): the rate at which
their *expected* response is at the threshold, the expectation taken over everything that differs
from trial to trial: arrivals, service times, drift, speed, mode. So

- of a server with two modes it is the root of the mixture, not the peak of either mode;
- of a server that gets less done under more load, whose trials near the peak either stay well or
  collapse, it is where collapses are just frequent enough to lift the mean to the threshold.

With a percentile in the threshold the expectation is of the share of responses over `limit_ms`,
and the root is where that share is `1 - percentile` (SH08 §3.3). With both, the lower one counts.
"""

from __future__ import annotations

import functools
import hashlib
import math
import os
from itertools import count
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from leadline.engine.simulated import run_here
from leadline.record.job import Offer, TrialJob
from leadline.record.workbench import Goal, Sample, SimulatedServer, Threshold

CACHE = Path("build/truth")
"""Where truths found here are kept: one file each, named by what they are the truth of."""

PUBLISHED = "peak_truths.json"
"""Truths that come with the package: the population's and the grids'."""

PARTS_PUBLISHED = Path(__file__).parents[3] / "bench" / "results" / "server_truths.json"
"""Truths of the servers made of parts, and of other populations; of a checkout."""

METHOD = 1
"""Raised when what is computed here changes its meaning; old truths are then not found any more."""

SE_FRAC = 0.0025
"""Standard error of a truth, as a fraction: half of its 95% interval is below 0.5%."""

_FIRST_SEED = 1 << 40
"""No search uses these seeds."""
_TRIALS_MAX = 60_000
_WIDTH_MIN, _WIDTH_MAX = 0.006, 0.1
"""Half the window of loads, as fractions, from which the root is read."""
_RISE = 0.6
"""About how much the logarithm of the expectation changes from the window's middle to its end:
so little that a parabola is enough, so much that noise does not hide it."""
_ROUND = 96
"""Trials at a time, while the window moves."""

Floats = NDArray[np.float64]


class Truth(msgspec.Struct, frozen=True, kw_only=True):
    """A true peak rate, and how hard it is to find."""

    rate_per_s: float
    se_frac: float
    """Its standard error, as a fraction."""
    slope: float
    """Fractional rise of the expected response for each of the load, at the peak."""
    noise_frac: float
    """Standard deviation of the peak as one trial at it would tell it, as a fraction:
    that of the trial's response, divided by the slope."""
    exceeding: float
    """Share of the trials at the peak whose response is above the expected one, the threshold.
    Far from a half, the usual trial is not the expected one."""
    trials: int


class NoPeak(RuntimeError):
    """The simulated server has no peak rate for this goal, or none that can be computed."""


def truth(
    server: SimulatedServer,
    goal: Goal,
    sample: Sample | None = None,
    *,
    cache: Path | None = CACHE,
    se_frac: float = SE_FRAC,
) -> Truth:
    """Return the true peak rate, from the package, from the cache, or computed in a few seconds.

    Args:
        server: whose.
        goal: its threshold and run length decide; nothing else of it.
        sample: levels of factors that replace fields of the server.
        cache: folder of the truths computed so far; None keeps nothing.
        se_frac: standard error of one that is not known yet, as a fraction.

    Raises:
        NoPeak: the unloaded server is over the threshold already, or no load saturates it.

    """
    system = dict(server.system) | dict(sample or {})
    key = _key(system, goal)
    found = known_truth(key, cache)
    if found is None:
        found = compute_truth(system, goal, se_frac)
        keep_truth(key, found, cache)
    return found


def known_truth(key: str, cache: Path | None = CACHE) -> Truth | None:
    """Return the truth of this key from the package or the cache: the better of both."""
    found = [item for item in (_published().get(key), _kept(key, cache)) if item is not None]
    return min(found, key=lambda item: item.se_frac, default=None)


def keep_truth(key: str, found: Truth, cache: Path | None = CACHE) -> None:
    """Put a truth into the cache, whole or not at all."""
    if cache is None:
        return
    cache.mkdir(parents=True, exist_ok=True)
    part = cache / f"{key}.{os.getpid()}"
    part.write_bytes(msgspec.json.encode(found))
    part.replace(cache / f"{key}.json")


def _kept(key: str, cache: Path | None) -> Truth | None:
    if cache is None or not (path := cache / f"{key}.json").exists():
        return None
    return msgspec.json.decode(path.read_bytes(), type=Truth)


def compute_truth(
    system: Sample | dict[str, object], goal: Goal, se_frac: float = SE_FRAC, at_once: int = _ROUND
) -> Truth:
    """Compute a true peak rate anew, some trials at once; see `truth`."""
    thresholds = _single(goal.threshold)
    found = [_Root(system, one, goal.run_length_s, se_frac, at_once).find() for one in thresholds]
    return min(found, key=lambda item: item.rate_per_s)


def truth_key(server: SimulatedServer, goal: Goal, sample: Sample | None = None) -> str:
    """Return the name under which a truth is kept: a digest of all that decides it."""
    return _key(dict(server.system) | dict(sample or {}), goal)


def _key(system: object, goal: Goal) -> str:
    limit = goal.threshold
    decides = {
        "method": METHOD,
        "system": system,
        "threshold": [limit.mean_ms, limit.percentile, limit.limit_ms],
        "run_length_s": goal.run_length_s,
    }
    text = msgspec.json.encode(decides, order="deterministic")
    return hashlib.sha256(text).hexdigest()[:24]


@functools.cache
def _published() -> dict[str, Truth]:
    text = Path(__file__).with_name(PUBLISHED).read_bytes()
    return msgspec.json.decode(text, type=dict[str, Truth]) | published_parts()


def published_parts() -> dict[str, Truth]:
    """Return the truths of servers made of parts; none without a checkout."""
    if not PARTS_PUBLISHED.exists():
        return {}
    return msgspec.json.decode(PARTS_PUBLISHED.read_bytes(), type=dict[str, Truth])


def _single(threshold: Threshold) -> list[Threshold]:
    """The mean and the percentile, each for itself."""
    found = []
    if threshold.mean_ms is not None:
        found.append(Threshold(mean_ms=threshold.mean_ms))
    if threshold.percentile is not None:
        found.append(Threshold(percentile=threshold.percentile, limit_ms=threshold.limit_ms))
    if not found:
        raise NoPeak("the goal states no threshold")
    return found


class _Root:
    """Looks for the load whose expected response, over the threshold, is 1.

    First roughly, by halving on means of a few trials; then from trials spread over a narrow
    window of loads, by a regression of the expectation's logarithm on the load.
    """

    def __init__(
        self,
        system: dict[str, Any],
        threshold: Threshold,
        run_length_s: float,
        se_frac: float,
        at_once: int,
    ) -> None:
        self._system = system
        self._threshold = threshold
        self._seconds = run_length_s
        self._se_frac = se_frac
        self._round = at_once
        self._seeds = count(_FIRST_SEED)
        self._spread = np.random.default_rng(1)
        self._loads: list[float] = []
        """Logarithms."""
        self._values: list[float] = []

    def find(self) -> Truth:
        """Return the root with its error."""
        centre, width, trials = math.log(self._roughly()), 0.06, self._round
        while True:
            self._run_around(centre, width, trials)
            fit = _Fit.of(self._loads, self._values, centre, width)
            root = centre + min(width, max(-width, fit.root))
            inside = abs(fit.root) < 0.3 * width
            wanted = min(_WIDTH_MAX, max(_WIDTH_MIN, _RISE / max(fit.slope, 1.0)))
            settled = inside and 0.6 < width / wanted < 1.7
            if settled and fit.se <= self._se_frac:
                return self._truth(root, fit)
            if len(self._loads) >= _TRIALS_MAX:
                raise NoPeak(f"not found to {self._se_frac:.1%} in {_TRIALS_MAX} trials")
            centre, width = root, wanted if not settled else width
            trials = self._round
            if settled:
                needed = fit.trials * (fit.se / self._se_frac) ** 2 * 1.1 - fit.trials
                trials = int(min(max(needed, self._round), 4 * fit.trials))

    def _truth(self, root: float, fit: _Fit) -> Truth:
        return Truth(
            rate_per_s=math.exp(root),
            se_frac=fit.se,
            slope=fit.slope,
            noise_frac=fit.noise / fit.slope,
            exceeding=fit.exceeding,
            trials=len(self._loads),
        )

    def _roughly(self) -> float:
        """Return a load whose mean over a few trials is about the threshold's."""
        low, high = 0.0, 25.0
        while self._mean_of(high, 2, min(self._seconds, 30.0)) < 1.0:
            low, high = high, high * 2.0
            if high > 1e6:
                raise NoPeak("not even a million requests per second saturate it")
        while low == 0.0:
            half = high / 2.0
            if half * self._seconds < 20:
                raise NoPeak("it is over the threshold without any load")
            low, high = (half, high) if self._mean_of(half, 8) < 1.0 else (0.0, half)
        while high / low > 1.06:
            middle = math.sqrt(low * high)
            low, high = (middle, high) if self._mean_of(middle, 8) < 1.0 else (low, middle)
        return math.sqrt(low * high)

    def _mean_of(self, rate_per_s: float, trials: int, seconds: float | None = None) -> float:
        found = [self._trial(rate_per_s, seconds or self._seconds) for _ in range(trials)]
        return float(np.mean(found))

    def _run_around(self, centre: float, width: float, trials: int) -> None:
        """Most near the centre, where the root is read; some far, for the slope."""
        near = self._spread.random(trials) < 0.65
        places = self._spread.uniform(-1.0, 1.0, trials) * np.where(near, 0.3, 1.0) * width
        for place in places:
            load = centre + float(place)
            self._loads.append(load)
            self._values.append(self._trial(math.exp(load), self._seconds))

    def _trial(self, rate_per_s: float, seconds: float) -> float:
        """Response of one trial over the threshold; its logarithm is what the peak sets to 0."""
        offer = Offer(
            rate_per_s=rate_per_s,
            seconds=seconds,
            seed=next(self._seeds),
            limit_ms=self._threshold.limit_ms,
        )
        measured = run_here(TrialJob(server=self._system, order=offer))
        if self._threshold.mean_ms is not None:
            response = measured.response_ms
            return 0.0 if response is None else response.mean / self._threshold.mean_ms
        over = sum(batch.over for batch in measured.batches)
        share = over / max(1, sum(batch.due for batch in measured.batches))
        return share / (1.0 - (self._threshold.percentile or 0.0))


class _Fit(msgspec.Struct, frozen=True, kw_only=True):
    """`ln E[value] = a + b u + c u²`, where u is the load's logarithm less the centre's."""

    root: float
    se: float
    slope: float
    noise: float
    """Coefficient of variation of one trial at the root."""
    exceeding: float
    trials: int

    @staticmethod
    def of(loads: list[float], values: list[float], centre: float, width: float) -> _Fit:
        """Fit by quasi-likelihood: variance proportional to the squared mean, log link.

        The estimating equations are unbiased for the expectation whatever the distribution; the
        standard error is the sandwich, which assumes no distribution either.
        """
        u = np.array(loads) - centre
        use = np.abs(u) <= 1.05 * width
        u, y = u[use], np.array(values)[use]
        x = np.column_stack([np.ones_like(u), u / width, (u / width) ** 2])
        bread = np.linalg.inv(x.T @ x)
        beta = np.array([math.log(max(float(y.mean()), 1e-9)), 0.0, 0.0])
        for _ in range(100):
            mu = np.exp(np.clip(x @ beta, -20.0, 20.0))
            step = bread @ (x.T @ (y / mu - 1.0))
            beta = beta + step / max(1.0, float(np.abs(step).max()))
            if float(np.abs(step).max()) < 1e-10:
                break
        mu = np.exp(np.clip(x @ beta, -20.0, 20.0))
        residual = y / mu - 1.0
        spread = bread @ ((x * (residual**2)[:, None]).T @ x) @ bread
        v = _root_of(beta)
        slope = float(beta[1] + 2.0 * beta[2] * v) / width
        direction = np.array([1.0, v, v * v])
        variance = float(direction @ spread @ direction)
        near = np.abs(u - v * width) <= 0.35 * width
        enough = int(near.sum()) >= 8
        return _Fit(
            root=v * width,
            se=math.sqrt(max(variance, 0.0)) / max(abs(slope), 1e-9),
            slope=slope,
            noise=float(np.sqrt(np.mean(residual[near] ** 2))) if enough else math.inf,
            exceeding=float(np.mean(residual[near] > 0.0)) if enough else math.nan,
            trials=len(y),
        )


def _root_of(beta: Floats) -> float:
    """Where `a + b v + c v²` is 0, on the rising side; the window's edge when nowhere near."""
    a, b, c = (float(value) for value in beta)
    inner = b * b - 4.0 * a * c
    if inner >= 0.0 and b > 0.0:
        return max(-3.0, min(3.0, -2.0 * a / (b + math.sqrt(inner))))
    return 3.0 if a < 0.0 else -3.0
