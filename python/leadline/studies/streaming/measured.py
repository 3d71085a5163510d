"""What runs measured beside what the models say: ratios, Amdahl, bounds, rows to export."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from leadline.record import Interval
from leadline.record.balance import AmdahlCase, Bound, PhaseBound, PhaseCost, Ratio, Resource
from leadline.record.finding import Finding
from leadline.record.streaming import (
    Capacities,
    KernelName,
    PhaseResult,
    Platform,
    StreamOptions,
    StreamResult,
    StreamRun,
    StreamStudy,
)
from leadline.record.wording import format_number
from leadline.stats import pooled_noise, reading_interval
from leadline.stats.arithmetic import exactly, inverse, largest, scaled, sum_alike
from leadline.studies.streaming.models import total
from leadline.studies.streaming.resources import (
    busy,
    choices_of_run,
    cpu_seconds,
    own_copies,
    own_corrections,
    own_model,
    processors_of,
    striped,
)

# Ratios and costs that were measured, beside what the models say (AD98 Figs. 4, 6, 7 and 8).

IO_TIER = "block layer and network payload"
NOT_HERE = "not measurable here: "
_COPIES_FRAC = 0.05
"""The program counts its own copies; further from the model than this is worth a word."""


@dataclass(frozen=True)
class Cell:
    """One phase of a kernel on one number of disks, with its repetitions."""

    kernel: KernelName
    phase: str
    platform: Platform
    disks: int
    runs: tuple[tuple[StreamRun, PhaseResult], ...]

    @property
    def phases(self) -> list[PhaseResult]:
        """Its repetitions."""
        return [phase for _, phase in self.runs]


def cells_of(study: StreamStudy) -> tuple[Cell, ...]:
    """Return the runs of a study by kernel, phase, platform and number of disks."""
    found: dict[tuple[KernelName, str, Platform, int], list[tuple[StreamRun, PhaseResult]]] = {}
    for run in study.runs:
        for phase in run.result.phases:
            if phase.bytes_moved and phase.seconds > 0:
                key = run.options.kernel, phase.name, run.options.platform, run.disks
                found.setdefault(key, []).append((run, phase))
    return tuple(Cell(*key, tuple(runs)) for key, runs in found.items())


def readings_interval(readings: Sequence[float], like: Sequence[Sequence[float]] = ()) -> Interval:
    """Return the mean of repetitions; noise is pooled with `like` readings of other cells.

    One reading, or any that is zero, has no interval.
    """
    groups = [group for group in (readings, *like) if group and min(group) > 0]
    if not readings or min(readings) <= 0 or all(len(group) < 2 for group in groups):
        return exactly(sum(readings) / len(readings) if readings else 0.0, len(readings))
    return reading_interval(readings, None, pooled_noise(groups))


def ratios_of(study: StreamStudy) -> tuple[Ratio, ...]:
    """Return the modelled and the measured ratio of every phase and both buses."""
    cells = cells_of(study)
    return tuple(
        ratio for cell in cells for ratio in (_io_ratio(cell, cells), _memory_ratio(cell, cells))
    )


def _io_ratio(cell: Cell, cells: Sequence[Cell]) -> Ratio:
    choices = choices_of_run(*cell.runs[0])
    terms = own_model(choices, "io")
    readings = _each(cell, _io_ratio_of)
    why = _why_missing(cell, "block_read_bytes", "block_written_bytes")
    return Ratio(
        kernel=cell.kernel,
        phase=cell.phase,
        platform=cell.platform,
        disks=cell.disks,
        bus="io",
        modelled=total(terms),
        corrected=None,
        measured=_measured(readings, cell, cells, _io_ratio_of),
        tier=IO_TIER if readings else f"{NOT_HERE}{why}",
        terms=terms,
    )


def _memory_ratio(cell: Cell, cells: Sequence[Cell]) -> Ratio:
    choices = choices_of_run(*cell.runs[0])
    terms, corrections = own_model(choices, "memory"), own_corrections(choices)
    readings = _each(cell, _memory_ratio_of)
    tier = cell.runs[0][0].result.memory_bus_counter
    why = _why_missing(cell, "memory_bus_bytes")
    return Ratio(
        kernel=cell.kernel,
        phase=cell.phase,
        platform=cell.platform,
        disks=cell.disks,
        bus="memory",
        modelled=total(terms),
        corrected=total((*terms, *corrections)),
        measured=_measured(readings, cell, cells, _memory_ratio_of),
        tier=tier if readings else f"{NOT_HERE}{why}",
        terms=terms,
        corrections=corrections,
    )


Reading = Callable[[StreamRun, PhaseResult], float | None]


def _io_ratio_of(_: StreamRun, phase: PhaseResult) -> float | None:
    if phase.block_read_bytes is None or phase.block_written_bytes is None:
        return None
    blocks = phase.block_read_bytes + phase.block_written_bytes
    payload = phase.network_sent_bytes + phase.network_received_bytes
    return (blocks + payload) / phase.bytes_moved


def _memory_ratio_of(_: StreamRun, phase: PhaseResult) -> float | None:
    counted = phase.memory_bus_bytes
    return None if counted is None else counted / phase.bytes_moved


def _each(cell: Cell, reading: Reading) -> list[float]:
    found = [reading(run, phase) for run, phase in cell.runs]
    return [value for value in found if value is not None]


def _measured(
    readings: Sequence[float], cell: Cell, cells: Sequence[Cell], reading: Reading
) -> Interval | None:
    if not readings:
        return None
    like = [
        _each(other, reading)
        for other in cells
        if other is not cell and (other.kernel, other.phase) == (cell.kernel, cell.phase)
    ]
    return readings_interval(readings, like)


def _why_missing(cell: Cell, *fields: str) -> str:
    reasons = cell.runs[0][0].result.not_measurable
    return next((reasons[field] for field in fields if field in reasons), "nothing counts it")


def costs_of(study: StreamStudy) -> tuple[PhaseCost, ...]:
    """Return what every phase costs the processor; utilisation needs the study's capacities."""
    cells = cells_of(study)
    return tuple(_cost(cell, cells, study.capacities) for cell in cells)


def _cost(cell: Cell, cells: Sequence[Cell], capacities: Capacities | None) -> PhaseCost:
    def interval(reading: Reading) -> Interval:
        return _measured(_each(cell, reading), cell, cells, reading) or exactly(0.0, 0)

    counted = all(phase.instructions for phase in cell.phases)
    timed = counted and all(phase.cycles for phase in cell.phases)
    return PhaseCost(
        kernel=cell.kernel,
        phase=cell.phase,
        platform=cell.platform,
        disks=cell.disks,
        cpu_user_ns_per_byte=interval(lambda _, phase: 1e9 * phase.cpu_user_s / phase.bytes_moved),
        cpu_system_ns_per_byte=interval(
            lambda _, phase: 1e9 * phase.cpu_system_s / phase.bytes_moved
        ),
        cpu_utilisation=interval(lambda run, phase: _cpu_used(run, phase, capacities)),
        instructions_per_byte=interval(
            lambda _, phase: (phase.instructions or 0) / phase.bytes_moved
        )
        if counted
        else None,
        cycles_per_instruction=interval(
            lambda _, phase: (phase.cycles or 0) / (phase.instructions or 1)
        )
        if timed
        else None,
    )


def _cpu_used(run: StreamRun, phase: PhaseResult, capacities: Capacities | None) -> float:
    if capacities is None:
        return phase.cpu_s / phase.seconds / run.options.parties
    return cpu_seconds(run.options, phase, capacities) / phase.seconds


def doubts_about(study: StreamStudy) -> Iterator[Finding]:
    """Say where the program's own count of its copies disagrees with the model of them."""
    said: dict[tuple[str, str, str], tuple[float, float]] = {}
    for cell in cells_of(study):
        modelled = own_copies(choices_of_run(*cell.runs[0]))
        counted = sum(phase.copied_bytes / phase.bytes_moved for phase in cell.phases)
        counted /= len(cell.runs)
        if abs(counted - modelled) > _COPIES_FRAC:
            said[cell.kernel, cell.phase, cell.platform] = counted, modelled
    for (kernel, phase, _), (counted, modelled) in said.items():
        counts = {"counted": counted, "modelled": modelled}
        yield Finding.of("copies_off_model", kernel=kernel, phase=phase, **counts)


# The Amdahl/Case rule: 1 MB of memory and 1 Mbit/s of I/O for every MIPS (AD98 §1).

_MBIT_BY_MB = 8
_MB = 1e6


def amdahl_case(study: StreamStudy, cells: Sequence[Cell]) -> AmdahlCase | None:
    """Return memory and I/O per MIPS of the processors at work on a phase.

    MIPS are what all processors would execute if they were busy with it all the time; where
    instructions cannot be counted, their clock stands for them and says so. I/O is what the disks
    can do. None without capacities, a memory size, or any idea of the processors' speed.
    """
    capacities, memory_bytes = study.capacities, study.start.facts.get("memory_bytes")
    if capacities is None or not memory_bytes:
        return None
    most = max(cells, key=lambda cell: cell.disks)
    per_second, source = _million_per_second(most.phases, study.start.facts.get("cpu_mhz"))
    if not per_second:
        return None
    mips = per_second * processors_of(most.runs[0][0].options, capacities)
    memory = memory_bytes / _MB / mips
    io = _disks_mb_s(most, capacities) * _MBIT_BY_MB / mips
    unit = "MIPS" if source == "instructions" else "million cycles per second"
    return AmdahlCase(
        mips=mips,
        mips_source=source,
        memory_mb_per_mips=memory,
        io_mbit_s_per_mips=io,
        sentence=(
            f"{format_number(memory)} MB and {format_number(io)} Mbit/s per {unit} "
            "(Amdahl and Case: 1 MB and 1 Mbit/s per MIPS)."
        ),
    )


def _million_per_second(
    phases: Sequence[PhaseResult], clock_mhz: float | None
) -> tuple[float, str]:
    """Return a processor's million instructions per busy second, or what stands for them."""
    cpu_s = sum(phase.cpu_s for phase in phases)
    counted = [phase.instructions for phase in phases if phase.instructions is not None]
    if len(counted) == len(phases) and cpu_s > 0:
        return sum(counted) / cpu_s / _MB, "instructions"
    cycles = [phase.cycles for phase in phases if phase.cycles is not None]
    if len(cycles) == len(phases) and cpu_s > 0:
        return sum(cycles) / cpu_s / _MB, "cycles counted, because instructions are not here"
    if clock_mhz:
        return float(clock_mhz), (
            f"cycles of a clock of {clock_mhz:.0f} MHz, because instructions cannot be counted here"
        )
    return 0.0, ""


def _disks_mb_s(cell: Cell, capacities: Capacities) -> float:
    phase = cell.phases[0]
    read_mb, written_mb = phase.bytes_read / _MB, phase.bytes_written / _MB
    seconds = striped(capacities, cell.disks).seconds(read_mb, written_mb).value
    return (read_mb + written_mb) / seconds if seconds else 0.0


# The fastest a run could be on these capacities: no phase ends before its busiest resource.


def bound(
    result: StreamResult, options: StreamOptions, capacities: Capacities, disks: int
) -> Bound | None:
    """Return the bound of a run: every phase by disks, memory, processors and network.

    Everything is at its capacity of the same machine; the processors' cost is the run's own. The
    program could not have been faster without other parts, or less work for the processors.
    None for a run that moved nothing.
    """
    run = StreamRun(options=options, disks=disks, repetition=0, started_at="", result=result)
    phases = [
        found
        for phase in result.phases
        if (found := phase_bound(run, phase, capacities)) is not None
    ]
    if not phases:
        return None
    seconds = sum_alike([phase.seconds for phase in phases])
    moved_mb = sum(phase.bytes_moved for phase in phases) / _MB
    return Bound(
        mb_s=scaled(inverse(seconds), moved_mb),
        seconds=seconds,
        resource=_longest(phases),
        by_resource=_by_resource(phases, moved_mb),
        phases=tuple(phases),
    )


def phase_bound(run: StreamRun, phase: PhaseResult, capacities: Capacities) -> PhaseBound | None:
    """Return the bound of one phase."""
    used = busy(run, phase, capacities, inherent=True)
    # A path that was not seen saturated would only repeat the disks with other noise.
    limits = {
        name: seconds
        for name, seconds in used.seconds.items()
        if name != "io_path" or used.path_is_short
    }
    if not limits or not phase.bytes_moved:
        return None
    moved_mb = phase.bytes_moved / _MB
    seconds = largest(list(limits.values()))
    return PhaseBound(
        phase=phase.name,
        bytes_moved=phase.bytes_moved,
        mb_s=scaled(inverse(seconds), moved_mb),
        seconds=seconds,
        resource=max(limits, key=lambda name: limits[name].value),
        by_resource={name: scaled(inverse(each), moved_mb) for name, each in limits.items()},
    )


def _longest(phases: Sequence[PhaseBound]) -> Resource:
    spent: dict[Resource, float] = {}
    for phase in phases:
        spent[phase.resource] = spent.get(phase.resource, 0.0) + phase.seconds.value
    return max(spent, key=lambda name: spent[name])


def _by_resource(phases: Sequence[PhaseBound], moved_mb: float) -> dict[str, Interval]:
    """Return the rate by each resource alone; a phase that does not use it takes no time."""
    found = {}
    for name in dict.fromkeys(name for phase in phases for name in phase.by_resource):
        seconds = [
            scaled(inverse(phase.by_resource[name]), phase.bytes_moved / _MB)
            for phase in phases
            if name in phase.by_resource
        ]
        found[name] = scaled(inverse(sum_alike(seconds)), moved_mb)
    return found


# The phases of a stream study as flat rows, for JSON, data frames and other tools.


def phase_document(phase: PhaseResult) -> dict[str, Any]:
    """A phase's counters, and what follows from them.

    `cpu_user` and `cpu_system` are processors kept busy, `io_bytes` what the block layer moved.
    """
    blocks = (phase.block_read_bytes, phase.block_written_bytes)
    busy_s = phase.seconds or None
    return msgspec.structs.asdict(phase) | {
        "mb_s": phase.mb_s,
        "cpu_user": busy_s and phase.cpu_user_s / busy_s,
        "cpu_system": busy_s and phase.cpu_system_s / busy_s,
        "io_bytes": None if None in blocks else sum(count or 0 for count in blocks),
    }


def phase_rows(study: StreamStudy) -> list[dict[str, Any]]:
    """One flat row for every phase of every run, all with the same keys."""
    return [
        {
            "study_id": study.start.study_id,
            "system": study.start.system,
            "started_at": run.started_at,
            "repetition": run.repetition,
            "platform": run.options.platform,
            "disks": run.disks,
            **msgspec.structs.asdict(run.options),
            "passes": run.result.passes,
            "bytes_in": run.result.bytes_in,
            "bytes_out": run.result.bytes_out,
            "run_seconds": run.result.seconds,
            "verified": run.result.verified,
            "memory_peak_bytes": run.result.memory_peak_bytes,
            **phase_document(phase),
        }
        for run in study.runs
        for phase in run.result.phases
    ]
