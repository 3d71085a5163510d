"""Balance: what each disk adds (AD98 Fig. 3), Amdahl and Case, and other machines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from leadline.errors import LeadlineError
from leadline.record import Interval
from leadline.record.balance import (
    RESOURCE_WORDS,
    RESOURCES,
    AmdahlCase,
    Balance,
    Resource,
    Saturation,
    Scaling,
    ScalingStep,
    WhatIf,
)
from leadline.record.streaming import Capacities, KernelName, Platform, StreamStudy
from leadline.record.wording import format_count
from leadline.stats.arithmetic import (
    difference,
    exactly,
    inverse,
    least,
    product,
    quotient,
    scaled,
    surely_below,
)
from leadline.stats.saturation import saturation
from leadline.studies.streaming.measured import Cell, amdahl_case, cells_of, readings_interval
from leadline.studies.streaming.resources import Busy, busy, more_than_all, processors_of, striped
from leadline.units import format_percent, format_rate

# Disk scaling (AD98 Fig. 3): what each disk adds, where that stops, and what stopped it.

_MB = 1e6
SHORT_FRAC = 0.9
"""Of the ideal: a step below it fell short."""
GAIN_SHORT_FRAC = 0.75
"""Of what the disk could add: a gain below it no longer paid in full (AD98 §5.1: 3 of 5.5)."""
FULL_FRAC = 0.85
"""A resource used for at least this share of the time is used up: nothing overlaps perfectly."""
_NO_PART_TO_BLAME = (
    "no measured resource is used up; the time is spent waiting in the kernel, on disk latency, "
    "or on other processes"
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
    return scaling_from(steps)


def scaling_from(steps: Sequence[ScalingStep]) -> Scaling:
    """Say of a phase's steps, the fewest disks first, where adding disks stops paying."""
    stops = next((step for step in steps if is_sublinear(step)), None)
    last = next((step for step in reversed(steps) if is_sublinear(step)), None)
    limited_by: Resource | None = last.limited_by if last is not None else "disks"
    return Scaling(
        kernel=steps[0].kernel,
        phase=steps[0].phase,
        platform=steps[0].platform,
        steps=tuple(steps),
        stops_at=stops.disks if stops is not None else None,
        limited_by=limited_by,
        sentence=_sentence(steps, stops, last, limited_by),
    )


def is_sublinear(step: ScalingStep) -> bool:
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

    A path that was never seen saturated has a lower limit for a capacity, and no share.
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
        "disks": f"the standalone rate of {format_count(cell.disks, 'disk')}",
        "io_path": "the rate of all disks together",
        "cpu": format_processors(processors_of(run.options, capacities)),
        "memory": "the bus, by counters"
        if busy(*cell.runs[0], capacities).memory_counted
        else "the bus, by the model",
        "network": "a rank's bandwidth",
    }
    busiest = sorted(used, key=lambda name: -used[name].value)
    return tuple(
        f"{RESOURCE_WORDS[name]}: {format_percent(used[name].value)} of {of[name]}"
        for name in busiest
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
            f"{what}: {reached} on {format_count(most.disks, 'disk')}, gains with every disk; "
            "bottleneck: disks."
        )
    if limited_by is None or last is None:
        return (
            f"{what}: {reached} on {format_count(most.disks, 'disk')}, sublinear from disk "
            f"{stops.disks}; bottleneck unknown: {_NO_PART_TO_BLAME}."
        )
    evidence = "; ".join(last.evidence[:2])
    return (
        f"{what}: {reached} on {format_count(most.disks, 'disk')}, sublinear from disk "
        f"{stops.disks}; bottleneck: {RESOURCE_WORDS[limited_by]} ({evidence})."
    )


def format_processors(count: float) -> str:
    """Write `2 processors`, `0.5 of a processor`."""
    if count < 1:
        return f"{count:.2g} of a processor"
    return "1 processor" if count == 1 else f"{count:.3g} processors"


# Balance (AD98 Fig. 9): the disk bandwidth per processor at which each resource is used up.

_WORTH_SAYING_FRAC = 0.005


def balances_of(study: StreamStudy) -> tuple[Balance, ...]:
    """Return the balance of every kernel's phases; without capacities there is none."""
    capacities = study.capacities
    if capacities is None:
        return ()
    together: dict[tuple[str, str, str], list[Cell]] = {}
    for cell in cells_of(study):
        together.setdefault((cell.kernel, cell.phase, cell.platform), []).append(cell)
    return tuple(_balance(study, capacities, cells) for cells in together.values())


def _balance(study: StreamStudy, capacities: Capacities, cells: Sequence[Cell]) -> Balance:
    processors = processors_of(cells[0].runs[0][0].options, capacities)
    found = tuple(_saturation(name, cells, capacities, processors) for name in RESOURCES)
    which = Which(study.start.system, cells[0].kernel, cells[0].phase, cells[0].platform)
    return balance_from(which, processors, found, amdahl_case(study, cells))


class Which(NamedTuple):
    """A phase of a kernel on a system."""

    system: str
    kernel: KernelName
    phase: str
    platform: Platform


def balance_from(
    which: Which,
    processors: float,
    saturations: tuple[Saturation, ...],
    amdahl: AmdahlCase | None = None,
) -> Balance:
    """Say which resource is the bottleneck, by the rates that use each up."""
    known = {
        one.resource: one.mb_s_per_processor
        for one in saturations
        if one.mb_s_per_processor is not None and not one.at_least
    }
    order = tuple(sorted(known, key=lambda name: known[name].value))
    return Balance(
        **which._asdict(),
        processors=processors,
        saturations=saturations,
        order=order,
        first=order[0] if order else None,
        disks_mb_s_per_processor=known.get("disks"),
        sentence=_balance_sentence(order, known),
        amdahl=amdahl,
    )


def _saturation(
    name: Resource, cells: Sequence[Cell], capacities: Capacities, processors: float
) -> Saturation:
    if name in ("disks", "io_path"):
        # Their capacity is of a number of disks: what the most of them can do.
        cells = [max(cells, key=lambda cell: cell.disks)]
    used = [(phase, busy(run, phase, capacities)) for cell in cells for run, phase in cell.runs]
    if not all(name in each.seconds for _, each in used):
        return Saturation(resource=name, mb_s_per_processor=None, why=_why_not(name, capacities))
    uses = [each.seconds[name].value / phase.seconds for phase, each in used]
    phase, last = used[-1]
    capacity = scaled(inverse(last.seconds[name]), last.seconds[name].value)
    if name == "cpu" or (name == "memory" and last.memory_counted):
        fit = saturation([one.mb_s / processors for one, _ in used], uses, len(cells))
        rate = None if fit.rate is None else product(fit.rate, capacity)
        line = "through the origin" if fit.through_origin else f"through {fit.levels} rates"
        why = _NEVER if rate is None else f"line of its use {line}"
    else:
        # What it does for a byte is known, not read with noise: only its capacity is.
        rate = scaled(capacity, phase.bytes_moved / _MB / last.seconds[name].value / processors)
        why = _why(name, last, cells[-1].disks)
    use = scaled(inverse(capacity), max(uses))
    passed = more_than_all(use)
    if passed and rate is not None:
        reached = max(one.mb_s for one, _ in used) / processors
        rate, why = Interval(max(rate.value, reached), None, None, rate.n), _PASSED
    return Saturation(
        resource=name,
        mb_s_per_processor=rate,
        why=f"{why}; used at most {format_percent(max(uses))}",
        use_at_most=use,
        at_least=passed or (name == "io_path" and not last.path_is_short),
    )


_NEVER = "its use does not grow with the disks' bandwidth"
_PASSED = "a run went faster than what was measured allows: it was not saturated there"


def _why(name: Resource, used: Busy, disks: int) -> str:
    said = {
        "disks": f"what {format_count(disks, 'disk')} can do by themselves",
        "io_path": "all disks at once give less than their sum"
        if used.path_is_short
        else "all disks at once give their sum: the path they share was never seen saturated",
        "memory": "traffic by the model, since nothing counts it here",
        "network": "payload that was counted, by what one rank can send and receive",
    }
    return said[name]


def _why_not(name: Resource, capacities: Capacities) -> str:
    if name == "network":
        return (
            "nothing crosses it"
            if capacities.network_mb_s is not None
            else "its capacity was not measured: no ranks"
        )
    return "its capacity was not measured"


def _balance_sentence(order: Sequence[Resource], rates: dict[Resource, Interval]) -> str:
    if not order:
        return "balance unknown: no capacity was measured."
    first = [f"{RESOURCE_WORDS[name]} {format_rate(rates[name].value)}" for name in order[:2]]
    gain = f"; doubling disks: {format_gain(_gain_of_disks(rates))}" if "disks" in rates else ""
    return f"{', then '.join(first)} per processor{gain}."


def _gain_of_disks(rates: dict[Resource, Interval]) -> float:
    """Return what twice the disks bring, if their path carries them."""
    others = [rate.value for name, rate in rates.items() if name != "disks"]
    now = min([rates["disks"].value, *others])
    return min([2 * rates["disks"].value, *others]) / now - 1


def format_gain(frac: float) -> str:
    """Write `+12%`, or `no gain`."""
    return format_percent(frac, signed=True) if abs(frac) >= _WORTH_SAYING_FRAC else "no gain"


# What another machine would do: more processors, disks, memory bandwidth, network.

PARTS: dict[str, tuple[Resource, ...]] = {
    "cores": ("cpu",),
    "disks": ("disks",),
    "memory": ("memory",),
    "network": ("network",),
    "path": ("io_path",),
}
"""What can be bought, and which resources it makes larger."""
_FACTOR_MAX = 1e6


class WhatIfRefused(LeadlineError):
    """A change that makes no sense; the message says what to type instead."""


def parse_changes(text: str) -> dict[str, float]:
    """Read `cores=2,disks=2,memory=1.5,network=10`.

    Raises:
        WhatIfRefused: an unknown part, or a factor that is no positive number.

    """
    found: dict[str, float] = {}
    for piece in filter(None, (piece.strip() for piece in text.split(","))):
        name, equals, value = (part.strip() for part in piece.partition("="))
        if not equals or name not in PARTS:
            raise WhatIfRefused(
                f"{piece!r} is not part=factor with a known part ({', '.join(PARTS)}); "
                "write for example cores=2,disks=2"
            )
        if name in found:
            raise WhatIfRefused(f"{name} is given twice; write it once")
        found[name] = _factor(name, value)
    if not found:
        raise WhatIfRefused("nothing is changed; write for example cores=2,disks=2")
    return found


def _factor(name: str, value: str) -> float:
    try:
        factor = float(value)
    except ValueError:
        factor = 0.0
    if not 0 < factor <= _FACTOR_MAX:
        raise WhatIfRefused(
            f"{name}={value} is no factor; write a number above 0, as in {name}=2 for twice as much"
        )
    return factor


def what_if(balance: Balance, changes: Mapping[str, float]) -> WhatIf | None:
    """Return the bound of a phase before and after the changes, and the next bottleneck.

    Rates are of all processors that are there now. None where no resource's rate is known.
    """
    before = _rates(balance, {})
    if not before:
        return None
    after = _rates(balance, changes)
    limited_before, limited_after = _lowest(before), _lowest(after)
    was, becomes = least(list(before.values())), least(list(after.values()))
    gain = _gain(was, becomes, same=limited_before == limited_after)
    return WhatIf(
        kernel=balance.kernel,
        phase=balance.phase,
        changes=dict(changes),
        before_mb_s=was,
        after_mb_s=becomes,
        limited_before=limited_before,
        limited_after=limited_after,
        gain_frac=gain,
        sentence=_what_if_sentence(balance, changes, gain.value, becomes, limited_after),
    )


def _rates(balance: Balance, changes: Mapping[str, float]) -> dict[Resource, Interval]:
    larger = {name: factor for part, factor in changes.items() for name in PARTS[part]}
    return {
        one.resource: scaled(
            one.mb_s_per_processor, balance.processors * larger.get(one.resource, 1.0)
        )
        for one in balance.saturations
        if one.mb_s_per_processor is not None and not one.at_least
    }


def _lowest(rates: Mapping[Resource, Interval]) -> Resource:
    return min(rates, key=lambda name: rates[name].value)


def _gain(was: Interval, becomes: Interval, *, same: bool) -> Interval:
    """Return the gain; the same resource's error is the same before and after."""
    ratio = becomes.value / was.value
    if same:
        end = None if was.low is None else ratio - 1
        return Interval(ratio - 1, end, end, was.n)
    found = quotient(becomes, was)
    low, high = found.low, found.high
    return Interval(
        ratio - 1, None if low is None else low - 1, None if high is None else high - 1, found.n
    )


def _what_if_sentence(
    balance: Balance,
    changes: Mapping[str, float],
    gain: float,
    becomes: Interval,
    limited: Resource,
) -> str:
    return (
        f"{balance.kernel} {balance.phase} with {format_changes(changes)}: {format_gain(gain)}, "
        f"{format_rate(becomes.value)}; bottleneck then: {RESOURCE_WORDS[limited]}."
    )


def format_changes(changes: Mapping[str, float]) -> str:
    """Write `×2 cores, ×1.5 memory bandwidth`."""
    words = {"memory": "memory bandwidth", "network": "network bandwidth", "path": "I/O path"}
    return ", ".join(f"×{factor:g} {words.get(part, part)}" for part, factor in changes.items())


def what_ifs(balances: Sequence[Balance], changes: Mapping[str, float]) -> tuple[WhatIf, ...]:
    """Return the changes' effect on every phase that has one."""
    found = [what_if(balance, changes) for balance in balances]
    return tuple(one for one in found if one is not None)
