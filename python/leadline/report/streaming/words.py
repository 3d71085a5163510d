"""How streaming studies are said, for charts, tables and terminals alike."""

from __future__ import annotations

from collections.abc import Sequence

from leadline.record.balance import Balance, Bus, Ratio
from leadline.record.streaming import StreamStudy
from leadline.record.wording import say_interval, say_number
from leadline.studies.streaming.answer import balance_of

BUS_WORDS: dict[Bus, str] = {"io": "I/O bus", "memory": "memory bus"}
NOT_HERE = "not measurable here"
"""How the tier of a ratio begins that nothing counts."""
NOT_FOUND = "not found"
"""What stopped a disk although nothing that is measured is used up."""


def say_ratio(ratio: Ratio) -> str:
    """Write `3.18 (3.15 to 3.21)`, or why there is no number."""
    return NOT_HERE if ratio.measured is None else say_interval(ratio.measured, say_number)


def system_name(balance: Balance) -> str:
    """Write a system and its platform: `atlas, threads`."""
    return f"{balance.system}, {balance.platform}"


def sentences_of_study(study: StreamStudy) -> Sequence[str]:
    """Return what a study says; one that was stopped says what it would."""
    return study.sentences or balance_of(study).sentences
