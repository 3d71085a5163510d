"""Numbers as fio reads them: fio 3.33, HOWTO "Parameter types", checked against parse.c.

Two of its habits surprise people, and both are kept, because the job must mean here what it means
to fio: `4KiB` is 4000 bytes unless `kb_base=1000` is given (then it is 4096 and `4KB` is 4000), and
what follows a point or a blank is lost (`1.5g` is one byte), which is refused by name instead.
"""

from __future__ import annotations

import re

from leadline.fio.errors import FioJobRefused

_NUMBER = re.compile(r"[+-]?(?:0[xX][0-9a-fA-F]+|[0-9]+)")
_DIGITS_MAX = 20
_POWERS = {"k": 1, "m": 2, "g": 3, "t": 4, "p": 5}
_SECONDS = {
    "us": 1e-6,
    "usec": 1e-6,
    "ms": 1e-3,
    "msec": 1e-3,
    "s": 1.0,
    "sec": 1.0,
    "m": 60.0,
    "h": 3600.0,
    "d": 86400.0,
}


def read_bytes(key: str, text: str, kb_base: int = 1024) -> int:
    """Read a size in bytes; `kb_base` is 1024 (fio's default) or 1000.

    Raises:
        FioJobRefused: not a whole number with a unit, or a percentage of a file unknown here.

    """
    number, unit = _split(key, text)
    if unit == "%":
        raise FioJobRefused(
            f"{key}={text}: a percentage is of a file or device that only fio sees; "
            f"write the bytes, for example {key}=4g"
        )
    if unit in ("", "b"):
        return number
    power = _POWERS.get(unit[0])
    if power is None or unit[1:] not in ("", "b", "i", "ib"):
        raise FioJobRefused(f"{key}={text}: unknown unit {unit!r}; write for example {key}=4k")
    # parse.c compares three letters for the inverted meaning, so `4ki` is read as `4k` is.
    inverted = unit[1:] == "ib"
    base = (1000 if kb_base == 1024 else 1024) if inverted else kb_base
    return int(number * base**power)


def read_seconds(key: str, text: str, *, default_unit: str = "s") -> float:
    """Read a time in seconds; a bare number is in `default_unit` ("s" or "us").

    Raises:
        FioJobRefused: not a whole number with a unit of time.

    """
    number, unit = _split(key, text)
    unit = unit or default_unit
    if unit not in _SECONDS or number < 0:
        raise FioJobRefused(f"{key}={text}: not a time; write for example {key}=30s or {key}=100us")
    return number * _SECONDS[unit]


def read_whole(key: str, text: str, low: int, high: int) -> int:
    """Read a whole number from `low` to `high`.

    Raises:
        FioJobRefused: it is not one.

    """
    number = read_bytes(key, text)
    if not low <= number <= high:
        raise FioJobRefused(f"{key}={text}: fio takes {low} to {high} here")
    return number


def read_switch(text: str) -> bool:
    """Read a flag: `1` or nothing after the key is on, `0` is off."""
    return text.strip() != "0"


def read_pair(text: str) -> tuple[str, str]:
    """Split a value for reads, writes and trims; returns those of reads and of writes.

    A value without a comma after it holds for what follows too; "" is the option's default.
    """
    parts = [part.strip() for part in text.split(",")]
    return parts[0], parts[0] if len(parts) == 1 else parts[1]


def _split(key: str, text: str) -> tuple[int, str]:
    match = _NUMBER.match(text)
    rest = text[match.end() :] if match else ""
    if match is None or not (rest.isalpha() or rest in ("", "%")):
        raise FioJobRefused(
            f"{key}={text}: not a number that fio reads as written (it stops at blanks, points and "
            f"what else follows, and computes nothing without parentheses); write a whole number "
            f"with a unit, for example {key}=1536m"
        )
    digits = match[0]
    number = 0
    if len(digits) <= _DIGITS_MAX:
        number = int(digits, 16 if "x" in digits.lower() else 10)
    if len(digits) > _DIGITS_MAX or abs(number) >= 2**63:
        raise FioJobRefused(f"{key}={text[:_DIGITS_MAX]}…: more than fio can count to")
    return number, rest.lower()
