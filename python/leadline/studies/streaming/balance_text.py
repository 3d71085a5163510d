"""Balance as rows of text: every saturation, the models' terms, Amdahl and Case, what-ifs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from leadline.charts.terminal import Terminal, on_terminal
from leadline.record.balance import (
    RESOURCE_WORDS,
    RESOURCES,
    Balance,
    PhaseCost,
    Ratio,
    Saturation,
    StreamBalance,
    Term,
    WhatIf,
)
from leadline.record.wording import format_change, format_count, format_number, format_rate_ci
from leadline.studies.streaming.answer import compared, without_scaling
from leadline.studies.streaming.balance import format_changes
from leadline.studies.streaming.text import (
    BUS_WORDS,
    format_counted,
    format_ratio,
    groups_of,
    not_counted_lines,
    system_name,
)
from leadline.units import format_percent

NO_NUMBER = "no number"
_NOTHING_FRAC = 0.005
"""A gain below half a percent is none."""
SATURATION_HEADS = tuple(RESOURCE_WORDS[name] for name in RESOURCES)
COST_HEADS = ("Disks", "CPU used", "ns per byte: user + kernel", "Instructions per byte", "CPI")
RATIO_HEADS = ("Disks", "Bus", "Measured (95% CI)", "Model", "Corrected", "Terms of the model")


class SaturationRow(NamedTuple):
    """One phase of one system: for every resource the rate that uses it up, and why."""

    system: str
    phase: str
    numbers: tuple[str, ...]
    reasons: tuple[str, ...]
    first: str


def saturation_rows(systems: Sequence[StreamBalance]) -> list[SaturationRow]:
    """Return a row for each phase of each system."""
    return [_saturation_row(each) for each in in_order(systems)]


def in_order(systems: Sequence[StreamBalance]) -> list[Balance]:
    """Return all phases in the order of the paper, systems beside each other."""
    balances = [each for system in systems for each in system.balances]
    order = groups_of((each.kernel, each.phase) for each in balances)
    return sorted(balances, key=lambda each: order.index((each.kernel, each.phase)))


def _saturation_row(balance: Balance) -> SaturationRow:
    found = {each.resource: each for each in balance.saturations}
    return SaturationRow(
        system_name(balance),
        f"{balance.kernel} {balance.phase}",
        tuple(format_saturation(found.get(name)) for name in RESOURCES),
        tuple(found[name].why if name in found else "" for name in RESOURCES),
        RESOURCE_WORDS[balance.first] if balance.first else NO_NUMBER,
    )


def format_saturation(saturation: Saturation | None, *, brief: bool = False) -> str:
    """Write `581 MB/s [570, 592]`, with `≥` where it was never seen saturated.

    Brief is `581`, under a head that has the unit.
    """
    number = saturation.mb_s_per_processor if saturation else None
    if saturation is None or number is None:
        return "\N{EN DASH}" if brief else NO_NUMBER
    said = f"{number.value:,.0f}" if brief else format_rate_ci(number)
    return f"≥ {said}" if saturation.at_least else said


class WhatIfRow(NamedTuple):
    """Upgrade what-ifs of a phase."""

    system: str
    phase: str
    changes: str
    before: str
    after: str
    gain: str


def what_if_rows(systems: Sequence[StreamBalance]) -> list[WhatIfRow]:
    """Return every what-if of every system."""
    return [_what_if_row(system.system, each) for system in systems for each in system.what_if]


def _what_if_row(system: str, found: WhatIf) -> WhatIfRow:
    return WhatIfRow(
        system,
        f"{found.kernel} {found.phase}",
        format_changes(found.changes),
        f"{format_rate_ci(found.before_mb_s)}, {RESOURCE_WORDS[found.limited_before]}",
        f"{format_rate_ci(found.after_mb_s)}, {RESOURCE_WORDS[found.limited_after]}",
        format_gain(found),
    )


def format_gain(found: WhatIf) -> str:
    """Write `+67% [+64, +69]`, or `no gain`."""
    return (
        "no gain" if abs(found.gain_frac.value) < _NOTHING_FRAC else format_change(found.gain_frac)
    )


class AmdahlRow(NamedTuple):
    """The rule of Amdahl and Case for one phase."""

    system: str
    phase: str
    mips: str
    memory: str
    io: str


def amdahl_rows(systems: Sequence[StreamBalance]) -> list[AmdahlRow]:
    """Return the phases for which the rule can be said."""
    return [
        AmdahlRow(
            system_name(each),
            f"{each.kernel} {each.phase}",
            f"{each.amdahl.mips:,.0f} ({each.amdahl.mips_source})",
            format_number(each.amdahl.memory_mb_per_mips),
            format_number(each.amdahl.io_mbit_s_per_mips),
        )
        for system in systems
        for each in system.balances
        if each.amdahl is not None
    ]


class NumberRow(NamedTuple):
    """One phase of one system at a number of disks."""

    system: str
    phase: str
    cells: tuple[str, ...]


def cost_rows(systems: Sequence[StreamBalance]) -> list[NumberRow]:
    """Return what every phase costs the processor (AD98 Fig. 8)."""
    return [
        NumberRow(system.system, f"{cost.kernel} {cost.phase}", _cost_cells(cost))
        for system in systems
        for cost in system.costs
    ]


def _cost_cells(cost: PhaseCost) -> tuple[str, ...]:
    user, kernel = cost.cpu_user_ns_per_byte.value, cost.cpu_system_ns_per_byte.value
    return (
        str(cost.disks),
        format_percent(cost.cpu_utilisation.value),
        f"{user:.2f} + {kernel:.2f}",
        format_counted(cost.instructions_per_byte),
        format_counted(cost.cycles_per_instruction),
    )


def ratio_rows(systems: Sequence[StreamBalance]) -> list[NumberRow]:
    """Return measured beside modelled bytes of both buses, with the terms of the model."""
    return [
        NumberRow(system.system, f"{ratio.kernel} {ratio.phase}", _ratio_cells(ratio))
        for system in systems
        for ratio in system.ratios
    ]


def _ratio_cells(ratio: Ratio) -> tuple[str, ...]:
    return (
        str(ratio.disks),
        BUS_WORDS[ratio.bus],
        format_ratio(ratio),
        format_number(ratio.modelled),
        "none" if ratio.corrected is None else format_number(ratio.corrected),
        "; ".join(format_term(term) for term in (*ratio.terms, *ratio.corrections)),
    )


def format_term(term: Term) -> str:
    """Write `0.5 copy into the match buffer`."""
    return f"{format_number(term.coefficient)} {term.name}"


def format_systems(systems: Sequence[StreamBalance]) -> list[tuple[str, str]]:
    """Say of every system what was measured."""
    return [(f"{each.system}, {each.platform}", _format_parts(each)) for each in systems]


def _format_parts(said: StreamBalance) -> str:
    processors = "1 processor" if said.processors == 1 else f"{said.processors:g} processors"
    study = f"study {said.study_id[:8]}" if said.study_id else "as published"
    return f"{processors}, {format_count(said.disks, 'disk')}, {study}"


# Balance on a terminal: the sentence, and which resource is the bottleneck at which disk bandwidth.


@on_terminal
def render_balance(
    terminal: Terminal, systems: Sequence[StreamBalance]
) -> Iterator[RenderableType]:
    """Tell each system's bottleneck, a table and warnings; all of it: sentences and what-ifs."""
    several = len(systems) > 1
    if terminal.verbose:
        yield from terminal.sentences(compared(systems))
    for said in systems:
        brief = said.sentences[:1] if several else without_scaling(said.sentences, said)
        told = said.sentences if terminal.verbose else brief
        named = f"{said.system}, {said.platform}: " if several else ""
        yield from terminal.sentences((f"{named}{told[0]}", *told[1:]) if told else ())
    if any(each.order for said in systems for each in said.balances):
        yield Text("MB/s of disk bandwidth per processor at which it is used up:")
        yield _table(terminal, systems)
    for said in systems:
        if said.what_if and (terminal.verbose or not several):
            of = f" of {said.system}" if several else ""
            yield Text(f"Upgrade what-ifs{of}, and the next bottleneck:")
            yield _what_if(terminal, said.what_if)
        if terminal.verbose:
            yield from map(terminal.text, not_counted_lines(said.not_measurable))
        yield from terminal.warnings(said.findings)


def _table(terminal: Terminal, systems: Sequence[StreamBalance]) -> Table:
    rows = []
    named = len({system_name(each) for said in systems for each in said.balances}) > 1
    for each in in_order(systems):
        found = {saturation.resource: saturation for saturation in each.saturations}
        cells = [format_saturation(found.get(resource), brief=True) for resource in RESOURCES]
        first = RESOURCE_WORDS[each.first] if each.first else NO_NUMBER
        phase = f"{each.kernel} {each.phase}"
        rows.append([phase, *([system_name(each)] if named else []), *cells, first])
    heads = ["Phase", *(["System"] if named else []), *SATURATION_HEADS, "Bottleneck"]
    return terminal.table(heads, rows)


def _what_if(terminal: Terminal, found: Sequence[WhatIf]) -> Table:
    rows = []
    asked = list(dict.fromkeys(format_changes(each.changes) for each in found))
    for name in dict.fromkeys(f"{each.kernel} {each.phase}" for each in found):
        own = {
            format_changes(each.changes): each
            for each in found
            if f"{each.kernel} {each.phase}" == name
        }
        now = f"{next(iter(own.values())).before_mb_s.value:,.0f}"
        cells = [_gain(own[change]) if change in own else "" for change in asked]
        rows.append([name, now, *cells])
    return terminal.table(["Phase", "MB/s now", *asked], rows)


def _gain(found: WhatIf) -> str:
    gain = format_gain(found).partition(" (")[0]
    return f"{gain}, {RESOURCE_WORDS[found.limited_after]}"
