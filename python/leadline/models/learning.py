"""Where to measure next: workloads spread over the ranges, then where predictions gain most."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace

import msgspec
import numpy as np

from leadline.models.gaussian_process import Axes, matern
from leadline.models.joint import JointModel
from leadline.models.model import Floats
from leadline.models.operation_time import GRANULE_BYTES, PAGE_BYTES, is_whole_pages
from leadline.models.ranges import SIZE_SHARE_MAX
from leadline.record import Measurement, Workload

# Workloads spread over the surveyed ranges: the space-filling half of a mixed design.

_RUN_REQUESTS_MAX = 100
"""Longest mean run of sequential requests that learning looks at beside endless ones."""
_ALL_SEQUENTIAL = 0.9


@dataclass(frozen=True)
class Box:
    """Where workloads may lie; fractions run from 0 to 1."""

    unique_bytes: tuple[float, float]
    size_mean: tuple[float, float]
    process_num: tuple[float, float]
    at_once_bytes: float = math.inf
    """Most bytes of requests at one time, of more than one process: each has a buffer."""
    paged: bool = False
    """Whether a page cache is filled by whole pages and reads ahead: then half of the workloads are
    of one size of whole pages, as most programs' are, and half have runs of any length."""

    def holds(self, workload: Workload) -> bool:
        """Whether `workload` could have been drawn from this box."""
        return (
            self.unique_bytes[0] <= workload.unique_bytes <= self.unique_bytes[1]
            and self.size_mean[0] <= workload.size_mean <= self.size_mean[1]
            and self.process_num[0] <= workload.process_num <= self.process_num[1]
            and not workload.beyond(*(["size_dist"] if self._of_pages(workload) else []))
        )

    def nearest(self, workload: Workload) -> Workload:
        """Return the workload of this box that is most like another one."""
        unique = _within(self.unique_bytes, workload.unique_bytes)
        size = _within(self._sizes(unique), workload.size_mean)
        found = Workload(
            unique_bytes=int(unique // PAGE_BYTES * PAGE_BYTES),
            size_mean=max(GRANULE_BYTES, int(size // GRANULE_BYTES * GRANULE_BYTES)),
            read_frac=workload.read_frac,
            seq_frac=workload.seq_frac,
            process_num=self._processes(workload.process_num, size),
        )
        return _of_whole_pages(found) if self._of_pages(workload) else found

    def _of_pages(self, workload: Workload) -> bool:
        return self.paged and is_whole_pages(workload)

    def _processes(self, process_num: float, size_mean: float) -> int:
        most = min(self.process_num[1], self.at_once_bytes / size_mean)
        return max(1, round(_within((self.process_num[0], max(1.0, most)), process_num)))

    def _sizes(self, unique_bytes: float) -> tuple[float, float]:
        low, high = self.size_mean
        return low, max(low, min(high, SIZE_SHARE_MAX * unique_bytes))

    def workload(self, place: tuple[float, ...]) -> Workload:
        """Return the workload at a place of the unit cube, in the order of PARAMETERS.

        Bytes and processes lie evenly on a log axis; a mean size is at most a share of
        `unique_bytes`, so that a request does not span the data it is drawn from.
        """
        unique = _between(self.unique_bytes, place[0])
        unique_bytes = max(PAGE_BYTES, round(unique / PAGE_BYTES) * PAGE_BYTES)
        size = _between(self._sizes(unique_bytes), place[1])
        return Workload(
            unique_bytes=unique_bytes,
            size_mean=max(GRANULE_BYTES, round(size / GRANULE_BYTES) * GRANULE_BYTES),
            read_frac=round(place[2], 3),
            seq_frac=round(_seq_frac(place[3]) if self.paged else place[3], 3),
            process_num=self._processes(_between(self.process_num, place[4]), size),
        )


def spread_out(box: Box, count: int, seed: int) -> list[Workload]:
    """Return scrambled Sobol workloads, the same for a seed."""
    from scipy.stats import qmc  # noqa: PLC0415 - half a second that only learning needs

    sobol = qmc.Sobol(d=5, scramble=True, seed=seed)
    with warnings.catch_warnings():
        # Balance wants a power of two; a design of any size is wanted here.
        warnings.simplefilter("ignore", UserWarning)
        places = sobol.random(count)
    found = [box.workload(tuple(place)) for place in np.asarray(places).tolist()]
    if not box.paged:
        return found
    return [_of_whole_pages(each) if at % 2 else each for at, each in enumerate(found)]


def _of_whole_pages(workload: Workload) -> Workload:
    size = max(1, round(workload.size_mean / PAGE_BYTES)) * PAGE_BYTES
    return msgspec.structs.replace(workload, size_mean=size, size_dist="fixed")


def _seq_frac(place: float) -> float:
    """One in ten all sequential; of the others half lie evenly, half in ln of the mean run."""
    if place >= _ALL_SEQUENTIAL:
        return 1.0
    along = 2 * place / _ALL_SEQUENTIAL
    return along if along < 1 else float(1 - _RUN_REQUESTS_MAX ** (1 - along))


def _within(ends: tuple[float, float], value: float) -> float:
    return min(max(value, ends[0]), ends[1])


def _between(ends: tuple[float, float], place: float) -> float:
    low, high = ends
    return float(low * math.exp(place * math.log(high / low)))


# Where to measure next, so that predictions gain most per second (CP94 §11's future work).
#
# A reading helps a prediction as far as the two are believed to vary together. Of a space-filling
# set of candidates, the next is the one that takes most variance off a like set of workloads per
# second of measuring; then the next, given that one. Variance alone would pass by the boundaries,
# where the model is wrong rather than unsure (LITERATURE §1.1, Jump-GP), so a share is forced
# there.

BATCH = 6
"""Points between two fits."""
BOUNDARY_SHARE = 0.25
"""Of a batch, rounded: two points of six are at boundaries."""
NEEDED_SHARE = 1 / 2
"""The same for what an application needs: three of six."""
BOUNDARY_ZONE = (0.7, 1.8)
"""Factors of a boundary between which candidates count as at it."""
CANDIDATES = 256
_COST_SCALE = 0.25
"""Distance, in surveyed ranges, over which a point's cost tells that of another."""

MEDIAN_SIGMAS_ENOUGH = 1.0
P90_SIGMAS_ENOUGH = 2.0
"""Learning ends when predictions are this well known, in run-to-run standard deviations as
replicates show them (the fit's own noise would count its misfit as noise): half of them are then
as near to the truth as one run of the workload itself."""


def next_points(
    model: JointModel,
    points: Sequence[Measurement],
    box: Box,
    count: int,
    seed: int,
    *,
    needed: Sequence[Workload] = (),
) -> list[Workload]:
    """Choose the next workloads to measure.

    Args:
        model: fitted to `points`.
        points: what was measured, with what it took.
        box: where to look.
        count: how many.
        seed: of the candidates and of the workloads they are to help.
        needed: what will be asked of the model: a share of the points goes there, and the others
            are to help these as much as all else.

    Returns:
        `count` workloads, some at boundaries and some that are needed among them.

    """
    free = spread_out(box, CANDIDATES, seed)
    near = _near_boundaries(model, box, seed)
    helped = spread_out(box, CANDIDATES, seed + 1)
    candidates = [*free, *near, *needed]
    covariance = model.covariance(candidates + helped)
    noise = model.noise_at(candidates) ** 2
    seconds = _seconds(candidates, points)
    kinds = np.repeat([0, 1, 2], [len(free), len(near), len(needed)])
    forced = [1] * round(count * BOUNDARY_SHARE if near else 0)
    forced += [2] * min(round(count * NEEDED_SHARE), len(needed))
    each_needed = len(helped) / max(1, len(needed))
    open_ = np.ones(len(candidates), dtype=bool)
    chosen: list[Workload] = []
    for step in range(count):
        allowed = open_ & (kinds == forced[step]) if step < len(forced) else open_
        own = np.diag(covariance)[: len(candidates)] + noise
        taken = covariance[: len(candidates)] ** 2
        gain = taken[:, len(candidates) :].sum(axis=1)
        gain += each_needed * taken[:, : len(candidates)][:, kinds == 2].sum(axis=1)
        gain = gain / own / seconds
        best = int(np.argmax(np.where(allowed, gain, -1.0)))
        chosen.append(candidates[best])
        open_[best] = False
        column = covariance[:, best]
        covariance = covariance - np.outer(column, column) / own[best]
    return chosen


def enough(model: JointModel, box: Box, seed: int) -> bool:
    """Whether predictions are about as exact as one run of the workload itself would be."""
    expected = model.expect(spread_out(box, CANDIDATES, seed))
    replicates = model.sample.noise.overall_ln_sd / model.noise_ln_sd
    sigmas = expected.ln_sd / (replicates * expected.noise_ln_sd)
    median, p90 = np.quantile(sigmas, [0.5, 0.9])
    return bool(median <= MEDIAN_SIGMAS_ENOUGH and p90 <= P90_SIGMAS_ENOUGH)


def _near_boundaries(model: JointModel, box: Box, seed: int) -> list[Workload]:
    """Return candidates in the zone of each boundary that lies inside the box."""
    found: list[Workload] = []
    for index, known in enumerate(model.sample.boundaries):
        boundary = float(np.exp(known.ln_bytes))
        low = max(BOUNDARY_ZONE[0] * boundary, box.unique_bytes[0])
        high = min(BOUNDARY_ZONE[1] * boundary, box.unique_bytes[1])
        if low < high:
            zone = replace(box, unique_bytes=(low, high))
            found += spread_out(zone, CANDIDATES // 4, seed + 2 + index)
    return found


def _seconds(candidates: Sequence[Workload], points: Sequence[Measurement]) -> Floats:
    """Expect a candidate to take as long as the points measured near it."""
    workloads = [point.workload for point in points]
    axes = Axes.over(workloads)
    apart = axes.place(candidates)[:, None, :] - axes.place(workloads)[None, :, :]
    weight = matern(np.sqrt((apart**2).sum(axis=2)) / _COST_SCALE) + 1e-9
    took = np.log([max(point.result.total_s, 1e-3) for point in points])
    return np.asarray(np.exp(weight @ took / weight.sum(axis=1)))
