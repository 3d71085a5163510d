"""Surveys of simulated systems, held against the truth that only a simulation knows."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from leadline.engine import Simulated, Target, open_engine
from leadline.record import CacheStudy, CurvePoint, Measurement, Survey, Validation, WritePolicy
from leadline.record.file_cache import CACHE
from leadline.record.survey import SURVEY
from leadline.record.validation import VALIDATION
from leadline.store import Store, open_store
from leadline.studies.cache.study import CacheOptions, begin_study, run_study
from leadline.studies.cache.study import usual_budget_s as usual_study_budget_s
from leadline.studies.survey.study import VIRTUAL_BUDGET_S, SurveyOptions, begin_survey, run_survey
from leadline.studies.validation.explain import explain_validation
from leadline.studies.validation.plan import ValidationOptions, begin_validation
from leadline.studies.validation.run import measure_validation


@dataclass(frozen=True)
class SimulatedSurvey:
    """A finished survey of a simulated system, with its points and the profile's truth."""

    survey: Survey
    points: tuple[Measurement, ...]
    true_regions: int
    true_boundaries: tuple[float, ...]

    def curve_points(self) -> Iterator[CurvePoint]:
        """Every point of every curve of the survey."""
        yield from self.survey.unique_bytes_curve.points
        for family in self.survey.families:
            for curve in family.curves:
                yield from curve.points

    def true_mb_s(self, point: CurvePoint) -> float:
        """Expected throughput behind a curve point, at the very times it was read."""
        truths = [
            item.result.simulated.law_mb_s
            for item in self.points
            if item.point_id in point.point_ids and item.result.simulated is not None
        ]
        return statistics.fmean(truths)

    def covered_points(self) -> list[bool]:
        """For every curve point: does its stated 95% interval hold the truth?"""
        return [p.throughput_mb_s.covers(self.true_mb_s(p)) for p in self._distinct()]

    def half_widths(self) -> list[float]:
        """Half-widths of all intervals, as fractions."""
        found = [p.throughput_mb_s.half_width_frac for p in self._distinct()]
        return [width for width in found if width is not None]

    def _distinct(self) -> list[CurvePoint]:
        """Curve points without repeats: a focal point lies on five curves but counts once."""
        return list({point.point_ids: point for point in self.curve_points()}.values())


def simulate_survey(
    profile: str,
    seed: int,
    *,
    budget_s: float = VIRTUAL_BUDGET_S,
    accuracy: float = 0.0,
    focal_mode: str = "middle",
    learn_frac: float = 0.0,
    store: Store | None = None,
) -> SimulatedSurvey:
    """Survey `sim:PROFILE` in virtual time, in this process.

    Args:
        profile: a profile's name or the path of a TOML file.
        seed: decides order, addresses and noise.
        budget_s: virtual seconds.
        accuracy: half-width, as a fraction, at which a point ends early; 0 for none.
        focal_mode: "middle" or "75%".
        learn_frac: share of the points that go where predictions gain most.
        store: where the points go; by default a store in memory.

    """
    target = Target.parse(f"sim:{profile}")
    kept = store or open_store("sqlite://")
    with open_engine(target, run_seed=seed) as engine:
        asked = SurveyOptions(
            target.name, budget_s, None, seed, accuracy, focal_mode, learn_frac=learn_frac
        )
        start = begin_survey(engine, target, asked, study_id=f"{target.name}-{seed}")
        kept.begin(SURVEY, start)
        survey = run_survey(engine, kept, start)
    truth = (target.profile or {}).get("truth", {})
    return SimulatedSurvey(
        survey=survey,
        points=kept.items(start.study_id),
        true_regions=int(truth.get("regions", 0)),
        true_boundaries=tuple(float(x) for x in truth.get("boundaries_bytes", ())),
    )


@dataclass(frozen=True)
class SimulatedValidation:
    """A validation of a simulated survey, with its points, whose results tell the truth."""

    validation: Validation
    points: tuple[Measurement, ...]


def simulate_validation(
    surveyed: SimulatedSurvey,
    seed: int,
    *,
    count: int = 100,
    rivals: bool = False,
    model: str | None = None,
) -> SimulatedValidation:
    """Validate a simulated survey on the system it was made on, in this process.

    Args:
        surveyed: what `simulate_survey` returned.
        seed: decides workloads, order and noise.
        count: random workloads.
        rivals: measure the orthogonal samples as well.
        model: the model of the headline; None is the default.

    """
    survey = surveyed.survey
    target = Simulated(text=survey.start.target, profile=survey.start.system_profile)
    kept = open_store("sqlite://")
    kept.begin(SURVEY, survey.start)
    asked = ValidationOptions(count, seed, None, None, rivals)
    with open_engine(target, run_seed=seed) as engine:
        start = begin_validation(
            engine, survey, surveyed.points, asked, study_id=f"validation-{seed}"
        )
        kept.begin(VALIDATION, start)
        points = measure_validation(engine, kept, start)
    return SimulatedValidation(
        explain_validation(start, survey, surveyed.points, points, model=model), points
    )


@dataclass(frozen=True)
class SimulatedCacheStudy:
    """A finished study of a simulated page cache, with its points and the profile's truth."""

    study: CacheStudy
    points: tuple[Measurement, ...]
    true_read_bytes: float | None
    """Capacity of the nearest level for reads; None for a system without a cache."""
    true_write_bytes: float | None
    """Capacity for writes; None where no write ends in the nearest level."""

    @property
    def true_policy(self) -> WritePolicy:
        """Where no write ends in the nearest level, every one goes through."""
        if self.true_write_bytes is None:
            return WritePolicy.THROUGH
        return WritePolicy.CANCELLING


def simulate_cache_study(
    profile: str,
    seed: int,
    *,
    budget_s: float | None = None,
    write_costs: bool = False,
    store: Store | None = None,
) -> SimulatedCacheStudy:
    """Study the page cache of `sim:PROFILE` in virtual time, in this process.

    Args:
        profile: a profile's name or the path of a TOML file.
        seed: decides order, addresses and noise.
        budget_s: virtual seconds; by default those of the command.
        write_costs: whether the write modes and writeback are measured as well.
        store: where the points go; by default a store in memory.

    """
    target = Target.parse(f"sim:{profile}")
    kept = store or open_store("sqlite://")
    with open_engine(target, run_seed=seed) as engine:
        asked = CacheOptions(
            target.name, budget_s or usual_study_budget_s(target), seed, write_costs=write_costs
        )
        start = begin_study(engine, target, asked, study_id=f"{target.name}-{seed}")
        kept.begin(CACHE, start)
        study = run_study(engine, target, kept, start)
    reads, writes = _true_sizes(target.profile or {})
    return SimulatedCacheStudy(study, kept.items(start.study_id), reads, writes)


def _true_sizes(profile: dict[str, Any]) -> tuple[float | None, float | None]:
    """Capacity of the nearest level for reads and for writes."""
    levels = profile.get("cache", [])
    if not levels:
        return None, None
    level = levels[0]
    reads = float(level["read_capacity_bytes"])
    if level.get("write_policy") == "write_through":
        return reads, None
    return reads, float(level.get("write_capacity_bytes", reads))
