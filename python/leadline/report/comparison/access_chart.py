"""Local against through a server, by what writes wait for: CP93 Fig. 6 and CP94 Fig. 23."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise

import altair as alt

from leadline.record import CurvePoint, Interval
from leadline.record.comparison import AccessCurve
from leadline.record.findings import Comparison, compare
from leadline.record.wording import join_words, say_times, say_value
from leadline.report.drawing.axes import parameter_x, throughput_y
from leadline.report.drawing.layers import TALL_PX, WIDE_PX, finish
from leadline.report.drawing.scale import wants_log
from leadline.report.survey.overviews import system_layers, system_row
from leadline.units import format_bytes

STEPS = 20
"""Places of a line from one measured point to the next."""


def access_chart(curves: Sequence[AccessCurve]) -> alt.LayerChart:
    """Draw measured throughput against the share of reads, one line per system and discipline."""
    names = line_names(curves)
    rows = [
        system_row(
            name,
            point,
            f"{say_value('read_frac', point.x)} reads, "
            f"{format_bytes(each.curve.focal.size_mean)} requests",
        )
        for name, each in zip(names, curves, strict=True)
        for point in each.curve.points
    ]
    ends = [float(str(row[end])) for row in rows for end in ("y", "low", "high") if row[end]]
    least, most = min(ends), max(ends)
    x = parameter_x("read_frac", [float(str(row["x"])) for row in rows])
    y = throughput_y(least, most, log=wants_log(least, most))
    between = [
        row | {"system": name}
        for name, each in zip(names, curves, strict=True)
        for row in _mixed(each.curve.points)
    ]
    said = (
        "Measured at the points, each system at its own focal point; between them, times of reads "
        "and writes are mixed. Bands: 95 %."
    )
    return finish(
        system_layers(rows, names, x, y, between=between),
        say_costliest(curves),
        [line for line in (_say_gap(curves), said) if line],
        (WIDE_PX, TALL_PX),
    )


def _mixed(points: Sequence[CurvePoint]) -> Iterator[dict[str, float | None]]:
    """Yield the places of the line between points: time per byte is straight over the share.

    A share of the requests takes one time and the rest another (`leadline.predict.curve_line`).
    """
    for left, right in pairwise(points):
        for step in range(STEPS + 1):
            share = step / STEPS
            ends = [
                _mean_rate(
                    getattr(left.throughput_mb_s, field),
                    getattr(right.throughput_mb_s, field),
                    share,
                )
                for field in ("value", "low", "high")
            ]
            x = left.x + share * (right.x - left.x)
            yield {"x": x, "y": ends[0], "low": ends[1], "high": ends[2]}


def _mean_rate(left: float | None, right: float | None, share: float) -> float | None:
    if left is None or right is None or min(left, right) <= 0:
        return None
    return 1 / ((1 - share) / left + share / right)


def line_names(curves: Sequence[AccessCurve]) -> list[str]:
    """Name each line by its system, then by what differs: way, discipline, request size."""
    ways = [f"{each.through or 'local'}, {each.discipline}" for each in curves]
    sizes = [format_bytes(each.curve.focal.size_mean) for each in curves]
    names = [each.name for each in curves]
    if len(set(ways)) > 1:
        names = [f"{name}: {way}" for name, way in zip(names, ways, strict=True)]
    if len(set(sizes)) > 1:
        names = [f"{name} ({size})" for name, size in zip(names, sizes, strict=True)]
    return names


def _ends(each: AccessCurve) -> tuple[CurvePoint, CurvePoint] | None:
    """Return the points of nothing but writes and of nothing but reads; None without both."""
    first, last = each.curve.points[0], each.curve.points[-1]
    return (first, last) if (first.x, last.x) == (0.0, 1.0) else None


def say_costliest(curves: Sequence[AccessCurve]) -> str:
    """Name the system whose writes cost most against its own reads, only where that is shown."""
    subject = "Throughput against the share of reads"
    costs: dict[str, Comparison] = {}
    for each in curves:
        ends = _ends(each)
        if ends is not None:
            costs[each.name] = compare(ends[1].throughput_mb_s, ends[0].throughput_mb_s)
    if len(costs) < len(curves) or len(curves) < 2:
        return subject
    worst = max(costs, key=lambda name: costs[name].low or 0.0)
    others = [costs[name].high or math.inf for name in costs if name != worst]
    low = costs[worst].low
    if low is None or low <= max(1.0, *others):
        return f"{subject}: whose writes cost most cannot be told"
    return f"Writes cost {worst} the most: its reads are {say_times(costs[worst])} as fast"


def _say_gap(curves: Sequence[AccessCurve]) -> str:
    """Say how much faster local is than through a server, for reads alone and writes alone.

    The fastest line of each kind stands for it; empty when there is only one kind.
    """
    said = []
    for end, what in ((1, "only reads"), (0, "only writes")):
        local, remote = (
            [
                ends[end].throughput_mb_s
                for each in curves
                if (each.through is None) == is_local and (ends := _ends(each))
            ]
            for is_local in (True, False)
        )
        if local and remote:
            ratio = compare(_fastest(local), _fastest(remote), candidates=len(local + remote))
            said.append(f"{say_times(ratio)} with {what}")
    if not said:
        return ""
    return f"The fastest local line over the fastest through a server: {join_words(said)}."


def _fastest(rates: Sequence[Interval]) -> Interval:
    return max(rates, key=lambda rate: rate.value)


def missing_access(drawn: Sequence[AccessCurve], names: Sequence[str]) -> str | None:
    """Say which systems have no line; None when all have one."""
    absent = [name for name in names if name not in {each.name for each in drawn}]
    if not absent:
        return None
    return f"no curve over the share of reads was surveyed on {join_words(absent)}"
