"""One measured point on a terminal: how fast, how long, and where the bytes came from."""

from __future__ import annotations

from rich.table import Table

from leadline.record import EngineResult, Measurement, OperationSummary
from leadline.record.wording import say_percent, say_rate
from leadline.units import format_bytes


def render_measurement(point: Measurement) -> Table:
    """Return a table of the point's result that a rich console can print."""
    result = point.result
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="dim")
    table.add_column(overflow="fold")
    for name, text in _rows(point, result):
        table.add_row(name, text)
    return table


def _rows(point: Measurement, result: EngineResult) -> list[tuple[str, str]]:
    iops = result.iops
    width = result.throughput_mb_s.half_width_frac
    within = f" ± {say_percent(width)}" if width is not None else ""
    rows = [
        ("throughput", say_rate(result.throughput_mb_s, level=True)),
        ("", f"{iops.value:,.0f} requests/s{within}, from {result.wall_s:.3g} s"),
        ("reads", _latency(result.read)),
        ("writes", _latency(result.write)),
        ("processor", _processor(result)),
        ("bytes from", _source(result)),
        ("warm-up", f"{result.warm_up.seconds:.3g} s, {_steadiness(result)}"),
        ("admissible", "yes" if result.admissible else f"no: {'; '.join(result.reasons)}"),
    ]
    rows += [("warning", warning) for warning in result.warnings]
    return [*rows, ("point", point.point_id)]


def _processor(result: EngineResult) -> str:
    return (
        f"{say_percent(result.cpu_user)} user, {say_percent(result.cpu_system)} system; "
        f"{say_percent(result.io_share)} of the time inside I/O calls"
    )


def _steadiness(result: EngineResult) -> str:
    return "steady" if result.warm_up.steady else "not steady when its time was up"


def _latency(summary: OperationSummary) -> str:
    latency = summary.latency_us
    if latency is None:
        return "none"
    return (
        f"{summary.operations:,} taking {latency.mean:,.1f} us on the average; "
        f"p50 {latency.p50:,.1f}, p90 {latency.p90:,.1f}, p99 {latency.p99:,.1f}, "
        f"p99.9 {latency.p99_9:,.1f}, "
        f"max {latency.max:,.0f} us"
    )


def _source(result: EngineResult) -> str:
    if result.device_bytes is None:
        return "not known: the device's counters cannot be read here"
    asked, moved = result.workload_bytes, result.device_bytes
    share = result.cached_share
    cached = "" if share is None else f"; {say_percent(share)} of the bytes read were cached"
    return (
        f"the device read {format_bytes(moved.read)} and wrote {format_bytes(moved.write)} for "
        f"{format_bytes(asked.read)} read and {format_bytes(asked.write)} written{cached}"
    )
