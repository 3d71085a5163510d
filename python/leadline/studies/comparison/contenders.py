"""Systems to be compared: a survey with its name, its curves and what disturbed it."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from leadline.models.model import PredictionRefused
from leadline.models.predictor import Predictor
from leadline.record import LOST_SHARE_MAX, FileCache, Measurement, Region, Survey, Workload
from leadline.record.comparison import CommonCurve, CommonPoint, CommonRate
from leadline.record.finding import Finding
from leadline.stats import DRIFT_FRAC_MIN, student_t
from leadline.studies.comparison.ratio import LogRatio

# How much of a survey's level may be what disturbed the machine while it was measured.
#
# A survey knows how its readings scatter, not how fast the system would have been at another hour.
# What it saw of that itself bounds how far its level may be off: the drift or the step that its
# repeated points show, the processor time that went to other programs or other guests, and the
# level shifts within points where many had no steady state. Two surveys that are not shown to
# differ by more than both together do not show that their systems do.


@dataclass(frozen=True)
class Disturbance:
    """What disturbed a survey."""

    ln: float = 0.0
    """Most that it may have changed the logarithm of throughput."""
    findings: tuple[Finding, ...] = ()
    """What it was."""


NOTHING = Disturbance()
UNSTEADY_SHARE_MAX = 0.1
"""More points without a steady state, and their rates are those of chance."""


def disturbance_of(survey: Survey, points: Sequence[Measurement]) -> Disturbance:
    """Return what disturbed a survey, from its own points."""
    moved, lost = _moved_frac(survey), _lost_share(survey, points)
    unsteady, contrast = _unsteady(points)
    ln, found = 0.0, []
    if moved:
        ln += abs(math.log1p(max(moved, -LOST_SHARE_MAX)))
        way = "slower_frac" if moved < 0 else "faster_frac"
        found.append(Finding.of("survey_drifted", **{way: abs(moved)}))
    if lost:
        ln -= math.log1p(-lost)
        found.append(Finding.of("survey_disturbed", lost_frac=lost))
    if contrast > 1 and unsteady > UNSTEADY_SHARE_MAX * len(points):
        ln += math.log(contrast)
        counts = {"unsteady": unsteady, "points": len(points)}
        found.append(Finding.of("survey_unsteady", **counts, contrast=contrast))
    return Disturbance(ln, tuple(found))


def withheld(ratio: LogRatio, unknown_ln: float) -> bool:
    """Tell whether a ratio is no verdict although its interval does not hold 1.

    A value just beyond what the interval does not know of (drift, other processes, another day) is
    not shown to be: the end that is nearer to 1 has to lie beyond.
    """
    shown = abs(ratio.mean) - student_t(ratio.df) * ratio.sd
    return 0 < shown <= unknown_ln


def joined(disturbances: Sequence[Disturbance]) -> Disturbance:
    """Return what disturbed all surveys of one side: what differs is in the interval already."""
    found = dict.fromkeys(finding for each in disturbances for finding in each.findings)
    return Disturbance(min(each.ln for each in disturbances), tuple(found))


def _moved_frac(survey: Survey) -> float:
    if survey.drift_step is not None:
        return survey.drift_step.change_frac.value
    drift = survey.drift_frac
    shown = drift is not None and drift.excludes(0.0) and abs(drift.value) >= DRIFT_FRAC_MIN
    return drift.value if shown and drift is not None else 0.0


def _unsteady(points: Sequence[Measurement]) -> tuple[int, float]:
    """Count the points without a steady state, and return the largest ratio of rates in one."""
    unsteady, contrast = 0, 1.0
    for point in points:
        rates = [level.throughput_mb_s for level in point.result.levels]
        unsteady += len(rates) > 1 or point.result.warm_up.steady is False
        if len(rates) > 1 and min(rates) > 0:
            contrast = max(contrast, max(rates) / min(rates))
    return unsteady, contrast


def _lost_share(survey: Survey, points: Sequence[Measurement]) -> float:
    """Mean share of the processors that other programs and other guests had."""
    processors = survey.start.facts.get("cpu_count")
    if not processors or not points:
        return 0.0
    return statistics.fmean(point.result.lost_share(float(processors)) for point in points)


# Curves of several systems brought to one workload, so that they share a chart (CP93 Table 3).
#
# CP93 multiplies each system's curve by the ratio of its request-size curve at 32 KB to that at its
# own focal size. Here the system's model predicts at the common workload, which for the product
# model is that same multiplication, for all parameters at once: 32 KiB, half sequential, one
# process. Each value therefore carries the model's interval, and none is a reading.

COMMON_SIZE_BYTES = 32 * 1024
"""The paper's common request size."""
READ_FRACS = tuple(step / 10 for step in range(11))
MOSTLY = 0.5
"""Share read from cache above which a single level counts as a cache."""
POINTS_PER_OCTAVE = 2
"""Places of a curve over the working set, for each doubling."""


@dataclass(frozen=True)
class KnownCache:
    """What was found of a page cache, and by what."""

    found: FileCache
    studied: bool
    """By a study of it (`leadline cache`), not by the survey."""


@dataclass(frozen=True)
class Named:
    """A surveyed system under the name that the comparison gives it."""

    name: str
    predictor: Predictor
    cache: KnownCache | None = None
    """What is known of its page cache, beyond the boundaries of its survey."""
    disturbance: Disturbance = NOTHING
    more: tuple[Predictor, ...] = ()
    """Of its other surveys: they are in its ratios; charts show the first one."""

    @property
    def predictors(self) -> tuple[Predictor, ...]:
        """Of all its surveys."""
        return (self.predictor, *self.more)


def common_size(systems: Sequence[Named]) -> int | None:
    """Return the request size nearest to the usual one that every system was surveyed at.

    None when the surveyed ranges have none in common.
    """
    spans = [system.predictor.ranges.size_mean for system in systems]
    low, high = max(span.low for span in spans), min(span.high for span in spans)
    return round(min(max(COMMON_SIZE_BYTES, low), high)) if low <= high else None


def common_rates(systems: Sequence[Named], size_bytes: int) -> tuple[CommonRate, ...]:
    """Reads at the common size from each disk (CP93 Fig. 2) and each page cache (Fig. 3)."""
    return tuple(_rate(system, place, size_bytes) for place in _PLACES for system in systems)


def common_curves(systems: Sequence[Named], size_bytes: int) -> tuple[CommonCurve, ...]:
    """Curves at the common size over read_frac (CP93 Fig. 5) and unique_bytes (Fig. 8).

    A place that a system was not surveyed at is left out of its curve.
    """
    found = [_over_read_frac(system, size_bytes) for system in systems]
    found += [_over_unique_bytes(system, size_bytes) for system in systems]
    return tuple(curve for curve in found if curve is not None and len(curve.points) > 1)


_PLACES: tuple[Literal["disk", "page cache"], ...] = ("disk", "page cache")


def place_region(system: Named, place: str) -> Region | None:
    """Return the region behind all caches, or the first one of the page cache; None without it."""
    regions = system.predictor.survey.regions
    if len(regions) == 1:
        share = regions[0].cached_share
        at = None if share is None else "page cache" if share > MOSTLY else "disk"
        return regions[0] if at == place else None
    if not regions:
        return None
    if place == "disk":
        return regions[-1]
    return regions[0] if "cache" in regions[0].name else None


def _reads_at(region: Region, size_bytes: int, read_frac: float = 1.0) -> Workload:
    return Workload(
        unique_bytes=region.focal.unique_bytes,
        size_mean=size_bytes,
        read_frac=read_frac,
        seq_frac=0.5,
        process_num=1,
    )


def _rate(system: Named, place: Literal["disk", "page cache"], size_bytes: int) -> CommonRate:
    region = place_region(system, place)
    if region is None:
        missing = f"the survey found no {place} apart"
        return CommonRate(
            name=system.name, place=place, workload=None, throughput_mb_s=None, missing=missing
        )
    work = _reads_at(region, size_bytes)
    try:
        found = system.predictor.predict(work)
    except PredictionRefused as refusal:
        return CommonRate(
            name=system.name, place=place, workload=work, throughput_mb_s=None, missing=str(refusal)
        )
    return CommonRate(
        name=system.name,
        place=place,
        workload=work,
        throughput_mb_s=found.throughput_mb_s,
        findings=found.findings,
        extrapolated=found.extrapolated,
    )


def _over_read_frac(system: Named, size_bytes: int) -> CommonCurve | None:
    region = place_region(system, "page cache")
    if region is None:
        return None
    works = [_reads_at(region, size_bytes, frac) for frac in READ_FRACS]
    return _curve(system, "read_frac", works)


def _over_unique_bytes(system: Named, size_bytes: int) -> CommonCurve | None:
    span = system.predictor.ranges.unique_bytes
    if not span.low < span.high < math.inf:
        return None
    steps = math.ceil(POINTS_PER_OCTAVE * math.log2(span.high / span.low))
    ratio = (span.high / span.low) ** (1 / steps)
    places = [min(span.high, span.low * ratio**step) for step in range(steps + 1)]
    works = [
        Workload(unique_bytes=round(place), size_mean=size_bytes, read_frac=0.5, seq_frac=0.5)
        for place in places
    ]
    return _curve(system, "unique_bytes", works)


def _curve(
    system: Named, parameter: Literal["unique_bytes", "read_frac"], works: Sequence[Workload]
) -> CommonCurve:
    held = [work for work in works if system.predictor.ranges.holds(work)]
    points = tuple(
        CommonPoint(float(getattr(work, parameter)), prediction.throughput_mb_s)
        for work, prediction in zip(held, system.predictor.predict_all(held), strict=True)
    )
    return CommonCurve(name=system.name, parameter=parameter, at=works[0], points=points)
