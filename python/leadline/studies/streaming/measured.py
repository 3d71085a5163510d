"""Ratios and costs that were measured, beside what the models say (AD98 Figs. 4, 6, 7 and 8)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from leadline.record import Interval
from leadline.record.balance import PhaseCost, Ratio
from leadline.record.finding import Finding
from leadline.record.streaming import (
    Capacities,
    KernelName,
    PhaseResult,
    Platform,
    StreamRun,
    StreamStudy,
)
from leadline.stats import pooled_noise, reading_interval
from leadline.stats.arithmetic import exactly
from leadline.studies.streaming.models import total
from leadline.studies.streaming.own_model import (
    choices_of_run,
    own_copies,
    own_corrections,
    own_model,
)
from leadline.studies.streaming.use import cpu_seconds

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
