"""A curve over unique_bytes drawn in the signs of a terminal."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

from leadline.charts.scale import wants_log
from leadline.record import CurvePoint
from leadline.units import format_bytes, format_rate

ROWS = 9
"""Height of the chart in lines."""
WIDEST, NARROWEST = 96, 24
"""Width of the chart in columns; a narrower terminal gets no chart."""
_BRAILLE = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))


def level_lines(
    readings: Sequence[CurvePoint],
    boundaries_bytes: Sequence[float],
    width: int,
    *,
    plain: bool = False,
    what: str = "",
) -> list[str]:
    """Draw a curve over unique_bytes and its boundaries; empty when there is no room for it.

    Args:
        readings: of the curve, in any order.
        boundaries_bytes: drawn as rules and named under the axis.
        width: in columns.
        plain: ASCII alone.
        what: which throughput, for the title.

    """
    points = sorted(readings, key=lambda point: point.x)
    rates = [point.throughput_mb_s.value for point in points]
    if len(points) < 2 or min(rates) <= 0:
        return []
    log = wants_log(min(rates), max(rates))
    floor = min(rates) if log else 0.0
    ticks = [format_rate(max(rates)), format_rate(floor) if log else "0 MB/s"]
    margin = max(len(tick) for tick in ticks) + 2
    columns = min(WIDEST, width - margin)
    if columns < NARROWEST:
        return []
    places = [point.x for point in points]
    xs = _unit([math.log(x) for x in places])
    ys = _unit([math.log(rate) for rate in rates]) if log else [r / max(rates) for r in rates]
    rule = [_column(places, boundary, columns) for boundary in boundaries_bytes]
    grid = _plain_grid(xs, ys, columns, rule) if plain else _braille_grid(xs, ys, columns, rule)
    edge = "|" if plain else "\N{BOX DRAWINGS LIGHT VERTICAL}"
    labels = [ticks[0], *[""] * (ROWS - 2), ticks[1]]
    lines = [f"{label:>{margin - 2}} {edge}{row}" for label, row in zip(labels, grid, strict=True)]
    of = f" {what}" if what else ""
    title = f"throughput{of}{' (log scale)' if log else ''} against the working set (log scale)"
    if len(title) > columns:
        title = f"by working set{', log' if log else ''}"
    below = _x_labels(places, boundaries_bytes, columns)
    return [" " * margin + title, *lines, " " * margin + below]


def _unit(values: Sequence[float]) -> list[float]:
    low, high = min(values), max(values)
    return [(value - low) / (high - low) if high > low else 0.5 for value in values]


def _column(places: Sequence[float], x_bytes: float, columns: int) -> int:
    share = math.log(x_bytes / min(places)) / math.log(max(places) / min(places))
    return min(columns - 1, max(0, round(share * (columns - 1))))


def _trace(
    xs: Sequence[float], ys: Sequence[float], across: int, down: int
) -> set[tuple[int, int]]:
    """Return the cells that the straight lines between the points pass, from the top left."""
    cells = set()
    for (x0, y0), (x1, y1) in pairwise(zip(xs, ys, strict=True)):
        steps = 1 + round(max(abs(x1 - x0) * across, abs(y1 - y0) * down))
        for step in range(steps + 1):
            x, y = x0 + (x1 - x0) * step / steps, y0 + (y1 - y0) * step / steps
            cells.add((round(x * (across - 1)), round((1 - y) * (down - 1))))
    return cells


def _plain_grid(
    xs: Sequence[float], ys: Sequence[float], columns: int, rule: Sequence[int]
) -> list[str]:
    cells = _trace(xs, ys, columns, ROWS)
    return [
        "".join(
            "*" if (column, row) in cells else ":" if column in rule else " "
            for column in range(columns)
        )
        for row in range(ROWS)
    ]


def _braille_grid(
    xs: Sequence[float], ys: Sequence[float], columns: int, rule: Sequence[int]
) -> list[str]:
    bits = [[0] * columns for _ in range(ROWS)]
    for x, y in _trace(xs, ys, 2 * columns, 4 * ROWS):
        bits[y // 4][x // 2] |= _BRAILLE[y % 4][x % 2]
    dashed = "\N{BOX DRAWINGS LIGHT QUADRUPLE DASH VERTICAL}"
    return [
        "".join(
            chr(0x2800 + dots) if dots else dashed if column in rule else " "
            for column, dots in enumerate(row)
        )
        for row in bits
    ]


def _x_labels(places: Sequence[float], boundaries: Sequence[float], columns: int) -> str:
    """Put the ends of the axis and the boundaries under it, leaving out what would run together."""
    line = [" "] * columns
    for x_bytes in (min(places), max(places), *boundaries):
        label = format_bytes(x_bytes)
        at = _column(places, x_bytes, columns) - len(label) // 2
        at = min(columns - len(label), max(0, at))
        around = line[max(0, at - 1) : at + len(label) + 1]
        if all(sign == " " for sign in around):
            line[at : at + len(label)] = label
    return "".join(line).rstrip()
