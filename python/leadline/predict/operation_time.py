"""Time per request as a sum over operations and places: the mean of the joint model.

A request is a read or a write; each pays at the first place of the hierarchy, and a miss pays at
the next one too. Time adds, throughput does not (LITERATURE §2.1), so this form carries what a
product of curves cannot: that a larger share of reads matters only where reads and writes differ,
and that a miss hides everything a hit was slow at.

    seconds(x) = sum over operations o and places k of
                 share_o * miss_ok(U) * (U / U_ref)^s_k * e_ok(n, S)
                 * (A_ok (1 - q) + B_ok q + C_ok S / m_ok(S))

    share   read_frac, or 1 - read_frac           q  seq_frac      S  mean request size (at most U)
    miss    1 at the first place; past border j uniform, max(0, 1 - C/U), or smeared, logistic in
            ln(U/C); a scan that passes over all of U keeps nothing of it: weight q^(U/S)
    e       time per request of n at once over that of one: (n^-p (1 - G^p) + G^p)^(1/p); p = 1 is
            the balanced closed network, a large p a bottleneck; G = g m is the share that queues
    m       units (disks, channels) that one request keeps busy, of 1/g there are: the mean of S/u
            held between 1 and 1/g when sizes are exponential; u is the stripe unit
    ln MB/s = ln(S / seconds) - ln 10^6

Every coefficient is a power of e, so no term is ever negative.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from leadline.predict.model import Floats
from leadline.record import Workload

PLACE = 11
"""Parameters of a place: ln A, ln B - ln A and ln C of reads; what writes add to each; logit of
half of g, what writes add to it, ln(p - 1), s, ln of u over the reference size."""
BORDER = 3
"""Parameters of a border: ln C, ln width, what writes add to ln C."""
SIZE_REFERENCE_BYTES = 32768.0
"""C is stated for a request of this size."""
_LN_MB = float(np.log(1e6))


@dataclass(frozen=True)
class Requests:
    """Workloads as the arrays the formula takes; each (workloads,)."""

    ln_unique: Floats
    ln_size: Floats
    read: Floats
    sequential: Floats
    ln_outstanding: Floats

    @staticmethod
    def of(workloads: Sequence[Workload]) -> Requests:
        """Return the arrays of `workloads`; queue depth counts as so many more processes."""
        rows = np.array(
            [
                (
                    w.unique_bytes,
                    min(w.size_mean, w.unique_bytes),
                    w.read_frac,
                    w.seq_frac,
                    w.process_num * w.queue_depth,
                )
                for w in workloads
            ],
            dtype=np.float64,
        ).reshape(-1, 5)
        unique, size, read, sequential, outstanding = rows.T
        return Requests(np.log(unique), np.log(size), read, sequential, np.log(outstanding))


@dataclass(frozen=True)
class OperationTime:
    """The formula for a hierarchy of so many borders; parameters come apart, as one vector."""

    smeared: tuple[bool, ...]
    """Of each border: logistic instead of uniform."""
    ln_unique_reference: float

    @property
    def parameters(self) -> int:
        """Length of the parameter vector: places first, then borders."""
        return PLACE * (len(self.smeared) + 1) + BORDER * len(self.smeared)

    def border(self, index: int) -> int:
        """Where the parameters of a border begin."""
        return PLACE * (len(self.smeared) + 1) + BORDER * index

    def ln_mb_s(self, requests: Requests, theta: Floats) -> tuple[Floats, Floats]:
        """Return ln throughput (workloads,) and its Jacobian (workloads, parameters)."""
        seconds = np.zeros_like(requests.ln_unique)
        slope = np.zeros((requests.ln_unique.size, self.parameters))
        for place in range(len(self.smeared) + 1):
            for write in (False, True):
                self._add(requests, theta, place, write, (seconds, slope))
        return requests.ln_size - np.log(seconds) - _LN_MB, -slope / seconds[:, None]

    def _add(
        self,
        requests: Requests,
        theta: Floats,
        place: int,
        write: bool,
        sums: tuple[Floats, Floats],
    ) -> None:
        """Add the time that one kind of operation spends at one place, and its derivatives."""
        seconds, slope = sums
        first = PLACE * place
        t = theta[first : first + PLACE]
        added = float(write)
        share = 1 - requests.read if write else requests.read
        q = requests.sequential
        random_part = np.exp(t[0] + added * t[3]) * (1 - q)
        sequential_part = np.exp(t[0] + t[1] + added * (t[3] + t[4])) * q
        size = np.exp(requests.ln_size) / SIZE_REFERENCE_BYTES
        busy = _busy_units(size, t[6] + added * t[7], t[10])
        transfer = np.exp(t[2] + added * t[5]) * size / busy.units
        work = random_part + sequential_part + transfer
        e, by_queued, by_power = _stretch(requests.ln_outstanding, busy, t[8])
        distance = requests.ln_unique - self.ln_unique_reference
        common = share * np.exp(t[9] * distance) * e
        miss = np.ones_like(q)
        if place > 0:
            at = self.border(place - 1)
            miss, by_centre, by_width = self._miss(requests, theta[at : at + BORDER], place, added)
            slope[:, at] += common * work * by_centre
            slope[:, at + 1] += common * work * by_width
            slope[:, at + 2] += added * common * work * by_centre
        common = common * miss
        spent = common * work
        seconds += spent
        fixed = common * (random_part + sequential_part)
        slope[:, first] += fixed
        slope[:, first + 1] += common * sequential_part
        slope[:, first + 2] += common * transfer
        slope[:, first + 3] += added * fixed
        slope[:, first + 4] += added * common * sequential_part
        slope[:, first + 5] += added * common * transfer
        by_gain = spent * by_queued * (busy.gain_by_gain + busy.units_by_gain)
        by_gain -= common * transfer * busy.units_by_gain
        slope[:, first + 6] += by_gain
        slope[:, first + 7] += added * by_gain
        slope[:, first + 8] += spent * by_power
        slope[:, first + 9] += spent * distance
        slope[:, first + 10] += (spent * by_queued - common * transfer) * busy.units_by_unit

    def _miss(
        self, requests: Requests, t: Floats, place: int, added: float
    ) -> tuple[Floats, Floats, Floats]:
        """Share that misses, with its derivatives by ln C and ln width."""
        distance = requests.ln_unique - (t[0] + added * t[2])
        beyond = (distance > 0).astype(np.float64)
        if self.smeared[place - 1]:
            scaled = distance * np.exp(-t[1])
            miss = expit(scaled)
            steep = miss * (1 - miss)
            by_centre, by_width = -steep * np.exp(-t[1]), -steep * scaled
        else:
            held = np.exp(-np.maximum(distance, 0.0))
            miss, by_centre, by_width = 1 - held, -held * beyond, np.zeros_like(held)
        # A whole pass over U under LRU finds nothing of a U that does not fit.
        passes = np.exp(np.minimum(requests.ln_size - requests.ln_unique, 0.0) * -1)
        whole = requests.sequential**passes
        return (
            whole * beyond + (1 - whole) * miss,
            (1 - whole) * by_centre,
            (1 - whole) * by_width,
        )


@dataclass(frozen=True)
class _Busy:
    """Units that one request keeps busy, and derivatives of logarithms by the parameters."""

    queued: Floats
    """G, the share of a request's time that queues."""
    units: Floats
    gain_by_gain: float
    units_by_gain: Floats
    units_by_unit: Floats


def _busy_units(size: Floats, gain: float, ln_unit: float) -> _Busy:
    half = float(expit(gain))
    # g may exceed one: more at once is slower.
    g = 2 * half
    by_gain = 1 - half
    disks = max(1.0, 1 / g)
    ratio = size * np.exp(-ln_unit)
    near, far = np.exp(-1 / ratio), np.exp(-disks / ratio)
    units = 1 + ratio * (near - far)
    by_ratio = near * (1 + 1 / ratio) - far * (1 + disks / ratio)
    by_disks = -disks * by_gain if disks > 1 else 0.0
    return _Busy(g * units, units, by_gain, far * by_disks / units, -by_ratio * ratio / units)


def _stretch(ln_n: Floats, busy: _Busy, power: float) -> tuple[Floats, Floats, Floats]:
    """Return e, and the derivatives of ln e by ln G and by the parameter of p."""
    p = 1 + float(np.exp(power))
    n_p, g_p = np.exp(-p * ln_n), busy.queued**p
    inner = n_p * (1 - g_p) + g_p
    by_queued = (1 - n_p) * g_p / inner
    inner_by_p = -ln_n * n_p * (1 - g_p) + (1 - n_p) * g_p * np.log(busy.queued)
    by_p = (inner_by_p / inner / p - np.log(inner) / p**2) * (p - 1)
    return inner ** (1 / p), by_queued, by_p
