"""The peak rate of a server of the model: where its expected response is at the threshold."""

from __future__ import annotations

import numpy as np

from leadline.studies.workbench.belief.likelihood import COARSE, Trials
from leadline.studies.workbench.belief.open_queue import (
    Floats,
    backlog_left,
    past,
    positive_part,
    wandering,
    window_weight,
)
from leadline.studies.workbench.belief.reading import Aim
from leadline.studies.workbench.belief.server import Servers

RETROGRADE_KEPT = 0.15
"""Part of the retrograde gap in capacity that the peak keeps: collapses must be rare there."""
_HALVINGS = 19
_NODE_WEIGHTS = np.exp(-0.5 * COARSE**2) / np.exp(-0.5 * COARSE**2).sum()


def log_peak(servers: Servers, aim: Aim, run_length_s: float, warm_up_s: float) -> Floats:
    """Logarithm of the rate at which trials of the run length are expected at the threshold."""
    low, high = np.log(servers.capacity) - 8.0, np.log(servers.capacity) + 1.0
    two = servers.slow_log > 0
    slowed = servers.some(two).slowed()
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        excess = _excess(middle, servers, aim, run_length_s, warm_up_s)
        if two.any():
            slow = _excess(middle[two], slowed, aim, run_length_s, warm_up_s)
            excess[two] += slowed.slow_share * (slow - excess[two])
        high = np.where(excess > 0, middle, high)
        low = np.where(excess > 0, low, middle)
    return np.asarray((low + high) / 2)


def _excess(
    log_rate: Floats, servers: Servers, aim: Aim, run_length_s: float, warm_up_s: float
) -> Floats:
    """Expected response less the threshold; of a percentile, share over the limit less 1 - P."""
    rate = np.exp(log_rate) / (1 + servers.retrograde) ** RETROGRADE_KEPT
    if aim.over_frac is None:
        return _mean_s(rate, servers, run_length_s, warm_up_s) - aim.limit_s
    trials = Trials(rate, warm_up_s, run_length_s, servers)
    percentile_s, _ = trials.part(warm_up_s, warm_up_s + run_length_s, aim)
    over = aim.over_frac ** (aim.limit_s / percentile_s)
    return np.asarray(over @ _NODE_WEIGHTS - aim.over_frac)


def _mean_s(rate: Floats, servers: Servers, run_length_s: float, warm_up_s: float) -> Floats:
    """Expected mean response of a trial, δ included: Spitzer's identity with all of v(u)."""
    end_s = warm_up_s + run_length_s
    u, weights = past(end_s)
    rho = rate / servers.capacity
    variance = (
        (servers.variance_per_s * np.minimum(rho, 1.0))[:, None] * u
        + wandering(u, servers.wander[:, None], servers.memory_s[:, None])
        + (servers.between * rho)[:, None] ** 2 * u**2
    )
    excess = positive_part((rho - 1)[:, None] * u, variance)
    wait = excess @ (weights * window_weight(u, warm_up_s, end_s))
    wait = np.minimum(rho, 1.0) ** servers.idle_power * wait
    begun = servers.cold * servers.warming_s * rho
    return np.asarray(servers.base_s + wait + backlog_left(begun, rho, warm_up_s, end_s))
