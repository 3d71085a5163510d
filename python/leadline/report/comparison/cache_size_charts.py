"""How large the file caches are, for reads and apart for writes: CP93 Fig. 4.

CP93 notes below its figure that "the Sprite file cache really has two components"; here a cache
whose two sizes were told apart has two rows, and one that writes go through says so.
"""

from __future__ import annotations

from collections.abc import Sequence

import altair as alt

from leadline.record import Interval, WritePolicy
from leadline.record.comparison import CacheSize
from leadline.record.wording import say_bytes, say_share
from leadline.report.drawing.axes import BYTES_EXPR
from leadline.report.drawing.bars import bar, bars, headline
from leadline.report.drawing.scale import wants_log
from leadline.units import format_bytes

_ENDS = ("x", "low", "high")
_TICKS = [2.0**power for power in range(0, 60, 2)]


def cache_bytes_chart(sizes: Sequence[CacheSize]) -> alt.LayerChart:
    """Draw the sizes in bytes; as points on a log scale where bars would hide the small ones."""
    rows = [
        bar(name, known, say_bytes(known))
        for size in sizes
        for name, known in _by_kind(size, size.bytes, size.writes_bytes)
    ]
    title = headline(
        [bar(size.name, size.bytes, "") for size in sizes if size.bytes is not None],
        lambda best: f"The largest file cache has {format_bytes(best['x'])}: {best['name']}",
        "Bytes of file cache",
    )
    subtitle = f"Where the file cache ends. {_say_source(sizes)}Bars: 95 % intervals."
    found = [float(row["x"]) for row in rows]
    if wants_log(min(found), max(found)):
        axis = alt.Axis(
            title="Effective file cache (log scale)",
            labelExpr=BYTES_EXPR,
            labelOverlap="parity",
            values=[tick for tick in _TICKS if min(found) / 2 <= tick <= 2 * max(found)],
        )
        return bars(rows, axis, title, subtitle, log=True)
    unit, divisor = _unit(max(found))
    scaled = [
        row | {end: None if row[end] is None else float(row[end]) / divisor for end in _ENDS}
        for row in rows
    ]
    axis = alt.Axis(title=f"Effective file cache ({unit})", format=",~r", tickCount=5)
    return bars(scaled, axis, title, subtitle)


def cache_share_chart(sizes: Sequence[CacheSize]) -> alt.LayerChart:
    """Draw the sizes as shares of the memory, or of the cap that they were found under."""
    rows = []
    for size in sizes:
        of = format_bytes(size.memory_bytes or 0)
        for name, known in _by_kind(size, size.share, size.writes_share):
            named = f"{name} (capped)" if size.capped else name
            rows.append(bar(named, _hundredfold(known), f"{say_share(known)} of {of}"))
    capped = " Capped: of the memory cap it ran under." if any(s.capped for s in sizes) else ""
    axis = alt.Axis(
        title="Effective file cache (% of memory)", format=",~r", values=[0, 25, 50, 75, 100]
    )
    title = headline(
        [bar(size.name, _hundredfold(size.share), "") for size in sizes if size.share is not None],
        lambda best: (
            f"{best['name']} gives the largest share of memory to the file cache: {best['x']:.0f} %"
        ),
        "Share of memory as file cache",
    )
    return bars(rows, axis, title, f"{_say_source(sizes)}Bars: 95 % intervals.{capped}")


def _by_kind(
    size: CacheSize, reads: Interval | None, writes: Interval | None
) -> list[tuple[str, Interval]]:
    """Return what a system's rows are called, and their sizes; two rows only for two sizes."""
    if reads is None:
        return []
    if size.policy is WritePolicy.THROUGH:
        return [(f"{size.name}: reads; writes go through", reads)]
    if writes is None:
        return [(size.name, reads)]
    if _apart(reads, writes):
        return [(f"{size.name}: reads", reads), (f"{size.name}: writes", writes)]
    return [(f"{size.name}: reads and writes", reads)]


def _apart(one: Interval, other: Interval) -> bool:
    """Whether two sizes are shown to differ: their intervals share nothing."""
    if one.low is None or one.high is None or other.low is None or other.high is None:
        return False
    return one.low > other.high or other.low > one.high


def _say_source(sizes: Sequence[CacheSize]) -> str:
    """Say which sizes come from studies, where some do."""
    studied = sum(size.studied for size in sizes)
    if studied == 0:
        return ""
    if studied == len(sizes):
        return "From studies of the caches. "
    return f"From studies of the caches on {studied} of {len(sizes)}, else from surveys. "


def _hundredfold(share: Interval) -> Interval:
    low, high = (None if end is None else 100 * end for end in (share.low, share.high))
    return Interval(100 * share.value, low, high, share.n)


def _unit(most_bytes: float) -> tuple[str, float]:
    for unit, power in (("TiB", 40), ("GiB", 30), ("MiB", 20), ("KiB", 10)):
        if most_bytes >= 2**power:
            return unit, 2.0**power
    return "B", 1.0
