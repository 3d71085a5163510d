"""Pages of made-up surveys, each rendered once in a run of the tests for all processes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

import survey_fixture as made
from leadline.record import Survey
from leadline.studies.survey.page import render_html
from leadline.studies.survey.sentences import sentences
from shared_results import once


def answered(survey: Survey) -> Survey:
    return msgspec.structs.replace(survey, sentences=sentences(survey))


def rendered(survey: Survey, others: Sequence[Survey] = ()) -> str:
    """Render a survey's page anew."""
    return render_html(survey, made.points(survey), others)


_KINDS: dict[str, Callable[[], str]] = {
    "two-region": lambda: rendered(answered(made.two_region()), [made.three_region()]),
    "stopped": lambda: rendered(answered(made.stopped())),
}


def html_of(kind: str) -> str:
    return once(f"page-{kind}", _KINDS[kind])


def page_of(kind: str, folder: Path) -> Path:
    """Write a page where a browser can open it."""
    path = folder / f"{kind}.html"
    path.write_text(html_of(kind), encoding="utf-8")
    return path
