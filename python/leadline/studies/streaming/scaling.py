"""Disk scaling (AD98 Fig. 3): what each disk adds, where that stops, and what stopped it."""

from __future__ import annotations

from collections.abc import Sequence

from leadline.record import Interval
from leadline.record.balance import RESOURCE_WORDS, RESOURCES, Resource, Scaling, ScalingStep
from leadline.record.streaming import Capacities, StreamStudy
from leadline.record.wording import say_count
from leadline.stats.arithmetic import difference, exactly, inverse, product, scaled, surely_below
from leadline.studies.streaming.measured import Cell, cells_of, readings_interval
from leadline.studies.streaming.use import busy, processors_of, striped
from leadline.units import format_rate, say_percent

_MB = 1e6
SHORT_FRAC = 0.9
"""Of the ideal: a step below it fell short."""
GAIN_SHORT_FRAC = 0.75
"""Of what the disk could add: a gain below it no longer paid in full (AD98 §5.1: 3 of 5.5)."""
FULL_FRAC = 0.85
"""A resource used for at least this share of the time is used up: nothing overlaps perfectly."""
_NO_PART_TO_BLAME = (
    "nothing that is measured is used up: the time is lost waiting inside the kernel, for the "
    "latency of the disks, or to other programs"
)


def scalings_of(study: StreamStudy) -> tuple[Scaling, ...]:
    """Return the scaling of every kernel's phases; without capacities there is none."""
    capacities = study.capacities
    if capacities is None or not capacities.disks:
        return ()
    together: dict[tuple[str, str, str], list[Cell]] = {}
    for cell in cells_of(study):
        together.setdefault((cell.kernel, cell.phase, cell.platform), []).append(cell)
    return tuple(
        _scaling(sorted(cells, key=lambda cell: cell.disks), capacities)
        for cells in together.values()
    )


def _scaling(cells: Sequence[Cell], capacities: Capacities) -> Scaling:
    steps: list[ScalingStep] = []
    for cell in cells:
        steps.append(_step(cell, cells, capacities, steps[-1] if steps else None))
    stops = next((step for step in steps if fell_short(step)), None)
    last = next((step for step in reversed(steps) if fell_short(step)), None)
    limited_by: Resource | None = last.limited_by if last is not None else "disks"
    return Scaling(
        kernel=cells[0].kernel,
        phase=cells[0].phase,
        platform=cells[0].platform,
        steps=tuple(steps),
        stops_at=stops.disks if stops is not None else None,
        limited_by=limited_by,
        sentence=_sentence(steps, stops, last, limited_by),
    )


def fell_short(step: ScalingStep) -> bool:
    """Whether the step stayed surely below its ideal, and its disk added too little."""
    below = step.achieved_mb_s.value < SHORT_FRAC * step.ideal_mb_s.value
    gained = step.gained_mb_s.value < GAIN_SHORT_FRAC * step.ideal_gain_mb_s
    return below and gained and surely_below(step.achieved_mb_s, step.ideal_mb_s)


def _step(
    cell: Cell, cells: Sequence[Cell], capacities: Capacities, before: ScalingStep | None
) -> ScalingStep:
    achieved, ideal = _achieved(cell, cells), _ideal(cell, capacities)
    used = _utilisations(cell, cells, capacities)
    evidence = _evidence(cell, used, capacities)
    limited_by = None
    if achieved.value < SHORT_FRAC * ideal.value and surely_below(achieved, ideal):
        limited_by = _used_up(used)
        if limited_by is None:
            evidence = (*evidence, _NO_PART_TO_BLAME)
    return ScalingStep(
        kernel=cell.kernel,
        phase=cell.phase,
        platform=cell.platform,
        disks=cell.disks,
        achieved_mb_s=achieved,
        ideal_mb_s=ideal,
        gained_mb_s=achieved if before is None else difference(achieved, before.achieved_mb_s),
        ideal_gain_mb_s=ideal.value - (0.0 if before is None else before.ideal_mb_s.value),
        limited_by=limited_by,
        evidence=evidence,
        utilisation={str(name): share for name, share in used.items()},
    )


def _achieved(cell: Cell, cells: Sequence[Cell]) -> Interval:
    others = [[phase.mb_s for phase in other.phases] for other in cells if other is not cell]
    return readings_interval([phase.mb_s for phase in cell.phases], others)


def _ideal(cell: Cell, capacities: Capacities) -> Interval:
    """Return what the disks give by themselves, added up, for this phase's reading and writing."""
    phase = cell.phases[0]
    rates = striped(capacities, cell.disks)
    seconds = rates.seconds(phase.bytes_read / _MB, phase.bytes_written / _MB)
    return scaled(inverse(seconds), phase.bytes_moved / _MB) if seconds.value else exactly(0.0, 0)


def _utilisations(
    cell: Cell, cells: Sequence[Cell], capacities: Capacities
) -> dict[Resource, Interval]:
    found = {}
    for name in RESOURCES:
        used = _used(cell, name, capacities)
        if used is None:
            continue
        shares, capacity = used
        others = [
            other
            for each in cells
            if each is not cell
            if (other := _used(each, name, capacities)) is not None
        ]
        share = readings_interval(shares, [each for each, _ in others])
        found[name] = product(share, capacity)
    return found


def _used(
    cell: Cell, name: Resource, capacities: Capacities
) -> tuple[list[float], Interval] | None:
    """Return the shares of each repetition's time, and the capacity's error as a factor near 1.

    A path that was never seen to give out has a lower limit for a capacity, and no share.
    """
    shares, last = [], None
    for run, phase in cell.runs:
        used = busy(run, phase, capacities)
        last = used.seconds.get(name)
        if last is None or (name == "io_path" and not used.path_is_short):
            return None
        shares.append(last.value / phase.seconds)
    return None if last is None else (shares, scaled(last, 1 / last.value))


def _used_up(used: dict[Resource, Interval]) -> Resource | None:
    if not used:
        return None
    most = max(used, key=lambda name: used[name].value)
    return most if used[most].value >= FULL_FRAC else None


def _evidence(
    cell: Cell, used: dict[Resource, Interval], capacities: Capacities
) -> tuple[str, ...]:
    """Say of every resource how much of what was used, the busiest first."""
    run = cell.runs[0][0]
    of = {
        "disks": f"what {say_count(cell.disks, 'disk')} can do by themselves",
        "io_path": "what all disks give at once",
        "cpu": say_processors(processors_of(run.options, capacities)),
        "memory": "the bus, by counters"
        if busy(*cell.runs[0], capacities).memory_counted
        else "the bus, by the model",
        "network": "what a rank can send and receive",
    }
    busiest = sorted(used, key=lambda name: -used[name].value)
    return tuple(
        f"{RESOURCE_WORDS[name]}: {say_percent(used[name].value)} of {of[name]}" for name in busiest
    )


def _sentence(
    steps: Sequence[ScalingStep],
    stops: ScalingStep | None,
    last: ScalingStep | None,
    limited_by: Resource | None,
) -> str:
    what, most = f"{steps[0].kernel} {steps[0].phase}", steps[-1]
    reached = format_rate(most.achieved_mb_s.value)
    if stops is None:
        return (
            f"{what} gains with every disk, to {reached} on {say_count(most.disks, 'disk')}: the "
            "disks limit it."
        )
    if limited_by is None or last is None:
        return (
            f"{what} stops gaining at {say_count(stops.disks, 'disk')}, {reached}: "
            f"{_NO_PART_TO_BLAME}."
        )
    evidence = "; ".join(last.evidence[:2])
    return (
        f"{what} stops gaining at {say_count(stops.disks, 'disk')}, {reached}: "
        f"{RESOURCE_WORDS[limited_by]} gives out ({evidence})."
    )


def say_processors(count: float) -> str:
    """Write `2 processors`, `0.5 of a processor`."""
    if count < 1:
        return f"{count:.2g} of a processor"
    return "1 processor" if count == 1 else f"{count:.3g} processors"
