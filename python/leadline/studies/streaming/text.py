"""A streaming study in words and rows: for the terminal, pages and JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from statistics import fmean
from typing import Any, NamedTuple

import msgspec
from rich.console import RenderableType
from rich.table import Table

from leadline.charts.terminal import Terminal, on_terminal
from leadline.record import Interval
from leadline.record.balance import (
    RESOURCE_WORDS,
    Balance,
    Bus,
    PhaseBound,
    PhaseCost,
    Ratio,
    Scaling,
    ScalingStep,
    StreamBalance,
)
from leadline.record.streaming import (
    KERNELS,
    STREAM,
    Capacities,
    PhaseResult,
    StreamResult,
    StreamRun,
    StreamStudy,
)
from leadline.record.wording import format_count, format_interval, format_number, format_rate_ci
from leadline.stats.arithmetic import inverse, scaled
from leadline.studies.registry import Kind, first
from leadline.studies.streaming.answer import balance_of, without_scaling
from leadline.studies.streaming.balance import is_sublinear
from leadline.studies.streaming.measured import Cell, bound, cells_of, phase_document
from leadline.studies.streaming.measured import phase_rows as rows_to_export
from leadline.studies.streaming.resources import more_than_all
from leadline.studies.streaming.run import bound_of, load_stream, throughput_of
from leadline.units import (
    format_bytes,
    format_ends,
    format_percent,
    format_rate,
    format_seconds,
    format_span,
)

# Phases of kernels in the order of the paper, for charts, tables and terminals alike.

Group = tuple[str, str]
"""Kernel and phase."""
_PHASES = ("read", "write", "runs", "merge", "tiles")


def groups_of(cells: Iterable[Group]) -> list[Group]:
    """Return each pair of kernel and phase once, in the order of the paper."""
    found = set(cells)
    known = [(kernel, phase) for kernel in KERNELS for phase in _PHASES]
    return [group for group in known if group in found] + sorted(found - set(known))


def group_name(kernel: str, phase: str) -> str:
    """Write the group as data has it: `sort read`."""
    return f"{kernel} {phase}"


# How streaming studies are said, for charts, tables and terminals alike.

BUS_WORDS: dict[Bus, str] = {"io": "I/O bus", "memory": "memory bus"}
NOT_HERE = "not measurable here"
"""How the tier of a ratio begins that nothing counts."""
NOT_FOUND = "not found"
"""What stopped a disk although nothing that is measured is used up."""


def format_ratio(ratio: Ratio) -> str:
    """Write `3.18 (3.15 to 3.21)`, or why there is no number."""
    return NOT_HERE if ratio.measured is None else format_interval(ratio.measured, format_number)


def system_name(balance: Balance) -> str:
    """Write a system and its platform: `atlas, threads`."""
    return f"{balance.system}, {balance.platform}"


def sentences_of_study(study: StreamStudy) -> Sequence[str]:
    """Return what a study says; one that was stopped says what it would."""
    return study.sentences or balance_of(study).sentences


# Each phase of the last runs beside its bound, for the chart and for the terminal.


def bound_rows(study: StreamStudy) -> list[dict[str, Any]]:
    """Return each phase of the last run of each kernel, with its bound where it has one."""
    last = {run.options.kernel: run for run in study.runs}
    rows = []
    for run in last.values():
        found = None
        if study.capacities is not None:
            found = bound(run.result, run.options, study.capacities, run.disks)
        bounds = {each.phase: each for each in found.phases} if found else {}
        rows += [
            _row(run.options.kernel, phase.name, phase.mb_s, bounds.get(phase.name))
            for phase in run.result.phases
            if phase.bytes_moved
        ]
    return rows


def _row(kernel: str, phase: str, mb_s: float, limit: PhaseBound | None) -> dict[str, Any]:
    most = limit.mb_s.value if limit else None
    return {
        "group": group_name(kernel, phase),
        "kernel": kernel,
        "phase": phase,
        "y": mb_s,
        "bound": most,
        "achieved": format_rate(mb_s),
        "passed": limit is not None and more_than_all(scaled(inverse(limit.mb_s), mb_s)),
        "share": format_percent(mb_s / most) if most else "",
        "said": format_rate_ci(limit.mb_s) if limit else "no capacities were measured",
        "limit": RESOURCE_WORDS[limit.resource] if limit else "",
    }


# Every phase of a streaming study as rows of text, and what machine and verification say.

NOT_COUNTED = "n.m."
COUNTER_WORDS = {
    "instructions": "instructions",
    "cycles": "cycles",
    "memory_bus_bytes": "memory bus",
    "block_read_bytes": "bytes the block layer read",
    "block_written_bytes": "bytes the block layer wrote",
}
PHASE_HEADS = (
    "Disks",
    "Runs",
    "In",
    "Out",
    "CPU used",
    "ns per byte: user + kernel",
    "Instructions per byte",
    "CPI",
    "Switches: waited + forced",
    "Faults: minor + major",
    "Block layer: read + written",
    "Network: sent + received",
    "First and last done",
)
"""Heads of `PhaseRow.cells`."""


class PhaseRow(NamedTuple):
    """One phase on one number of disks; means of its runs."""

    name: str
    cells: tuple[str, ...]


def phase_rows(study: StreamStudy, said: StreamBalance) -> list[PhaseRow]:
    """Return all phases in the order of the paper, fewest disks first."""
    cells = cells_of(study)
    order = groups_of((cell.kernel, cell.phase) for cell in cells)
    ordered = sorted(cells, key=lambda cell: (order.index((cell.kernel, cell.phase)), cell.disks))
    platforms = {cell.platform for cell in cells}
    costs = {(cost.kernel, cost.phase, cost.platform, cost.disks): cost for cost in said.costs}
    return [
        PhaseRow(
            f"{cell.kernel} {cell.phase}" + (f", {cell.platform}" if len(platforms) > 1 else ""),
            _cells(cell, costs.get((cell.kernel, cell.phase, cell.platform, cell.disks))),
        )
        for cell in ordered
    ]


def _cells(cell: Cell, cost: PhaseCost | None) -> tuple[str, ...]:
    phases = cell.phases
    return (
        str(cell.disks),
        str(len(phases)),
        _rate(phases, lambda phase: phase.bytes_read),
        _rate(phases, lambda phase: phase.bytes_written),
        f"{100 * cost.cpu_utilisation.value:.0f}%" if cost else NOT_COUNTED,
        _pair(cost.cpu_user_ns_per_byte, cost.cpu_system_ns_per_byte) if cost else NOT_COUNTED,
        format_counted(cost.instructions_per_byte if cost else None),
        format_counted(cost.cycles_per_instruction if cost else None),
        _counts(phases, lambda p: (p.switches_voluntary, p.switches_involuntary)),
        _counts(phases, lambda p: (p.faults_minor, p.faults_major)),
        _sizes(phases, lambda p: (p.block_read_bytes, p.block_written_bytes)),
        _sizes(phases, lambda p: (p.network_sent_bytes, p.network_received_bytes)),
        format_span(
            format_seconds(fmean(phase.first_done_s for phase in phases)),
            format_seconds(fmean(phase.last_done_s for phase in phases)),
        ).replace(" to ", " and "),
    )


def _rate(phases: Sequence[PhaseResult], moved: Callable[[PhaseResult], int]) -> str:
    rate = fmean(moved(phase) / phase.seconds for phase in phases) / 1e6
    return format_rate(rate) if rate else "\N{EN DASH}"


def _pair(user: Interval, kernel: Interval) -> str:
    return f"{user.value:.2f} + {kernel.value:.2f}"


def format_counted(number: Interval | None) -> str:
    """Write `2.61 (2.58 to 2.64)`, or `n.m.` where nothing counts it."""
    return NOT_COUNTED if number is None else format_interval(number, "{:.2f}".format)


def _counts(phases: Sequence[PhaseResult], of: Callable[[PhaseResult], tuple[int, int]]) -> str:
    first, second = (fmean(of(phase)[place] for phase in phases) for place in (0, 1))
    return f"{first:,.0f} + {second:,.0f}"


def _sizes(
    phases: Sequence[PhaseResult], of: Callable[[PhaseResult], tuple[int | None, int | None]]
) -> str:
    pairs = [of(phase) for phase in phases]
    known = [(one, two) for one, two in pairs if one is not None and two is not None]
    if len(known) < len(pairs):
        return NOT_COUNTED
    means = [fmean(pair[place] for pair in known) for place in (0, 1)]
    return " + ".join(map(format_bytes, means)) if any(means) else "\N{EN DASH}"


def capacity_rows(capacities: Capacities | None) -> list[tuple[str, str]]:
    """Return what the machine can do, each number with its interval."""
    if capacities is None:
        return []
    rows = [
        ("Processors", f"{capacities.processors:g}"),
        ("Memory, copied (crosses the bus twice)", format_rate_ci(capacities.memory_copy_mb_s)),
        ("Memory, read", format_rate_ci(capacities.memory_read_mb_s)),
    ]
    rows += [
        (
            f"{disk.directory} ({', '.join(disk.devices) or 'device not known'})",
            f"read {format_rate_ci(disk.read_mb_s)}, written {format_rate_ci(disk.write_mb_s)}",
        )
        for disk in capacities.disks
    ]
    rows += [
        ("All disks, read", format_rate_ci(capacities.all_read_mb_s)),
        ("All disks, written", format_rate_ci(capacities.all_write_mb_s)),
        ("All disks, read and written together", format_rate_ci(capacities.all_both_mb_s)),
    ]
    network = capacities.network_mb_s
    words = format_rate_ci(network) if network else "no cluster, not measured"
    return [*rows, ("Network of one rank, in and out", words)]


def verified_rows(study: StreamStudy) -> list[tuple[str, str]]:
    """Say for every kernel what was checked of its output, and how many runs were."""
    rows: list[tuple[str, str]] = []
    for kernel in dict.fromkeys(run.options.kernel for run in study.runs):
        runs = [run for run in study.runs if run.options.kernel == kernel]
        right = sum(run.result.verified for run in runs)
        took = format_seconds(fmean(run.result.verify_s for run in runs))
        rows.append(
            (
                kernel,
                f"{right} of {format_count(len(runs), 'run')}: {_format_checks(runs)}; {took} each",
            )
        )
    return rows


def _format_checks(runs: Sequence[StreamRun]) -> str:
    checks = [run.result.check for run in runs]
    known = [check for check in checks if check is not None]
    if len(known) < len(checks):
        return "every block where it belongs"
    counts = sorted({check.records for check in known})
    records = format_span(*(f"{count:,} records" for count in (counts[0], counts[-1])))
    if len(counts) == 1:
        records = f"{counts[0]:,} records"
    sums = {check.checksum for check in known}
    checksum = f"checksum {sums.pop()}" if len(sums) == 1 else "every checksum right"
    order = ", in order" if runs[0].options.kernel == "sort" else ""
    return f"{records}{order}, {checksum}"


def how_rows(study: StreamStudy) -> list[tuple[str, str]]:
    """Say how every kernel was run."""
    rows: list[tuple[str, str]] = []
    for kernel in dict.fromkeys(run.options.kernel for run in study.runs):
        runs = [run for run in study.runs if run.options.kernel == kernel]
        rows.append((kernel, "; ".join(dict.fromkeys(map(format_how, runs)))))
    return rows


def format_how(run: StreamRun) -> str:
    """Write `2 GiB, one pass in 1 GiB of memory, 2 threads, read 8 deep by direct I/O, …`."""
    options, result = run.options, run.result
    passes = "one pass" if result.passes == 1 else f"{result.passes} passes"
    parties = "one process"
    if options.ranks > 1:
        parties = f"{options.ranks} ranks of {format_count(options.threads, 'thread')}"
    elif options.threads > 1:
        parties = format_count(options.threads, "thread")
    if options.read == "mmap":
        reads = "read by mmap"
    else:
        reads = f"read {options.depth} deep" + (
            " by direct I/O" if options.read_direct else " through the page cache"
        )
    writes = f"written {'by direct I/O' if options.write_direct else 'through the page cache'}"
    stripes = f"stripes of {format_bytes(options.stripe_bytes)}"
    memory = f"{passes} in {format_bytes(options.memory_bytes)} of memory"
    return ", ".join((format_bytes(result.bytes_in), memory, parties, reads, writes, stripes))


def not_counted_lines(reasons: dict[str, str]) -> list[str]:
    """Return a line for every reason why something was not counted."""
    found: dict[str, list[str]] = {}
    for name, why in reasons.items():
        found.setdefault(why, []).append(COUNTER_WORDS.get(name, name))
    return [
        f"{NOT_COUNTED}: not measurable here. {', '.join(names).capitalize()}: {why}"
        for why, names in found.items()
    ]


# A streaming study on a terminal: what it says, every phase, and disk scaling.

_SHORT_HEADS = {
    "CPU used": "CPU",
    "ns per byte: user + kernel": "ns/byte",
    "Instructions per byte": "Instr/byte",
}
_SHOWN = ("In", "Out", "CPU used", "ns per byte: user + kernel", "Instructions per byte", "CPI")
_SHOWN_BELOW = (
    "Switches: waited + forced",
    "Faults: minor + major",
    "Block layer: read + written",
    "First and last done",
)
"""Of a single run: how its time and its bytes went beside the processor."""


@on_terminal
def render_stream(terminal: Terminal, study: StreamStudy) -> Iterator[RenderableType]:
    """Tell the sentences, phases, scaling, and what was verified; all of it: what was counted."""
    said = balance_of(study)
    sentences = study.sentences or said.sentences
    scales = any(len(each.steps) > 1 for each in said.scaling)
    brief = scales and not terminal.verbose
    yield from terminal.sentences(without_scaling(sentences, said) if brief else sentences)
    if scales:
        yield _scaling(terminal, said.scaling)
    elif study.runs:
        yield _phases(terminal, study, said, _SHOWN)
        if terminal.verbose and len(study.runs) == 1:
            yield _phases(terminal, study, said, _SHOWN_BELOW)
        yield from map(terminal.text, _bounds(study))
    if terminal.verbose:
        yield from map(terminal.text, not_counted_lines(said.not_measurable))
    for kernel, words in (*(() if brief else how_rows(study)), *verified_rows(study)):
        yield terminal.text(f"{kernel}: {words}")
    yield from terminal.warnings(dict.fromkeys((*study.findings, *said.findings)))


def _phases(
    terminal: Terminal, study: StreamStudy, said: StreamBalance, shown: Sequence[str]
) -> Table:
    places = [PHASE_HEADS.index(head) for head in shown]
    heads = ["Phase", *(_SHORT_HEADS.get(head, head) for head in shown)]
    rows = phase_rows(study, said)
    return terminal.table(heads, [[row.name, *(row.cells[at] for at in places)] for row in rows])


def _bounds(study: StreamStudy) -> Iterator[str]:
    """Say how near every phase came to what its busiest resource allows."""
    for row in bound_rows(study):
        if row["bound"]:
            doubt = ", which was measured too low or has risen since" if row["passed"] else ""
            yield (
                f"{row['group']}: {row['share']} of its bound by {row['limit']}, "
                f"{row['said']}{doubt}"
            )


def _scaling(terminal: Terminal, scaling: Sequence[Scaling]) -> Table:
    rows = [
        [f"{each.kernel} {each.phase}" if number == 0 else "", *_step(step)]
        for each in scaling
        for number, step in enumerate(each.steps)
    ]
    return terminal.table(["Phase", "Disks", "MB/s", "95% CI", "Marginal gain", "Bottleneck"], rows)


def _step(step: ScalingStep) -> list[str]:
    limit = RESOURCE_WORDS[step.limited_by] if step.limited_by else ""
    rate = step.achieved_mb_s
    known = rate.low is not None and rate.high is not None
    return [
        str(step.disks),
        f"{rate.value:,.0f}",
        format_ends(f"{rate.low:,.0f}", f"{rate.high:,.0f}") if known else "no interval",
        f"{step.gained_mb_s.value:+,.0f} of {step.ideal_gain_mb_s:,.0f}".replace(
            "-", "\N{MINUS SIGN}"
        ),
        limit or (NOT_FOUND if is_sublinear(step) else ""),
    ]


# A stream study as JSON.


def stream_document(study: StreamStudy) -> dict[str, Any]:
    """The keys DESIGN.md promises for `stream --json`, and more beside them.

    They are of the last run; a scaling study's others are in `runs`.
    """
    start = study.start
    last = _run(study.runs[-1]) if study.runs else {"phases": []}
    limit = bound_of(study)
    return {
        "system": start.system,
        "study": start.study_id,
        "status": study.status,
        "purpose": start.purpose,
        "directories": start.directories,
        "seed": start.seed,
        **last,
        "throughput_mb_s": throughput_of(study) if study.runs else None,
        "bound_mb_s": limit and limit.mb_s.value,
        "bound": limit,
        "capacities": study.capacities,
        "runs": [_run(run) for run in study.runs],
        "wall_s": study.wall_s,
        "facts": start.facts,
        "sentences": study.sentences,
        "findings": [each.document() for each in study.findings],
    }


def _run(run: StreamRun) -> dict[str, Any]:
    options = msgspec.structs.asdict(run.options)
    return {
        **options,
        "platform": run.options.platform,
        "disks": run.disks,
        "repetition": run.repetition,
        "started_at": run.started_at,
        **result_document(run.result),
    }


def result_document(result: StreamResult) -> dict[str, Any]:
    """What a run of any kernel says."""
    return {
        "kernel": result.kernel,
        "passes": result.passes,
        "bytes": result.bytes_in or result.bytes_out,
        "bytes_in": result.bytes_in,
        "bytes_out": result.bytes_out,
        "seconds": result.seconds,
        "verified": result.verified,
        "verify_s": result.verify_s,
        "memory_peak_bytes": result.memory_peak_bytes,
        "memory_bus_counter": result.memory_bus_counter,
        "not_measurable": result.not_measurable,
        "check": result.check,
        "phases": [phase_document(phase) for phase in result.phases],
    }


KIND = Kind(
    STREAM,
    load=load_stream,
    document=stream_document,
    render=render_stream,
    rows=lambda store, study_id: rows_to_export(load_stream(store, study_id)),
    page="leadline.studies.streaming.page",
    ending="-stream.html",
    headline=lambda study: first(sentences_of_study(study)),
)
