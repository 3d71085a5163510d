"""Findings grouped by severity, as pages and PDFs show them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from leadline.record.finding import Finding, Severity


class Group(NamedTuple):
    """The findings of one severity on a page, as sentences, each once."""

    severity: Severity
    head: str
    anchor: str
    texts: tuple[str, ...]


_HEADS = {
    Severity.INVALID: ("Do not trust", "do-not-trust"),
    Severity.SUSPECT: ("Warnings", "warnings"),
    Severity.NOTE: ("For your information", "for-information"),
}


def by_severity(found: Iterable[Finding]) -> list[Group]:
    """Return what was found, worst first, each group in the order given; empty ones left out."""
    told = {str(each): each.severity for each in found}
    groups = [
        Group(severity, *heads, tuple(text for text, own in told.items() if own is severity))
        for severity, heads in _HEADS.items()
    ]
    return [group for group in groups if group.texts]
