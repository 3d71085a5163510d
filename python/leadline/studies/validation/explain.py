"""A validation explained from its start, its survey and its points; the same every time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from leadline.errors import LeadlineError
from leadline.models.model import PredictionRefused
from leadline.models.predictor import DEFAULT_MODEL, MODELS, Predictor
from leadline.record import (
    Measurement,
    ModelScore,
    ParameterError,
    Prediction,
    Status,
    Survey,
    ValidatedWorkload,
    Validation,
    ValidationStart,
)
from leadline.record.finding import Finding, drift_values
from leadline.record.wording import (
    PARAMETER_TITLES,
    format_change,
    format_count,
    format_interval,
    format_number,
    format_share,
    format_value,
)
from leadline.stats import DRIFT_FRAC_MIN
from leadline.studies.validation.plan import drawn_workloads
from leadline.studies.validation.score import (
    contestants,
    drift_within,
    focal_drifts,
    inherent_error,
    model_scores,
    moved,
    rivals_left_out,
    validated_workloads,
)
from leadline.units import format_percent, format_span


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


# What a validation says, in plain sentences, and what a reader must know before trusting it.

AMPLIFICATION_PAPER = "2.8 to 5.0"
"""CP94 Fig. 15: 10/2, 12/3, 13/3 and 14/5%."""


def validation_sentences(validation: Validation) -> tuple[str, ...]:
    """Say how good the predictions are, where they are not, and what the rivals reached."""
    score = validation.score(validation.model)
    if score is None:
        return (
            f"{format_count(validation.n, 'workload')} measured so far: too few to score anything.",
        )
    found = [
        _headline(validation, score),
        _inherent(validation, score),
        _enhanced(score),
        _covered(score),
        _parameter(score),
        _place(score),
        _models(validation, score),
        _orthogonal(validation, score),
        _singles(validation, score),
        _drift(validation),
    ]
    return tuple(text for text in found if text)


def validation_findings(
    validation: Validation, points: Sequence[Measurement], doubts: Sequence[Finding]
) -> tuple[Finding, ...]:
    """List what was found about a validation; `doubts` are those of the scoring."""
    start, found = validation.start, list(doubts)
    if validation.status is not Status.DONE:
        found.append(Finding.of("unfinished", points=len(points), planned=start.plan.points))
    bad = [point for point in points if not point.result.admissible]
    if bad:
        reasons = dict.fromkeys(reason for point in bad for reason in point.result.reasons)
        counts = {"inadmissible": len(bad), "points": len(points)}
        said = "; ".join(list(reasons)[:2])
        found.append(Finding.of("readings_inadmissible", **counts, reasons=said))
    change = validation.drift_frac
    regions = moved(validation.drift, change)
    if change is not None and regions is not None:
        where = "; ".join(f"{item.name} {format_change(item.change_frac)}" for item in regions)
        places = {"regions": where} if where else {}
        found.append(Finding.of("drift_since_survey", change=format_change(change), **places))
    return (*found, *_drift_within(validation), *start.findings)


def _drift_within(validation: Validation) -> Iterator[Finding]:
    change = validation.drift_within_frac
    if change is None or not change.excludes(0.0) or abs(change.value) < DRIFT_FRAC_MIN:
        return
    yield Finding.of("drift_within", **drift_values(change), change=format_change(change))


def _headline(validation: Validation, score: ModelScore) -> str:
    return (
        f"Half of {validation.n} random workloads were predicted within "
        f"{format_share(score.median_error)} by the {score.model} model, three quarters within "
        f"{format_percent(score.p75_error.value)}, nine in ten within "
        f"{format_percent(score.p90_error.value)}."
    )


def _inherent(validation: Validation, score: ModelScore) -> str | None:
    inherent, times = validation.inherent_error, score.amplification
    if inherent is None or times is None:
        return None
    return (
        f"The same workload read twice differs by {format_share(inherent)}; error amplification "
        f"{format_interval(times, format_number)}, in the paper {AMPLIFICATION_PAPER}."
    )


def _enhanced(score: ModelScore) -> str | None:
    enhanced = score.enhanced_median_error
    if enhanced is None or enhanced.n == score.median_error.n:
        return None
    left_out = score.median_error.n - enhanced.n
    return (
        f"Without the {format_count(left_out, 'workload')} at a region boundary the median error "
        f"is {format_share(enhanced)}."
    )


def _covered(score: ModelScore) -> str | None:
    if not score.coverage:
        return None
    parts = [
        f"{format_percent(item.share.value)} of the {100 * item.confidence:.0f}% intervals"
        for item in score.coverage
    ]
    honest = all(item.share.covers(item.confidence) for item in score.coverage)
    said = "as stated, within chance" if honest else "which is not what they state"
    return f"The measured values lie in {', '.join(parts[:-1])} and {parts[-1]}: {said}."


def _parameter(score: ModelScore) -> str | None:
    known = [item for item in score.by_parameter if item.chance is not None and item.bins]
    if not known:
        return None
    guilty = min(known, key=lambda item: item.chance if item.chance is not None else 1.0)
    if not guilty.matters:
        return "No single parameter is shown to carry the error."
    worst, best = _extremes(guilty)
    title = PARAMETER_TITLES[guilty.parameter].lower()
    return (
        f"{title.capitalize()} carries the error most: {format_percent(worst[1])} from {worst[0]}, "
        f"{format_percent(best[1])} from {best[0]}."
    )


def _extremes(found: ParameterError) -> tuple[tuple[str, float], tuple[str, float]]:
    ordered = sorted(found.bins, key=lambda item: item.median_error.value)
    said = [
        (
            format_span(
                format_value(found.parameter, item.low), format_value(found.parameter, item.high)
            ),
            item.median_error.value,
        )
        for item in (ordered[-1], ordered[0])
    ]
    return said[0], said[1]


def _place(score: ModelScore) -> str | None:
    if len(score.by_place) < 2:
        return None
    ordered = sorted(score.by_place, key=lambda item: -item.median_error.value)
    parts = [f"{item.name} {format_percent(item.median_error.value)}" for item in ordered]
    return f"Median error by place: {', '.join(parts)}."


def _models(validation: Validation, score: ModelScore) -> str | None:
    others = [s for s in validation.scores if s.kind == "model" and s.model != score.model]
    if not others:
        return None
    parts = [f"{other.model} {format_share(other.median_error)}" for other in others]
    return f"Other models on the same points: {', '.join(parts)}."


def _orthogonal(validation: Validation, score: ModelScore) -> str | None:
    rivals = [s for s in validation.scores if s.kind == "orthogonal"]
    if not rivals:
        return None
    parts = [
        f"{format_share(rival.median_error)} from {format_count(rival.readings, 'point')}"
        for rival in rivals
    ]
    return (
        f"Interpolation in an orthogonal sample reaches {' and '.join(parts)}; "
        f"{score.model} used {score.readings}."
    )


def _singles(validation: Validation, score: ModelScore) -> str | None:
    rivals = [s for s in validation.scores if s.kind == "single"]
    if not rivals:
        return None
    best = min(rivals, key=lambda item: item.median_error.value)
    times = best.median_error.value / max(score.median_error.value, 1e-9)
    return (
        f"The best single number ({best.model}) is off by "
        f"{format_percent(best.median_error.value)}, {format_number(times)} times as much."
    )


def _drift(validation: Validation) -> str | None:
    change = validation.drift_frac
    if change is None:
        return "Whether the system moved since its survey is not known: no focal point was read."
    shown = "" if moved(validation.drift, change) is None else ", so it moved"
    return f"The focal points read {format_change(change)} against the survey{shown}."
