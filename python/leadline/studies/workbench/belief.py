"""What trials let one believe of a server: a model of its queue, and a posterior over it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from scipy.special import ndtr, ndtri

from leadline import _engine
from leadline.record.workbench import Prior
from leadline.studies.workbench.reading import Aim, Floats, Reading

# How probable a trial is, for many servers at once.
#
# The model and what is made of a trial are in Rust (crates/stats/src/belief/mod.rs); here is how
# NumPy's arrays get there and back.


def log_likelihood(reading: Reading, servers: Servers, aim: Aim) -> Floats:
    """Logarithm of a trial's probability density, for each server."""
    return np.frombuffer(_engine.log_likelihood(reading, servers, aim))


def student_t_log(residual: Floats, sd: float) -> Floats:
    """Log density of Student's t with a scale, without its constant."""
    return np.frombuffer(_engine.student_t_log(residual, sd))


# The peak rate of a server of the model: where its expected response is at the threshold.


def log_peak(servers: Servers, aim: Aim, run_length_s: float, warm_up_s: float) -> Floats:
    """Logarithm of the rate at which trials of the run length are expected at the threshold."""
    return np.frombuffer(_engine.log_peak(servers, aim, run_length_s, warm_up_s))


# What a server is to the model: a few numbers, drawn many at a time, and what is known before.
#
# Every number is a standard normal when nothing is known, mapped to its range by `unpack`. The
# ranges are those of real servers as LITERATURE §1.2 and §3 find them: speed that wanders by a few
# per cent over seconds to minutes, one or two per cent between trials, now and then a cold start, a
# service that slows down under a backlog, a second mode.

NAMES = (
    "concurrency",
    "base",
    "variability",
    "wander",
    "memory",
    "between",
    "retrograde",
    "cold",
    "warming",
    "tail",
    "two_modes",
    "slow_share",
    "slow_factor",
    "stalls",
    "stall_every",
    "stall",
)
DIMENSIONS = len(NAMES)

_LOG_NORMAL = {
    "concurrency": (4.0, 1.6),
    "base": (0.2, 0.9),
    "variability": (1.35, 0.8),
    "wander": (0.035, 0.8),
    "memory": (18.0, 0.8),
    "between": (0.012, 0.8),
    "retrograde": (0.02, 1.5),
    "cold": (0.1, 1.5),
    "warming": (2.5, 0.6),
    "tail": (0.75, 0.4),
    "slow_factor": (0.3, 0.6),
    "stall_every": (25.0, 1.0),
    "stall": (0.1, 1.0),
}
"""Median and standard deviation of the logarithm. `base` is in units of the threshold;
`slow_factor` is how much slower, as a logarithm."""

_STALLS_Z = 0.7
"""Above it a server stands still now and then: 24% beforehand."""

_TWO_MODES_Z = 1.2
"""Above it a server has two modes: 11.5% beforehand."""
_SLOW_SHARE = (0.2, 0.8)
"""A mode that is rarer than this would take more trials to see than any search can afford."""
_COLD_MAX = 3.0
_RHO_MAX = 0.95
_FARTHEST = 5.0
"""Beyond, numbers are as at this many standard deviations."""


@dataclass(frozen=True)
class Servers:
    """Many servers, one in each element."""

    capacity: Floats
    """Requests per second that it completes in an overload, in the mean over trials."""
    base_s: Floats
    """Response time without load."""
    variance_per_s: Floats
    """sigma² at full load: variance of the net input per second, in s²/s."""
    stall_rate_per_s: Floats
    """How often it stands still."""
    stall_s: Floats
    """For how long, in the mean; exponential."""
    variability: Floats
    """(1 + cv²)/2 of the service."""
    idle_power: Floats
    """The wait is rho to this power shorter than one fast worker's: workers stand idle
    (Sakasegawa 1977: √(2(k+1)) - 1 in all, of which one is in sigma²)."""
    wander: Floats
    memory_s: Floats
    between: Floats
    retrograde: Floats
    """Capacity without a backlog over that in an overload, less 1."""
    cold: Floats
    """How much slower it begins, as a fraction."""
    warming_s: Floats
    tail: Floats
    """Unloaded percentile over unloaded mean, both in units of the exponential's."""
    slow_share: Floats
    slow_log: Floats
    """Logarithm of how much slower the slow mode is; 0: there is none."""


def unpack(normal: Floats, limit_s: float) -> Servers:
    """Map rows of standard normals to servers; `limit_s` is the threshold on the response."""
    normal = np.clip(normal, -_FARTHEST, _FARTHEST)

    def value(name: str) -> Floats:
        median, sd = _LOG_NORMAL[name]
        return np.asarray(median * np.exp(sd * normal[:, NAMES.index(name)]))

    base_s = value("base") * limit_s
    concurrency = value("concurrency")
    crowd = np.clip(concurrency, 1.0, 200.0)
    variability = value("variability")
    stall_s, stalls = value("stall"), normal[:, NAMES.index("stalls")] > _STALLS_Z
    stall_rate_per_s = np.where(stalls, 1 / value("stall_every"), 0.0)
    has_two = normal[:, NAMES.index("two_modes")] > _TWO_MODES_Z
    low, high = _SLOW_SHARE
    return Servers(
        capacity=concurrency / base_s,
        base_s=base_s,
        variance_per_s=2 * base_s * variability / crowd,
        stall_rate_per_s=stall_rate_per_s,
        stall_s=stall_s,
        variability=variability,
        idle_power=np.sqrt(2 * (crowd + 1)) - 2,
        wander=value("wander"),
        memory_s=value("memory"),
        between=value("between"),
        retrograde=value("retrograde"),
        cold=np.minimum(value("cold"), _COLD_MAX),
        warming_s=value("warming"),
        tail=value("tail"),
        slow_share=low + (high - low) * ndtr(normal[:, NAMES.index("slow_share")]),
        slow_log=np.where(has_two, value("slow_factor"), 0.0),
    )


def toggled(normal: Floats, random: np.random.Generator) -> tuple[Floats, Floats]:
    """Offer servers with one mode a second one, and take it from those with two.

    The capacity stays, or becomes that of what was or will be the slow mode: the trials so far may
    have been in either. Returns the servers, and the logarithm of how much more probable the
    prior and the way back make them.
    """
    mode, capacity = NAMES.index("two_modes"), NAMES.index("concurrency")
    moved = normal.copy()
    had = normal[:, mode] > _TWO_MODES_Z
    chance = random.random(len(normal))
    single = ndtr(_TWO_MODES_Z)
    moved[:, mode] = ndtri(np.where(had, chance * single, single + chance * (1 - single)))
    median, sd = _LOG_NORMAL["slow_factor"]
    slower_log = median * np.exp(sd * normal[:, NAMES.index("slow_factor")])
    shift = np.where(random.random(len(normal)) < 0.5, slower_log, 0.0)
    moved[:, capacity] += np.where(had, -shift, shift) / _LOG_NORMAL["concurrency"][1]
    odds = np.log((1 - single) / single)
    gain = 0.5 * (normal[:, capacity] ** 2 - moved[:, capacity] ** 2)
    return moved, np.asarray(gain + np.where(had, -odds, odds))


# The posterior over servers: particles that are moved with every trial.
#
# Sequential Monte Carlo (Chopin 2002; Del Moral, Doucet and Jasra 2006): a new trial is let in by
# degrees, so that half of the particles keep counting; then they are resampled and each is moved by
# differential-evolution steps (ter Braak 2006), which need no tuning and follow the posterior's
# correlations. All draws come from the seed.

COUNT = 500
MODEL_BIAS_LOG, MODEL_SD_LOG = 0.008, 0.02
"""What the model's own peak is off by, where its parameters are known: over 159 simulated servers
of five classes it is 0.8% low in the mean, with a standard deviation of 2%."""
_KEEP = 0.5
"""Effective part of the particles at each degree."""
_SWEEPS_BETWEEN, _SWEEPS_LAST = 3, 6
_JITTER = 0.02
PRIOR_SD_LOG = 0.25
"""A seed whose sd nobody states (SH08 §3.7: of a similar sample)."""
_PRIOR_SD_LOG_MIN = 0.1
_CAPACITY_OVER_PEAK = 0.1
"""About the logarithm of capacity over peak rate, at usual thresholds."""

_ALL, _EVEN, _ODD = slice(None), slice(0, None, 2), slice(1, None, 2)

Term = Callable[[Floats], Floats]
"""Log likelihood of something known, for rows of particles."""


class Posterior:
    """What is believed of a server after some trials, with regard to one threshold."""

    def __init__(self, aim: Aim, run_length_s: float, seed: int, prior: Prior | None) -> None:
        self._aim = aim
        self._run_length_s = run_length_s
        self._random = np.random.default_rng([seed, round(1e6 * aim.gain)])
        self._terms: list[Term] = []
        self._warm_up_s = 0.0
        self._particles = self._random.standard_normal((COUNT, DIMENSIONS))
        self._likelihood = np.zeros(COUNT)
        self._log_peak: Floats | None = None
        if prior is not None:
            self._let_in(partial(_seed_term, prior, aim.limit_s))

    @property
    def log_capacity(self) -> Floats:
        """Logarithm of the completion rate under overload, one for each particle."""
        return np.asarray(np.log(unpack(self._particles, self._aim.limit_s).capacity))

    @property
    def two_modes(self) -> float:
        """Probability that trials are of two kinds."""
        return float(np.mean(unpack(self._particles, self._aim.limit_s).slow_log > 0))

    @property
    def log_peak(self) -> Floats:
        """Logarithm of the peak rate, one for each particle, sorted."""
        if self._log_peak is None:
            self._log_peak = self._peaks(unpack(self._particles, self._aim.limit_s))
        return self._log_peak

    @property
    def log_peak_unstalled(self) -> Floats:
        """Return the same, did the servers never stand still."""
        servers = unpack(self._particles, self._aim.limit_s)
        return self._peaks(replace(servers, stall_rate_per_s=np.zeros(COUNT)))

    @property
    def stalls_alone(self) -> float:
        """Probability that stalls bring more responses over the limit than may be, at any rate."""
        if self._aim.over_frac is None:
            return 0.0
        servers, limit_s = unpack(self._particles, self._aim.limit_s), self._aim.limit_s
        late_s = servers.stall_s * np.exp(-limit_s / servers.stall_s)
        return float(np.mean(servers.stall_rate_per_s * late_s > self._aim.over_frac))

    def _peaks(self, servers: Servers) -> Floats:
        found = log_peak(servers, self._aim, self._run_length_s, self._warm_up_s)
        random = np.random.default_rng(len(self._terms))
        off = MODEL_BIAS_LOG + MODEL_SD_LOG * random.standard_normal(COUNT)
        return np.asarray(np.sort(found + off))

    def learn(self, reading: Reading) -> None:
        """Take in a trial."""
        self._warm_up_s = reading.warm_up_s
        self._let_in(partial(_reading_term, reading, self._aim))

    def _let_in(self, of_new: Term) -> None:
        new = of_new(self._particles)
        degree = 0.0
        while degree < 1.0:
            step = self._step(new, 1.0 - degree)
            degree += step
            chosen = self._resample(new * step)
            self._particles = self._particles[chosen]
            self._likelihood, new = self._likelihood[chosen], new[chosen]
            for sweep in range(_SWEEPS_LAST if degree >= 1.0 else _SWEEPS_BETWEEN):
                new = self._move(of_new, degree, new, sweep)
        self._likelihood = self._likelihood + new
        self._terms.append(of_new)
        self._log_peak = None

    def _step(self, new: Floats, most: float) -> float:
        """Return how much of a trial may be let in at once."""

        def effective(step: float) -> float:
            weights = np.exp(step * (new - new.max()))
            return float(weights.sum() ** 2 / (weights**2).sum())

        if effective(most) >= _KEEP * COUNT:
            return most
        low, high = 0.0, most
        for _ in range(30):
            middle = (low + high) / 2
            low, high = (middle, high) if effective(middle) >= _KEEP * COUNT else (low, middle)
        return max(low, 1e-6)

    def _resample(self, log_weights: Floats) -> Floats:
        weights = np.exp(log_weights - log_weights.max())
        places = (self._random.random() + np.arange(COUNT)) / COUNT * weights.sum()
        return np.asarray(np.minimum(np.searchsorted(np.cumsum(weights), places), COUNT - 1))

    def _move(self, of_new: Term, degree: float, new: Floats, sweep: int) -> Floats:
        """Offer every particle another place, and take it as the posterior has it.

        One half stands still while the other steps along its differences: a step and its way back
        are then as likely. Were all to move at once, each would step by what is just leaving.
        """
        if sweep % 3 == 2:
            return self._take(_ALL, toggled(self._particles, self._random), of_new, degree, new)
        for half, others in ((_EVEN, _ODD), (_ODD, _EVEN)):
            new = self._take(half, self._stepped(half, others, sweep), of_new, degree, new)
        return new

    def _take(
        self, rows: slice, offered: tuple[Floats, Floats], of_new: Term, degree: float, new: Floats
    ) -> Floats:
        """Move those of the rows whose offered place the posterior takes.

        `offered` are the places, and the logarithm of how much more probable the prior and the
        way back make them.
        """
        moved, gain = offered
        likelihood, with_new = self._of_old(moved), of_new(moved)
        gain = gain + likelihood - self._likelihood[rows] + degree * (with_new - new[rows])
        accepted = np.log(self._random.random(len(moved))) < gain
        places = np.arange(COUNT)[rows][accepted]
        self._particles[places] = moved[accepted]
        self._likelihood[places] = likelihood[accepted]
        new = new.copy()
        new[places] = with_new[accepted]
        return new

    def _stepped(self, half: slice, others: slice, sweep: int) -> tuple[Floats, Floats]:
        """Step each of one half along the difference of two of the others."""
        own, rest = self._particles[half], self._particles[others]
        one, other = self._random.integers(0, len(rest), (2, len(own)))
        scale = (1.0, 0.4)[sweep % 2] * 2.38 / np.sqrt(2 * DIMENSIONS)
        jitter = _JITTER * self._random.standard_normal(own.shape)
        moved = own + scale * (rest[one] - rest[other]) + jitter
        return moved, 0.5 * ((own**2).sum(axis=1) - (moved**2).sum(axis=1))

    def _of_old(self, particles: Floats) -> Floats:
        return sum((term(particles) for term in self._terms), np.zeros(len(particles)))


def _reading_term(reading: Reading, aim: Aim, particles: Floats) -> Floats:
    servers = unpack(particles, aim.limit_s)
    found = log_likelihood(reading, servers, aim)
    return found if reading.stalls is None else found + _stalls_term(reading, servers)


_FALSE_PER_S = 0.003
"""Stretches that look like a stall and are chance."""


def _stalls_term(reading: Reading, servers: Servers) -> Floats:
    """Log density of the stalls of a calm trial: so many, each so long, none shorter than seen.

    A stall of S seconds at a rate r leaves a queue that is gone S / (1 - rho) after its start: all
    responses together are longer by r S² / (2 (1 - rho)).
    """
    assert reading.stalls is not None  # noqa: S101 - only of calm trials
    shortest_s, rate = reading.stalls.shortest_s, reading.rate_per_s
    idle = 1 - np.minimum(rate / servers.capacity, _RHO_MAX)
    expected = servers.stall_rate_per_s * np.exp(-shortest_s / servers.stall_s) + _FALSE_PER_S
    found = -expected * reading.seconds
    for excess_s in reading.stalls.excess_s:
        stall_s = np.sqrt(2 * excess_s * idle / rate)
        own = servers.stall_rate_per_s * np.exp(-stall_s / servers.stall_s) / servers.stall_s
        chance = np.exp(1 - np.maximum(stall_s / shortest_s, 1.0)) * _FALSE_PER_S / shortest_s
        found = found + np.log(own + chance)
    return np.asarray(found)


def _seed_term(prior: Prior, limit_s: float, particles: Floats) -> Floats:
    """A word beforehand, with tails that let trials overrule it."""
    capacity = unpack(particles, limit_s).capacity
    sd = max(prior.sd_log or PRIOR_SD_LOG, _PRIOR_SD_LOG_MIN)
    centre = np.log(prior.rate_per_s) + _CAPACITY_OVER_PEAK
    return student_t_log(np.log(capacity) - centre, sd)
