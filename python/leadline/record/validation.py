"""A validation: random workloads measured twice and held against predictions (CP94 §9)."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from leadline.record.finding import Finding
from leadline.record.measurement import Measurement, ReachedStart
from leadline.record.study import Records, Status
from leadline.record.survey import PlanStage
from leadline.record.workload import Interval, Workload

CHANCE_MAX = 0.05
"""A parameter carries the error when chance makes such a spread no more often than this."""


class DrawnRange(msgspec.Struct, frozen=True, kw_only=True):
    """What is drawn within one region of the survey: the ranges its family of curves covers."""

    region: int
    name: str
    low_bytes: int
    high_bytes: int
    """Bounds of unique_bytes."""
    size_mean_min: int
    size_mean_max: int
    """Never more than a quarter of unique_bytes is drawn, as in the survey."""
    process_num_max: int
    focal: Workload
    """The region's focal point: measured again, to tell drift since the survey."""
    surveyed_mb_s: Interval
    """What the survey read there."""


class SingleNumber(msgspec.Struct, frozen=True):
    """A workload that stands for a benchmark with a single answer."""

    name: str
    workload: Workload


class ValidationPlan(msgspec.Struct, frozen=True, kw_only=True):
    """What will run, fixed before the first point."""

    stages: tuple[PlanStage, ...]
    budget_s: float
    """Hard cap on the whole."""
    point_s: float
    """Most time of one point, warm-up included."""
    layout_bytes: int
    grids: tuple[tuple[int, ...], ...] = ()
    """Levels of each parameter, in the order of PARAMETERS, of each orthogonal sample."""

    @property
    def points(self) -> int:
        """Points in all."""
        return sum(stage.points for stage in self.stages)


class ValidationStart(ReachedStart, frozen=True, kw_only=True):
    """Everything that decides a validation, recorded before its first point."""

    parent: str
    """The survey."""
    target: str
    seed: int
    count: int
    """Random workloads."""
    accuracy: float
    plan: ValidationPlan
    ranges: tuple[DrawnRange, ...]
    """One per region, by rising unique_bytes."""
    singles: tuple[SingleNumber, ...]
    facts: dict[str, Any]
    """Facts of the machine and the target, as in a survey."""
    clock_start_s: float = 0.0
    """Virtual time of a simulated system at the start: where its survey ended."""
    findings: tuple[Finding, ...] = ()
    """What was found before the first point."""


class Forecast(msgspec.Struct, frozen=True, kw_only=True):
    """What one model or rival said of one workload, and how far off it was."""

    model: str
    throughput_mb_s: float
    low_mb_s: float | None
    high_mb_s: float | None
    """95% interval of the mean of the readings taken; None for what states none."""
    error_frac: float
    """Prediction over measured mean, less 1; the error is its absolute value."""
    level: float | None
    """Confidence at which the stated interval just holds the measured mean."""


class ValidatedWorkload(msgspec.Struct, frozen=True, kw_only=True):
    """One random workload: its readings and what was predicted."""

    workload: Workload
    region: int
    boundary_zone: bool
    """Whether unique_bytes lies where two regions meet; left out of the enhanced error."""
    readings_mb_s: tuple[float | None, ...]
    """One per pass; None where it was not measured or is not valid."""
    measured_mb_s: float | None
    """Geometric mean of the readings; None when there is none, and then nothing is scored."""
    repeat_error_frac: float | None
    """|first / second - 1|: the first pass as a prediction of the second (CP94 Fig. 15)."""
    forecasts: tuple[Forecast, ...]
    reasons: tuple[str, ...] = ()
    """Why readings are not valid."""


class BinError(msgspec.Struct, frozen=True):
    """Median error of the workloads whose parameter lies from `low` to `high`."""

    low: float
    high: float
    median_error: Interval


class ParameterError(msgspec.Struct, frozen=True, kw_only=True):
    """Error against one parameter (CP94 Fig. 13)."""

    parameter: str
    bins: tuple[BinError, ...]
    chance: float | None
    """Probability of such a spread between the bins if the parameter did not matter, adjusted for
    five parameters (Kruskal-Wallis, Holm); None with too few workloads."""

    @property
    def matters(self) -> bool:
        """Whether the parameter is shown to carry error: chance seldom makes such a spread."""
        return self.chance is not None and self.chance <= CHANCE_MAX


class PlaceError(msgspec.Struct, frozen=True):
    """Median error within one region away from its boundaries, or in the boundary zone."""

    region: int | None
    """None for the boundary zone."""
    name: str
    median_error: Interval


class Covered(msgspec.Struct, frozen=True):
    """Share of the measured means that the stated intervals of one confidence hold."""

    confidence: float
    share: Interval


class ModelScore(msgspec.Struct, frozen=True, kw_only=True):
    """How good one model or rival is. Errors are fractions of the measured mean."""

    model: str
    kind: Literal["model", "orthogonal", "single"]
    readings: int
    """Points it rests on: its cost."""
    median_error: Interval
    p75_error: Interval
    p90_error: Interval
    enhanced_median_error: Interval | None
    """Without the boundary zone (CP94 Figs. 15 and 24); None when all lies in it."""
    amplification: Interval | None
    """Median error over inherent error; None when nothing was measured twice."""
    bias_frac: Interval
    """Median of the signed errors."""
    coverage: tuple[Covered, ...]
    """Of the 50, 90 and 95% intervals; empty for what states none."""
    by_parameter: tuple[ParameterError, ...]
    by_place: tuple[PlaceError, ...]


class FocalDrift(msgspec.Struct, frozen=True):
    """A region's focal point now against then."""

    region: int
    name: str
    change_frac: Interval


class Validation(msgspec.Struct, frozen=True, kw_only=True):
    """The answer. Everything in it is derived from the start, the survey and the stored points."""

    start: ValidationStart
    status: Status
    wall_s: float
    points: int
    n: int
    """Random workloads that were scored."""
    model: str
    """The model of the headline: the one asked for, or the default."""
    inherent_error: Interval | None
    """Median of |first / second - 1| over the workloads measured twice."""
    scores: tuple[ModelScore, ...]
    workloads: tuple[ValidatedWorkload, ...]
    drift: tuple[FocalDrift, ...]
    drift_frac: Interval | None
    """Change of the focal points since the survey, pooled over regions."""
    drift_within_frac: Interval | None
    """Change from the first point to the last, from all that was measured more than once."""
    sentences: tuple[str, ...]
    findings: tuple[Finding, ...]

    def score(self, model: str) -> ModelScore | None:
        """Return the score of a model or rival by its name."""
        return next((score for score in self.scores if score.model == model), None)


VALIDATION = Records(
    "validation",
    ValidationStart,
    Measurement,
    Validation,
    said="validation",
    made_by="leadline validate S",
    named=False,
)
