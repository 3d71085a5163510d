"""A survey: plan, regions, families of curves, and the answer in sentences (CP94 §6-8)."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from leadline.record.finding import Finding
from leadline.record.measurement import Measurement, ReachedStart
from leadline.record.study import Records, Status
from leadline.record.workload import Interval, Workload


class PlanStage(msgspec.Struct, frozen=True):
    """A stage of the plan and its number of points."""

    name: str
    points: int
    purpose: str


Curves = Literal["even", "paper"]
"""How points are shared among curves: alike, or as CP94's footnote 6 has them."""


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What will run, fixed before the first point and printed before it starts."""

    stages: tuple[PlanStage, ...]
    budget_s: float
    expected_s: float
    point_s: float
    """Time cap of one point, warm-up included, when every point before it took its share."""
    layout_bytes: int
    """Bytes of real data written before the first point."""
    unique_bytes_min: int
    unique_bytes_max: int
    size_mean_min: int
    size_mean_max: int
    process_num_max: int
    curves: Curves = "even"

    @property
    def points(self) -> int:
        """Points in all."""
        return sum(stage.points for stage in self.stages)


class SurveyStart(ReachedStart, frozen=True, kw_only=True):
    """Everything that decides a survey, recorded before its first point."""

    target: str
    seed: int
    focal_mode: str
    """"middle" (CP94 §8) or "75%" (CP94 §7)."""
    accuracy: float
    """Relative half-width of a point's own interval that ends it early; 0 for none."""
    plan: Plan
    facts: dict[str, Any]
    """Facts of the machine and the target by name, units last in the names."""
    system_profile: dict[str, Any] | None = None
    """The simulated system, when it is one."""
    precondition_bytes_max: int | None = None
    """Most bytes written before the first point to precondition the device; None without."""
    findings: tuple[Finding, ...] = ()
    """What was found before the first point."""
    written_bytes_max: int | None = None
    """Most bytes to write on the target in all; None without a limit."""
    needed: tuple[Workload, ...] = ()
    """An application's kinds of requests, as far as its data reach: some points go to them, in
    every region."""
    call_us: dict[str, Interval] = msgspec.field(default_factory=dict)
    """What each call about files took before the first point, in us; empty where there are none."""


class CurvePoint(msgspec.Struct, frozen=True):
    """One x of a curve; all readings taken there are pooled."""

    x: float
    throughput_mb_s: Interval
    readings_mb_s: tuple[float, ...]
    """Every single reading, for the chart's raw points; none is dropped."""
    point_ids: tuple[str, ...]


class Curve(msgspec.Struct, frozen=True, kw_only=True):
    """Throughput against one parameter, the others at the focal vector."""

    parameter: str
    region: int | None
    """Index of the region; None for the curve over unique_bytes, which crosses all of them."""
    points: tuple[CurvePoint, ...]
    focal: Workload
    good_low: float | None
    """Least x whose throughput reaches 75% of the curve's maximum (CP94 §7's shaded range)."""
    good_high: float | None


class SlopePoint(msgspec.Struct, frozen=True):
    """Slope of the unique_bytes curve (CP94 Fig. 6)."""

    x_bytes: float
    slope_mb_s_per_mb: float


class Boundary(msgspec.Struct, frozen=True, kw_only=True):
    """Where one level of the hierarchy ends: the effective size of a cache."""

    bytes: Interval
    shape: str
    """How the hit ratio falls beyond it: uniform, step or smeared."""
    time_ratio: float
    """Time per byte far beyond the boundary over time per byte before it."""
    evidence_bic: float
    """BIC gained by this boundary over the best fit without it; over 10 is very strong."""
    basis: Literal["counted", "throughput"] = "throughput"
    """What shows it: counts of what reads found in the page cache, or throughput alone."""


class Region(msgspec.Struct, frozen=True, kw_only=True):
    """A performance region in unique_bytes and its focal vector."""

    index: int
    name: str
    """For people: "page cache", "write cache", "disk"."""
    low_bytes: int
    high_bytes: int
    focal: Workload
    throughput_mb_s: Interval
    """At the focal vector, from replicated readings."""
    cached_share: float | None


class Family(msgspec.Struct, frozen=True):
    """The four curves of one region (CP94 Fig. 7)."""

    region: int
    curves: tuple[Curve, ...]

    def curve(self, parameter: str) -> Curve | None:
        """Return the curve over `parameter`, or None when it was not measured."""
        return next((curve for curve in self.curves if curve.parameter == parameter), None)


class Sentinel(msgspec.Struct, frozen=True):
    """The focal point measured again, to see whether the system moved."""

    clock_s: float
    throughput_mb_s: float
    region: int


class DriftStep(msgspec.Struct, frozen=True):
    """A change of the whole system at one moment, as when burst credits are spent."""

    change_frac: Interval
    """-0.4 when it fell by 40%."""
    after_s: float
    """When the last reading before it began, in seconds of the survey's clock."""
    before_s: float
    """When the first reading after it began."""

    @property
    def at_s(self) -> float:
        """The moment itself, as well as it is known."""
        return (self.after_s + self.before_s) / 2


class Survey(msgspec.Struct, frozen=True, kw_only=True):
    """The answer. Everything in it is derived from the start record and the stored points."""

    start: SurveyStart
    status: Status
    wall_s: float
    points: int
    regions: tuple[Region, ...]
    boundaries: tuple[Boundary, ...]
    unique_bytes_curve: Curve
    slope: tuple[SlopePoint, ...]
    families: tuple[Family, ...]
    cache_bytes: Interval | None
    """Effective file-cache size: the last boundary whose far side is slower; None without one."""
    sentinels: tuple[Sentinel, ...]
    drift_frac: Interval | None
    """Change of the sentinel over the survey; an interval without 0 means drift."""
    drift_step: DriftStep | None = None
    """The moment at which the system changed, where that explains the sentinel, not a drift."""
    noise_frac: dict[str, float]
    """Run-to-run standard deviation as a fraction, per region name."""
    accuracy_frac: float | None
    """What the budget bought: median half-width of the points' 95% intervals."""
    settled: bool
    """False when the focal vector still moved at the step limit."""
    cross_check_bytes: tuple[float, ...]
    """Change points a generic detector finds on the unique_bytes curve; they decide nothing."""
    sentences: tuple[str, ...]
    findings: tuple[Finding, ...]
    written_bytes: int = 0
    """Bytes written on the target, by layout, preconditioning and requests; of a survey that
    stopped those of a run, too, that was ended and is no point."""


SURVEY = Records(
    "survey", SurveyStart, Measurement, Survey, said="survey", made_by="leadline survey TARGET"
)
