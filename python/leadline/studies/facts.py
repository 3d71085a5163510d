"""Facts of a machine and a target, for people."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from leadline.machine.facts import FACTS
from leadline.units import format_bytes, format_seconds


def fact_rows(facts: dict[str, Any]) -> list[tuple[str, str]]:
    """Every fact with its title and unit; one that this version does not know keeps its name."""
    known = [name for name in FACTS if name in facts]
    rows = [(FACTS[name].title, format_fact(facts[name], FACTS[name].unit)) for name in known]
    return rows + [(name, format_fact(facts[name], "text")) for name in facts if name not in FACTS]


def format_fact(value: Any, unit: str) -> str:
    """Write a fact for people by its unit (`leadline.machine.facts`)."""
    if value is None:
        return "not known"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return ", ".join(str(each) for each in value)
    write = _UNIT_WRITERS.get(unit, str) if isinstance(value, int | float) else str
    return write(value)


_UNIT_WRITERS: dict[str, Callable[[Any], str]] = {
    "bytes": format_bytes,
    "percent": lambda value: f"{value:g}%",
    "microseconds": lambda value: format_seconds(value / 1e6),
    "centiseconds": lambda value: format_seconds(value / 100),
    "MHz": lambda value: f"{value:,.0f} MHz",
    "requests/s": lambda value: f"{value:,.0f} requests/s",
}
