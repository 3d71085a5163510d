"""Time per request as a sum over operations and places: the mean of the joint model.

A request is a read or a write; each pays at the first place of the hierarchy, and a miss pays at
the next one too. Time adds, throughput does not (LITERATURE §2.1), so this form carries what a
product of curves cannot: that a larger read fraction matters only where reads and writes differ,
and that a miss hides everything a hit was slow at.

    seconds(x) = sum over places k > 0 of (t_read,k + t_torn,k) + (M^r + W^r)^(1/r)
    M = t_read,0 + t_write,0;  W = sum over places k > 0 of t_write,k
    t_ok(x)    = share_o * miss_ok(U) * (U / U_ref)^s_k * e_ok(n, S) * (1 - q^8 + q^8 f_k)
                 * (A_ok (1 - q) + B_ok q + C_ok S / m_ok(S))

    M, W    writes behind a cache wait for it at r = 1 and go on while it is used at a large r,
            where what takes longer decides
    share   read_frac, or 1 - read_frac           q  seq_frac      S  mean request size (at most U)
    torn    past a page cache S is of the pages that a request touches, and what a write covers of a
            page in part is read first: 4 KiB at random, as parallel as writes are
    miss    1 at the first place; past boundary j uniform, max(0, 1 - C/U), or smeared, logistic in
            ln(U/C); a scan that passes over all of U keeps nothing of it: weight q^(U/S); reads
            miss nothing past a limit of dirty data
    e       time per request of n at once over that of one: (n^-p (1 - G^p) + G^p)^(1/p); p = 1 is
            the balanced closed network, a large p a bottleneck; G = g m is the share that queues
    m       units (disks, channels) that one request keeps busy, of 1/g there are: the mean of S/u
            held between 1 and 1/g when sizes are exponential; u is the stripe unit
    f       time of requests that go on for long over that of others: read-ahead and write-back are
            themselves only in runs of some requests, q^8 of all
    ln MB/s = ln(S / seconds) - ln 10^6

Every coefficient is a power of e, so no term is ever negative.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import expit, xlogy

from leadline.models.model import Floats
from leadline.record import Workload

PLACE = 12
"""Parameters of a place: ln A, ln B - ln A and ln C of reads; what writes add to each; logit of
half of g, what writes add to it, ln(p - 1), s, ln of u over the reference size, ln f."""
UNIT = 10
"""Of these, ln u."""
BOUNDARY = 3
"""Parameters of a boundary: ln C, ln width, what writes add to ln C."""
OVERLAP = -1
"""Where ln(r - 1) stands, behind all places and boundaries."""
RUN = 8
"""Requests of a run in which read-ahead and write-back are themselves."""
PAGE_BYTES = 4096
GRANULE_BYTES = 512
"""Places and sizes of a survey's requests are multiples of this."""
SIZE_REFERENCE_BYTES = 32768.0
"""C is stated for a request of this size."""
_OF_WRITES = np.array([[[0.0], [1.0], [0.0]]])
"""Weight of what writes add, for reads, for writes, and for the torn pages that these read."""
_QUEUES_AS_WRITES = np.array([[[0.0], [1.0], [1.0]]])
"""Weight of what writes add to g: a torn page is read under the file's lock, as it is written."""
_LN_MB = float(np.log(1e6))


@dataclass(frozen=True)
class Requests:
    """Workloads as the arrays the formula takes.

    Kinds are reads, writes and, where there is a page cache, the pages that writes tear.
    """

    ln_unique: Floats
    """(workloads,), as are the next and `ln_outstanding`."""
    ln_size: Floats
    ln_outstanding: Floats
    ln_moved: Floats
    """ln of a request's bytes (at the nearest place or beyond, kinds, workloads)."""
    share: Floats
    """Of each kind, (kinds, workloads); torn pages for each request."""
    sequential: Floats
    """(kinds, workloads)."""
    running: Floats
    """Share within a run, (kinds, workloads)."""
    whole: Floats
    """Share that passes over all of U in order, (workloads,): under LRU it finds nothing of a U too
    large."""

    @staticmethod
    def of(workloads: Sequence[Workload], *, paged: bool = False) -> Requests:
        """Return the arrays of `workloads`; queue depth counts as so many more processes.

        Args:
            workloads: what is asked.
            paged: through a page cache, which is filled by whole pages.

        """
        rows = np.array(
            [
                (
                    w.unique_bytes,
                    min(w.size_mean, w.unique_bytes),
                    w.read_frac,
                    w.seq_frac,
                    w.process_num * w.queue_depth,
                    is_whole_pages(w),
                )
                for w in workloads
            ],
            dtype=np.float64,
        ).reshape(-1, 6)
        unique, size, read, sequential, outstanding, aligned = rows.T
        ln_size, kinds = np.log(size), 3 if paged else 2
        share, in_order = np.zeros((kinds, len(rows))), np.zeros((kinds, len(rows)))
        ln_moved = np.full((2, kinds, len(rows)), np.log(PAGE_BYTES))
        share[:2], in_order[:2], ln_moved[:, :2] = (read, 1 - read), sequential, ln_size
        if paged:
            touched, torn = _pages(size, sequential)
            ln_moved[1, :2] = np.where(aligned, ln_size, np.log(touched * PAGE_BYTES))
            share[2] = (1 - read) * np.where(aligned, 0.0, torn)
        return Requests(
            ln_unique=np.log(unique),
            ln_size=ln_size,
            ln_outstanding=np.log(outstanding),
            ln_moved=ln_moved,
            share=share,
            sequential=in_order,
            running=in_order**RUN,
            whole=sequential ** (unique / size),
        )


def is_whole_pages(workload: Workload) -> bool:
    """Whether every request is of whole pages: one size that is, at multiples of itself."""
    return workload.size_dist == "fixed" and workload.size_mean % PAGE_BYTES == 0


def _pages(size: Floats, sequential: Floats) -> tuple[Floats, Floats]:
    """Pages that requests of scattered sizes touch in the mean, and those a write tears.

    b bytes at a multiple of 512 touch (b - 512) / 4096 + 1 pages; the first and the last of them
    are torn with 7/8 each, when they are two. A sequential request shares the page at its
    beginning with the one before, which has read it.
    """
    own = size / PAGE_BYTES
    edge = 1 - GRANULE_BYTES / PAGE_BYTES
    touched = own + edge * (1 - sequential)
    torn_at_random = np.minimum(own + edge, 2 * edge)
    return touched, torn_at_random * (1 - sequential) + np.minimum(own, edge) * sequential


@dataclass(frozen=True)
class OperationTime:
    """The formula for a hierarchy of so many boundaries; parameters come apart, as one vector.

    Inside, arrays are (places or boundaries, kinds of operation, workloads): one call of numpy for
    all. Kinds are reads, writes and, past a page cache, torn pages.
    """

    smeared: tuple[bool, ...]
    """Of each boundary: logistic instead of uniform."""
    ln_unique_reference: float
    of_writes: tuple[bool, ...] = ()
    """Of each boundary: a limit of dirty data, which reads do not notice; () says of none."""

    @property
    def parameters(self) -> int:
        """Length of the parameter vector: places first, then boundaries, then the overlap."""
        return PLACE * (len(self.smeared) + 1) + BOUNDARY * len(self.smeared) + 1

    def boundary(self, index: int) -> int:
        """Where the parameters of a boundary begin."""
        return PLACE * (len(self.smeared) + 1) + BOUNDARY * index

    def ln_mb_s(self, requests: Requests, theta: Floats) -> tuple[Floats, Floats]:
        """Return ln throughput (workloads,) and its Jacobian (workloads, parameters)."""
        at_place = theta[: self.boundary(0)].reshape(-1, PLACE).T[:, :, None, None]
        at_boundary = theta[self.boundary(0) : OVERLAP].reshape(-1, BOUNDARY).T[:, :, None, None]
        work = _Work.of(requests, at_place)
        distance = requests.ln_unique - self.ln_unique_reference
        e, by_queued, by_power = _stretch(requests.ln_outstanding, work.busy, at_place[8])
        run = requests.running * np.exp(at_place[11])
        in_runs = 1 - requests.running + run
        common = requests.share * np.exp(at_place[9] * distance) * e * in_runs
        miss, miss_slopes = self._miss(requests, at_boundary)
        asked = common * np.concatenate([np.ones_like(common[:1]), miss])
        asked[0, 2:] = 0.0  # what is near is whole
        spent = asked * work.seconds
        seconds, felt, by_overlap = _overlapped(spent, theta[OVERLAP])
        ln_gain = spent * by_queued * (work.busy.gain_by_gain + work.busy.units_by_gain)
        slopes = np.stack(
            [
                asked * work.fixed,
                asked * work.sequential,
                asked * work.transfer,
                ln_gain - asked * work.transfer * work.busy.units_by_gain,
                spent * by_power,
                spent * distance,
                (spent * by_queued - asked * work.transfer) * work.busy.units_by_unit,
                spent * run / in_runs,
            ]
        )
        by_boundary = _by_boundary(common[1:] * work.seconds[1:] * felt[1:], miss_slopes)
        jacobian = np.concatenate([_by_place(slopes * felt), by_boundary, by_overlap[None]])
        return requests.ln_size - np.log(seconds) - _LN_MB, -(jacobian / seconds).T

    def _miss(self, requests: Requests, t: Floats) -> tuple[Floats, tuple[Floats, Floats]]:
        """Share that misses at each boundary, and its derivatives by ln C and ln width."""
        kinds = len(requests.share)
        distance = requests.ln_unique - (t[0] + _OF_WRITES[:, :kinds] * t[2])
        beyond = (distance > 0).astype(np.float64)
        held = np.exp(-np.maximum(distance, 0.0))
        narrowness = np.exp(-t[1])
        logistic = expit(distance * narrowness)
        steep = logistic * (1 - logistic) * narrowness
        smeared = np.array(self.smeared, dtype=bool)[:, None, None]
        # Not of reads at a limit of dirty data, (boundaries, kinds of operation, 1).
        felt = np.ones((len(self.smeared), kinds, 1))
        felt[np.array(self.of_writes, dtype=bool).nonzero(), ::2] = 0.0
        part = felt * (1 - requests.whole)
        miss = felt * requests.whole * beyond + part * np.where(smeared, logistic, 1 - held)
        by_centre = -part * np.where(smeared, steep, held * beyond)
        by_width = -part * np.where(smeared, steep * distance, 0.0)
        return miss, (by_centre, by_width)


def _overlapped(spent: Floats, ln_over_one: float) -> tuple[Floats, Floats, Floats]:
    """Return seconds in all (workloads,), and their slopes by each part and by ln(r - 1)."""
    r = 1 + np.exp(ln_over_one)
    parts = np.stack([spent[0].sum(axis=0), spent[1:, 1].sum(axis=0)])
    longer = parts.max(axis=0)
    both = longer * ((parts / longer) ** r).sum(axis=0) ** (1 / r)
    shares = (parts / both) ** r
    felt = np.ones_like(spent)
    felt[0], felt[1:, 1] = (parts / both) ** (r - 1)
    by_overlap = both * xlogy(shares, shares).sum(axis=0) / r**2 * (r - 1)
    return both + spent[1:, ::2].sum(axis=(0, 1)), felt, by_overlap


def _by_place(slopes: Floats) -> Floats:
    """Derivatives by each parameter of each place, (parameters, workloads).

    `slopes` are by what all kinds share (8, places, kinds, workloads); what writes add to the first
    four is felt by writes, the last of it by torn pages too.
    """
    both, writes = slopes.sum(axis=2), slopes[:3, :, 1]
    queued = slopes[3:4, :, 1:].sum(axis=2)
    of_a_place = np.concatenate([both[:3], writes, both[3:4], queued, both[4:]])
    return np.concatenate(of_a_place.transpose(1, 0, 2))


def _by_boundary(seconds: Floats, miss_slopes: tuple[Floats, Floats]) -> Floats:
    """Derivatives by each parameter of each boundary; a miss costs what the next place takes."""
    by_centre, by_width = (seconds * slope for slope in miss_slopes)
    of_a_boundary = np.stack([by_centre.sum(axis=1), by_width.sum(axis=1), by_centre[:, 1]], axis=1)
    return of_a_boundary.reshape(BOUNDARY * len(seconds), seconds.shape[-1])


@dataclass(frozen=True)
class _Work:
    """Seconds that a request takes alone at each place, by what takes them."""

    fixed: Floats
    """Random and sequential positioning together."""
    sequential: Floats
    transfer: Floats
    busy: _Busy

    @staticmethod
    def of(requests: Requests, t: Floats) -> _Work:
        """Return the seconds under the places' parameters, (PLACE, places, 1, 1)."""
        kinds = len(requests.share)
        of_writes, as_writes = _OF_WRITES[:, :kinds], _QUEUES_AS_WRITES[:, :kinds]
        beyond = np.minimum(np.arange(t.shape[1]), 1)
        size = np.exp(requests.ln_moved[beyond]) / SIZE_REFERENCE_BYTES
        busy = _busy_units(size, t[6] + as_writes * t[7], t[10])
        ln_random = t[0] + of_writes * t[3]
        sequential = np.exp(ln_random + t[1] + of_writes * t[4]) * requests.sequential
        fixed = np.exp(ln_random) * (1 - requests.sequential) + sequential
        transfer = np.exp(t[2] + of_writes * t[5]) * size / busy.units
        return _Work(fixed, sequential, transfer, busy)

    @property
    def seconds(self) -> Floats:
        """All of them."""
        return self.fixed + self.transfer


@dataclass(frozen=True)
class _Busy:
    """Units that one request keeps busy, and derivatives of logarithms by the parameters."""

    queued: Floats
    """G, the share of a request's time that queues."""
    units: Floats
    gain_by_gain: Floats
    units_by_gain: Floats
    units_by_unit: Floats


def _busy_units(size: Floats, gain: Floats, ln_unit: Floats) -> _Busy:
    half = expit(gain)
    # g may exceed one: more at once is slower.
    g = 2 * half
    by_gain = 1 - half
    disks = np.maximum(1.0, 1 / g)
    ratio = size * np.exp(-ln_unit)
    near, far = np.exp(-1 / ratio), np.exp(-disks / ratio)
    units = 1 + ratio * (near - far)
    by_ratio = near * (1 + 1 / ratio) - far * (1 + disks / ratio)
    by_disks = np.where(disks > 1, -disks * by_gain, 0.0)
    return _Busy(g * units, units, by_gain, far * by_disks / units, -by_ratio * ratio / units)


def _stretch(ln_n: Floats, busy: _Busy, power: Floats) -> tuple[Floats, Floats, Floats]:
    """Return e, and the derivatives of ln e by ln G and by the parameter of p."""
    p = 1 + np.exp(power)
    n_p, g_p = np.exp(-p * ln_n), busy.queued**p
    inner = n_p * (1 - g_p) + g_p
    by_queued = (1 - n_p) * g_p / inner
    inner_by_p = -ln_n * n_p * (1 - g_p) + (1 - n_p) * g_p * np.log(busy.queued)
    by_p = (inner_by_p / inner / p - np.log(inner) / p**2) * (p - 1)
    return inner ** (1 / p), by_queued, by_p
