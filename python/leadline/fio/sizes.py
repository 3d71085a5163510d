"""Request sizes: what fio draws from bs, bsrange and bssplit, and Leadline's normal sizes for it.

fio's side is get_next_buflen of io_u.c (3.33): from `bsrange=a-b` it draws `a + b·u`, cuts it to a
multiple of `a` and to at most `b`; from `bssplit` it takes the entries by rising percentage, the
last one standing in for what is missing to 100, each cut to a multiple of the smallest.
Leadline's side is crates/engine/src/access/sizes.rs: normal with CV 1, cut at half a granule,
rounded to granules, capped, with the scale solved for the mean.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from leadline.fio.errors import FioJobRefused
from leadline.fio.quantities import read_bytes, read_switch

SPLIT_MAX = 64
"""Most entries of a bssplit (BSSPLIT_MAX of fio 3.33)."""
BS_DEFAULT = "4k"
_REQUEST_BYTES_MAX = 2**31
_SLICES = 100
"""Percentages are whole numbers, so 1% is the finest slice of a distribution."""
_SLICE_POINTS = 64
_SINGLES = 2 * SPLIT_MAX - _SLICES
"""Slices of 1% that the upper end gets; the rest are paired, so that the entries are 64."""
_SCALE_MIN, _SCALE_MAX = 0.02, 1e6
"""Bounds of the scale, in granules and in granules of the cap: every size 1, every size capped."""

_LOG_SD = math.sqrt(math.log(2))
"""Of the logarithm of log-normal sizes, whose coefficient of variation is 1."""

Split = tuple[tuple[int, int], ...]
"""(bytes, percent) pairs, by rising size."""


class Sizes(NamedTuple):
    """Sizes that one direction draws from."""

    mean_bytes: float
    square_bytes: float
    """Mean of the squares."""
    min_bytes: int
    split: Split = ()
    """The entries, of a bssplit."""

    @property
    def cv(self) -> float:
        """Coefficient of variation."""
        variance = max(0.0, self.square_bytes / self.mean_bytes**2 - 1.0)
        return math.sqrt(variance) if variance > 1e-12 else 0.0


def mixed(read: Sizes, write: Sizes, read_frac: float) -> Sizes:
    """Return the sizes of reads and writes together."""
    if read_frac >= 1.0 or read == write:
        return read
    if read_frac <= 0.0:
        return write
    parts = ((read_frac, read), (1 - read_frac, write))
    return Sizes(
        sum(share * sizes.mean_bytes for share, sizes in parts),
        sum(share * sizes.square_bytes for share, sizes in parts),
        min(read.min_bytes, write.min_bytes),
    )


def read_sizes(options: dict[str, str], direction: int, kb_base: int) -> Sizes:
    """Return what reads (0) or writes (1) of a job draw from.

    Raises:
        FioJobRefused: a size that cannot be read.

    """
    found = _read_sizes(options, direction, kb_base)
    if found.min_bytes < 1 or found.mean_bytes > _REQUEST_BYTES_MAX:
        raise FioJobRefused(
            f"requests of {found.min_bytes} bytes at least and {found.mean_bytes:.4g} on average: "
            "fio takes sizes from 1 byte to 2g; write for example bs=4k"
        )
    return found


def _read_sizes(options: dict[str, str], direction: int, kb_base: int) -> Sizes:
    unaligned = read_switch(options.get("bs_unaligned", "0"))
    split = _part(options.get("bssplit", ""), direction, ",")
    if split:
        return _of_split(_entries(split, kb_base), unaligned=unaligned)
    span = _part(options.get("bsrange", "").replace("/", ","), direction, ",")
    if span:
        low, _, high = span.replace(":", "-").partition("-")
        ends = sorted(read_bytes("bsrange", end, kb_base) for end in (low, high or low))
        return _of_range(ends[0], ends[1], unaligned=unaligned)
    size = read_bytes("bs", _part(options.get("bs", ""), direction, ",") or BS_DEFAULT, kb_base)
    return Sizes(size, size**2, size)


def _part(text: str, direction: int, separator: str) -> str:
    parts = [part.strip() for part in text.split(separator)]
    return parts[0] if len(parts) == 1 else parts[direction]


def _entries(text: str, kb_base: int) -> list[tuple[int, int]]:
    sizes: list[int] = []
    percents: list[int | None] = []
    for entry in filter(None, text.split(":")):
        size, _, percent = entry.partition("/")
        sizes.append(read_bytes("bssplit", size, kb_base))
        if percent and not percent.isdecimal():
            raise FioJobRefused(f"bssplit={text}: {percent!r} is no whole number of percent")
        percents.append(min(int(percent), 100) if percent and int(percent) else None)
    if not sizes or len(sizes) > SPLIT_MAX:
        raise FioJobRefused(f"bssplit={text}: fio takes 1 to {SPLIT_MAX} sizes")
    given = sum(percent for percent in percents if percent is not None)
    if given > 100:
        raise FioJobRefused(f"bssplit={text}: the percentages add to {given}, above 100")
    blank = (100 - given) // max(1, percents.count(None))
    pairs = [
        (size, blank if percent is None else percent)
        for size, percent in zip(sizes, percents, strict=True)
    ]
    return sorted((pair for pair in pairs if pair[1]), key=lambda pair: pair[1])


def _of_split(pairs: list[tuple[int, int]], *, unaligned: bool) -> Sizes:
    smallest = min(size for size, _ in pairs)
    if smallest <= 0:
        raise FioJobRefused("bssplit: a size of 0 bytes is no request")
    last, _ = pairs[-1]
    pairs[-1] = (last, 100 - sum(percent for _, percent in pairs[:-1]))
    cut = [(size if unaligned else size - size % smallest, percent) for size, percent in pairs]
    return Sizes(
        sum(size * percent for size, percent in cut) / 100,
        sum(size**2 * percent for size, percent in cut) / 100,
        smallest,
        merged(cut),
    )


def _of_range(low: int, high: int, *, unaligned: bool) -> Sizes:
    if low <= 0:
        raise FioJobRefused("bsrange: a size of 0 bytes is no request")
    if low == high:
        return Sizes(low, low**2, low)
    if unaligned:
        inside = (high - low) / high
        mean = inside * (low + high) / 2 + (1 - inside) * high
        square = inside * (low**2 + low * high + high**2) / 3 + (1 - inside) * high**2
        return Sizes(mean, square, low)
    steps, share = high // low, low / high
    rest = 1 - steps * share
    mean = share * low * steps * (steps + 1) / 2 + rest * high
    square = share * low**2 * steps * (steps + 1) * (2 * steps + 1) / 6 + rest * high**2
    return Sizes(mean, square, low)


def merged(pairs: Sequence[tuple[int, int]]) -> Split:
    """Return the pairs by size, equal sizes as one."""
    total: dict[int, int] = {}
    for size, percent in pairs:
        total[size] = total.get(size, 0) + percent
    return tuple(sorted(total.items()))


def distance(one: Split, other: Split) -> float:
    """Return the largest difference between the shares of requests up to a size, 0 to 1."""
    signed = merged([*one, *((size, -percent) for size, percent in other)])
    return max(abs(float(total)) for total in np.cumsum([percent for _, percent in signed])) / 100


def normal_split(size_mean: int, unique_bytes: int, granule_bytes: int) -> Split:
    """Return Leadline's normal sizes as at most 64 pairs, see `law_split`."""
    return law_split("normal", size_mean, unique_bytes, granule_bytes)


def law_split(law: str, size_mean: int, unique_bytes: int, granule_bytes: int) -> Split:
    """Return a law's sizes as at most 64 (bytes, percent) pairs of the same mean.

    `law` is normal, exponential or lognormal. The CV of those of CV 1 comes out a little smaller,
    because the longest 1% is one size: 0.99 and 0.97 of long ones.

    The distribution is cut into slices of 1% (the upper 28) and 2% (the rest); each stands for
    its mean, rounded to granules so that the error is handed to the next slice. The mean of the
    pairs differs from `size_mean` by at most 1% of a granule, unless all requests are alike.
    """
    # Here and below: half a second that `import leadline.engine` would pay for a rare need.
    from scipy.optimize import brentq  # noqa: PLC0415

    most = unique_bytes // granule_bytes
    mean = size_mean / granule_bytes
    if mean >= most or mean <= 1.0:
        return ((int(min(max(round(mean), 1), most)) * granule_bytes, 100),)

    def at(log_scale: float) -> float:
        return float(_slice_means(law, math.exp(log_scale), most).mean()) - mean

    lowest, highest = math.log(_SCALE_MIN), math.log(most * _SCALE_MAX)
    if at(highest) <= 0.0:
        return ((most * granule_bytes, 100),)
    slices = _slice_means(law, math.exp(brentq(at, lowest, highest, xtol=1e-10)), most)
    paired = slices[: _SLICES - _SINGLES].reshape(-1, 2).mean(axis=1)
    pairs: list[tuple[int, int]] = []
    owed = 0.0
    for percent, values in ((2, paired), (1, slices[_SLICES - _SINGLES :])):
        for value in values:
            owed += percent * float(value)
            granules = min(max(round(owed / percent), 1), most)
            owed -= percent * granules
            pairs.append((granules * granule_bytes, percent))
    return merged(pairs)


def mean_of_fitting(split: Split, unique_bytes: int) -> float:
    """Return the mean in bytes when a size that does not fit is made the longest that does.

    Places are uniform over `unique_bytes`; what fits is between the place and the end.
    """
    sizes = np.array([size for size, _ in split], dtype=np.float64)
    shares = np.array([percent for _, percent in split], dtype=np.float64)
    room = np.diff(np.append(sizes, unique_bytes)) / (unique_bytes - sizes[0])
    means = np.cumsum(sizes * shares) + sizes * (100 - np.cumsum(shares))
    return float((room * means / 100).sum())


def _slice_means(law: str, scale: float, most: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Return the mean of each 1% of the sizes, in granules; the mean of all grows with scale."""
    from scipy.special import ndtr, ndtri  # noqa: PLC0415 - see normal_split

    points = _SLICES * _SLICE_POINTS
    above = 1.0 - (np.arange(points) + 0.5) / points
    # From the upper tail: below a scale of 1/16 nothing but the tail is left.
    if law == "exponential":
        values = 0.5 - scale * np.log(above)
    elif law == "lognormal":
        median = scale * math.exp(-0.5 * _LOG_SD**2)
        kept = ndtr(math.log(median / 0.5) / _LOG_SD)
        values = median * np.exp(-_LOG_SD * ndtri(above * kept))
    else:
        values = scale * (1.0 - ndtri(above * ndtr((scale - 0.5) / scale)))
    granules = np.clip(np.round(values), 1, most).reshape(_SLICES, -1)
    return np.asarray(granules.mean(axis=1), dtype=np.float64)
