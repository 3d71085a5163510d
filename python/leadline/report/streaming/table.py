"""Every phase of a streaming study as rows of text, and what machine and verification say."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import fmean
from typing import NamedTuple

from leadline.record import Interval
from leadline.record.balance import PhaseCost, StreamBalance
from leadline.record.streaming import Capacities, PhaseResult, StreamRun, StreamStudy
from leadline.record.wording import say_count, say_interval, say_rate
from leadline.report.streaming.order import groups_of
from leadline.studies.streaming.measured import Cell, cells_of
from leadline.units import format_bytes, format_rate, format_seconds, say_span

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
        f"{100 * cost.cpu_utilisation.value:.0f} %" if cost else NOT_COUNTED,
        _pair(cost.cpu_user_ns_per_byte, cost.cpu_system_ns_per_byte) if cost else NOT_COUNTED,
        say_counted(cost.instructions_per_byte if cost else None),
        say_counted(cost.cycles_per_instruction if cost else None),
        _counts(phases, lambda p: (p.switches_voluntary, p.switches_involuntary)),
        _counts(phases, lambda p: (p.faults_minor, p.faults_major)),
        _sizes(phases, lambda p: (p.block_read_bytes, p.block_written_bytes)),
        _sizes(phases, lambda p: (p.network_sent_bytes, p.network_received_bytes)),
        say_span(
            format_seconds(fmean(phase.first_done_s for phase in phases)),
            format_seconds(fmean(phase.last_done_s for phase in phases)),
        ).replace(" to ", " and "),
    )


def _rate(phases: Sequence[PhaseResult], moved: Callable[[PhaseResult], int]) -> str:
    rate = fmean(moved(phase) / phase.seconds for phase in phases) / 1e6
    return format_rate(rate) if rate else "\N{EN DASH}"


def _pair(user: Interval, kernel: Interval) -> str:
    return f"{user.value:.2f} + {kernel.value:.2f}"


def say_counted(number: Interval | None) -> str:
    """Write `2.61 (2.58 to 2.64)`, or `n.m.` where nothing counts it."""
    return NOT_COUNTED if number is None else say_interval(number, "{:.2f}".format)


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
        ("Memory, copied (crosses the bus twice)", say_rate(capacities.memory_copy_mb_s)),
        ("Memory, read", say_rate(capacities.memory_read_mb_s)),
    ]
    rows += [
        (
            f"{disk.directory} ({', '.join(disk.devices) or 'device not known'})",
            f"read {say_rate(disk.read_mb_s)}, written {say_rate(disk.write_mb_s)}",
        )
        for disk in capacities.disks
    ]
    rows += [
        ("All disks, read", say_rate(capacities.all_read_mb_s)),
        ("All disks, written", say_rate(capacities.all_write_mb_s)),
        ("All disks, read and written together", say_rate(capacities.all_both_mb_s)),
    ]
    network = capacities.network_mb_s
    words = say_rate(network) if network else "no cluster, not measured"
    return [*rows, ("Network of one rank, in and out", words)]


def verified_rows(study: StreamStudy) -> list[tuple[str, str]]:
    """Say for every kernel what was checked of its output, and how many runs were."""
    rows: list[tuple[str, str]] = []
    for kernel in dict.fromkeys(run.options.kernel for run in study.runs):
        runs = [run for run in study.runs if run.options.kernel == kernel]
        right = sum(run.result.verified for run in runs)
        took = format_seconds(fmean(run.result.verify_s for run in runs))
        rows.append(
            (kernel, f"{right} of {say_count(len(runs), 'run')}: {_say_checks(runs)}; {took} each")
        )
    return rows


def _say_checks(runs: Sequence[StreamRun]) -> str:
    checks = [run.result.check for run in runs]
    known = [check for check in checks if check is not None]
    if len(known) < len(checks):
        return "every block where it belongs"
    counts = sorted({check.records for check in known})
    records = say_span(*(f"{count:,} records" for count in (counts[0], counts[-1])))
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
        rows.append((kernel, "; ".join(dict.fromkeys(map(say_how, runs)))))
    return rows


def say_how(run: StreamRun) -> str:
    """Write `2 GiB, one pass in 1 GiB of memory, 2 threads, io_uring 8 deep past the cache`."""
    options, result = run.options, run.result
    passes = "one pass" if result.passes == 1 else f"{result.passes} passes"
    parties = "one process"
    if options.ranks > 1:
        parties = f"{options.ranks} ranks of {say_count(options.threads, 'thread')}"
    elif options.threads > 1:
        parties = say_count(options.threads, "thread")
    if options.read == "mmap":
        reads = "read by mmap"
    else:
        reads = f"read by io_uring {options.depth} deep" + (
            " past the file cache" if options.read_direct else " through the file cache"
        )
    writes = f"written {'past' if options.write_direct else 'through'} the file cache"
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
