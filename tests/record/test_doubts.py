"""Warnings in two groups, and answers in one sentence: what a page says before anything else."""

from __future__ import annotations

from leadline.charts.caveats import by_severity
from leadline.record.finding import Finding


def test_findings_are_grouped_by_what_they_mean_for_the_numbers() -> None:
    note = Finding.of("no_capacities")
    stopped = Finding.of("missed_rate", completed_per_s=1.0, due_per_s=2.0, short_frac=0.5)
    groups = by_severity([note, Finding.of("no_interval"), stopped, note])
    assert [(group.head, group.texts) for group in groups] == [
        ("Do not trust", (str(stopped),)),
        ("Warnings", ("the window was too short for an interval",)),
        ("For your information", (str(note),)),
    ]
    assert by_severity([]) == []
