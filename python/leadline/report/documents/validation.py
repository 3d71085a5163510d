"""A validation as JSON."""

from __future__ import annotations

from typing import Any

from leadline.record import Interval, ModelScore, Validation


def validation_document(validation: Validation) -> dict[str, Any]:
    """The keys DESIGN.md promises for `validate --json`, and more beside them.

    The promised numbers are plain, and of the headline's model; `intervals` has each of them with
    its 95 % interval and n.
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
