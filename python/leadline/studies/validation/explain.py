"""A validation explained from its start, its survey and its points; the same every time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from leadline.errors import LeadlineError
from leadline.predict import DEFAULT_MODEL, MODELS, PredictionRefused, Predictor
from leadline.record import (
    Measurement,
    Prediction,
    Status,
    Survey,
    ValidatedWorkload,
    Validation,
    ValidationStart,
)
from leadline.record.finding import Finding
from leadline.studies.validation.draw import drawn_workloads
from leadline.studies.validation.drift import drift_within, focal_drifts
from leadline.studies.validation.score import (
    contestants,
    inherent_error,
    model_scores,
    rivals_left_out,
    validated_workloads,
)
from leadline.studies.validation.sentences import validation_findings, validation_sentences


def explain_validation(
    start: ValidationStart,
    survey: Survey,
    survey_points: Sequence[Measurement],
    points: Sequence[Measurement],
    *,
    model: str | None = None,
) -> Validation:
    """Score every model and rival over what has been measured so far.

    Args:
        start: what decided the validation.
        survey: the survey it is of.
        survey_points: the survey's points; models are fitted to nothing else.
        points: the validation's points.
        model: the model of the headline; None is the default of `predict`.

    Raises:
        PredictionRefused: there is no model of that name, or it could not be fitted.

    """
    chosen = model or DEFAULT_MODEL
    predictions, left_out = _predictions(start, survey, survey_points, chosen)
    rivals = contestants(start, survey_points, predictions, points)
    done = len(points) == start.plan.points
    rows = validated_workloads(start, survey, points, rivals)
    doubts = [
        *left_out,
        *extrapolated(predictions, rows),
        *(rivals_left_out(start, points) if done else ()),
    ]
    drift, together = focal_drifts(start, points)
    validation = Validation(
        start=start,
        status=Status.DONE if done else Status.STOPPED,
        wall_s=points[-1].clock_s + points[-1].result.total_s if points else 0.0,
        points=len(points),
        n=sum(row.measured_mb_s is not None for row in rows),
        model=chosen,
        inherent_error=inherent_error(rows, start.seed),
        scores=model_scores(start, rivals, rows),
        workloads=rows,
        drift=drift,
        drift_frac=together,
        drift_within_frac=drift_within(points),
        sentences=(),
        findings=(),
    )
    return msgspec.structs.replace(
        validation,
        sentences=validation_sentences(validation),
        findings=validation_findings(validation, points, doubts),
    )


def extrapolated(
    predictions: Mapping[str, Sequence[Prediction]], rows: Sequence[ValidatedWorkload]
) -> tuple[Finding, ...]:
    """Find out whether something that is scored was predicted beyond what was surveyed."""
    scored = {row.workload for row in rows if row.measured_mb_s is not None}
    beyond = {
        item.workload for said in predictions.values() for item in said if item.extrapolated
    } & scored
    if not beyond:
        return ()
    return (Finding.of("validation_extrapolated", outside=len(beyond), scored=len(scored)),)


def _predictions(
    start: ValidationStart, survey: Survey, survey_points: Sequence[Measurement], chosen: str
) -> tuple[dict[str, tuple[Prediction, ...]], list[Finding]]:
    """Let every model predict the drawn workloads, the chosen one first."""
    if chosen not in MODELS:
        raise PredictionRefused(
            f"there is no model called {chosen!r}; the models are: {', '.join(MODELS)}"
        )
    drawn = drawn_workloads(start)
    found: dict[str, tuple[Prediction, ...]] = {}
    left_out = []
    for name in sorted(MODELS, key=lambda name: name != chosen):
        try:
            # The draw stays inside the surveyed ranges up to its rounding to whole blocks.
            predictor = Predictor(survey, survey_points, model=name, extrapolate=True)
            found[name] = predictor.predict_all(drawn)
        except LeadlineError as error:
            if name == chosen:
                raise
            left_out.append(Finding.of("model_left_out", model=name, why=str(error)))
    return found, left_out
