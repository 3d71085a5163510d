"""Axes that say their unit: bytes as KiB to GiB on a log scale, throughput in MB/s, shares in %."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import altair as alt

from leadline.record.wording import PARAMETER_TITLES
from leadline.record.workload import FRACTIONS, SIZES

BYTES_EXPR = (
    "datum.value >= 1099511627776 ? format(datum.value/1099511627776, '~r') + ' TiB' : "
    "datum.value >= 1073741824 ? format(datum.value/1073741824, '~r') + ' GiB' : "
    "datum.value >= 1048576 ? format(datum.value/1048576, '~r') + ' MiB' : "
    "datum.value >= 1024 ? format(datum.value/1024, '~r') + ' KiB' : "
    "format(datum.value, '~r') + ' B'"
)

NUMBER_EXPR = "format(datum.value, ',')"
"""Labels as they are: with a format of its own, Vega takes digits away that it thinks too many."""


def bytes_x(xs: Sequence[float], title: str) -> alt.X:
    """Return a log axis over bytes, with ticks at powers of two and labels as KiB, MiB, GiB."""
    low, high = min(xs), max(xs)
    first, last = math.ceil(math.log2(low * 0.999)), math.floor(math.log2(high * 1.001))
    step = max(1, math.ceil((last - first) / 8))
    ticks = [2.0**power for power in range(first, last + 1, step)]
    return alt.X(
        "x:Q",
        scale=alt.Scale(type="log", domain=_wide(low, high), nice=False),
        axis=alt.Axis(
            title=title,
            values=ticks,
            labelExpr=BYTES_EXPR,
            labelOverlap="parity",
            labelSeparation=6,
        ),
    )


def on_field(axis: alt.X | alt.Y, field: str) -> Any:
    """Return the same axis reading another field, for the ends of an interval."""
    other = axis.copy()
    other.shorthand = f"{field}:Q"
    return other


def _wide(low: float, high: float) -> list[float]:
    """Leave room at both ends of a log axis, more when all of it is one point."""
    margin = 1.08 if high > low * 1.5 else 2.0
    return [low / margin, high * margin]


def parameter_x(parameter: str, xs: Sequence[float]) -> alt.X:
    """Return the axis of one of the five parameters."""
    title = PARAMETER_TITLES[parameter]
    if parameter in SIZES:
        return bytes_x(xs, f"{title} (log scale)")
    if parameter in FRACTIONS:
        axis = alt.Axis(
            title=f"{title} (%)",
            format=".0~%",
            values=[0, 0.25, 0.5, 0.75, 1],
            labelExpr="format(100 * datum.value, '~r')",
        )
        return alt.X("x:Q", scale=alt.Scale(domain=[-0.03, 1.03], nice=False), axis=axis)
    wide = max(xs) >= 8 * min(xs)
    low, high = (min(xs) / 1.1, max(xs) * 1.1) if wide else (min(xs) - 0.3, max(xs) + 0.3)
    axis = alt.Axis(
        title=f"{title} (count{', log scale' if wide else ''})",
        values=sorted(set(xs)),
        format="~r",
        labelOverlap="parity",
    )
    scale = alt.Scale(type="log" if wide else "linear", domain=[low, high], nice=False)
    return alt.X("x:Q", scale=scale, axis=axis)


def throughput_y(
    least_mb_s: float, most_mb_s: float, *, headroom: float = 1.06, log: bool = False
) -> alt.Y:
    """Return the throughput axis in MB/s (10^6 bytes): from zero, or log when asked."""
    if log and least_mb_s > 0:
        scale, shown = _log_throughput(least_mb_s, most_mb_s, headroom, (1,))
        return alt.Y(
            "y:Q",
            scale=scale,
            axis=alt.Axis(title="Throughput (MB/s, log scale)", values=shown, format=",~r"),
        )
    return alt.Y(
        "y:Q",
        scale=alt.Scale(domain=[0, most_mb_s * headroom], nice=False),
        axis=alt.Axis(title="Throughput (MB/s)", format=",~r", tickCount=5),
    )


def throughput_xy(
    least_mb_s: float, most_mb_s: float, x_title: str, y_title: str
) -> tuple[alt.X, alt.Y, list[float]]:
    """Return two equal log axes in MB/s, one throughput against another, and their ends."""
    scale, shown = _log_throughput(least_mb_s, most_mb_s, 1.02, (1, 3))
    x_axis, y_axis = (
        alt.Axis(
            title=f"{title} (MB/s, log scale)", values=shown, format=",~r", labelOverlap="parity"
        )
        for title in (x_title, y_title)
    )
    ends: list[float] = scale.to_dict(validate=False)["domain"]
    return alt.X("x:Q", scale=scale, axis=x_axis), alt.Y("y:Q", scale=scale, axis=y_axis), ends


def _log_throughput(
    least_mb_s: float, most_mb_s: float, headroom: float, long_ticks: Sequence[int]
) -> tuple[alt.Scale, list[float]]:
    """Return a log scale with room at its ends, and its ticks: `long_ticks` where it is long."""
    span = math.log10(most_mb_s / least_mb_s)
    top = most_mb_s * 10 ** (span * (headroom - 1) + 0.02)
    ticks = [10.0**power * mantissa for power in range(-6, 9) for mantissa in (1, 2, 5)]
    if span > 1.6:
        ticks = [10.0**power * mantissa for power in range(-6, 9) for mantissa in long_ticks]
    bottom = least_mb_s / 1.25
    shown = [tick for tick in ticks if bottom <= tick <= top]
    return alt.Scale(type="log", domain=[bottom, top], nice=False), shown
