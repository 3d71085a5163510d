"""A survey as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from leadline.record import PARAMETERS, CurvePoint, Measurement, Survey
from leadline.record.job import ACCESS_OPTIONS
from leadline.report.survey.latency import PointLatency, every_curve, latencies, latency_at
from leadline.studies.cache import find_in_survey


def survey_document(survey: Survey, points: Sequence[Measurement]) -> dict[str, Any]:
    """The keys DESIGN.md promises for `survey --json`, and more beside them."""
    start = survey.start
    known = latencies(points)
    return {
        "system": start.system,
        "survey": start.study_id,
        "status": survey.status,
        "wall_s": survey.wall_s,
        "points": survey.points,
        "planned_points": start.plan.points,
        "seed": start.seed,
        "regions": [
            {
                "name": region.name,
                "low_bytes": region.low_bytes,
                "high_bytes": region.high_bytes,
                "focal": {name: getattr(region.focal, name) for name in PARAMETERS},
                "throughput_mb_s": region.throughput_mb_s,
                "cached_share": region.cached_share,
            }
            for region in survey.regions
        ],
        "borders_bytes": [border.bytes for border in survey.borders],
        "borders_from": [border.basis for border in survey.borders],
        "cache_bytes": survey.cache_bytes,
        "file_cache": find_in_survey(survey, points),
        "cross_check_bytes": survey.cross_check_bytes,
        "curves": [
            {
                "region": curve.region,
                "parameter": curve.parameter,
                "points": [_point(point, known) for point in curve.points],
                "good_low": curve.good_low,
                "good_high": curve.good_high,
            }
            for curve in every_curve(survey)
        ],
        "slope": survey.slope,
        "drift_frac": survey.drift_frac,
        "drift_step": survey.drift_step,
        "noise_frac": survey.noise_frac,
        "accuracy_frac": survey.accuracy_frac,
        "settled": survey.settled,
        "cache_limit_bytes": start.cache_limit_bytes,
        **{name: getattr(start, name) for name in ACCESS_OPTIONS if name != "backend"},
        "precondition_bytes_max": start.precondition_bytes_max,
        "facts": start.facts,
        "plan": start.plan,
        "sentences": survey.sentences,
        "findings": [each.document() for each in survey.findings],
    }


def _point(point: CurvePoint, known: Mapping[str, PointLatency]) -> dict[str, Any]:
    """Return a point of a curve, with the response times of its readings where they are known."""
    own = latency_at(point, known)
    return {
        "x": point.x,
        "throughput_mb_s": point.throughput_mb_s,
        "iops": None if own is None else own.iops,
        "latency_us": None
        if own is None
        else {"mean": own.mean_us, "p50": own.p50_us, "p99": own.p99_us},
    }
