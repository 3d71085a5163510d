"""A streaming job from its parts."""

from __future__ import annotations

from leadline.record.job import RecordFormat, Scan
from leadline.record.streaming import RECORD_BYTES

KEY_SPAN = 256**10
_PRINTABLE, _PRINTABLE_FIRST = 95, 0x20


def scan_of_share(match_frac: float, record_format: RecordFormat) -> Scan:
    """Return the scan that selects this share of uniformly distributed keys, the lowest ones.

    Binary keys are ten bytes of any value, printable ones ten characters from space to tilde. Of
    skewed keys a scan selects another share; its result says which.
    """
    if match_frac >= 1:
        return Scan(low="00" * 10)
    if record_format == "binary":
        return Scan(low="00" * 10, high=f"{round(match_frac * KEY_SPAN):020x}")
    rest = round(match_frac * _PRINTABLE**10)
    digits = []
    for _ in range(10):
        rest, digit = divmod(rest, _PRINTABLE)
        digits.append(_PRINTABLE_FIRST + digit)
    return Scan(low="00" * 10, high=bytes(reversed(digits)).hex())


def record_format_of(first: bytes) -> RecordFormat:
    """Return the form of the sort benchmark's records by their first one."""
    printable = all(0x20 <= byte < 0x7F for byte in first[: RECORD_BYTES - 2])
    ended = first[RECORD_BYTES - 2 : RECORD_BYTES] == b"\r\n"
    return "ascii" if printable and ended else "binary"
