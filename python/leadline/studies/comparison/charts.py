"""Charts of a comparison: access, cache sizes, throughput of every system (CP93, CP94)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise

import altair as alt

from leadline.charts.axes import BYTES_EXPR, on_field, parameter_x, throughput_y
from leadline.charts.bars import Row, bar, bars, headline
from leadline.charts.layers import LOW_PX, TALL_PX, WIDE_PX, AnyChart, finish, tooltips, values
from leadline.charts.scale import wants_log
from leadline.charts.theme import SYSTEM_SHAPES
from leadline.record import CurvePoint, Interval, WritePolicy
from leadline.record.comparison import (
    AccessCurve,
    CacheSize,
    CommonCurve,
    CommonRate,
    ComparedWorkload,
    SystemsComparison,
)
from leadline.record.findings import Comparison, compare
from leadline.record.wording import (
    format_bytes_ci,
    format_rate_ci,
    format_share,
    format_times,
    format_value,
    format_workload,
    join_words,
)
from leadline.studies.comparison import text as words
from leadline.studies.survey.charts import curves_chart, system_layers, system_row
from leadline.units import format_bytes, format_rate

# Local against through a server, by what writes wait for: CP93 Fig. 6 and CP94 Fig. 23.

STEPS = 20
"""Places of a line from one measured point to the next."""


def access_chart(curves: Sequence[AccessCurve]) -> alt.LayerChart:
    """Draw measured throughput against the read fraction, one line per system and write mode."""
    names = line_names(curves)
    rows = [
        system_row(
            name,
            point,
            f"{format_value('read_frac', point.x)} reads, "
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
        "and writes are mixed. Bands: 95%."
    )
    return finish(
        system_layers(rows, names, x, y, between=between),
        format_costliest(curves),
        [line for line in (_format_gap(curves), said) if line],
        (WIDE_PX, TALL_PX),
    )


def _mixed(points: Sequence[CurvePoint]) -> Iterator[dict[str, float | None]]:
    """Yield the places of the line between points: time per byte is straight over the share.

    A share of the requests takes one time and the rest another (`leadline.models.product`).
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
    """Name each line by its system, then by what differs: way, write mode, request size."""
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


def format_costliest(curves: Sequence[AccessCurve]) -> str:
    """Name the system whose writes cost most against its own reads, only where that is shown."""
    subject = "Throughput against the read fraction"
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
    return f"Writes cost {worst} the most: its reads are {format_times(costs[worst])} as fast"


def _format_gap(curves: Sequence[AccessCurve]) -> str:
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
            said.append(f"{format_times(ratio)} with {what}")
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
    return f"no curve over the read fraction was surveyed on {join_words(absent)}"


# How large the page caches are, for reads and apart for writes: CP93 Fig. 4.
#
# CP93 notes below its figure that "the Sprite page cache really has two components"; here a cache
# whose two sizes were told apart has two rows, and one that writes go through says so.

_ENDS = ("x", "low", "high")
_TICKS = [2.0**power for power in range(0, 60, 2)]


def cache_bytes_chart(sizes: Sequence[CacheSize]) -> alt.LayerChart:
    """Draw the sizes in bytes; as points on a log scale where bars would hide the small ones."""
    rows = [
        bar(name, known, format_bytes_ci(known))
        for size in sizes
        for name, known in _by_kind(size, size.bytes, size.writes_bytes)
    ]
    title = headline(
        [bar(size.name, size.bytes, "") for size in sizes if size.bytes is not None],
        lambda best: f"The largest page cache has {format_bytes(best['x'])}: {best['name']}",
        "Bytes of page cache",
    )
    subtitle = f"Where the page cache ends. {_format_source(sizes)}Bars: 95% intervals."
    found = [float(row["x"]) for row in rows]
    if wants_log(min(found), max(found)):
        axis = alt.Axis(
            title="Effective page cache (log scale)",
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
    axis = alt.Axis(title=f"Effective page cache ({unit})", format=",~r", tickCount=5)
    return bars(scaled, axis, title, subtitle)


def cache_share_chart(sizes: Sequence[CacheSize]) -> alt.LayerChart:
    """Draw the sizes as shares of the memory, or of the cap that they were found under."""
    rows = []
    for size in sizes:
        of = format_bytes(size.memory_bytes or 0)
        for name, known in _by_kind(size, size.share, size.writes_share):
            named = f"{name} (capped)" if size.capped else name
            rows.append(bar(named, _hundredfold(known), f"{format_share(known)} of {of}"))
    capped = " Capped: of the memory cap it ran under." if any(s.capped for s in sizes) else ""
    axis = alt.Axis(
        title="Effective page cache (% of memory)", format=",~r", values=[0, 25, 50, 75, 100]
    )
    title = headline(
        [bar(size.name, _hundredfold(size.share), "") for size in sizes if size.share is not None],
        lambda best: (
            f"{best['name']} gives the largest share of memory to the page cache: {best['x']:.0f}%"
        ),
        "Share of memory as page cache",
    )
    return bars(rows, axis, title, f"{_format_source(sizes)}Bars: 95% intervals.{capped}")


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


def _format_source(sizes: Sequence[CacheSize]) -> str:
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


# Charts across systems: CP93 Figs. 2 to 5 and 8, CP94 Figs. 10 and 17.


def comparison_charts(document: SystemsComparison) -> dict[str, alt.LayerChart]:
    """Return every chart that the comparison has numbers for, under stable names.

    `ratios-<a>-<b>` with the systems' positions from 1, `bytes_touched_own`, `bytes_touched`,
    `read_share_own`, `read_share`, `disk_reads`, `cache_reads`, `cache_bytes`, `cache_share`.
    """
    names = [each.name for each in document.contenders]
    found: dict[str, alt.LayerChart] = {}
    for a, b, rows in words.pair_groups(document):
        if any(row.ratio is not None for row in rows):
            name = f"ratios-{names.index(a) + 1}-{names.index(b) + 1}"
            found[name] = _ratios_chart(a, b, rows)
    own = [each for each in document.own_curves if each.curve.points]
    if own:
        found["bytes_touched_own"] = curves_chart(
            [each.name for each in own], [each.curve for each in own]
        )
    if document.access_curves:
        found["read_share_own"] = access_chart(document.access_curves)
    found |= _common_charts(document)
    sized = [size for size in document.cache_sizes if size.bytes is not None]
    if sized:
        found["cache_bytes"] = cache_bytes_chart(sized)
    shared = [size for size in sized if size.share is not None]
    if shared:
        found["cache_share"] = cache_share_chart(shared)
    return found


def missing_charts(document: SystemsComparison) -> dict[str, str]:
    """Say of every system that a chart leaves out, why."""
    missing = {}
    for name, place in (("disk_reads", "disk"), ("cache_reads", "page cache")):
        absent = [r for r in document.rates if r.place == place and r.throughput_mb_s is None]
        if absent:
            missing[name] = "; ".join(f"{rate.name}: {rate.missing}" for rate in absent)
    missing |= _missing_curves(document)
    lineless = missing_access(document.access_curves, [each.name for each in document.contenders])
    if lineless:
        missing["read_share_own"] = lineless
    unsized = [size.name for size in document.cache_sizes if size.bytes is None]
    if unsized:
        missing["cache_bytes"] = f"no boundary of a cache was found on {', '.join(unsized)}"
    unshared = [each.name for each in document.cache_sizes if each.bytes and each.share is None]
    if unshared:
        missing["cache_share"] = f"the memory of {', '.join(unshared)} is not known"
    return missing


def _missing_curves(document: SystemsComparison) -> dict[str, str]:
    size = document.common_size_bytes
    if size is None:
        why = "the surveyed request sizes have none in common"
        return dict.fromkeys(("read_share", "bytes_touched"), why)
    few = f"surveyed at fewer than two places with {format_bytes(size)} requests"
    no_cache = {
        rate.name: rate.missing
        for rate in document.rates
        if rate.place == "page cache" and rate.workload is None
    }
    missing = {}
    for chart, parameter in (("read_share", "read_frac"), ("bytes_touched", "unique_bytes")):
        drawn = {curve.name for curve in document.curves if curve.parameter == parameter}
        reasons = no_cache if chart == "read_share" else {}
        absent = [each.name for each in document.contenders if each.name not in drawn]
        if absent:
            missing[chart] = "; ".join(f"{name}: {reasons.get(name) or few}" for name in absent)
    return missing


# ---- CP94 Fig. 17 ---------------------------------------------------------------------------


_NAMES_PX = 260
"""Of the column of workloads; a longer name is cut, and whole where its mark is pointed at."""
_RATIO_ROW_PX = 32


def _ratios_chart(a: str, b: str, rows: Sequence[ComparedWorkload]) -> alt.LayerChart:
    """Ratio of two systems on every workload, with its interval (CP94 Fig. 17)."""
    drawn = [_ratio_row(row) for row in rows if row.ratio is not None]
    domain = [f"{a} is faster", f"{b} is faster", "inconclusive"]
    order = [row["title"] for row in drawn]
    ends = [end for row in drawn for end in (row["low"], row["high"], row["x"]) if end]
    x = _ratio_x([*ends, 1.0])
    names = alt.Axis(title=None, labelLimit=_NAMES_PX, domain=False, ticks=False, labelPadding=8)
    y = alt.Y("title:N", sort=order, axis=names)
    shapes = [*SYSTEM_SHAPES[:2], "cross"]
    colour = alt.Color("verdict:N", scale=alt.Scale(domain=domain), legend=_legend("Verdict"))
    shape = alt.Shape(
        "verdict:N", scale=alt.Scale(domain=domain, range=shapes), legend=_legend("Verdict")
    )
    tips = tooltips(workload="Workload", said="Ratio (95% CI)", a=a, b=b, verdict="Verdict")
    chart = alt.Chart(values(drawn))
    layers: list[AnyChart] = [
        alt.Chart(values([{"x": 1.0}])).mark_rule(style="average").encode(x=x),
        chart.mark_rule(strokeWidth=2, clip=True).encode(
            x=on_field(x, "low"), x2=alt.X2("high:Q"), y=y, color=colour
        ),
        chart.mark_point(filled=True, size=90, opacity=1).encode(
            x=x, y=y, color=colour, shape=shape, tooltip=tips
        ),
    ]
    source = rows[0].source
    subtitle = (
        f"{source.capitalize()} throughput of {a} over that of {b}: right of 1, {a} is faster. "
        "Bars: 95% intervals."
    )
    if any(row["guess"] for row in drawn):
        subtitle += " *: extrapolated."
    return finish(
        layers,
        f"Throughput of {a} over {b}",
        subtitle,
        (WIDE_PX, _RATIO_ROW_PX * max(2, len(drawn))),
    )


def _ratio_row(row: ComparedWorkload) -> Row:
    assert row.ratio is not None  # noqa: S101 - the caller left the others out
    said = {"a": f"{row.a} is faster", "b": f"{row.b} is faster", "inconclusive": "inconclusive"}
    guess = any(found.code == "extrapolated" for found in row.findings)
    return {
        "title": words.format_title(row.title, row.workload) + ("*" if guess else ""),
        "guess": guess,
        "workload": format_workload(row.workload),
        "x": row.ratio.value,
        "low": row.ratio.low,
        "high": row.ratio.high,
        "said": words.format_ratio(row.ratio),
        "a": format_rate_ci(row.a_mb_s) if row.a_mb_s else "not known",
        "b": format_rate_ci(row.b_mb_s) if row.b_mb_s else "not known",
        "verdict": said[row.verdict],
    }


def _ratio_x(ends: Sequence[float]) -> alt.X:
    low, high = min(ends) / 1.1, max(ends) * 1.1
    steps = (1, 2, 5) if high / low < 200 else (1,)
    ticks = [10.0**power * step for power in range(-9, 10) for step in steps]
    return alt.X(
        "x:Q",
        scale=alt.Scale(type="log", domain=[low, high], nice=False),
        axis=alt.Axis(
            title="Ratio of throughput (log scale)",
            values=[tick for tick in ticks if low <= tick <= high],
            labelExpr="'×' + format(datum.value, '~r')",
            labelOverlap="parity",
        ),
    )


def _legend(title: str) -> alt.Legend:
    return alt.Legend(title=title, columns=1)


# ---- CP93 Figs. 2, 3, 5 and 8 ---------------------------------------------------------------


def _common_charts(document: SystemsComparison) -> dict[str, alt.LayerChart]:
    if document.common_size_bytes is None:
        return {}
    size = format_bytes(document.common_size_bytes)
    found = {}
    for name, place in (("disk_reads", "disk"), ("cache_reads", "page cache")):
        rates = [r for r in document.rates if r.place == place and r.throughput_mb_s is not None]
        if rates:
            found[name] = _reads_chart(rates, place, size)
    for chart, parameter in (("read_share", "read_frac"), ("bytes_touched", "unique_bytes")):
        curves = [curve for curve in document.curves if curve.parameter == parameter]
        if curves:
            found[chart] = _curves_chart(curves, parameter, size, document.cache_sizes)
    return found


def _reads_chart(rates: Sequence[CommonRate], place: str, size: str) -> alt.LayerChart:
    """Bars of reads at the common size from one place (CP93 Figs. 2 and 3)."""
    rows = [
        bar(rate.name + ("*" if rate.extrapolated else ""), known, format_rate_ci(known))
        for rate in rates
        if (known := rate.throughput_mb_s) is not None
    ]
    title = headline(
        rows,
        lambda best: (
            f"Reads from the {place}: {best['name']} is the fastest, {format_rate(best['x'])}"
        ),
        f"Reads from the {place}",
    )
    subtitle = (
        f"Predicted: {size} reads, half sequential, one process, at each focal point's bytes."
    )
    if any(rate.extrapolated for rate in rates):
        subtitle += " *: extrapolated."
    axis = alt.Axis(title="Throughput (MB/s)", format=",~r", tickCount=5)
    return bars(rows, axis, title, subtitle)


def _curves_chart(
    curves: Sequence[CommonCurve], parameter: str, size: str, caches: Sequence[CacheSize]
) -> alt.LayerChart:
    """Curves of several systems at the common size (CP93 Figs. 5 and 8)."""
    policies = {each.name: each.policy for each in caches} if parameter == "read_frac" else {}
    called = {
        curve.name: curve.name + _POLICY_WORDS[policies.get(curve.name, WritePolicy.UNKNOWN)]
        for curve in curves
    }
    rows = [
        {
            "x": point.x,
            "y": point.throughput_mb_s.value,
            "low": point.throughput_mb_s.low,
            "high": point.throughput_mb_s.high,
            "system": called[curve.name],
            "where": format_value(parameter, point.x),
            "rate": format_rate_ci(point.throughput_mb_s),
        }
        for curve in curves
        for point in curve.points
    ]
    names = list(called.values())
    ends = [float(str(row[end])) for row in rows for end in ("y", "low", "high") if row[end]]
    x = parameter_x(parameter, [float(str(row["x"])) for row in rows])
    y = throughput_y(min(ends), max(ends), log=wants_log(min(ends), max(ends)))
    if parameter == "read_frac":
        title = f"Page caches against the read fraction{_flattest(curves)}"
        at = "at each focal point's bytes"
        px = (WIDE_PX, LOW_PX)
    else:
        title = f"At {size} requests: {_span(rows)}"
        at, px = "half reads", (WIDE_PX, TALL_PX)
    subtitle = f"Predicted: {size} requests, half sequential, one process, {at}. Bands: 95%."
    broad = [name for name in called if policies.get(name) is WritePolicy.CANCELLING]
    if broad:
        subtitle += " Broad: cancels writes."
    halo = _halo([row for row in rows if row["system"] in {called[name] for name in broad}], names)
    layers: list[AnyChart] = [halo.encode(x=x, y=y)] if broad else []
    return finish([*layers, *system_layers(rows, names, x, y)], title, subtitle, px)


_POLICY_WORDS = {
    WritePolicy.CANCELLING: " (cancels writes)",
    WritePolicy.THROUGH: " (writes through)",
    WritePolicy.UNKNOWN: "",
}


def _halo(rows: Sequence[Row], names: Sequence[str]) -> alt.Chart:
    """Make lines broad below their own mark, as CP93 Fig. 5 has write-back ones in bold."""
    colour = alt.Color(
        "system:N", scale=alt.Scale(domain=list(names)), legend=alt.Legend(title="System")
    )
    halo: alt.Chart = alt.Chart(values(rows)).mark_line(strokeWidth=9, opacity=0.3)
    return halo.encode(color=colour)


def _span(rows: Sequence[Row]) -> str:
    rates = [float(row["y"]) for row in rows]
    return f"{format_rate(max(rates))} at most, {format_rate(min(rates))} at least"


def _flattest(curves: Sequence[CommonCurve]) -> str:
    """Say where writes cost least: a cache that cancels writes has a flat line (CP93 §4.2).

    Only curves from nothing but writes to nothing but reads are held against each other, and the
    flattest is named when its fall is shown to be less than every other's.
    """
    whole = [curve for curve in curves if (curve.points[0].x, curve.points[-1].x) == (0.0, 1.0)]
    if len(whole) < 2:
        return ""
    falls = {curve.name: _fall(curve) for curve in whole}
    name = min(falls, key=lambda each: falls[each][1])
    others = [least for each, (least, _) in falls.items() if each != name]
    if len(whole) < len(curves) or not falls[name][1] < min(others):
        return ": the flattest cannot be told"
    return f": {name} is the flattest"


def _fall(curve: CommonCurve) -> tuple[float, float]:
    """Return the least and the most by which its ends may differ, as a factor of 1 or more."""
    ends = compare(curve.points[0].throughput_mb_s, curve.points[-1].throughput_mb_s)
    if ends.low is None or ends.high is None:
        return 1.0, math.inf
    return max(1.0, ends.low, 1 / ends.high), max(ends.high, 1 / ends.low)
