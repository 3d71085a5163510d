"""Numbers with intervals, scaled and divided by each other.

Independent relative errors add in quadrature on the natural-log scale. A side without an interval
is taken as exact, and a result of two such sides has none.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from leadline.record import Interval


def exactly(value: float, n: int = 1) -> Interval:
    """Return a number that rests on no interval."""
    return Interval(value, None, None, n)


def scaled(number: Interval, factor: float) -> Interval:
    """Multiply by a known factor, which is not negative."""
    return _by_ends(lambda end: end * factor, number)


def inverse(number: Interval) -> Interval:
    """Return one by a positive number."""
    low, high = number.low, number.high
    return Interval(
        1 / number.value,
        None if high is None else 1 / high,
        None if low is None or low <= 0 else 1 / low,
        number.n,
    )


def product(one: Interval, other: Interval) -> Interval:
    """Multiply two independent positive numbers."""
    value = one.value * other.value
    counts = [each.n for each in (one, other) if each.low is not None] or [one.n, other.n]
    half = math.hypot(_log_half_width(one), _log_half_width(other))
    if half == 0 or value == 0:
        return exactly(value, min(counts))
    return Interval(value, value * math.exp(-half), value * math.exp(half), min(counts))


def quotient(over: Interval, under: Interval) -> Interval:
    """Divide two independent positive numbers."""
    return product(over, inverse(under))


def difference(number: Interval, other: Interval) -> Interval:
    """Subtract an independent number; absolute errors add in quadrature."""
    value = number.value - other.value
    half = math.hypot(_half_width(number), _half_width(other))
    count = min(number.n, other.n)
    return Interval(value, value - half, value + half, count) if half else exactly(value, count)


def sum_of(numbers: Sequence[Interval]) -> Interval:
    """Add independent numbers; absolute errors add in quadrature."""
    value, count = sum(each.value for each in numbers), min(each.n for each in numbers)
    half = math.hypot(*(_half_width(each) for each in numbers))
    return Interval(value, value - half, value + half, count) if half else exactly(value, count)


def sum_alike(numbers: Sequence[Interval]) -> Interval:
    """Add numbers that are wrong together, because they rest on the same reading: ends add up."""
    value, count = sum(each.value for each in numbers), min(each.n for each in numbers)
    if all(each.low is None for each in numbers):
        return exactly(value, count)
    low = sum(each.value if each.low is None else each.low for each in numbers)
    high = sum(each.value if each.high is None else each.high for each in numbers)
    return Interval(value, low, high, count)


def largest(numbers: Sequence[Interval]) -> Interval:
    """Return the largest, whichever it is: its ends are the largest ends."""
    first = max(numbers, key=lambda each: each.value)
    if all(each.low is None for each in numbers):
        return first
    low = max(each.value if each.low is None else each.low for each in numbers)
    high = max(each.value if each.high is None else each.high for each in numbers)
    return Interval(first.value, min(low, first.value), high, first.n)


def least(numbers: Sequence[Interval]) -> Interval:
    """Return the smallest, whichever it is: its ends are the smallest ends."""
    first = min(numbers, key=lambda each: each.value)
    if all(each.low is None for each in numbers):
        return first
    low = min(each.value if each.low is None else each.low for each in numbers)
    high = min(each.value if each.high is None else each.high for each in numbers)
    return Interval(first.value, low, max(high, first.value), first.n)


def surely_below(number: Interval, limit: Interval) -> bool:
    """Whether the intervals, or values where there are none, lie apart."""
    high = number.value if number.high is None else number.high
    low = limit.value if limit.low is None else limit.low
    return high < low


def _by_ends(change: Callable[[float], float], number: Interval) -> Interval:
    low, high = number.low, number.high
    return Interval(
        change(number.value),
        None if low is None else change(low),
        None if high is None else change(high),
        number.n,
    )


def _half_width(number: Interval) -> float:
    if number.low is None or number.high is None:
        return 0.0
    return (number.high - number.low) / 2


def _log_half_width(number: Interval) -> float:
    if number.low is None or number.high is None or number.low <= 0:
        return 0.0
    return math.log(number.high / number.low) / 2
