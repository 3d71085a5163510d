"""A validation on a terminal: every contestant's errors, sentences, warnings."""

from __future__ import annotations

from typing import Any

from rich.console import Group
from rich.table import Table
from rich.text import Text

from leadline.record import Interval, ModelScore, Validation
from leadline.record.validation import VALIDATION
from leadline.record.wording import format_number, format_share
from leadline.studies.registry import Kind, first, stored_points
from leadline.studies.validation.run import explained_validation
from leadline.units import format_percent


def render_validation(validation: Validation) -> Group:
    """Return what a rich console can print."""
    said = [Text(text) for text in validation.sentences]
    said += [Text(f"warning: {text}") for text in validation.findings]
    return Group(_table(validation), Text(), *said)


def _table(validation: Validation) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("model or rival", no_wrap=True)
    heads = ("points", "median error (95% CI)", "75%", "90%", "enhanced", "A", "50/90/95%")
    for head in heads:
        table.add_column(head, justify="right", no_wrap=True)
    for score in validation.scores:
        table.add_row(*_cells(score))
    table.caption = (
        "enhanced: median without region boundaries. A: median error over inherent error. "
        "50/90/95%: share of the measured values in the intervals of that confidence."
    )
    table.caption_justify = "left"
    return table


def _cells(score: ModelScore) -> tuple[str, ...]:
    enhanced, times = score.enhanced_median_error, score.amplification
    return (
        score.model,
        str(score.readings),
        format_share(score.median_error),
        format_percent(score.p75_error.value),
        format_percent(score.p90_error.value),
        "-" if enhanced is None else format_percent(enhanced.value),
        "-" if times is None else format_number(times.value),
        "/".join(f"{100 * item.share.value:.0f}" for item in score.coverage) or "-",
    )


# A validation as JSON.


def validation_document(validation: Validation) -> dict[str, Any]:
    """The keys DESIGN.md promises for `validate --json`, and more beside them.

    The promised numbers are plain, and of the headline's model; `intervals` has each of them with
    its 95% interval and n.
    """
    start, score = validation.start, validation.score(validation.model)
    intervals = _intervals(score) if score else {}
    return {
        "validation": start.study_id,
        "survey": start.parent,
        "system": start.system,
        "status": validation.status,
        "seed": start.seed,
        "wall_s": validation.wall_s,
        "points": validation.points,
        "planned_points": start.plan.points,
        "n": validation.n,
        "model": validation.model,
        **{name: _value(intervals.get(name)) for name in _PROMISED},
        "inherent_error": _value(validation.inherent_error),
        "coverage": _coverage(score),
        "intervals": intervals | {"inherent_error": validation.inherent_error},
        "models": {
            item.model: {
                **{name: _value(getattr(item, name)) for name in _PROMISED},
                "coverage": _coverage(item),
                "intervals": _intervals(item),
                "kind": item.kind,
                "readings": item.readings,
                "by_parameter": item.by_parameter,
                "by_place": item.by_place,
            }
            for item in validation.scores
        },
        "workloads": validation.workloads,
        "drift_frac": validation.drift_frac,
        "drift": validation.drift,
        "drift_within_frac": validation.drift_within_frac,
        "plan": start.plan,
        "facts": start.facts,
        "sentences": validation.sentences,
        "findings": [each.document() for each in validation.findings],
    }


_PROMISED = (
    "median_error",
    "p75_error",
    "p90_error",
    "enhanced_median_error",
    "amplification",
    "bias_frac",
)


def _intervals(score: ModelScore) -> dict[str, Any]:
    found: dict[str, Any] = {name: getattr(score, name) for name in _PROMISED}
    found["coverage"] = {f"{100 * item.confidence:.0f}": item.share for item in score.coverage}
    return found


def _coverage(score: ModelScore | None) -> dict[str, float] | None:
    if score is None or not score.coverage:
        return None
    return {f"{100 * item.confidence:.0f}": item.share.value for item in score.coverage}


def _value(number: Interval | None) -> float | None:
    return None if number is None else number.value


KIND = Kind(
    VALIDATION,
    load=explained_validation,
    document=validation_document,
    render=render_validation,
    rows=stored_points(VALIDATION),
    page="leadline.studies.validation.charts",
    ending="-validation.html",
    headline=lambda study: first(study.sentences),
)
