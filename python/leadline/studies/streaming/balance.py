"""Balance (AD98 Fig. 9): the disk bandwidth per processor at which each resource is used up."""

from __future__ import annotations

from collections.abc import Sequence

from leadline.record import Interval
from leadline.record.balance import RESOURCE_WORDS, RESOURCES, Balance, Resource, Saturation
from leadline.record.streaming import Capacities, StreamStudy
from leadline.record.wording import say_count
from leadline.stats.arithmetic import inverse, product, scaled
from leadline.stats.saturation import saturation
from leadline.studies.streaming.amdahl import amdahl_case
from leadline.studies.streaming.measured import Cell, cells_of
from leadline.studies.streaming.use import Busy, busy, more_than_all, processors_of
from leadline.units import format_rate, say_percent

_MB = 1e6
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
    rates = {one.resource: one.mb_s_per_processor for one in found if _gives_out(one)}
    known = {name: rate for name, rate in rates.items() if rate is not None}
    order = tuple(sorted(known, key=lambda name: known[name].value))
    return Balance(
        system=study.start.system,
        kernel=cells[0].kernel,
        phase=cells[0].phase,
        platform=cells[0].platform,
        processors=processors,
        saturations=found,
        order=order,
        first=order[0] if order else None,
        disks_mb_s_per_processor=known.get("disks"),
        sentence=_sentence(order, known),
        amdahl=amdahl_case(study, cells),
    )


def _gives_out(one: Saturation) -> bool:
    return one.mb_s_per_processor is not None and not one.at_least


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
        why=f"{why}; used at most {say_percent(max(uses))}",
        use_at_most=use,
        at_least=passed or (name == "io_path" and not last.path_is_short),
    )


_NEVER = "its use does not grow with the disks' bandwidth"
_PASSED = "a run went faster than what was measured allows: it did not give out there"


def _why(name: Resource, used: Busy, disks: int) -> str:
    said = {
        "disks": f"what {say_count(disks, 'disk')} can do by themselves",
        "io_path": "all disks at once give less than their sum"
        if used.path_is_short
        else "all disks at once give their sum: the path they share was never seen to give out",
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


def _sentence(order: Sequence[Resource], rates: dict[Resource, Interval]) -> str:
    if not order:
        return "Nothing can be said of its balance: no capacity was measured."
    words = [
        f"{_first_word(order[0])} first, at {format_rate(rates[order[0]].value)} per processor"
    ]
    if len(order) > 1:
        rate = format_rate(rates[order[1]].value)
        words.append(f"the next is {RESOURCE_WORDS[order[1]]} at {rate}")
    if "disks" in rates:
        words.append(f"twice the disks would bring {say_gain(_gain_of_disks(rates))}")
    return f"{'; '.join(words)}."


def _first_word(name: Resource) -> str:
    word = RESOURCE_WORDS[name]
    return word[0].upper() + word[1:]


def _gain_of_disks(rates: dict[Resource, Interval]) -> float:
    """Return what twice the disks bring, if their path carries them."""
    others = [rate.value for name, rate in rates.items() if name != "disks"]
    now = min([rates["disks"].value, *others])
    return min([2 * rates["disks"].value, *others]) / now - 1


def say_gain(frac: float) -> str:
    """Write `12 %`, or `nothing`."""
    return say_percent(frac) if abs(frac) >= _WORTH_SAYING_FRAC else "nothing"
