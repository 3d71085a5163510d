"""Loads and what trials say of them: saturation, stalls, intervals of the rate."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import msgspec

from leadline.record import Interval
from leadline.record.finding import Finding
from leadline.record.workbench import Batch, Load, Measured, Threshold, Trial, TrialState, Within
from leadline.stats import student_t

# How far a trial is from the threshold of saturation (SH08 §3.3), as one number.
#
# The *threshold ratio* of a trial is its response over the threshold: 1 at the peak rate, more when
# the server is saturated. With a threshold on the mean it is R / R_sat, with one on a percentile
# the percentile over L_sat, with several the largest of them: the server is saturated by any. SH08
# states the peak-rate region of a percentile as [P_sat ± s P_sat], which for P_sat = 0.95 would
# reach beyond 1; here it is L_sat ± s L_sat, the same width in time as that of the mean.

RATIO_MAX = 1e6
"""Ratio of a trial without a finite response: nothing was answered, or the server was lost."""


def threshold_ratio(threshold: Threshold, trial: Trial) -> float | None:
    """Return the trial's response over the threshold; None when the trial says nothing of it.

    A trial that was given up as saturated is at least at the upper edge of the peak-rate region,
    whatever part of its window it has measured.
    """
    if trial.state not in (TrialState.DONE, TrialState.ABORTED):
        return None
    if trial.measured is None or trial.measured.due == 0:
        return None
    ratio = measured_ratio(threshold, trial.measured)
    if trial.state is TrialState.ABORTED:
        return max(ratio, 1 + threshold.width_frac)
    return ratio


def measured_ratio(threshold: Threshold, measured: Measured) -> float:
    """Return the response over the threshold, at most `RATIO_MAX`."""
    if measured.response_ms is None:
        return RATIO_MAX
    ratios = [0.0]
    if threshold.mean_ms is not None:
        ratios.append(measured.response_ms.mean / threshold.mean_ms)
    for place, within in enumerate(threshold.shares):
        ratios.append(_share_ms(within, place, measured) / within.limit_ms)
    return min(max(ratios), RATIO_MAX)


def percentile_ms(threshold: Threshold, measured: Measured) -> float:
    """Return the response time that a share P_sat of the requests due was within, the first one's.

    Requests that failed are within no time. Between the percentiles that a load generator reports,
    and the share within L_sat that it counts, times are taken as exponential: linear in
    -ln(1 - share). So the percentile is above L_sat if and only if less than P_sat was within it.

    Raises:
        ValueError: the threshold has no percentile.

    """
    if not threshold.shares:
        raise ValueError("a threshold without a percentile has no time of it")
    return _share_ms(threshold.shares[0], 0, measured)


def _share_ms(within: Within, place: int, measured: Measured) -> float:
    """Return the time that the threshold's share of this place was within."""
    share = within.percentile
    points = _distribution(within, place, measured)
    for (share_low, ms_low), (share_high, ms_high) in itertools.pairwise(points):
        if share <= share_high:
            return _between(share, (share_low, ms_low), (share_high, ms_high))
    return math.inf


_FASTEST_SHARE = 1e-9
"""Where the distribution begins: everything below the median is taken to be as long as it."""


def _distribution(within: Within, place: int, measured: Measured) -> list[tuple[float, float]]:
    """Pairs of a share of the requests due and the time that it was within; both rise."""
    response = measured.response_ms
    if response is None:
        return []
    answered = 1 - measured.failed / measured.due
    quantiles = [
        (_FASTEST_SHARE, response.p50),
        (0.5, response.p50),
        (0.9, response.p90),
        (0.95, response.p95),
        (0.99, response.p99),
        (0.999, response.p99_9),
        (1.0, response.max),
    ]
    points = [(share * answered, ms) for share, ms in quantiles]
    counted = _share_within(within, place, measured)
    if counted is None:
        return points
    below = [point for point in points if point[1] < counted[1] and point[0] < counted[0]]
    above = [point for point in points if point[1] >= counted[1] and point[0] >= counted[0]]
    return [*below, counted, *above]


def _share_within(within: Within, place: int, measured: Measured) -> tuple[float, float] | None:
    """Share of the requests due that was within L_sat, as counted; None when it was not."""
    counted = [batch for batch in measured.batches if place < len(batch.over_each)]
    due = sum(batch.due for batch in counted)
    over = sum(batch.over_each[place] for batch in counted)
    if over == 0:
        return None
    return 1 - over / due - measured.failed / measured.due, within.limit_ms


def _between(share: float, low: tuple[float, float], high: tuple[float, float]) -> float:
    def depth(of: float) -> float:
        return -math.log(max(1 - of, 1e-6))

    span = depth(high[0]) - depth(low[0])
    if span <= 0:
        return high[1]
    return low[1] + (depth(share) - depth(low[0])) / span * (high[1] - low[1])


# Trials that stalls decide: a device or a host that stood still for a moment.
#
# A server that a load saturates responds late in most of a window. Where short stretches take a
# trial over the threshold, and the response in the rest of the window is far below it, the load is
# not the cause. A search that takes such a trial for a limit never returns (PEERS.md §6).

CLEAR = 0.5
"""Without its stalls a trial is below this part of the threshold."""
_LATE_EXPECTED_MIN = 5.0
"""Requests over the limit in the rest if it were at the threshold; fewer would say little."""
_SPIKE, _SPIKE_REST = 5.0, 2.5
"""A stall's first part is above so many times the median of the rest, and of its ninth decile."""
_SPIKE_TAIL = 2.0
"""Times the median: until then the queue that a stall left is not gone."""
_DRAIN_S, _DRAIN_TIMES = 3.0, 4
"""A stall that shows by its responses alone is over within this time; the queue after a standstill
within the same, or so many times as long as that took (a load of 80%)."""
_STILL_DUE = 20
"""Requests due in a part in which nothing completed: the server stood still."""
_PARTS_MIN = 10
"""Fewer parts with requests have no median to stand out from."""


@dataclass(frozen=True)
class Stalls:
    """What stands out of a trial that is far below the threshold."""

    excess_s: tuple[float, ...]
    """Of each stall: by how much all responses together were longer."""
    at_s: tuple[float, ...]
    """Its start, into the window."""
    shortest_s: float
    """A shorter one would not have been seen."""
    rest: tuple[Batch, ...]
    """The trial's parts, without requests in the stalls."""


def stalls_of(trial: Trial, threshold: Threshold) -> Stalls | None:
    """Return the stalls of a trial; None where it is not far below the threshold without them."""
    measured = trial.measured
    if trial.state not in (TrialState.DONE, TrialState.ABORTED) or measured is None:
        return None
    rest, excess_s, at_s = list(measured.batches), list[float](), list[float]()
    part_s = measured.seconds / max(len(rest), 1)
    while True:
        means = sorted(batch.mean_ms for batch in rest if batch.due)
        if len(means) < _PARTS_MIN:
            return None
        usual_ms = means[len(means) // 2]
        spike_ms = max(_SPIKE * usual_ms, _SPIKE_REST * means[9 * len(means) // 10])
        hit = _next_stall(rest, usual_ms, spike_ms, math.ceil(_DRAIN_S / part_s))
        if not hit:
            break
        parts = rest[hit.start : hit.stop]
        at_s.append(hit.start * part_s)
        excess_s.append(sum(each.due * (each.mean_ms - usual_ms) for each in parts) / 1e3)
        rest[hit.start : hit.stop] = [_without_requests(each) for each in parts]
    if not is_clear(rest, threshold):
        return None
    shortest_s = math.sqrt(2 * part_s * max(spike_ms - usual_ms, 1e-3) / 1e3)
    return Stalls(tuple(excess_s), tuple(at_s), shortest_s, tuple(rest))


def _next_stall(parts: Sequence[Batch], usual_ms: float, spike_ms: float, drain: int) -> range:
    """Return the places of the first stall, which begins with a spike or a standstill."""
    places = range(len(parts))
    start = next((at for at in places if parts[at].mean_ms > spike_ms or _still(parts[at])), None)
    if start is None:
        return range(0)
    moved = end = start
    while end < len(parts) and (
        _still(parts[end])
        or (
            end < moved + max(drain, _DRAIN_TIMES * (moved + 1 - start))
            and parts[end].mean_ms > _SPIKE_TAIL * usual_ms
        )
        or end == start
    ):
        moved = end if _still(parts[end]) else moved
        end += 1
    if _still(parts[start]) and start and parts[start - 1].mean_ms > _SPIKE_TAIL * usual_ms:
        start -= 1  # it began within that part
    return range(start, end)


def _without_requests(part: Batch) -> Batch:
    none = (0,) * len(part.also_over)
    return msgspec.structs.replace(part, due=0, mean_ms=0.0, over=0, also_over=none)


def stood_still(trial: Trial) -> bool:
    """Whether nothing completed in some part of the window, which is no queue's doing."""
    return trial.measured is not None and any(_still(part) for part in trial.measured.batches)


def _still(part: Batch) -> bool:
    return part.due >= _STILL_DUE and not part.completed


@dataclass(frozen=True)
class StalledTrial:
    """A trial that had met the threshold without its stalls."""

    rate_per_s: float
    at_s: float
    """Start of the longest stall, into the window."""
    longest_ms: float
    """Response of the trial."""


def stalled_trial(trial: Trial, threshold: Threshold) -> StalledTrial | None:
    """Return what took a trial over the threshold; None where it was not stalls alone."""
    ratio, measured = threshold_ratio(threshold, trial), trial.measured
    if ratio is None or ratio <= 1 or measured is None or measured.response_ms is None:
        return None
    found = stalls_of(trial, threshold)
    if found is None or not found.excess_s:
        return None
    at_s = max(zip(found.excess_s, found.at_s, strict=True))[1]
    return StalledTrial(trial.request.rate_per_s, at_s, measured.response_ms.max)


def is_clear(batches: Sequence[Batch], threshold: Threshold) -> bool:
    """Whether the response in these parts is far below every limit of the threshold."""
    due = sum(batch.due for batch in batches)
    if due == 0:
        return False
    if threshold.mean_ms is not None:
        mean_ms = sum(batch.due * batch.mean_ms for batch in batches) / due
        if mean_ms > CLEAR * threshold.mean_ms:
            return False
    for place, within in enumerate(threshold.shares):
        allowed = (1 - within.percentile) * due
        over = sum(batch.over_each[place] for batch in batches)
        if allowed < _LATE_EXPECTED_MIN or over > CLEAR * allowed:
            return False
    return True


def format_stalls(trials: Sequence[Trial], threshold: Threshold) -> str:
    """Write how many stalls stand out of the trials that are clear without them."""
    found = [each for trial in trials if (each := stalls_of(trial, threshold)) is not None]
    stalls = sum(len(each.excess_s) for each in found)
    measured_s = sum(trial.measured.seconds for trial in trials if trial.measured is not None)
    stalled = (stalled_trial(trial, threshold) for trial in trials)
    longest_ms = max((each.longest_ms for each in stalled if each is not None), default=0.0)
    number = f"{stalls} stall" if stalls == 1 else f"{stalls} stalls"
    return f"{number} in {measured_s:.3g} s of trials, longest response {longest_ms:.3g} ms"


# From an interval of the response at one load to an interval of the peak rate.
#
# SH08's policies state how well they know the *response* at the load they report. What a user asked
# is the rate. Locally the response follows 1/R = a - b λ (SH08 §3.6), so a chord of the measured
# curve in 1/R turns the one into the other.

_RATIO_MIN = 1e-3
"""A Student interval of two trials can reach below no response time at all."""
_CLEARLY_LESS = 0.7
_BOUND_CONFIDENCE = 0.999


def rate_interval(
    load: LoadTrials, others: Iterable[LoadTrials], confidence: float
) -> Interval | None:
    """Return an interval of the peak rate, given trials at one load near it.

    The value is the load itself, as SH08 reports it. The interval holds the loads at which the
    response can be *at* the threshold, given the t interval of the response at this load:

    - the local slope is the chord to the nearest load below whose response is clearly less (by
      `_CLEARLY_LESS`: a nearer one would be a slope of noise). The curve of 1/R is flat first and
      steeper near the peak, so that the chord is too flat rather than too steep, and the interval
      too wide rather than too narrow;
    - with no such load, the response is taken to rise no slower than in proportion to the load;
    - loads on either side that are told from the peak with `_BOUND_CONFIDENCE` bound it. Those of
      SH08's search are told with 95% from as little as two trials, and there are many of them;
    - the load itself is always inside.

    Half a peak-rate region off (R may be anywhere in R_sat ± s R_sat) is thereby accounted for.
    That a search stops when its trials happen to agree with the region is not: on a known curve 87
    to 98% of the 95% intervals hold the peak. Nor is that a load was told wrongly on the way,
    which two trials do to a server with two modes.

    None with fewer than two trials; no ends where they would be further apart than twice the rate.
    """
    ratios = load.ratio_interval(confidence)
    if ratios is None:
        return None
    rate = load.rate_per_s
    known = [other for other in others if other.ratio is not None and other is not load]
    low = min(_peak_if(max(ratios[1], _RATIO_MIN), rate, known), rate)
    high = max(_peak_if(max(ratios[0], _RATIO_MIN), rate, known), rate)
    for other in known:
        told = other.ratio_interval(_BOUND_CONFIDENCE)
        if told is not None and told[1] < 1 and other.rate_per_s < rate:
            low = max(low, other.rate_per_s)
        if told is not None and told[0] > 1 and other.rate_per_s > rate:
            high = min(high, other.rate_per_s)
    low = max(low, 0.0)
    if high - low > 2 * rate:
        return Interval(rate, None, None, len(load.ratios))
    return Interval(rate, low, high, len(load.ratios))


def _peak_if(ratio: float, rate: float, known: Sequence[LoadTrials]) -> float:
    """Load at which the response is at the threshold, if it is `ratio` of it at `rate`."""
    below = [
        (other.rate_per_s, other.ratio)
        for other in known
        if other.rate_per_s < rate
        and other.ratio is not None
        and other.ratio <= _CLEARLY_LESS * ratio
    ]
    if not below:
        return rate / ratio
    rate_below, ratio_below = max(below)
    fall_per_load = (1 / max(ratio_below, _RATIO_MIN) - 1 / ratio) / (rate - rate_below)
    return rate + (1 / ratio - 1) / fall_per_load


# The trials at one load together: their mean, its interval, and whether the server is saturated.
#
# SH08 Algorithm 2 reasons about loads; a trial is only one reading of one. Intervals are Student's
# t over the trials' own means (SH08 §2.3, eq. 1 with t <= 30 trials).

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
