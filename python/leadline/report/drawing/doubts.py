"""Warnings in two groups: those for which numbers are not to be trusted, and what is good to know.

Every kind of study warns in sentences that begin with, or hold, the name of what was found
(docs/concepts/honesty.md). What speaks against the numbers is listed here; all else informs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from leadline.record.finding import Finding

_AGAINST = re.compile(
    "|".join(
        (
            # the machine and what else ran on it
            "debug build",
            "busy machine",
            "low free memory",
            "memory file system",
            "other programs used more",
            "disturbed",
            "the disk was busy",
            # the system was not one and the same throughout
            "drift",
            "the system (?:slowed|sped|became)",
            "level shift",
            "runs? differ",
            "not steady",
            "stall:",
            "did not show again",
            "had not settled",
            "contradict",
            # the numbers are not the storage's own
            "generator",
            "missed rate",
            "little's law",
            "cached disk number",
            "not admissible",
            "answered from memory",
            "cache served",
            "is memory: ",
            "more than all|gave less then",
            "sent up to",
            # too little was seen
            "stopped after",
            "stopped early",
            "unfinished",
            "not finished",
            "extrapolated",
            "too short for an interval",
            "no plateau",
            "failed",
            "was lost",
            "lost:",
            "bytes off:",
            "no prediction rests on it",
            "not predictable",
            "sizes guessed",
            "too long: believe",
        )
    ),
    re.IGNORECASE,
)


class Doubts(NamedTuple):
    """Warnings of one page, each once."""

    serious: tuple[str, ...]
    """The numbers that they speak of are not to be trusted."""
    notes: tuple[str, ...]
    """Good to know when reading them."""


def in_two_groups(found: Iterable[Finding | str]) -> Doubts:
    """Return what was found in its order, apart by what it means for who reads the numbers."""
    told = {str(each): _is_serious(each) for each in found}
    return Doubts(
        tuple(text for text, serious in told.items() if serious),
        tuple(text for text, serious in told.items() if not serious),
    )


def _is_serious(found: Finding | str) -> bool:
    return bool(_AGAINST.search(found)) if isinstance(found, str) else not found.is_note
