"""Charts across systems: CP93 Figs. 2 to 5 and 8, CP94 Figs. 10 and 17."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import altair as alt

from leadline.record import WritePolicy
from leadline.record.comparison import (
    CacheSize,
    CommonCurve,
    CommonRate,
    ComparedWorkload,
    SystemsComparison,
)
from leadline.record.findings import compare
from leadline.record.wording import say_rate, say_value, say_workload
from leadline.report.comparison import words
from leadline.report.comparison.access_chart import access_chart, missing_access
from leadline.report.comparison.cache_size_charts import cache_bytes_chart, cache_share_chart
from leadline.report.drawing.axes import on_field, parameter_x, throughput_y
from leadline.report.drawing.bars import ROW_PX, Row, bar, bars, headline, row_names
from leadline.report.drawing.layers import (
    LOW_PX,
    TALL_PX,
    WIDE_PX,
    AnyChart,
    finish,
    tooltips,
    values,
)
from leadline.report.drawing.scale import wants_log
from leadline.report.drawing.theme import SYSTEM_SHAPES
from leadline.report.survey.overviews import curves_chart, system_layers
from leadline.units import format_bytes, format_rate


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
    for name, place in (("disk_reads", "disk"), ("cache_reads", "file cache")):
        absent = [r for r in document.rates if r.place == place and r.throughput_mb_s is None]
        if absent:
            missing[name] = "; ".join(f"{rate.name}: {rate.missing}" for rate in absent)
    missing |= _missing_curves(document)
    lineless = missing_access(document.access_curves, [each.name for each in document.contenders])
    if lineless:
        missing["read_share_own"] = lineless
    unsized = [size.name for size in document.cache_sizes if size.bytes is None]
    if unsized:
        missing["cache_bytes"] = f"no border of a cache was found on {', '.join(unsized)}"
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
        if rate.place == "file cache" and rate.workload is None
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


def _ratios_chart(a: str, b: str, rows: Sequence[ComparedWorkload]) -> alt.LayerChart:
    """Ratio of two systems on every workload, with its interval (CP94 Fig. 17)."""
    drawn = [_ratio_row(row) for row in rows if row.ratio is not None]
    domain = [f"{a} is faster", f"{b} is faster", "cannot tell"]
    order = [row["title"] for row in drawn]
    ends = [end for row in drawn for end in (row["low"], row["high"], row["x"]) if end]
    x = _ratio_x([*ends, 1.0])
    y = alt.Y("title:N", sort=order, axis=None)
    shapes = [*SYSTEM_SHAPES[:2], "cross"]
    colour = alt.Color("verdict:N", scale=alt.Scale(domain=domain), legend=_legend("Verdict"))
    shape = alt.Shape(
        "verdict:N", scale=alt.Scale(domain=domain, range=shapes), legend=_legend("Verdict")
    )
    tips = tooltips(workload="Workload", said="Ratio (95 %)", a=a, b=b, verdict="Verdict")
    chart = alt.Chart(values(drawn))
    layers: list[AnyChart] = [
        alt.Chart(values([{"x": 1.0}])).mark_rule(style="average").encode(x=x),
        row_names(drawn, "title", y),
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
        "Bars: 95 % intervals."
    )
    if any(row["guess"] for row in drawn):
        subtitle += " *: extrapolated."
    return finish(
        layers, words.say_score(a, b, rows), subtitle, (WIDE_PX, ROW_PX * max(2, len(drawn)))
    )


def _ratio_row(row: ComparedWorkload) -> Row:
    assert row.ratio is not None  # noqa: S101 - the caller left the others out
    said = {"a": f"{row.a} is faster", "b": f"{row.b} is faster", "cannot tell": "cannot tell"}
    guess = any(found.code == "extrapolated" for found in row.findings)
    return {
        "title": words.say_title(row.title, row.workload) + ("*" if guess else ""),
        "guess": guess,
        "workload": say_workload(row.workload),
        "x": row.ratio.value,
        "low": row.ratio.low,
        "high": row.ratio.high,
        "said": words.say_ratio(row.ratio),
        "a": say_rate(row.a_mb_s) if row.a_mb_s else "not known",
        "b": say_rate(row.b_mb_s) if row.b_mb_s else "not known",
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
    for name, place in (("disk_reads", "disk"), ("cache_reads", "file cache")):
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
        bar(rate.name + ("*" if rate.extrapolated else ""), known, say_rate(known))
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
    called = {curve.name: _with_policy(curve.name, policies) for curve in curves}
    rows = [
        {
            "x": point.x,
            "y": point.throughput_mb_s.value,
            "low": point.throughput_mb_s.low,
            "high": point.throughput_mb_s.high,
            "system": called[curve.name],
            "where": say_value(parameter, point.x),
            "rate": say_rate(point.throughput_mb_s),
        }
        for curve in curves
        for point in curve.points
    ]
    names = list(called.values())
    ends = [float(str(row[end])) for row in rows for end in ("y", "low", "high") if row[end]]
    x = parameter_x(parameter, [float(str(row["x"])) for row in rows])
    y = throughput_y(min(ends), max(ends), log=wants_log(min(ends), max(ends)))
    if parameter == "read_frac":
        title = f"File caches against the share of reads{_flattest(curves)}"
        at = "at each focal point's bytes"
        px = (WIDE_PX, LOW_PX)
    else:
        title = f"At {size} requests: {_span(rows)}"
        at, px = "half reads", (WIDE_PX, TALL_PX)
    subtitle = f"Predicted: {size} requests, half sequential, one process, {at}. Bands: 95 %."
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


def _with_policy(name: str, policies: Mapping[str, WritePolicy]) -> str:
    return name + _POLICY_WORDS[policies.get(name, WritePolicy.UNKNOWN)]


def _halo(rows: Sequence[Row], names: Sequence[str]) -> alt.Chart:
    """Make lines broad below their own mark, as CP93 Fig. 5 has write-cancelling ones in bold."""
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
