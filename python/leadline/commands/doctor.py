"""`leadline doctor [DIR]`: what can be measured here, and what disturbs it?"""

from __future__ import annotations

from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from leadline.engine import Target, host_facts, preflight, target_facts
from leadline.machine.build import version_words
from leadline.machine.resources import hides_damon
from leadline.machine.space import room_of
from leadline.record.finding import Finding
from leadline.record.wording import format_count
from leadline.studies.abilities import Ability, abilities
from leadline.terminal.options import Json
from leadline.terminal.talk import put_json, show
from leadline.units import format_bytes


def command(
    context: typer.Context,
    *,
    directory: Annotated[
        str, typer.Argument(metavar="[DIR]", help="Where you mean to measure.")
    ] = ".",
    json: Json = False,
) -> None:
    """Check what this machine can measure, and what disturbs it.

    Example: leadline doctor /data
    """
    del context
    target = Target.parse(directory)
    facts = host_facts() | (target_facts(target.path) if target.path else {})
    found, can = preflight(target, facts), tuple(abilities())
    if json:
        put_json({"facts": facts, "findings": list(found), "abilities": list(can)})
        return
    show(Text("\n".join((version_words(), *_machine(facts), *_place(target, facts)))))
    show("\nWhat disturbs a measurement now")
    show(_findings(found))
    show("\nWhat can be measured here")
    show(_abilities(can))


def _machine(facts: dict[str, Any]) -> list[str]:
    memory = facts.get("memory_bytes")
    said = [
        str(facts.get("cpu_model") or "a processor without a name"),
        format_count(facts.get("cpu_count") or 1, "CPU"),
        *([format_bytes(memory)] if isinstance(memory, int) else []),
        f"Linux {facts.get('kernel_release')}",
        *([str(facts["virtualisation"])] if facts.get("virtualisation") else []),
    ]
    return [", ".join(said)]


def _place(target: Target, facts: dict[str, Any]) -> list[str]:
    if target.path is None:
        return [target.text]
    free = format_bytes(room_of(target.path).capacity_bytes)
    device = facts.get("device_model") or facts.get("device_name") or "an unnamed device"
    kind = facts.get("filesystem_type") or "an unknown file system"
    return [f"{target.text}: {kind} on {device}, {free} may be written"]


def _findings(found: tuple[Finding, ...]) -> Text:
    lines = [f"  {'note' if each.is_note else 'warning'}: {each}" for each in found]
    if not found:
        lines.append("  nothing that Leadline knows of")
    if hides_damon():
        lines.append("  not checked: idle page reclaim (DAMON), whose state only root may read")
    return Text("\n".join(lines))


def _abilities(found: tuple[Ability, ...]) -> Table:
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column()
    for each in found:
        why = f"{each.what_for}: {each.why_not}" if each.why_not else each.what_for
        table.add_row("  no " if each.why_not else "  yes", each.name, Text(why))
    return table
