"""One measured point on a terminal: how fast, how long, and where the bytes came from."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from leadline.record import EngineResult, Measurement, OperationSummary
from leadline.record.measurement import Measured
from leadline.record.result import NUMBERS
from leadline.record.wording import say_count, say_rate, say_time
from leadline.report.measurement import evidence
from leadline.units import format_seconds, say_percent


def render_measured(study: Measured) -> RenderableType:
    """Return the table of every measurement, under the name of its fio job where it has one."""
    shown: list[RenderableType] = []
    for name, point in zip(study.names, study.points, strict=True):
        if name is not None:
            shown.append(Text(f"\n[{name}]" if shown else f"[{name}]"))
        shown.append(render_measurement(point))
    if study.runs:
        kept = say_count(len(study.runs), "run")
        shown.append(f"{kept} of the next workload: `leadline measure` goes on with --resume")
    return Group(*shown)


def render_measurement(point: Measurement) -> Table:
    """Return a table of the point's result that a rich console can print."""
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for name, text in measurement_rows(point):
        # As text: a warning may hold brackets, which rich would take for markup.
        table.add_row(name, Text(text))
    return table


def measurement_rows(point: Measurement) -> list[tuple[str, str]]:
    """Return what is known of a point, by name, in the order in which it is told."""
    result, iops = point.result, point.result.iops
    width = result.throughput_mb_s.half_width_frac
    within = f" ± {say_percent(width)}" if width is not None else ""
    written = result.written_bytes
    rows = [
        ("throughput", say_rate(result.throughput_mb_s, level=True)),
        ("", f"{iops.value:,.0f} requests/s{within}, from {_took(result)}{_runs(point)}"),
        ("discipline", _discipline(point)),
        ("offered", _offered(point)),
        *evidence.span_rows(result),
        ("reads", _operations(result.read)),
        ("writes", _operations(result.write)),
        ("bytes from", evidence.say_source(result)),
        ("network", evidence.say_network(result)),
        ("page cache", evidence.say_cache_events(result)),
        ("levels", evidence.say_levels(result)),
        ("stalls", evidence.say_stalls(result)),
        ("generator", evidence.say_generator(result)),
        ("placement", evidence.say_placement(result)),
        ("processor", _processor(result)),
        ("other load", evidence.say_other_load(result)),
        ("precondition", evidence.say_precondition(result)),
        ("written", evidence.say_written(written.layout, written.precondition, written.workload)),
        ("warm-up", f"{format_seconds(result.warm_up.seconds)}, {_steadiness(result)}"),
        ("clock", evidence.say_clock(result)),
        ("admissible", "yes" if result.admissible else f"no: {'; '.join(result.reasons)}"),
    ]
    numbers = [(told.title or "", getattr(result, name)) for name, (_, told) in NUMBERS.items()]
    rows += [(title, str(number)) for title, number in numbers if title and number is not None]
    rows += [("warning", warning) for warning in (*map(str, point.findings), *result.warnings)]
    return [(name, text) for name, text in (*rows, ("point", point.point_id)) if text is not None]


def _took(result: EngineResult) -> str:
    return say_time(result.wall_s, simulated=result.simulated is not None)


def _runs(point: Measurement) -> str:
    return f" in {len(point.runs)} runs" if len(point.runs) > 1 else ""


def _discipline(point: Measurement) -> str | None:
    if not point.access.waits:
        return None
    said = point.access.discipline
    return f"{said}: a write that waits for the device has the wait in its response time"


def _offered(point: Measurement) -> str | None:
    offered = point.result.offered
    if offered is None:
        return None
    return f"{point.arrivals.kind} arrivals, {evidence.say_offered(offered)}"


def _processor(result: EngineResult) -> str:
    return (
        f"{say_percent(result.cpu_user)} user, {say_percent(result.cpu_system)} system; "
        f"{say_percent(result.io_share)} of the time inside I/O calls"
    )


def _steadiness(result: EngineResult) -> str:
    if result.warm_up.steady is None:
        return "nobody looked whether it was steady"
    return "steady" if result.warm_up.steady else "not steady when its time was up"


def _operations(summary: OperationSummary) -> str:
    latency = summary.latency_us
    if latency is None:
        return "none"
    return f"{summary.operations:,} taking {evidence.say_latency(latency)}"
