"""Sizes and durations as people write them. MB is 10^6 bytes, MiB is 2^20, everywhere."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

_BYTES = {
    "": 1,
    "B": 1,
    "KB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "TB": 10**12,
    "K": 2**10,
    "M": 2**20,
    "G": 2**30,
    "T": 2**40,
    "KIB": 2**10,
    "MIB": 2**20,
    "GIB": 2**30,
    "TIB": 2**40,
}
_SIZES = {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}
_RATES = {"kB/s": 1e-3, "MB/s": 1.0, "GB/s": 1e3}
_SECONDS = {
    "": 1.0,
    "S": 1.0,
    "SEC": 1.0,
    "MS": 1e-3,
    "US": 1e-6,
    "M": 60.0,
    "MIN": 60.0,
    "H": 3600.0,
    "D": 86400.0,
}
_BYTES_MAX = 2**63 - 1
_SECONDS_MAX = 1e9
"""Thirty years: what the engine takes for a whole job."""
_NUMBER = re.compile(r"\s*([0-9]*\.?[0-9]+(?:[eE][+-]?[0-9]+)?)\s*([A-Za-z]*)\s*\Z")
_LENGTH_MAX = 100
"""Of a number with its unit: the pattern takes the square of the time for twice the length."""


def parse_bytes(text: str) -> int:
    """Read `512MiB`, `3GB`, `4k` (bare K, M, G are binary, as fio has them).

    Raises:
        ValueError: not a size; the message shows the spelling.

    """
    number, unit = _split(text, "a size; write for example 512MiB or 3GB")
    if unit.upper() not in _BYTES:
        raise ValueError(f"{text!r} has the unknown unit {unit!r}; use KiB, MiB, GiB, KB, MB or GB")
    size_bytes = number * _BYTES[unit.upper()]
    if size_bytes > _BYTES_MAX:
        raise ValueError(f"{text!r} is more than any file can hold; write for example 512MiB")
    return round(size_bytes)


def parse_seconds(text: str) -> float:
    """Read `10m`, `90s`, `1h`, `250ms`.

    Raises:
        ValueError: not a duration; the message shows the spelling.

    """
    number, unit = _split(text, "a duration; write for example 90s or 10m")
    if unit.upper() not in _SECONDS:
        raise ValueError(f"{text!r} has the unknown unit {unit!r}; use ms, s, m or h")
    seconds = number * _SECONDS[unit.upper()]
    if seconds > _SECONDS_MAX:
        raise ValueError(f"{text!r} is longer than thirty years; write for example 90s or 10m")
    return seconds


def _split(text: str, what: str) -> tuple[float, str]:
    if len(text) > _LENGTH_MAX:
        raise ValueError(f"{text[:20]!r}... is not {what}")
    match = _NUMBER.match(text)
    if not match or not math.isfinite(float(match[1])):
        raise ValueError(f"{text!r} is not {what}")
    return float(match[1]), match[2]


def format_bytes(size_bytes: float, like: str = "") -> str:
    """Write a size in binary units with three significant digits: `480 MiB`.

    Args:
        size_bytes: the size.
        like: a size that was written, whose unit is taken where that adds few zeros.

    """
    unit = next((unit for unit in _SIZES if abs(size_bytes) < 1000 * _SIZES[unit]), "TiB")
    return _in_unit(float(size_bytes), unit, like, _SIZES)


def format_seconds(seconds: float) -> str:
    """Write a duration as people do: `5 µs`, `250 ms`, `12 s`, `4 min 5 s`, `1 h 3 min`."""
    if 0 < seconds < 0.9995e-6:
        return f"{_three(seconds * 1e9)} ns"
    if 0 < seconds < 0.9995e-3:
        return f"{_three(seconds * 1e6)} µs"
    if seconds < 0.9995:
        return f"{_three(seconds * 1000)} ms"
    if seconds < 60:
        return f"{_three(seconds)} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s" if rest else f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if minutes else f"{hours} h"


def format_rate(mb_s: float, like: str = "") -> str:
    """Write a throughput: `1.24 GB/s`, `310 MB/s`, `52 kB/s`; powers of ten.

    Args:
        mb_s: the throughput.
        like: a throughput that was written, whose unit is taken where that adds few zeros.

    """
    unit = next((unit for unit in ("GB/s", "MB/s") if mb_s >= _RATES[unit]), "kB/s")
    return _in_unit(mb_s, unit, like, _RATES)


def _in_unit(value: float, own: str, like: str, units: Mapping[str, float]) -> str:
    """Write a value in its own unit, or in that of what it stands beside."""
    other = like.partition(" ")[2]
    few = other in units and (value == 0 or 0.01 <= abs(value) / units[other] < 10_000)
    unit = other if few else own
    return f"{_three(value / units[unit])} {unit}"


def _three(value: float) -> str:
    if value == 0:
        return "0"
    digits = max(0, 2 - math.floor(math.log10(abs(value))))
    text = f"{value:.{digits}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def format_span(low: str, high: str) -> str:
    """Write `465 to 495 MiB`: the unit once where both ends share it."""
    low_number, _, low_unit = low.partition(" ")
    _, _, high_unit = high.partition(" ")
    return f"{low_number if low_unit == high_unit else low} to {high}"


def format_ci(value: str, low: str, high: str, *, level: float | None = None) -> str:
    """Write `480 MiB [465, 495]`, with `level` `480 MiB, 95% CI [465, 495]`.

    The ends carry a unit only where theirs is another than the value's.
    """
    ends = [low, high]
    unit = value[len(value.rstrip("%")) :] or " ".join(["", *value.split(" ")[1:]])
    if unit and all(end.endswith(unit) for end in ends):
        ends = [end.removesuffix(unit) for end in ends]
    head = value if level is None else f"{value}, {format_percent(level)} CI"
    return f"{head} [{', '.join(ends)}]"


def format_ends(low: str, high: str) -> str:
    """Write an interval where no value stands before it: `[465, 495] MiB`."""
    low_number, _, low_unit = low.partition(" ")
    high_number, _, high_unit = high.partition(" ")
    if low_unit != high_unit:
        return f"[{low}, {high}]"
    return f"[{low_number}, {high_number}] {low_unit}".rstrip()


def format_percent(frac: float, *, signed: bool = False) -> str:
    """Write a fraction as `2.1%`, or `-0.4%` and `+1.2%` when signed."""
    if not math.isfinite(frac):
        return "not known"
    percent = 100 * frac
    digits = 0 if abs(percent) >= 10 else 1 if abs(percent) >= 0.1 else 2
    text = f"{percent:{'+' if signed else ''}.{digits}f}".replace("-", "\N{MINUS SIGN}")
    return f"{text}%"
