"""What uses of pages are a mixture of, by how long each page waits to be used again.

A stream that uses U pages at random, with a share w of all uses, comes back to each after a time
that is exponential with mean U / w; a loop after exactly U / w; what is used once never. Time is
counted in uses of any page. A page that was not used before has waited for longer than the trace is
old then: such waits are censored, as in Kaplan and Meier (1958), so that the beginning of a trace
does not look like data that is used once. The mixture is fitted by expectation and maximisation
(Dempster, Laird and Rubin 1977) on binned times.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

Array: TypeAlias = NDArray[np.float64]
Kind: TypeAlias = Literal["uniform", "loop", "once"]

ROUNDS = 400
"""Of expectation and maximisation; two streams whose times differ by a factor of three take 100."""
STILL = 1e-7
"""A round that moves no share by more is the last."""
UNIFORM_MAX = 4
"""Exponentials of one class of uses; a fifth changed no miss ratio of Zipf's law by 0.003."""
GOOD_ENOUGH = 0.0015
"""Largest error of the survival curve at which no further exponential is tried, and this over the
root of the requests, for as much is chance (Kolmogorov and Smirnov at about 10%):"""
BY_CHANCE = 1.2
LOOP_SHARE_MIN = 0.01
"""Of the uses: a smaller peak is no loop."""
LOOP_OVER = 4.0
"""Uses in a peak against what its neighbours say that there would be."""
LOOP_COUNT_MIN = 200.0
LOOPS_APART = 0.3
"""Of the logarithms of two loops' times."""
_PEAKS, _AROUND = (3, 8), 16
"""Bins on either side of a peak that belong to it, a sharp one or one of a short loop among other
streams; and those that are its neighbours."""
SPREAD_MAX = 0.25
"""Of a loop's time."""
_BIN = 1.04
"""One bin and a little more, in each direction."""
_LEAST = 1e-300
_MARK_LEAST = 0.5
"""Uses added to those of each mark, so that none is impossible (Jeffreys 1946)."""


class Uses(NamedTuple):
    """Uses of pages in bins, each an array of the same length."""

    again: NDArray[np.bool_]
    """Whether the page was used before; otherwise the times are for how long it was not."""
    least: Array
    """Least time of the bin, in uses."""
    beyond: Array
    """First time beyond it."""
    number: Array
    """How many."""
    mark: NDArray[np.int64]
    """What else is known of them, as their size: numbers from 0."""


class Component(NamedTuple):
    """One part of a mixture."""

    kind: Kind
    time: float
    """Between two uses of a page, in the mean; infinite of what is used once."""
    spread: float
    """Standard deviation of a loop's time."""
    share: float
    """Of the uses."""
    marks: Array | None = None
    """Of its uses the share with each mark, (marks,); None while only times are looked at."""

    def likelihood(self, uses: Uses) -> Array:
        """Probability of each bin's time, or of a wait beyond it, were a use of this component."""
        if self.kind == "once":
            return np.asarray(np.where(uses.again, 0.0, 1.0))
        middle = (uses.least + uses.beyond) / 2
        if self.kind == "uniform":
            within = np.exp(-uses.least / self.time) - np.exp(-uses.beyond / self.time)
            return np.asarray(np.where(uses.again, within, np.exp(-middle / self.time)))
        from_mean = ndtr((uses.beyond - self.time) / self.spread)
        within = from_mean - ndtr((uses.least - self.time) / self.spread)
        beyond = ndtr((self.time - middle) / self.spread)
        return np.asarray(np.where(uses.again, within, beyond))


def survival(uses: Uses) -> tuple[Array, Array]:
    """Return times, and the share of uses whose page waits for longer (Kaplan and Meier).

    Returns:
        Times ascending, (bins,); the share beyond each, (bins,).

    """
    times, place = np.unique(uses.beyond, return_inverse=True)
    again = np.bincount(place, uses.number * uses.again, len(times))
    gone = np.bincount(place, uses.number, len(times))
    at_risk = np.cumsum(gone[::-1])[::-1]
    # Those whose wait ends in the same bin unseen are at risk for half of it.
    waiting = np.maximum(at_risk - (gone - again) / 2, 1.0)
    return times, np.asarray(np.cumprod(1.0 - again / waiting), dtype=np.float64)


def mixture_survival(components: list[Component], times: Array) -> Array:
    """Return the share of uses whose page waits for longer than each of the times, (times,)."""
    none = np.zeros(len(times), dtype=np.int64)
    edge = Uses(none.astype(bool), times, times, np.ones(len(times)), none)
    total = max(sum(each.share for each in components), _LEAST)
    waiting = [each.share * each.likelihood(edge) for each in components]
    return np.asarray(np.sum(waiting, axis=0) / total)


def responsibilities(components: list[Component], uses: Uses) -> Array:
    """Return the probability of each component for each bin, (components, bins)."""
    likely = np.array([each.share * _marked(each, uses) for each in components])
    return np.asarray(likely / np.maximum(likely.sum(axis=0), _LEAST))


def _marked(each: Component, uses: Uses) -> Array:
    likely = each.likelihood(uses)
    return likely if each.marks is None else likely * each.marks[uses.mark]


def improve(components: list[Component], uses: Uses, rounds: int = ROUNDS) -> list[Component]:
    """Return the components after rounds of expectation and maximisation."""
    middle, total = (uses.least + uses.beyond) / 2, float(uses.number.sum())
    for _ in range(rounds):
        owned = responsibilities(components, uses) * uses.number
        grown = [
            _moved(each, own, uses, middle, total)
            for each, own in zip(components, owned, strict=True)
        ]
        step = max(abs(new.share - old.share) for new, old in zip(grown, components, strict=True))
        components = grown
        if step < STILL:
            break
    return components


def _moved(each: Component, owned: Array, uses: Uses, middle: Array, total: float) -> Component:
    share = float(owned.sum()) / total
    if each.marks is not None:
        counts = np.bincount(uses.mark, owned, len(each.marks)) + _MARK_LEAST
        each = each._replace(marks=counts / counts.sum())
    again = float((owned * uses.again).sum())
    if each.kind == "once" or again <= 0.0:
        return each._replace(share=share)
    if each.kind == "uniform":
        # Of the exponential: all time that was waited, over the waits that were seen to end.
        return each._replace(share=share, time=max(float((owned * middle).sum()) / again, 0.5))
    seen = owned * uses.again
    time = float((seen * middle).sum()) / again
    spread = float(np.sqrt((seen * (middle - time) ** 2).sum() / again))
    return each._replace(
        share=share, time=time, spread=min(max(spread, time / 64, 0.5), SPREAD_MAX * time)
    )


def fit_mixture(uses: Uses, requests: float) -> list[Component]:
    """Return what these uses are a mixture of: as few exponentials as describe them, loops, once.

    How many there are is told by times alone; which use belongs to which by its mark as well.

    Args:
        uses: of pages.
        requests: that made them: of one all pages are used together.

    Components without uses are left out. Times are in uses, shares sum to 1.

    """
    loops = _loops(uses)
    best: list[Component] = []
    best_error = np.inf
    for count in range(UNIFORM_MAX + 1):
        tried = improve([*_exponentials(uses, count), *loops, _once(uses)], uses)
        if not any(each.share > 0 for each in tried):
            continue  # nothing once, and nothing else tried: a mixture of nothing errs nowhere
        error = mixture_error(tried, uses)
        # A further one has to earn its place: it may only split another.
        if error < 0.7 * best_error:
            best, best_error = tried, error
        if best_error < max(GOOD_ENOUGH, BY_CHANCE / np.sqrt(max(requests, 1.0))):
            break
    # What sizes tell, only now: they may not make two streams of one.
    owned = responsibilities(best, uses) * uses.number
    length = int(uses.mark.max()) + 1
    sized = [
        each._replace(
            marks=(counts := np.bincount(uses.mark, own, length) + _MARK_LEAST) / counts.sum()
        )
        for each, own in zip(best, owned, strict=True)
    ]
    return [each for each in improve(sized, uses) if each.share > 0]


def mixture_error(components: list[Component], uses: Uses) -> float:
    """Return the largest difference between the survival that was seen and that of a mixture.

    Times may be off by one bin, or else the step of a loop would count whole.
    """
    times, seen = survival(uses)
    early, late = (mixture_survival(components, times * factor) for factor in (_BIN, 1 / _BIN))
    return float(np.max(np.maximum(np.maximum(seen - late, early - seen), 0.0)))


def _once(uses: Uses) -> Component:
    share = float((uses.number * ~uses.again).sum() / uses.number.sum())
    return Component("once", np.inf, 0.0, max(share / 2, 1e-3))


def _exponentials(uses: Uses, count: int) -> list[Component]:
    """Begin with as many, spread over the times that were seen."""
    if count == 0 or not np.any(uses.number * uses.again > 0):
        return []
    seen = np.flatnonzero(uses.again)
    order = seen[np.argsort(uses.beyond[seen])]
    shares = np.cumsum(uses.number[order]) / uses.number[order].sum()
    places = np.searchsorted(shares, (np.arange(count) + 0.5) / count)
    times = uses.beyond[order][np.minimum(places, len(order) - 1)]
    return [Component("uniform", float(time), 0.0, 1.0 / count) for time in np.unique(times)]


def _bins(least: Array) -> NDArray[np.int64]:
    """Return which bin of crates/trace begins there: below 32 each number, then 32 an octave."""
    whole = least.astype(np.int64)
    octave = np.maximum(np.floor(np.log2(np.maximum(whole, 1))).astype(np.int64) - 5, 0)
    return np.where(whole < 32, whole, 32 * octave + (whole >> octave))


def _starts(bins: NDArray[np.int64]) -> Array:
    """Return where bins begin."""
    octave = np.maximum(bins // 32 - 1, 0)
    return np.where(bins < 32, bins, (32 + bins % 32) << octave).astype(np.float64)


def _loops(uses: Uses) -> list[Component]:
    """Find the times at which far more uses come back than around them."""
    if not np.any(uses.number * uses.again > 0):
        return []
    place = _bins(uses.least[uses.again])
    counts = np.bincount(place, uses.number[uses.again], int(place.max()) + _AROUND + 2)
    starts = _starts(np.arange(len(counts) + 1))
    widths = np.diff(starts)
    starts = np.maximum(starts[:-1], 1.0)
    density = counts / widths * starts  # of the logarithm of time, in which bins are alike
    total, loops = float(uses.number.sum()), list[Component]()
    for peak in _PEAKS:
        for top in np.argsort(density)[::-1]:
            low, high = max(0, top - peak), top + peak + 1
            mass = float(counts[low:high].sum())
            if mass < max(LOOP_SHARE_MIN * total, LOOP_COUNT_MIN):
                continue
            around = np.r_[density[max(0, low - _AROUND) : low], density[high : high + _AROUND]]
            usual = float(around.mean()) if len(around) else 0.0
            apart = all(abs(np.log(starts[top] / each.time)) > LOOPS_APART for each in loops)
            if apart and density[low:high].mean() > LOOP_OVER * max(usual, _LEAST):
                time = float((counts[low:high] * starts[low:high]).sum() / mass) + widths[top] / 2
                spread = max(time * peak / 96, 0.5)
                loops.append(Component("loop", time, spread, mass / total))
    return loops
