"""An experiment as JSON."""

from __future__ import annotations

from typing import Any

from leadline.record.workbench import Experiment, Load, PeakRate, SamplePeak
from leadline.studies.workbench.latency_curve import CurvePoint, latency_curve
from leadline.studies.workbench.run_lengths import run_length_rows
from leadline.studies.workbench.surface.against import surface_error


def experiment_document(experiment: Experiment) -> dict[str, Any]:
    """The keys DESIGN.md promises for `peak --json`, and more beside them.

    Of a surface those of a peak are in `samples`, one entry for each sample that was begun.
    """
    start = experiment.start
    document = {
        "experiment": start.study_id,
        "name": start.system,
        "status": experiment.status,
        "policy": start.policy,
        "seed": start.seed,
        "server": start.server,
        "goal": start.goal,
        "factors": start.factors,
        "deadline_s": start.deadline_s,
        "wall_s": experiment.wall_s,
        "facts": start.facts,
        "sentences": experiment.sentences,
        "findings": [each.document() for each in experiment.findings],
    }
    if start.design is None:
        own = experiment.peaks[0] if experiment.peaks else None
        lengths = {"run_lengths": run_length_rows(experiment)} if start.run_lengths else {}
        peak = _sample(own) if own is not None else {"sample": start.samples[0]} | _peak(None)
        fares = {"policies": experiment.fares, "policies_on": experiment.fares_on}
        return (
            {"experiment": start.study_id, "name": start.system} | peak | document | lengths | fares
        )
    return document | {
        "design": start.design,
        "error_asked_frac": start.surface_error_frac,
        "surface": experiment.surface,
        "error": surface_error(experiment),
        "cost_s": sum(trial.cost_s for own in experiment.peaks for trial in own.trials),
        "samples": [_sample(own) for own in experiment.peaks],
    }


def _sample(own: SamplePeak) -> dict[str, Any]:
    known = {"cost_s": sum(trial.cost_s for trial in own.trials), "trials": len(own.trials)}
    return (
        {"sample": own.sample}
        | _peak(own.peak)
        | known
        | {"prior": own.prior, "trial_records": own.trials}
        | {"curve": [_curve_point(point) for point in latency_curve(own)]}
        | {"curve_records": own.curve}
        | ({"length_records": own.lengths} if own.lengths else {})
    )


def _curve_point(point: CurvePoint) -> dict[str, Any]:
    """Return response times at a rate; the curve is of the even points, or of the search."""
    return {
        "rate": point.rate_per_s,
        "part_of_peak": point.part_of_peak,
        "trials": point.trials,
        "completed_per_s": point.completed_per_s,
        "response_ms": point.response_ms,
    }


def _peak(peak: PeakRate | None) -> dict[str, Any]:
    if peak is None:
        names = ("peak_rate", "accuracy", "confidence", "limited_by", "verdict")
        return dict.fromkeys(names) | {"cost_s": 0.0, "trials": 0, "loads": []}
    return {
        "peak_rate": peak.rate_per_s,
        "accuracy": peak.accuracy,
        "confidence": peak.confidence,
        "cost_s": peak.cost_s,
        "trials": peak.trials,
        "loads": [_load(load) for load in peak.loads],
        "limited_by": peak.limited_by,
        "verdict": peak.verdict,
        "lower_bound_per_s": peak.lower_bound_per_s,
        "upper_bound_per_s": peak.upper_bound_per_s,
        "run_length_s": peak.run_length_s,
        "peak_findings": [each.document() for each in peak.findings],
    }


def _load(load: Load) -> dict[str, Any]:
    return {
        "rate": load.rate_per_s,
        "trials": load.trials,
        "response_ms": load.response_ms,
        "percentile_ms": load.percentile_ms,
        "saturated": load.saturated,
    }
