"""A study of plain files in one sentence: which file system reads and writes fastest, and how."""

from __future__ import annotations

from collections.abc import Sequence

from leadline.record import Interval
from leadline.record.files import FilesRow, FilesStudy
from leadline.record.wording import join_words, say_rate
from leadline.studies.files.explain import mb_s, say_system

_ASKED = (("read_8192", "reads"), ("write_8192", "writes"))
"""The paper's programs that ask for 8 KiB at a time, as they are said."""


def headline(study: FilesStudy) -> str:
    """Return the answer over all file systems; each that nothing beats, where that can be told."""
    rows = [row for row in study.rows if row.kbytes_s is not None]
    if not rows:
        return "Nothing was measured."
    drives = min(row.drives for row in rows)
    said = [
        _fastest(verb, [row for row in rows if row.test == test and row.drives == drives])
        for test, verb in _ASKED
    ]
    told = [each for each in said if each is not None]
    if not told:
        first = rows[0]
        return f"{_start(say_system(first))}: {first.test} at {_rate(first)}."
    if len({system for system, _ in told}) == 1:
        told[1:] = [("", does) for _, does in told[1:]]
    return f"{_start(' and '.join(f'{system} {does}'.strip() for system, does in told))}."


def _fastest(verb: str, rows: Sequence[FilesRow]) -> tuple[str, str] | None:
    """Say which system is fastest and how fast; no system where it cannot be told from others."""
    if not rows:
        return None
    ordered = sorted(rows, key=lambda row: -_known(row).value)
    best = ordered[0]
    low = _known(best).low
    near = [row for row in ordered[1:] if low is None or (_known(row).high or low) >= low]
    if near:
        names = join_words([say_system(row) for row in (best, *near)])
        return "", f"which {verb} fastest cannot be told of {names}: {_rate(best)} at most"
    beats = "" if len(ordered) == 1 else f" fastest of {len(ordered)}"
    return say_system(best), f"{verb}{beats} at {_rate(best)}"


def _rate(row: FilesRow) -> str:
    return say_rate(mb_s(_known(row)), level=True)


def _known(row: FilesRow) -> Interval:
    assert row.kbytes_s is not None  # noqa: S101 - only measured rows are asked
    return row.kbytes_s


def _start(text: str) -> str:
    return text[:1].upper() + text[1:]
