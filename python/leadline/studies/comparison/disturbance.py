"""How much of a survey's level may be what disturbed the machine while it was measured.

A survey knows how its readings scatter, not how fast the system would have been at another hour.
What it saw of that itself bounds how far its level may be off: the drift or the step that its
repeated points show, the processor time that went to other programs or other guests, and the
level shifts within points where many had no steady state. Two
surveys that are not shown to differ by more than both together do not show that their systems do.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from leadline.record import LOST_SHARE_MAX, Measurement, Survey
from leadline.record.finding import Finding
from leadline.stats import DRIFT_FRAC_MIN, student_t
from leadline.studies.comparison.ratio import LogRatio


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


def withheld(ratio: LogRatio, a: Disturbance, b: Disturbance) -> bool:
    """Tell whether a ratio of two surveys is no verdict although it differs from 1.

    A value just beyond what disturbed both is not shown to be: the end of its 95 % interval that is
    nearer to 1 has to lie beyond. False where it shows no difference anyway.
    """
    shown = abs(ratio.mean) - student_t(ratio.df) * ratio.sd
    return 0 < shown <= a.ln + b.ln


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
