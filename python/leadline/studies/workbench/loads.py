"""The trials at one load together: their mean, its interval, and whether the server is saturated.

SH08 Algorithm 2 reasons about loads; a trial is only one reading of one. Intervals are Student's t
over the trials' own means (SH08 §2.3, eq. 1 with t <= 30 trials).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from leadline.record import Interval
from leadline.record.finding import Finding
from leadline.record.workbench import Load, Threshold, Trial, TrialState
from leadline.stats import student_t
from leadline.studies.workbench.threshold import RATIO_MAX, percentile_ms, threshold_ratio

LOST_TRIALS = 2
"""So many lost servers at one load, and no trial that went well, are the load's doing."""


@dataclass
class LoadTrials:
    """Everything that was tried at one load; it grows by whole trials."""

    rate_per_s: float
    trials: list[Trial] = field(default_factory=list)
    ratios: list[float] = field(default_factory=list)
    """Threshold ratios of the trials that say something of the response."""

    def add(self, trial: Trial, threshold: Threshold) -> None:
        """Take in a trial at this load, however it ended."""
        self.trials.append(trial)
        ratio = threshold_ratio(threshold, trial)
        if ratio is not None:
            self.ratios.append(ratio)

    @property
    def lost(self) -> int:
        """Trials in which the server was lost."""
        return sum(trial.state is TrialState.SERVER_LOST for trial in self.trials)

    @property
    def kills(self) -> bool:
        """Whether this load is what the server does not survive."""
        return self.lost >= LOST_TRIALS and self.lost > len(self.ratios)

    @property
    def ratio(self) -> float | None:
        """Mean threshold ratio; None when no trial says anything."""
        if self.kills:
            return RATIO_MAX
        return sum(self.ratios) / len(self.ratios) if self.ratios else None

    def ratio_interval(self, confidence: float) -> tuple[float, float] | None:
        """Student's t interval of the mean ratio; None with fewer than two trials."""
        if self.kills:
            return RATIO_MAX, RATIO_MAX
        return t_interval(self.ratios, confidence)

    def saturated(self, confidence: float, width_frac: float) -> bool | None:
        """Whether this load saturates the server; None when the trials cannot tell.

        A single trial tells it only outside of the peak-rate region; several do when the interval
        of their mean lies on one side of the threshold.
        """
        interval = self.ratio_interval(confidence)
        if interval is None:
            if not self.ratios:
                return None
            interval = (self.ratios[0] / (1 + width_frac), self.ratios[0] / (1 - width_frac))
        low, high = interval
        return True if low > 1 else False if high < 1 else None


def t_interval(values: Sequence[float], confidence: float) -> tuple[float, float] | None:
    """Two-sided Student t interval of a mean; None with fewer than two values."""
    count = len(values)
    if count < 2:
        return None
    mean = sum(values) / count
    variance = sum((value - mean) ** 2 for value in values) / (count - 1)
    half = student_t(count - 1, confidence) * math.sqrt(variance / count)
    return mean - half, mean + half


_MODE_TRIALS_MIN = 3
_MODE_SHARE_MIN = 0.15
_MODE_GAP_SDS = 4.0


def two_modes(ratios: Sequence[float]) -> bool:
    """Whether trials of one load fall into two groups with nothing between them.

    The widest gap between their logarithms splits them; it counts when either side has several
    trials and the gap is wide beside the spread within the two.
    """
    logs = sorted(math.log(max(ratio, 1e-9)) for ratio in ratios)
    fewest = max(_MODE_TRIALS_MIN, math.ceil(_MODE_SHARE_MIN * len(logs)))
    places = range(fewest, len(logs) - fewest + 1)
    if not places:
        return False
    place = max(places, key=lambda at: logs[at] - logs[at - 1])
    squares = 0.0
    for group in (logs[:place], logs[place:]):
        mean = sum(group) / len(group)
        squares += sum((value - mean) ** 2 for value in group)
    spread = math.sqrt(squares / (len(logs) - 2))
    return logs[place] - logs[place - 1] > _MODE_GAP_SDS * spread


def mode_findings(loads: Iterable[LoadTrials]) -> list[Finding]:
    """Name the loads whose trials are of two kinds."""
    return [
        Finding.of("load_of_two_kinds", rate_per_s=load.rate_per_s)
        for load in sorted(loads, key=lambda load: load.rate_per_s)
        if two_modes(load.ratios)
    ]


_CONTRADICTION_LOAD = 1.05
"""Speed that differs by a few per cent from trial to trial makes no more difference in load."""
_CLEARLY_SATURATED, _CLEARLY_NOT = 1.1, 0.5
"""Responses over the threshold on either side of a contradiction."""


def contradiction(trials: Iterable[Trial], threshold: Threshold) -> tuple[float, float] | None:
    """Return a load that saturated the server and a clearly higher one that did not, or None.

    A search that tries each load once cannot see two modes in the trials of one load; it sees them
    here. Probes count for neither: in their few seconds a server may still be cold, or be without
    its queue yet.
    """
    seen = [
        (trial.request.rate_per_s, ratio)
        for trial in trials
        if trial.request.purpose != "probe"
        and (ratio := threshold_ratio(threshold, trial)) is not None
    ]
    low = min((rate for rate, ratio in seen if ratio >= _CLEARLY_SATURATED), default=math.inf)
    high = max((rate for rate, ratio in seen if ratio <= _CLEARLY_NOT), default=0.0)
    return (low, high) if high >= _CONTRADICTION_LOAD * low else None


def load_rows(
    loads: Iterable[LoadTrials], threshold: Threshold, confidence: float
) -> tuple[Load, ...]:
    """Return the table of loads, lowest first."""
    rows = [_row(load, threshold, confidence) for load in loads]
    return tuple(sorted(rows, key=lambda row: row.rate_per_s))


def _row(load: LoadTrials, threshold: Threshold, confidence: float) -> Load:
    readings = [
        trial.measured
        for trial in load.trials
        if trial.state in (TrialState.DONE, TrialState.ABORTED)
        and trial.measured is not None
        and trial.measured.due > 0
    ]
    means = [reading.response_ms.mean for reading in readings if reading.response_ms is not None]
    times = []
    if threshold.limit_ms is not None:
        answered = [reading for reading in readings if reading.response_ms is not None]
        times = [percentile_ms(threshold, reading) for reading in answered]
    return Load(
        rate_per_s=load.rate_per_s,
        trials=len(load.trials),
        response_ms=_interval(means, confidence),
        percentile_ms=_interval([ms for ms in times if math.isfinite(ms)], confidence),
        saturated=load.saturated(confidence, threshold.width_frac),
    )


def _interval(values: Sequence[float], confidence: float) -> Interval | None:
    if not values:
        return None
    low, high = t_interval(values, confidence) or (None, None)
    return Interval(sum(values) / len(values), low, high, len(values))


def bounds(rows: Iterable[Load]) -> tuple[float | None, float | None]:
    """Return RFC 9971's relevant bounds: (lower, upper), where known.

    The upper bound is the lowest load seen saturated, the lower one the highest load below it that
    was seen not saturated.
    """
    known = list(rows)
    upper = min((row.rate_per_s for row in known if row.saturated is True), default=None)
    lower = max(
        (
            row.rate_per_s
            for row in known
            if row.saturated is False and (upper is None or row.rate_per_s < upper)
        ),
        default=None,
    )
    return lower, upper
