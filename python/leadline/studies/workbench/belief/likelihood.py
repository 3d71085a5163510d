"""How probable a trial is, for many servers at once.

Speed differs from trial to trial by an amount δ that all parts of a trial share: between trials,
and as the mean of the wandering over the window. Given δ, the parts are taken as independent, their
logarithms as Student's t about the model's. The integral over δ is a sum: the model is evaluated
at seven places and interpolated to thirty-one.

A trial that was given up says that the response was above the bound. One that was overloaded says
what the server completes: its completions, step by step, are the capacity, which is filtered
(Kalman) as a constant of the trial plus a wandering, under the noise of the service itself.
"""

from __future__ import annotations

import numpy as np
from scipy.special import ndtr

from leadline.studies.workbench.belief.open_queue import (
    Floats,
    backlog_left,
    fluctuation,
    past,
    positive_part,
    wandering,
    window_weight,
)
from leadline.studies.workbench.belief.reading import Aim, Busy, Part, Reading
from leadline.studies.workbench.belief.server import Servers

COARSE = np.linspace(-3.0, 3.0, 7)
_FINE = np.linspace(-3.0, 3.0, 31)
_LOG_WEIGHTS = -0.5 * _FINE**2 - np.log(np.exp(-0.5 * _FINE**2).sum())
_INTERPOLATE = np.maximum(0.0, 1 - np.abs(_FINE[None, :] - COARSE[:, None]))

MISFIT = 0.08
"""Standard deviation of the logarithm of a response that the model leaves unexplained."""
_TAILS = 5.0
"""Degrees of freedom of Student's t."""
RETROGRADE_UNLOADED = 0.6
"""Part of the retrograde gap in capacity that a server near its threshold still keeps."""
_STRANGE = 0.01
"""Probability that a trial was given up for a reason the model knows nothing of."""
_SPEED_VARIANCE_MAX = 2.0
_AT_ONCE = 250
"""Servers at a time: what they need then stays in the processor's cache."""
_DEEP_S = 0.5
"""A response beyond this is cut short by the generator's own patience."""


def log_likelihood(reading: Reading, servers: Servers, aim: Aim) -> Floats:
    """Logarithm of a trial's probability density, for each server."""
    count = len(servers.capacity)
    rows = [np.arange(at, min(at + _AT_ONCE, count)) for at in range(0, count, _AT_ONCE)]
    return np.concatenate([_in_either_mode(reading, servers.some(row), aim) for row in rows])


def _in_either_mode(reading: Reading, servers: Servers, aim: Aim) -> Floats:
    found = _in_mode(reading, servers, aim)
    two = servers.slow_log > 0
    if two.any():
        some = servers.some(two)
        slow = _in_mode(reading, some.slowed(), aim)
        found[two] = np.logaddexp(
            np.log1p(-some.slow_share) + found[two], np.log(some.slow_share) + slow
        )
    return found


def _in_mode(reading: Reading, servers: Servers, aim: Aim) -> Floats:
    if reading.overloaded and reading.busy is not None:
        return _completions(reading.busy, servers)
    return _responses(reading, servers, aim)


class Trials:
    """Trials of some servers at one rate each, for several δ: what to expect of their parts."""

    def __init__(
        self, rate_per_s: Floats, warm_up_s: float, seconds: float, servers: Servers
    ) -> None:
        """Begin trials, each server at its own rate."""
        self._servers = servers
        self._seconds = seconds
        horizon_s = warm_up_s + seconds
        self._u, weights = past(horizon_s)
        wander, memory_s = servers.wander[:, None], servers.memory_s[:, None]
        whole = wandering(seconds, wander, memory_s)
        self.spread = np.minimum(np.sqrt(servers.between**2 + whole[:, 0] / seconds**2), 1.0)
        """Standard deviation of δ."""
        self.rho = (rate_per_s / servers.capacity)[:, None] * np.exp(self.spread[:, None] * COARSE)
        self._fast = servers.variance_per_s[:, None] * np.minimum(self.rho, 1.0)
        share = np.minimum(self._u / seconds, 1.0) ** 2
        slow = np.maximum(wandering(self._u, wander, memory_s) - share * whole, 0.0)
        excess = positive_part(
            (self.rho - 1)[:, :, None] * self._u,
            self._fast[:, :, None] * self._u + slow[:, None, :],
        )
        self._integrand = excess * weights
        relax_s = np.clip(self._fast / np.maximum((self.rho - 1) ** 2, 1e-12), 1e-4, seconds / 3)
        left = wandering(relax_s, wander, memory_s) - (relax_s / seconds) ** 2 * whole
        self._whole = whole / seconds**2
        self._variance = self._fast + np.maximum(left, 0.0) / relax_s

    def part(self, from_s: float, to_s: float, aim: Aim) -> tuple[Floats, Floats]:
        """Expected response over a part, and the variance of its logarithm."""
        servers = self._servers
        busy = np.minimum(self.rho, 1.0) ** servers.idle_power[:, None]
        wait = busy * (self._integrand @ window_weight(self._u, from_s, to_s))
        begun = (servers.cold * servers.warming_s)[:, None] * self.rho
        wait = wait + backlog_left(begun, self.rho, from_s, to_s)
        base = _base_s(servers, aim, from_s, to_s)[:, None]
        share = wait / (base + wait)
        variance = np.log1p(fluctuation(self.rho, self._variance, to_s - from_s)) * share**2
        mean = base + wait
        return aim.gain * mean, variance + self._of_speed(mean, to_s - from_s)

    def _of_speed(self, mean: Floats, seconds: float) -> Floats:
        """Variance of a part's logarithm because its speed is not that of the whole window."""
        servers = self._servers
        own = wandering(seconds, servers.wander, servers.memory_s)[:, None] / seconds**2
        steepness = np.gradient(np.log(mean), axis=1) / self.spread[:, None]
        return np.minimum(steepness**2 * np.maximum(own - self._whole, 0.0), _SPEED_VARIANCE_MAX)


def _base_s(servers: Servers, aim: Aim, from_s: float, to_s: float) -> Floats:
    """Unloaded response, in units of the gain, as far as it is still cold."""
    tail = np.ones_like(servers.tail) if aim.over_frac is None else servers.tail
    late = np.exp(-from_s / servers.warming_s) - np.exp(-to_s / servers.warming_s)
    cold = servers.cold * late * servers.warming_s / (to_s - from_s)
    return np.asarray(servers.base_s * tail * (1 + cold))


def _responses(reading: Reading, servers: Servers, aim: Aim) -> Floats:
    rate = reading.rate_per_s / (1 + servers.retrograde) ** RETROGRADE_UNLOADED
    trials = Trials(rate, reading.warm_up_s, reading.seconds, servers)
    total = np.zeros((len(rate), len(_FINE)))
    for part in reading.parts:
        mean, variance = trials.part(part.from_s, part.to_s, aim)
        total += _density(part, mean, variance, servers)
    if reading.abort_above_s is not None:
        end_s = reading.warm_up_s + reading.seconds
        mean, variance = trials.part(reading.warm_up_s, end_s, Aim(aim.limit_s, None))
        sd = np.sqrt((variance + MISFIT**2) @ _INTERPOLATE)
        above = ndtr((np.log(mean) @ _INTERPOLATE - np.log(reading.abort_above_s)) / sd)
        total += np.log(_STRANGE + (1 - _STRANGE) * above)
    total += _LOG_WEIGHTS
    top = total.max(axis=1)
    return np.asarray(top + np.log(np.exp(total - top[:, None]).sum(axis=1)))


def _density(part: Part, mean: Floats, variance: Floats, servers: Servers) -> Floats:
    """Student's t of one part's logarithm, on the fine grid of δ."""
    counted = part.count_variance * np.maximum(2 * servers.variability - 1, 0.1)
    whole = variance + counted[:, None] + MISFIT**2
    if part.log_s > np.log(_DEEP_S):
        whole = whole + 0.3**2
    middle = (np.log(mean) - 0.5 * variance) @ _INTERPOLATE
    sd = np.sqrt(whole @ _INTERPOLATE)
    return student_t_log(part.log_s - middle, sd)


def student_t_log(residual: Floats, sd: Floats) -> Floats:
    """Log density of Student's t with a scale, without its constant."""
    return np.asarray(-0.5 * (_TAILS + 1) * np.log1p((residual / sd) ** 2 / _TAILS) - np.log(sd))


def _completions(busy: Busy, servers: Servers) -> Floats:
    """Filter the capacity of one trial: constant δ plus wandering, seen through completions."""
    own = np.maximum(1 - 0.5 / servers.variability, 0.15)
    noise = servers.variance_per_s * own / busy.step_s + 5e-6
    keeps = np.exp(-busy.step_s / servers.memory_s)
    kick = servers.wander**2 * (1 - keeps**2)
    between = servers.between**2 + 1e-6
    shared = np.zeros_like(keeps)
    wander = servers.wander**2
    trial_mean, wander_mean, total = (
        np.zeros_like(keeps),
        np.zeros_like(keeps),
        np.zeros_like(keeps),
    )
    for step, seen in enumerate(busy.log_rates):
        if step:
            wander_mean, shared, wander = (
                keeps * wander_mean,
                keeps * shared,
                keeps**2 * wander + kick,
            )
        at_s = busy.from_s + (step + 0.5) * busy.step_s
        cold = np.log1p(servers.cold * np.exp(-at_s / servers.warming_s))
        expected = np.log(servers.capacity) - cold + trial_mean + wander_mean
        variance = between + 2 * shared + wander + noise
        total += student_t_log(seen - expected, np.sqrt(variance))
        of_trial, of_wander = between + shared, shared + wander
        gain = (seen - expected) / variance
        trial_mean, wander_mean = trial_mean + of_trial * gain, wander_mean + of_wander * gain
        between, shared, wander = (
            between - of_trial**2 / variance,
            shared - of_trial * of_wander / variance,
            wander - of_wander**2 / variance,
        )
    return total
