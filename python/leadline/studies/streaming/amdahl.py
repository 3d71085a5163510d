"""The Amdahl/Case rule: 1 MB of memory and 1 Mbit/s of I/O for every MIPS (AD98 §1)."""

from __future__ import annotations

from collections.abc import Sequence

from leadline.record.balance import AmdahlCase
from leadline.record.streaming import Capacities, PhaseResult, StreamStudy
from leadline.record.wording import say_number
from leadline.studies.streaming.measured import Cell
from leadline.studies.streaming.use import processors_of, striped

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
    return AmdahlCase(
        mips=mips,
        mips_source=source,
        memory_mb_per_mips=memory,
        io_mbit_s_per_mips=io,
        sentence=(
            f"Amdahl and Case ask for 1 MB and 1 Mbit/s for every MIPS; here are "
            f"{say_number(memory)} MB and {say_number(io)} Mbit/s for every {_unit(source)}."
        ),
    )


def _unit(source: str) -> str:
    return "MIPS" if source == "instructions" else "million cycles per second"


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
