"""How the values of an experiment file are written, each kind read by one function.

A quantity carries its unit ("40ms", "256MiB"); a bare number for one is refused, because 40 may be
seconds or milliseconds. Every reader raises `ValueError`; who calls it knows file and line.
"""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from leadline.record.access import parse_compress, parse_sync
from leadline.record.job import RATE_MIN_PER_S, TRIAL_RATE_MAX_PER_S
from leadline.record.workbench import Level, Within
from leadline.studies.workbench.policies.ladders import TRIALS_MAX
from leadline.units import parse_bytes, parse_seconds

_WHOLE_MAX = 10**18 - 1
_SCALE_MAX = 1000.0


class ValueType(msgspec.Struct, frozen=True):
    """One kind of value: what it is called in messages and in the reference, and its reader."""

    says: str
    example: str
    read: Callable[[Any], Any]


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ValueError("it must be text")
    return value


def _is_finite(value: float) -> bool:
    """Whether a number of TOML, where whole ones have no end, is one that can be computed with."""
    return abs(value) <= _WHOLE_MAX if isinstance(value, int) else math.isfinite(value)


def _integer(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= _WHOLE_MAX:
        raise ValueError("it must be a whole number, 0 or more, of at most 18 digits")
    return value


def _count(value: Any) -> int:
    if _integer(value) < 1:
        raise ValueError("it must be a whole number, 1 or more")
    return int(value)


def _trials(value: Any) -> int:
    if not 1 <= _integer(value) <= TRIALS_MAX:
        raise ValueError(f"it must be a whole number between 1 and {TRIALS_MAX}")
    return int(value)


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not _is_finite(value):
        raise ValueError("it must be a number")
    if value < 0:
        raise ValueError("it must be 0 or more")
    return float(value)


def _rate(value: Any) -> float:
    if isinstance(value, str):
        bare = value.strip().removesuffix("/s").strip()
        try:
            value = float(bare)
        except ValueError:
            raise ValueError('it must be requests per second, for example 200 or "200/s"') from None
    rate = _number(value)
    if not RATE_MIN_PER_S <= rate <= TRIAL_RATE_MAX_PER_S:
        raise ValueError(
            f"it must be between {RATE_MIN_PER_S:g} and {TRIAL_RATE_MAX_PER_S / 1e6:g} million "
            "requests per second"
        )
    return rate


def _share(value: Any) -> float:
    if isinstance(value, str) and value.strip().endswith("%"):
        try:
            value = round(float(value.strip().removesuffix("%")) / 100, 12)  # 99.9% is 0.999
        except ValueError:
            raise ValueError('it must be a share, for example 0.95 or "95%"') from None
    if isinstance(value, str):
        raise ValueError('it must be a share, for example 0.95 or "95%"')
    share = _number(value)
    if not 0 < share < 1:
        raise ValueError('it must be a share between 0 and 1, for example 0.95 or "95%"')
    return share


def _with_unit(value: Any, examples: str) -> str:
    if not isinstance(value, str) or not value.strip()[-1:].isalpha():
        raise ValueError(f"write it with its unit, for example {examples}")
    return value


def _seconds(value: Any, examples: str) -> float:
    seconds = parse_seconds(_with_unit(value, examples))
    if seconds <= 0:
        raise ValueError("it must be longer than nothing")
    return seconds


def _duration_s(value: Any) -> float:
    return _seconds(value, '"90s" or "10m"')


def _response_ms(value: Any) -> float:
    return 1000 * _seconds(value, '"40ms"')


def _size_bytes(value: Any) -> int:
    size = parse_bytes(_with_unit(value, '"256MiB"'))
    if size <= 0:
        raise ValueError("it must be more than nothing")
    return size


def _words(value: Any) -> tuple[str, ...]:
    if isinstance(value, str):
        value = shlex.split(value)
    if not isinstance(value, list) or not all(isinstance(word, str) for word in value):
        raise ValueError("it must be a command: text, or a list of its words")
    if not value:
        raise ValueError("the command is empty")
    return tuple(value)


def _level(value: Any) -> Level:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ValueError('a level is a number or text; for a switch write "on" and "off"')
    if not isinstance(value, str) and not _is_finite(value):
        raise ValueError("a level must be finite, and whole ones have at most 18 digits")
    return value


def _table(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError("it must be a table")
    for name, inside in value.items():
        _require_plain(name, inside)
    return value


def _require_plain(name: str, value: Any) -> None:
    """Refuse what JSON, in which the engine is asked, does not know."""
    if isinstance(value, dict | list):
        for inside in value.values() if isinstance(value, dict) else value:
            _require_plain(name, inside)
        return
    if isinstance(value, int | float) and not _is_finite(value):
        raise ValueError(f"{name} is {value}, and must be a number that is finite")
    if not isinstance(value, str | int | float):
        raise ValueError(f"{name} is {value}, a date; write a number or text")


def _scale(value: Any) -> float:
    scale = _number(value)
    if scale > _SCALE_MAX:
        raise ValueError(f"it must be at most {_SCALE_MAX:g}")
    return scale


def _levels_by_name(value: Any) -> dict[str, Level]:
    return {name: _level(level) for name, level in _table(value).items()}


def _texts_by_name(value: Any) -> dict[str, str]:
    return {name: str(_level(level)) for name, level in _table(value).items()}


def _switch(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError("it must be true or false")
    return value


def _sync(value: Any) -> str:
    return parse_sync(_text(value))


def _shares(value: Any) -> tuple[Within, ...]:
    if not isinstance(value, list) or not all(isinstance(each, dict) for each in value):
        raise ValueError('write a list, for example [{ percentile = "50%", limit = "500us" }]')
    found = []
    for each in value:
        if each.keys() != {"percentile", "limit"}:
            raise ValueError("each has a percentile and a limit, and nothing else")
        limit_ms = _response_ms(each["limit"])
        found.append(Within(percentile=_share(each["percentile"]), limit_ms=limit_ms))
    return tuple(found)


def one_of(*words: str) -> ValueType:
    """A kind of which only these words are."""

    def read(value: Any) -> str:
        if value not in words:
            raise ValueError(f"it must be one of {', '.join(words)}")
        return str(value)

    return ValueType(" or ".join(f"`{word}`" for word in words), f'"{words[0]}"', read)


def read_levels(value: Any) -> tuple[Level, ...]:
    """Read the levels of a factor, in the order of the file."""
    if not isinstance(value, list) or not value:
        raise ValueError("it must be a list of levels, for example [1, 2, 4]")
    levels = tuple(_level(level) for level in value)
    if len(set(levels)) < len(levels):
        raise ValueError("a level is there twice")
    kinds = {isinstance(level, str) for level in levels}
    if len(kinds) > 1:
        raise ValueError("its levels are numbers and text; give one or the other")
    return levels


TEXT = ValueType("text", '"web"', _text)
INTEGER = ValueType("whole number", "1", _integer)
COUNT = ValueType("whole number", "4", _count)
TRIALS = ValueType("whole number", "10", _trials)
SCALE = ValueType("number", "0.01", _scale)
RATE = ValueType("requests per second", '200 or "200/s"', _rate)
SHARE = ValueType("share", '0.95 or "95%"', _share)
DURATION_S = ValueType("duration", '"10m"', _duration_s)
RESPONSE_MS = ValueType("duration", '"40ms"', _response_ms)
SIZE_BYTES = ValueType("size", '"256MiB"', _size_bytes)
COMMAND = ValueType("command, as text or as a list of words", '"./load {rate}"', _words)
TABLE = ValueType("table", "{ workers = 4 }", _table)
LEVELS_BY_NAME = ValueType("table of levels", "{ threads = 16 }", _levels_by_name)
TEXTS_BY_NAME = ValueType("table of texts", '{ PGUSER = "bench" }', _texts_by_name)
SWITCH = ValueType("true or false", "true", _switch)
SYNC = ValueType("text", '"dsync"', _sync)
COMPRESS = ValueType("number", "2", lambda value: parse_compress(_number(value)))
SHARES = ValueType("list of tables", '[{ percentile = "50%", limit = "500us" }]', _shares)
LEVELS = ValueType("list of levels", "[1, 2, 4]", read_levels)


# The line on which each key of a TOML text stands: `tomllib` tells it of broken texts only.

KeyPath = tuple[str, ...]

_WORD = r"""(?:[\w-]+|"[^"]*"|'[^']*')"""
_DOTTED = rf"{_WORD}(?:\s*\.\s*{_WORD})*"
_HEADER = re.compile(rf"\s*\[\[?\s*({_DOTTED})\s*\]")
_KEY = re.compile(rf"\s*({_DOTTED})\s*=")
_QUOTES = re.compile(r'"""|\'\'\'')


def lines_of(text: str) -> dict[KeyPath, int]:
    """Return the line, from 1, of every key and table header of a valid TOML text.

    Keys inside an inline table are not told apart: they stand on the line of their table. A line of
    a text over several is none, however it looks.
    """
    lines: dict[KeyPath, int] = {}
    table: KeyPath = ()
    inside = ""
    for number, line in enumerate(text.splitlines(), 1):
        if not inside:
            found = _HEADER.match(line) or _KEY.match(line)
            if found is not None:
                words = tuple(word.strip("\"'") for word in re.findall(_WORD, found[1]))
                table, path = (words, words) if found.re is _HEADER else (table, table + words)
                for length in range(1, len(path) + 1):
                    lines.setdefault(path[:length], number)
        for quotes in _QUOTES.findall(line):
            if inside in ("", quotes):
                inside = "" if inside else quotes
    return lines


def line_of(lines: Mapping[KeyPath, int], path: KeyPath) -> int:
    """Return the line of a key, or of the nearest table around it; 1 when there is none."""
    for length in range(len(path), 0, -1):
        if path[:length] in lines:
            return lines[path[:length]]
    return 1
