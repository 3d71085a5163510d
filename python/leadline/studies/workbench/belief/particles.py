"""The posterior over servers: particles that are moved with every trial.

Sequential Monte Carlo (Chopin 2002; Del Moral, Doucet and Jasra 2006): a new trial is let in by
degrees, so that half of the particles keep counting; then they are resampled and each is moved by
differential-evolution steps (ter Braak 2006), which need no tuning and follow the posterior's
correlations. All draws come from the seed.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from leadline.record.workbench import Prior
from leadline.studies.workbench.belief.likelihood import log_likelihood, student_t_log
from leadline.studies.workbench.belief.peak import log_peak
from leadline.studies.workbench.belief.reading import Aim, Reading
from leadline.studies.workbench.belief.server import DIMENSIONS, Floats, toggled, unpack

COUNT = 500
MODEL_BIAS_LOG, MODEL_SD_LOG = 0.008, 0.02
"""What the model's own peak is off by, where its parameters are known: over 159 simulated servers
of five classes it is 0.8 % low in the mean, with a standard deviation of 2 %."""
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
            servers = unpack(self._particles, self._aim.limit_s)
            found = log_peak(servers, self._aim, self._run_length_s, self._warm_up_s)
            random = np.random.default_rng(len(self._terms))
            self._log_peak = np.sort(
                found + MODEL_BIAS_LOG + MODEL_SD_LOG * random.standard_normal(COUNT)
            )
        return self._log_peak

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
    return log_likelihood(reading, unpack(particles, aim.limit_s), aim)


def _seed_term(prior: Prior, limit_s: float, particles: Floats) -> Floats:
    """A word beforehand, with tails that let trials overrule it."""
    capacity = unpack(particles, limit_s).capacity
    sd = max(prior.sd_log or PRIOR_SD_LOG, _PRIOR_SD_LOG_MIN)
    centre = np.log(prior.rate_per_s) + _CAPACITY_OVER_PEAK
    return student_t_log(np.log(capacity) - centre, sd)
