"""What a streaming study says, made from the fixtures' known truth: documents for the report."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import msgspec
import numpy as np

import stream_fixture as made
from leadline.record import Interval
from leadline.record.balance import (
    RESOURCES,
    AmdahlCase,
    Balance,
    PhaseCost,
    Ratio,
    Resource,
    Saturation,
    Scaling,
    ScalingStep,
    StreamBalance,
    Term,
    WhatIf,
)
from leadline.record.streaming import KernelName, PhaseResult, StreamOptions, StreamRun, StreamStudy
from stream_fixture import Machine
from survey_fixture import interval

Cell = tuple[KernelName, str, int]
"""Kernel, phase, disks."""
_INHERENT = {
    ("scan", "read"): 2.1,
    ("sort", "read"): 3.18,
    ("sort", "write"): 3.08,
    ("transpose", "read"): 3.0,
}
_CORRECTED = {("scan", "read"): 3.0, ("sort", "read"): 6.9, ("transpose", "read"): 4.0}
_BALANCED = 1.0


def exact(value: float) -> Interval:
    return Interval(value, value * 0.985, value * 1.015, 3)


def cells_of(study: StreamStudy) -> dict[Cell, list[tuple[StreamRun, PhaseResult]]]:
    found: dict[Cell, list[tuple[StreamRun, PhaseResult]]] = defaultdict(list)
    for run in study.runs:
        for phase in run.result.phases:
            found[run.options.kernel, phase.name, run.disks].append((run, phase))
    return found


def said_of(study: StreamStudy, machine: Machine) -> StreamBalance:
    """The document that `machine`'s truth calls for."""
    cells = cells_of(study)
    pairs = list(dict.fromkeys((kernel, phase) for kernel, phase, _ in cells))
    options = study.runs[0].options
    platform = options.platform
    scaling = tuple(_scaling(machine, cells, *pair) for pair in pairs)
    return StreamBalance(
        system=study.start.system,
        study_id=study.start.study_id,
        platform=platform,
        processors=float(machine.processors),
        disks=max(run.disks for run in study.runs),
        ratios=tuple(_ratios(machine, cells)),
        costs=tuple(_costs(machine, cells)),
        scaling=scaling,
        balances=tuple(_balance(machine, cells, *pair) for pair in pairs),
        what_if=tuple(_what_if()),
        sentences=(
            "CPU first, at 660 MB/s per processor, in sort read; then the disks.",
            "Twice the disks would bring 2%; twice the processors 58%.",
        ),
        not_measurable={} if machine.counted else made.NOT_COUNTED,
    )


def _scaling(
    machine: Machine,
    cells: dict[Cell, list[tuple[StreamRun, PhaseResult]]],
    kernel: KernelName,
    phase: str,
) -> Scaling:
    steps: list[ScalingStep] = []
    before = 0.0
    counts = sorted(disks for k, p, disks in cells if (k, p) == (kernel, phase))
    for disks in counts:
        found = cells[kernel, phase, disks]
        options = found[0][0].options
        rates = np.array([one.mb_s for _, one in found])
        alone = made.busy_s(machine, options, 1, phase)["disks"]
        ideal = found[0][1].bytes_moved / alone / 1e6
        busy = made.busy_s(machine, options, disks, phase)
        _, slowest = max((busy[name], name) for name in RESOURCES)
        whole = max(busy.values())
        used: dict[str, Interval] = {
            name: exact(busy[name] / whole) for name in RESOURCES if busy[name] > 0
        }
        steps.append(
            ScalingStep(
                kernel=kernel,
                phase=phase,
                platform=options.platform,
                disks=disks,
                achieved_mb_s=interval(tuple(rates)),
                ideal_mb_s=exact(ideal * disks),
                gained_mb_s=interval(tuple(rates - before)),
                ideal_gain_mb_s=ideal,
                limited_by=None if slowest == "disks" else slowest,
                evidence=() if slowest == "disks" else (f"{slowest} was 99% used",),
                utilisation=used,
            )
        )
        before = float(rates.mean())
    stops = next((step for step in steps if step.limited_by), None)
    words = f"{kernel} {phase} stops gaining" if stops else f"{kernel} {phase} gains every time"
    return Scaling(
        kernel=kernel,
        phase=phase,
        platform=steps[0].platform,
        steps=tuple(steps),
        stops_at=stops.disks if stops else None,
        limited_by=stops.limited_by if stops else None,
        sentence=f"{words}.",
    )


def _ratios(
    machine: Machine, cells: dict[Cell, list[tuple[StreamRun, PhaseResult]]]
) -> Iterator[Ratio]:
    for (kernel, phase, disks), found in cells.items():
        options = found[0][0].options
        moved = found[0][1].bytes_moved
        net = 2 * made.sent_bytes(options, phase) / moved
        over_io = [
            (
                (one.block_read_bytes or 0)
                + (one.block_written_bytes or 0)
                + one.network_sent_bytes
                + one.network_received_bytes
            )
            / moved
            for _, one in found
        ]
        over_memory = [one.memory_bus_bytes / moved for _, one in found if one.memory_bus_bytes]
        terms = (Term(name="read from disk", symbol="D_r", coefficient=1.0, source="4.1"),)
        inherent = _INHERENT.get((kernel, phase), 1.0)
        shared: dict[str, Any] = {
            "kernel": kernel,
            "phase": phase,
            "platform": options.platform,
            "disks": disks,
        }
        yield Ratio(
            **shared,
            bus="io",
            modelled=1.0 + net,
            corrected=None,
            terms=terms,
            measured=interval(tuple(over_io)),
            tier="block layer and network payload",
        )
        yield Ratio(
            **shared,
            bus="memory",
            modelled=inherent + net,
            corrected=_CORRECTED.get((kernel, phase)),
            terms=terms,
            measured=interval(tuple(over_memory)) if over_memory else None,
            tier="resctrl"
            if machine.counted
            else f"not measurable here: {made.NOT_COUNTED['memory_bus_bytes']}",
        )


def _costs(
    machine: Machine, cells: dict[Cell, list[tuple[StreamRun, PhaseResult]]]
) -> Iterator[PhaseCost]:
    def per_byte(found: list[PhaseResult], field: str, scale: float) -> Interval:
        return interval(tuple(getattr(one, field) * scale / one.bytes_moved for one in found))

    for (kernel, phase, disks), pairs in cells.items():
        options: StreamOptions = pairs[0][0].options
        found = [one for _, one in pairs]
        parties = min(options.parties, machine.processors)
        busy = tuple(one.cpu_s / one.seconds / parties for one in found)
        cpi = tuple(
            one.cycles / one.instructions for one in found if one.cycles and one.instructions
        )
        yield PhaseCost(
            kernel=kernel,
            phase=phase,
            platform=options.platform,
            disks=disks,
            cpu_user_ns_per_byte=per_byte(found, "cpu_user_s", 1e9),
            cpu_system_ns_per_byte=per_byte(found, "cpu_system_s", 1e9),
            cpu_utilisation=interval(busy),
            instructions_per_byte=per_byte(found, "instructions", 1.0) if cpi else None,
            cycles_per_instruction=interval(cpi) if cpi else None,
        )


def _balance(
    machine: Machine,
    cells: dict[Cell, list[tuple[StreamRun, PhaseResult]]],
    kernel: KernelName,
    phase: str,
) -> Balance:
    most = max(disks for k, p, disks in cells if (k, p) == (kernel, phase))
    run, one = cells[kernel, phase, most][0]
    busy = made.busy_s(machine, run.options, most, phase)
    whole = max(busy.values())
    found: list[Saturation] = []
    for name in RESOURCES:
        rate = one.bytes_moved / busy[name] / 1e6 / machine.processors if busy[name] else None
        wide = 0.02 + 0.2 * (1 - busy[name] / whole)
        found.append(
            Saturation(
                resource=name,
                why="linear fit over 4 disks" if rate else "nothing crosses it",
                mb_s_per_processor=Interval(rate, rate * (1 - wide), rate * (1 + wide), 12)
                if rate
                else None,
                use_at_most=exact(busy[name] / whole) if rate else None,
                at_least=name == "memory",
            )
        )
    known = [(number.value, each.resource) for each in found if (number := each.mb_s_per_processor)]
    order = [resource for _, resource in sorted(known)]
    return Balance(
        system=machine.system,
        kernel=kernel,
        phase=phase,
        platform=run.options.platform,
        processors=float(machine.processors),
        saturations=tuple(found),
        order=tuple(order),
        first=order[0],
        disks_mb_s_per_processor=next(
            each.mb_s_per_processor for each in found if each.resource == "disks"
        ),
        sentence=f"{kernel} {phase}: {order[0]} first, then {order[1]}.",
        amdahl=AmdahlCase(
            mips=5200.0,
            mips_source="instructions",
            memory_mb_per_mips=0.2,
            io_mbit_s_per_mips=_BALANCED,
            sentence="0.2 MB of memory and 1 Mbit/s for every MIPS.",
        ),
    )


def _what_if() -> Iterator[WhatIf]:
    for changes, after, limit in (
        ({"disks": 2.0}, 1330.0, "cpu"),
        ({"cores": 2.0}, 2080.0, "disks"),
    ):
        resource: Resource = limit  # type: ignore[assignment]
        yield WhatIf(
            kernel="sort",
            phase="read",
            changes=changes,
            before_mb_s=exact(1316.0),
            after_mb_s=exact(after),
            limited_before="cpu",
            limited_after=resource,
            gain_frac=Interval(after / 1316 - 1, after / 1316 - 1.02, after / 1316 - 0.98, 12),
            sentence=f"{changes} would bring {after / 1316 - 1:.0%}.",
        )


def atlas() -> tuple[StreamStudy, StreamBalance]:
    """Two processors without counters; the processors stop the sort at three disks."""
    study = made.scaling_study(made.ATLAS)
    return study, said_of(study, made.ATLAS)


def boreas() -> tuple[StreamStudy, StreamBalance]:
    """Four processors with counters; the path that the disks share stops everything at three."""
    study = made.scaling_study(made.BOREAS)
    return study, said_of(study, made.BOREAS)


def hostile() -> tuple[StreamStudy, StreamBalance]:
    """Names that try to leave their place."""
    study = made.hostile_study()
    said = said_of(study, replace(made.ATLAS, system=made.HOSTILE))
    return study, msgspec.structs.replace(said, sentences=(made.HOSTILE,))


def cluster() -> tuple[StreamStudy, StreamBalance]:
    """Four ranks on the first machine: what a sort or a transpose reads crosses the bus again."""
    study = made.scaling_study(made.ATLAS, "cluster")
    return study, said_of(study, made.ATLAS)
