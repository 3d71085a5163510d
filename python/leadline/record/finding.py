"""What was found about a measurement, as data, and the one place where it becomes a sentence.

Verdicts, groups and exit codes go by `code` and `severity`; a sentence decides nothing. The engine
finds by the same codes (`crates/wire/src/finding.rs`).
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from pathlib import Path

import msgspec

from leadline.record.workload import Interval
from leadline.units import format_bytes, format_percent, format_rate, format_seconds


class Severity(StrEnum):
    """How much a finding weighs."""

    INVALID = "invalid"
    """The numbers are not those of what was asked for."""
    SUSPECT = "suspect"
    """They are to be doubted."""
    NOTE = "note"
    """Good to know when reading them."""


class Finding(msgspec.Struct, frozen=True, omit_defaults=True):
    """One thing that was found."""

    code: str
    """A key of findings.toml."""
    severity: Severity
    values: Mapping[str, int | float | str] = {}
    """What its sentence says, each with its unit at the end of its name."""
    where: str = ""
    """Of several systems the one that it is about."""

    def __post_init__(self) -> None:
        """Refuse a code that nobody could say, as in a damaged store.

        Raises:
            ValueError: there is no such code.

        """
        if self.code not in entries():
            raise ValueError(f"there is no finding {self.code!r}")

    @classmethod
    def of(cls, code: str, **values: float | str) -> Finding:
        """Return a finding of the catalogue, with its severity.

        Raises:
            KeyError: there is no such code.

        """
        return cls(code, entries()[code].severity, values)

    def __str__(self) -> str:
        """Return its sentence, behind where it was found."""
        said = _render(entries()[self.code].text, self.values)
        return f"{self.where}: {said}" if self.where else said

    @property
    def is_note(self) -> bool:
        """Whether it spoils nothing but is good to know."""
        return self.severity is Severity.NOTE

    def document(self) -> dict[str, object]:
        """Return it as `--json` tells it, with its sentence."""
        where = {"where": self.where} if self.where else {}
        said = {"severity": self.severity, **where, "values": self.values, "text": str(self)}
        return {"code": self.code, **said}

    def __hash__(self) -> int:
        return hash((self.code, self.where, tuple(sorted(self.values.items()))))


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """What findings.toml says of a code; the last three only where a sentence leaves them open."""

    severity: Severity
    text: str
    means: str = ""
    found: str = ""
    advice: str = ""

    def pattern(self, value: str = "<{}>") -> str:
        """Return its sentence with the names of its values, and alternatives as (one / other)."""
        bare = _VALUE.sub(lambda found: value.format(found[1]), self.text)
        return bare.replace("|", " / ").replace("[", "(").replace("]", ")")


@functools.cache
def catalogue() -> dict[str, dict[str, Entry]]:
    """Return every code, by where it is found: machine, run, study and so on."""
    # importlib.resources would add 10 ms to the start of every command.
    told = Path(__file__).with_name("findings.toml").read_bytes()
    return msgspec.toml.decode(told, type=dict[str, dict[str, Entry]])


@functools.cache
def entries() -> Mapping[str, Entry]:
    """Return every code."""
    return {code: entry for group in catalogue().values() for code, entry in group.items()}


_CHOICE = re.compile(r"\[([^\[\]]*)\]")
_VALUE = re.compile(r"\{(\w+)(?::([^{}]*))?\}")


def _grouped(number: float) -> str:
    return f"{number:.2f}" if number % 1 and number < 100 else f"{number:,.0f}"


def _raised_percent(frac: float) -> str:
    """Round up, so that what is above a limit is not written as the limit."""
    digits = 2 if frac < 0.1 else 1
    return f"{math.ceil(100 * frac * 10**digits - 1e-9) / 10**digits:.{digits}f}%"


_NOUNS = ("call", "disk", "line", "program", "request", "stream", "thread", "trial")


def _counting(noun: str) -> Callable[[float], str]:
    return lambda count: f"{count:.0f} {noun}{'' if count == 1 else 's'}"


_WRITTEN: Mapping[str, Callable[[float], str]] = {
    "percent": lambda frac: f"{100 * frac:.1f}%",
    "raised percent": _raised_percent,
    "whole percent": lambda frac: f"{100 * frac:.0f}%",
    "grouped": _grouped,
    "mb_s": format_rate,
    "share": format_percent,
    "signed": lambda frac: format_percent(frac, signed=True),
    **{f"{noun}s": _counting(noun) for noun in _NOUNS},
    "processes": lambda count: f"{count:.0f} process{'' if count == 1 else 'es'}",
    "bytes": format_bytes,
    "typed": lambda size: format_bytes(size).replace(" ", ""),
    "seconds": format_seconds,
    "mega": lambda number: f"{number / 1e6:.1f}",
    "millions": lambda number: f"{number / 1e6:.2f}",
}


def _render(text: str, values: Mapping[str, int | float | str]) -> str:
    def chosen(choice: re.Match[str]) -> str:
        parts = choice[1].split("|")
        fits = (part for part in parts if {m[1] for m in _VALUE.finditer(part)} <= values.keys())
        return next(fits, "")

    def written(value: re.Match[str]) -> str:
        found, how = values[value[1]], value[2] or ""
        if how in _WRITTEN and not isinstance(found, str):
            return _WRITTEN[how](found)
        return format(found, how)

    return _VALUE.sub(written, _CHOICE.sub(chosen, text))


def within(name: str, findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return findings about one of several systems."""
    return tuple(msgspec.structs.replace(each, where=name) for each in findings)


def drift_values(change: Interval) -> dict[str, float]:
    """Return what a sentence says of a change whose interval does not hold none."""
    way = "slower_frac" if change.value < 0 else "faster_frac"
    ends = {"low_frac": change.low, "high_frac": change.high}
    return {way: abs(change.value), **{name: end for name, end in ends.items() if end is not None}}
