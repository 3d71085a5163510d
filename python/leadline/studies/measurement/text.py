"""Measurements in words: what a point rests on, outliers, the terminal, JSON."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
import numpy as np
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from leadline.record import (
    EngineResult,
    Interval,
    LatencyUs,
    Measurement,
    Offered,
    OperationSummary,
    Workload,
)
from leadline.record.finding import Severity
from leadline.record.measurement import MEASUREMENT, Measured
from leadline.record.result import NUMBERS
from leadline.record.survey import SURVEY
from leadline.record.validation import VALIDATION
from leadline.record.wording import format_count, format_rate_ci, format_time, join_words
from leadline.store import Store
from leadline.studies.measurement.plan import load_measured
from leadline.studies.measurement.replay import format_replay, replay_s
from leadline.studies.registry import Kind, first, point_rows
from leadline.units import format_bytes, format_percent, format_rate, format_seconds, format_span

# What a measured point rests on, in sentences: where the bytes came from, who else was there.
#
# Each function takes one result and says one thing; None when there is nothing to say.

# Outliers among the slices of each run: classified by Tukey's fences and counted, never dropped.
#
# A slice lies outside the inner fences beyond 1.5 interquartile ranges from the quartiles (mild)
# and outside the outer fences beyond 3 (severe); Tukey, Exploratory Data Analysis, 1977.

LEAST_SLICES = 8
"""Quartiles of fewer slices say little; such runs are counted as not classified."""


class Outliers(msgspec.Struct, frozen=True):
    """Slices by class over all points, and the points too short to classify."""

    slices: int
    mild: int
    severe: int
    unclassified_points: int


def slice_outliers(points: Sequence[Measurement]) -> Outliers:
    """Classify the throughput of every slice against the other slices of its own run."""
    slices = mild = severe = unclassified = 0
    for point in points:
        rates = np.array(
            [part.bytes / part.seconds for part in point.result.intervals if part.seconds > 0]
        )
        if len(rates) < LEAST_SLICES:
            unclassified += 1
            continue
        low, high = np.percentile(rates, [25, 75])
        beyond = np.maximum(low - rates, rates - high)
        reach = high - low
        out = int(np.sum(beyond > 3.0 * reach))
        severe += out
        mild += int(np.sum(beyond > 1.5 * reach)) - out
        slices += len(rates)
    return Outliers(slices, mild, severe, unclassified)


OTHERS_MIN_BYTES = 2**20
OTHERS_MIN_FRAC = 0.05
"""Others' reads below both are the file system's own bookkeeping and not worth a word."""

CLOCKS = {
    "tsc": "the processor's time-stamp counter, calibrated",
    "vdso": "clock_gettime through the vDSO",
    "virtual": "the simulated system's own clock",
}


def format_source(result: EngineResult) -> str:
    """Say where the bytes came from, on what that rests, and what could not be checked."""
    parts = [_share(result), _device(result), _others(result)]
    if result.provenance.unchecked:
        parts.append(f"not checked: {'; '.join(result.provenance.unchecked)}")
    return "; ".join(part for part in parts if part)


def _share(result: EngineResult) -> str:
    share, provenance = result.cached_share, result.provenance
    if share is None:
        if result.workload_bytes.read == 0:
            return "no reads"
        return "unknown"
    if provenance.cached_share_from == "residency":
        return (
            f"{format_percent(share)} of bytes read (page residency looked up before "
            f"{provenance.probed:,} reads)"
        )
    return f"{format_percent(share)} of bytes read (device counters)"


def _device(result: EngineResult) -> str:
    asked, moved = result.workload_bytes, result.device_bytes
    said = f"{format_bytes(asked.read)} read and {format_bytes(asked.write)} written"
    if moved is None and any(found.code == "measured_by_fio" for found in result.findings):
        return f"{said}; device: not looked at by another engine"
    if result.network is not None:
        return f"{said}; device: the server's cannot be seen from here"
    if moved is None:
        return f"{said}; device: counters cannot be read here"
    return f"{said}; device: {format_bytes(moved.read)} and {format_bytes(moved.write)}"


def _others(result: EngineResult) -> str | None:
    """Reads of the device that this process did not ask for.

    Writes cannot be told apart like this: the kernel writes back when it likes.
    """
    own, moved = result.provenance.process_bytes, result.device_bytes
    if own is None or moved is None:
        return None
    others = moved.read - own.read
    if others < OTHERS_MIN_BYTES or others < OTHERS_MIN_FRAC * moved.read:
        return None
    return (
        f"of the device's reads Leadline asked for {format_bytes(own.read)}, the other "
        f"{format_bytes(others)} were others' I/O"
    )


def format_network(result: EngineResult) -> str | None:
    """Say what went over the network, payload and whole, and what the way there is like."""
    network = result.network
    if network is None:
        return None
    received, data = network.received_bytes, network.payload_received_bytes
    sent, written = network.sent_bytes, network.payload_sent_bytes
    said = [
        f"{format_bytes(received)} received, {format_bytes(data)} of them data",
        f"{format_bytes(sent)} sent, {format_bytes(written)} of them data",
        "heads of calls count, those of TCP do not",
        f"an empty call takes {format_seconds(network.round_trip_us / 1e6)}",
    ]
    if network.retransmitted_segments:
        said.append(f"TCP sent {format_count(network.retransmitted_segments, 'segment')} again")
    if network.stable_share is not None:
        said.append(
            f"the server said of {format_percent(network.stable_share)} of the WRITE calls that "
            "they were on stable storage when it answered"
        )
    if network.commit_s is not None:
        said.append(
            f"after the window the server took {format_seconds(network.commit_s)} to put on stable "
            "storage what was written"
        )
    if network.lost_requests:
        said.append(f"{format_count(network.lost_requests, 'request')} never answered")
    return "; ".join(said)


def format_cache_events(result: EngineResult) -> str | None:
    """Say what the page cache did meanwhile."""
    events = result.provenance.cache_events
    if events is None:
        return None
    counts = (
        (events.charged_pages, "charged"),
        (events.uncharged_pages, "uncharged"),
        (events.refaulted_pages, "back after an eviction"),
    )
    said = [f"{count:,} pages {what}" for count, what in counts if count is not None]
    if events.major_faults is not None:
        said.append(f"{events.major_faults:,} page faults waited for the device")
    return ", ".join(said) or None


def format_latency(latency: LatencyUs) -> str:
    """Say a span's response times."""
    shares = {"p50": latency.p50, "p90": latency.p90, "p99": latency.p99, "p99.9": latency.p99_9}
    said = [f"{name} {_us(value)}" for name, value in {**shares, "max": latency.max}.items()]
    return f"mean {_us(latency.mean)}, {', '.join(said)}"


def _us(microseconds: float) -> str:
    return format_seconds(microseconds / 1e6)


def span_rows(result: EngineResult) -> list[tuple[str, str]]:
    """Return an open loop's three spans; a closed loop has one only, which reads and writes say."""
    spans = result.spans_us
    if spans is None or spans.due_to_submitted is None or spans.due_to_completed is None:
        return []
    return [
        ("queueing delay", format_latency(spans.due_to_submitted)),
        ("completion latency", format_latency(spans.submitted_to_completed)),
        ("response time", format_latency(spans.due_to_completed)),
    ]


def format_offered(offered: Offered) -> str:
    """Say what an open loop offered, what came of it, and who fell short."""
    text = (
        f"{offered.rate_per_s:,.6g} requests/s, {offered.completed_per_s:,.6g} completed; of "
        f"{offered.due:,} scheduled {offered.late_target:,} late by the target, "
        f"{offered.late_generator:,} by Leadline, {offered.missed:,} not sent"
    )
    if offered.fell_short is None:
        return text
    who = {"target": "the target", "generator": "Leadline's own generator"}[offered.fell_short]
    return f"{text}; {who} fell short, by {format_percent(offered.shortfall_frac)}"


def format_levels(result: EngineResult) -> str | None:
    """Say the rates of a window that had more than one."""
    levels = result.levels
    if len(levels) < 2:
        return None
    first, *rest = levels
    said = [f"{format_rate(first.throughput_mb_s)} for {format_seconds(first.seconds)}"]
    said += [
        f"then {format_rate(level.throughput_mb_s)} for {format_seconds(level.seconds)}"
        for level in rest
    ]
    return f"{', '.join(said)}; the mean describes none of them"


def format_stall_times(result: EngineResult) -> str | None:
    """Say when nothing completed, the longest stretch first."""
    stalls = sorted(result.stalls, key=lambda stall: -stall.seconds)
    if not stalls:
        return None
    shown = [
        f"{format_seconds(stall.seconds)} from {format_seconds(stall.start_s)} on"
        f"{' (Leadline itself did not run)' if stall.generator else ''}"
        for stall in stalls[:3]
    ]
    more = f" and {len(stalls) - 3} shorter ones" if len(stalls) > 3 else ""
    return f"no completions for {', '.join(shown)}{more}"


def format_generator(result: EngineResult) -> str | None:
    """Say how near the run came to what Leadline itself can do."""
    generator = result.generator
    if generator is None:
        return None
    share = result.iops.value / generator.ceiling_iops
    text = (
        f"{format_percent(share)} of the null-backend ceiling, {generator.ceiling_iops:,.0f} "
        "requests/s"
    )
    return f"{text}: the limit is Leadline, not the target" if generator.bound else text


def format_placement(result: EngineResult) -> str | None:
    """Say on which processors the workers ran."""
    placed = result.placement
    if placed is None:
        return None
    if not placed.pinned:
        return "wherever the kernel put the workers"
    cpus = join_words([str(cpu) for cpu in placed.cpus])
    return f"each worker on a processor of its own: {cpus}"


def format_precondition(result: EngineResult) -> str | None:
    """Say what preconditioning wrote and whether the rate settled."""
    done = result.precondition
    if done is None:
        return None
    ending = "until the rate was on its plateau" if done.plateau else "without reaching a plateau"
    last = f", {format_rate(done.rounds[-1].throughput_mb_s)} at the end" if done.rounds else ""
    return (
        f"{format_bytes(done.bytes)} written in {format_count(len(done.rounds), 'round')} and "
        f"{format_seconds(done.seconds)}, {ending}{last}"
    )


def format_written(layout: int, precondition: int, workload: int) -> str | None:
    """Say the wear: what was written in all, and what for."""
    parts = [
        f"{format_bytes(size)} {what}"
        for size, what in (
            (layout, "to lay the data out"),
            (precondition, "to precondition"),
            (workload, "by the workload"),
        )
        if size
    ]
    total = layout + precondition + workload
    return f"{format_bytes(total)} in all: {join_words(parts)}" if total else None


def format_other_load(result: EngineResult) -> str | None:
    """Say what else the machine did during the window."""
    load, said = result.other_load, []
    if result.foreign_cpu is not None:
        said.append(f"other processes {format_percent(result.foreign_cpu)} CPU")
    if load.steal_cpu:
        said.append(f"steal {format_percent(load.steal_cpu)}")
    waits = (
        (load.cpu_pressure, "CPU"),
        (load.io_pressure, "I/O (ours included)"),
        (load.memory_pressure, "memory"),
    )
    waited = [f"{what} {format_percent(share)}" for share, what in waits if share is not None]
    if waited:
        said.append(f"pressure (PSI some): {', '.join(waited)}")
    if load.runnable is not None:
        said.append(f"{load.runnable} tasks runnable at the end (workers included)")
    return "; ".join(said) or None


def format_clock(result: EngineResult) -> str | None:
    """Say which clock the response times were read from."""
    return CLOCKS[result.clock] if result.clock else None


def marks(result: EngineResult) -> str:
    """Mark a point in a table with the names of what was found in it; empty when nothing was."""
    found = []
    if result.generator and result.generator.bound:
        found.append("generator-bound")
    if len(result.levels) > 1:
        found.append(f"level shift ({len(result.levels)} rates)")
    if result.stalls:
        found.append(f"stall ({format_seconds(max(s.seconds for s in result.stalls))})")
    if result.warm_up.steady is False:
        found.append("not steady")
    return ", ".join(found)


# One measured point on a terminal: how fast, how long, and where the bytes came from.


def render_measured(study: Measured) -> RenderableType:
    """Return the table of every measurement, under the name of its fio job where it has one."""
    shown: list[RenderableType] = []
    for name, point in zip(study.names, study.points, strict=True):
        if name is not None:
            shown.append(Text(f"\n[{name}]" if shown else f"[{name}]"))
        shown.append(render_measurement(point))
    if study.runs:
        kept = format_count(len(study.runs), "run")
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
    within = f" ± {format_percent(width)}" if width is not None else ""
    written = result.written_bytes
    took = format_time(result.wall_s, simulated=result.simulated is not None)
    runs = f" in {len(point.runs)} runs" if len(point.runs) > 1 else ""
    rows = [
        ("throughput", format_rate_ci(result.throughput_mb_s, level=True)),
        ("", f"{iops.value:,.0f} requests/s{within}, from {took}{runs}"),
        ("replay", format_replay(point)),
        ("write mode", _write_mode(point)),
        ("offered", _offered(point)),
        *span_rows(result),
        ("reads", _operations(result.read)),
        ("writes", _operations(result.write)),
        ("syncs", _operations(result.syncs) if result.syncs else None),
        ("cache hits", format_source(result)),
        ("network", format_network(result)),
        ("page cache", format_cache_events(result)),
        ("levels", format_levels(result)),
        ("stalls", format_stall_times(result)),
        ("generator", format_generator(result)),
        ("placement", format_placement(result)),
        ("processor", _processor(result)),
        ("idle machine", format_idle(point)),
        ("other load", format_other_load(result)),
        ("precondition", format_precondition(result)),
        ("written", format_written(written.layout, written.precondition, written.workload)),
        ("warm-up", f"{format_seconds(result.warm_up.seconds)}, {_steadiness(result)}"),
        ("clock", format_clock(result)),
        ("valid", "yes" if result.admissible else f"no: {'; '.join(result.reasons)}"),
    ]
    numbers = [(told.title or "", getattr(result, name)) for name, (_, told) in NUMBERS.items()]
    rows += [(title, str(number)) for title, number in numbers if title and number is not None]
    rows += [("warning", warning) for warning in (*map(str, point.findings), *_warnings(result))]
    return [(name, text) for name, text in (*rows, ("point", point.point_id)) if text is not None]


def _warnings(result: EngineResult) -> Iterator[str]:
    """What else a reader must know, each thing once: runs find the same with other values."""
    told = [each for each in result.findings if each.severity is not Severity.INVALID]
    for code in dict.fromkeys(each.code for each in told):
        first, *more = (each for each in told if each.code == code)
        yield f"{first} (and {len(more)} more like it)" if more else str(first)


def _write_mode(point: Measurement) -> str | None:
    if not point.access.waits:
        return None
    said = point.access.discipline
    return f"{said}: a write that waits for the device has the wait in its response time"


def _offered(point: Measurement) -> str | None:
    offered = point.result.offered
    if offered is None:
        return None
    return f"{point.arrivals.kind} arrivals, {format_offered(offered)}"


def _processor(result: EngineResult) -> str:
    used, done = result.cpu_user + result.cpu_system, result.iops.value
    said = [f"{format_percent(result.cpu_user)} user, {format_percent(result.cpu_system)} system"]
    if used > 0 and done > 0:
        said.append(f"{format_seconds(used / done)} a request")
    return f"{'; '.join(said)}; {format_percent(result.io_share)} of the time inside I/O calls"


IDLE_GAIN_TOLD = 1.05
"""A machine on which a workload would be less than so many times as fast is as good as idle."""


def idle_gain_at(
    workload: Workload, points: Sequence[Measurement], processors: float | None
) -> float | None:
    """How many times as fast a workload would be on an idle machine, by its median reading.

    None where nobody knows.
    """
    gains = [
        gain
        for point in points
        if processors and point.workload == workload
        if (gain := point.result.idle_gain(workload.process_num, processors)) is not None
    ]
    return statistics.median(gains) if gains else None


def idle_machine_mb_s(point: Measurement) -> Interval | None:
    """Throughput if no other program had used a processor, in MB/s; None if not known.

    The interval is that of the throughput: how good the estimate is, it does not tell.
    """
    gain = idle_gain_at(point.workload, [point], point.facts.get("cpu_count"))
    if gain is None:
        return None
    rate = point.result.throughput_mb_s
    ends = {name: end and gain * end for name, end in (("low", rate.low), ("high", rate.high))}
    return msgspec.structs.replace(rate, value=gain * rate.value, **ends)


def format_idle(point: Measurement) -> str | None:
    """Say how fast it would be on an idle machine, where that is faster."""
    rate = idle_machine_mb_s(point)
    if rate is None or rate.value < IDLE_GAIN_TOLD * point.result.throughput_mb_s.value:
        return None
    waited = (point.result.other_load.waited_cpu or 0.0) / point.workload.process_num
    return f"{format_rate_ci(rate)}: {format_percent(waited)} of the time was waiting for a CPU"


def _steadiness(result: EngineResult) -> str:
    if result.warm_up.steady is None:
        return "steadiness not checked"
    return "steady" if result.warm_up.steady else "no steady state within its time"


def _operations(summary: OperationSummary) -> str:
    latency = summary.latency_us
    if latency is None:
        return "none"
    return f"{summary.operations:,}, {format_latency(latency)}"


# A measured point as JSON.


def measurement_document(
    point: Measurement, kind: str = MEASUREMENT.kind, study_id: str | None = None
) -> dict[str, Any]:
    """The keys DESIGN.md promises for `measure --json`, and the whole result beside them."""
    result = point.result
    return {
        "point": point.point_id,
        "survey": study_id if kind == SURVEY.kind else None,
        "validation": study_id if kind == VALIDATION.kind else None,
        "workload": point.workload,
        "arrivals": point.arrivals,
        **point.access.stored_in(Measurement),
        "throughput_mb_s": result.throughput_mb_s,
        "iops": result.iops,
        "latency_us": result.latency_us,
        "spans_us": result.spans_us,
        "offered": result.offered,
        "cpu_user": result.cpu_user,
        "cpu_system": result.cpu_system,
        "idle_machine_mb_s": idle_machine_mb_s(point),
        "cached_share": result.cached_share,
        "provenance": result.provenance,
        "levels": result.levels,
        "stalls": result.stalls,
        "generator": result.generator,
        "placement": result.placement,
        "precondition": result.precondition,
        "written_bytes": result.written_bytes,
        "other_load": result.other_load,
        "admissible": result.admissible,
        "findings": [each.document() for each in (*point.findings, *result.findings)],
        "read": result.read,
        "write": result.write,
        "replay": point.replay
        and {**msgspec.structs.asdict(point.replay), "here_s": replay_s(point)},
        "runs": point.runs,
        "facts": point.facts,
        "result": result,
    }


def measured_document(study: Measured) -> Any:
    """Measurements as JSON: one alone, several as a list, those of a fio file as its `jobs`."""
    documents = [
        measurement_document(point, MEASUREMENT.kind, study.start.study_id)
        for point in study.points
    ]
    if any(each.name is not None for each in study.start.workloads):
        named = zip(study.names, documents, strict=True)
        return {"jobs": [{"name": name} | document for name, document in named]}
    return documents[0] if len(documents) == 1 else documents


def sentences_of(study: Measured) -> list[str]:
    """Say the answer first: of several measurements how far they reach."""
    told = list(map(_sentence, study.names, study.points))
    if len(told) < 2:
        return told
    rates = sorted(point.result.throughput_mb_s.value for point in study.points)
    span = format_span(format_rate(rates[0]), format_rate(rates[-1]))
    return [f"{len(told)} workloads, {span}.", *told]


def _sentence(name: str | None, point: Measurement) -> str:
    result = point.result
    rate = format_rate_ci(result.throughput_mb_s, level=True)
    times = [
        f"{what} p99 {format_seconds(one.latency_us.p99 / 1e6)}"
        for what, one in (("reads", result.read), ("writes", result.write))
        if one.latency_us is not None
    ]
    said = under_name(name, "; ".join((f"{rate}, {result.iops.value:,.0f} requests/s", *times)))
    return said if result.admissible else f"{said}; not valid"


def under_name(name: str | None, said: str) -> str:
    """Put a name before what is said, where there is one."""
    return said if name is None else f"{name}: {said}"


def _rows(store: Store, study_id: str) -> list[dict[str, Any]]:
    return point_rows(load_measured(store, study_id).points, MEASUREMENT, study_id)


KIND = Kind(
    MEASUREMENT,
    load=load_measured,
    document=measured_document,
    render=render_measured,
    rows=_rows,
    page="leadline.studies.measurement.charts",
    ending="-measurement.html",
    headline=lambda study: first(sentences_of(study)),
)
