"""Trials after the search: the load-latency curve, and how long a trial must be."""

from __future__ import annotations

import itertools
import math
from bisect import bisect_left
from collections.abc import Iterator, Sequence

import msgspec

from leadline.record import Interval, derive_seed
from leadline.record.wording import format_count, join_words
from leadline.record.workbench import (
    Experiment,
    ExperimentStart,
    PeakRate,
    ResponseMs,
    RunLengths,
    SamplePeak,
    Trial,
    TrialOrder,
    TrialRequest,
    TrialState,
)
from leadline.stats import sd_interval, student_t
from leadline.studies.workbench.conversation import ExperimentRefused
from leadline.studies.workbench.loads import t_interval
from leadline.units import format_ends, format_percent, format_seconds

# The load-latency curve: response times against the rate, up to where the rate is still kept.
#
# Trials of a search lie where it learnt most, close to the peak; on a wish further ones are run at
# even parts of it, as vdbench and SPECstorage print them.

KEPT_FRAC = 0.97
"""A trial that ended fewer of its requests in its window had a queue that grew: its response times
say how long it was."""
_SEED_STREAM = 1_000_000
"""Of seeds, far from those of a search's trials."""


class CurvePoint(msgspec.Struct, frozen=True, kw_only=True):
    """Response times at one rate; of several trials the mean of each."""

    rate_per_s: float
    part_of_peak: float | None
    trials: int
    completed_per_s: float
    response_ms: ResponseMs


def even_orders(start: ExperimentStart, own: SamplePeak) -> Iterator[TrialOrder]:
    """Yield the trials at even parts of the peak that were asked for and have not run yet."""
    rate_per_s = None if own.peak is None else top_per_s(own.peak)
    if rate_per_s is None:
        return
    seed = derive_seed(derive_seed(start.seed, 1), _SEED_STREAM)
    for place in range(len(own.curve), start.curve_points):
        part = (place + 1) / start.curve_points
        yield TrialOrder(
            server=start.server,
            sample=own.sample,
            threshold=start.goal.threshold,
            request=TrialRequest(
                rate_per_s=part * rate_per_s, seconds=start.goal.run_length_s, purpose="curve"
            ),
            order=len(own.trials) + place,
            seed=derive_seed(seed, place),
        )


def latency_curve(own: SamplePeak) -> tuple[CurvePoint, ...]:
    """Return the curve, lowest rate first: of the even points if there are some, or the search.

    Trials that were given up, or whose rate was not kept, have no place on it.
    """
    trials = sorted(own.curve or own.trials, key=_rate)
    top = None if own.peak is None else top_per_s(own.peak)
    points = []
    for rate_per_s, group in itertools.groupby(filter(_kept, trials), key=_rate):
        same = list(group)
        found = [trial.measured for trial in same if trial.measured is not None]
        responses = [each.response_ms for each in found if each.response_ms is not None]
        points.append(
            CurvePoint(
                rate_per_s=rate_per_s,
                part_of_peak=None if top is None else rate_per_s / top,
                trials=len(same),
                completed_per_s=sum(each.completed_per_s for each in found) / len(found),
                response_ms=_mean_of(responses),
            )
        )
    return tuple(points)


def top_per_s(peak: PeakRate) -> float | None:
    """Return the peak rate, or the highest rate that was seen kept."""
    return peak.lower_bound_per_s if peak.rate_per_s is None else peak.rate_per_s.value


def _rate(trial: Trial) -> float:
    return trial.request.rate_per_s


def _kept(trial: Trial) -> bool:
    measured = trial.measured
    if trial.state is not TrialState.DONE or measured is None or measured.response_ms is None:
        return False
    return measured.completed_per_s >= KEPT_FRAC * measured.offered_per_s


def _mean_of(responses: Sequence[ResponseMs]) -> ResponseMs:
    names = ResponseMs.__struct_fields__
    return ResponseMs(
        **{name: sum(getattr(each, name) for each in responses) / len(responses) for name in names}
    )


# How long a trial should be: spread of the response over run length, and the trials it takes.
#
# SH08 Figs. 5 and 6. A longer trial averages more, so fewer are needed for an accuracy at a
# confidence (eqs. 1 and 2: half the Student t interval of their mean over that mean is at most
# 1 - a); it also costs more. The trials here are independent ones of each length, run in turns, so
# that what drifts meets all lengths alike.

LENGTHS_MAX = 12
PARTS_MAX = 6
TRIALS_MIN = 3
"""Two readings say next to nothing of a spread."""
TRIALS_MAX = 200
PART_MAX = 1.2
"""Far above its peak a server answers with the length of its queue, whatever the length."""
NEEDED_MAX = 10_000
"""More trials than anybody runs: then the length does not reach the accuracy."""
_LENGTH_SEED_STREAM = 2_000_000


class RunLength(msgspec.Struct, frozen=True, kw_only=True):
    """What trials of one length at one load say."""

    part_of_peak: float
    rate_per_s: float
    seconds: float
    trials: int
    """That ended well; only these count."""
    response_ms: Interval | None
    """Mean over trials."""
    sd_frac: Interval | None
    """Standard deviation of trials' mean responses over their mean."""
    needed: Interval | None
    """Trials that the goal's accuracy of the response takes; None when out of reach."""
    cost_s: Interval | None
    """Test time of so many, with what a trial costs beside its window."""
    reads_as_longest: bool | None
    """Whether its mean cannot be told from that of the longest; None when nothing can be said."""


def read_run_lengths(
    seconds: Sequence[float], parts: Sequence[float] = (), trials: int | None = None
) -> RunLengths:
    """Return what a study of run lengths is to run.

    Args:
        seconds: of the trials, in any order.
        parts: of the peak, fractions; SH08's 0.3 and 0.9 without.
        trials: of each length at each load; 10 without.

    Raises:
        ExperimentRefused: too few or too many of them, or one is there twice.

    """
    asked = RunLengths(seconds=tuple(sorted(seconds)))
    if parts:
        asked = msgspec.structs.replace(asked, parts=tuple(sorted(parts)))
    if trials is not None:
        asked = msgspec.structs.replace(asked, trials=trials)
    if not 2 <= len(set(asked.seconds)) == len(asked.seconds) <= LENGTHS_MAX:
        raise ExperimentRefused(f"give 2 to {LENGTHS_MAX} run lengths, each once: 30s,1m,3m,5m")
    if not 1 <= len(set(asked.parts)) == len(asked.parts) <= PARTS_MAX:
        raise ExperimentRefused(f"give 1 to {PARTS_MAX} load factors, each once: 30%,90%")
    if not all(0 < part <= PART_MAX for part in asked.parts):
        raise ExperimentRefused(f"load factors are parts of the peak, above 0 to {PART_MAX:g}")
    if not TRIALS_MIN <= asked.trials <= TRIALS_MAX:
        raise ExperimentRefused(f"trials of each length: {TRIALS_MIN} to {TRIALS_MAX}")
    return asked


def expected_s(asked: RunLengths) -> float:
    """Return the test time of all windows, without what a trial costs beside it."""
    return len(asked.parts) * asked.trials * math.fsum(asked.seconds)


def length_orders(start: ExperimentStart, own: SamplePeak) -> Iterator[TrialOrder]:
    """Yield the trials that were asked for and have not run yet, lengths and loads in turns."""
    rate_per_s = None if own.peak is None else top_per_s(own.peak)
    asked = start.run_lengths
    if rate_per_s is None or asked is None:
        return
    seed = derive_seed(derive_seed(start.seed, 1), _LENGTH_SEED_STREAM)
    turn = [(part, seconds) for seconds in asked.seconds for part in asked.parts]
    for place in range(len(own.lengths), len(turn) * asked.trials):
        part, seconds = turn[place % len(turn)]
        yield TrialOrder(
            server=start.server,
            sample=own.sample,
            threshold=start.goal.threshold,
            request=TrialRequest(rate_per_s=part * rate_per_s, seconds=seconds, purpose="length"),
            order=len(own.trials) + len(own.curve) + place,
            seed=derive_seed(seed, place),
        )


def run_length_rows(experiment: Experiment) -> tuple[RunLength, ...]:
    """Return a row for each load and length of which a trial ran; loads and lengths rising."""
    asked = experiment.start.run_lengths
    own = experiment.peaks[0] if experiment.peaks else None
    if asked is None or own is None or not own.lengths:
        return ()
    turn = [(part, seconds) for seconds in asked.seconds for part in asked.parts]
    rows: list[RunLength] = []
    for part in asked.parts:
        groups = [
            [trial for at, trial in enumerate(own.lengths) if turn[at % len(turn)] == (part, each)]
            for each in asked.seconds
        ]
        longest = _means_ms(groups[-1])
        rows += [_row(experiment, part, group, longest) for group in groups if group]
    return tuple(rows)


def trials_needed(sd_frac: float, accuracy: float, confidence: float) -> int | None:
    """Return the fewest trials whose mean is known to this accuracy (SH08 eqs. 1, 2).

    Args:
        sd_frac: standard deviation of trials over their mean.
        accuracy: a: half the interval over the mean is at most 1 - a.
        confidence: c, of Student's t interval.

    Returns:
        2 or more; None when `NEEDED_MAX` do not reach it.

    """

    def half_frac(count: int) -> float:
        return student_t(count - 1, confidence) * sd_frac / math.sqrt(count)

    counts = range(2, NEEDED_MAX + 1)
    at = bisect_left(counts, True, key=lambda count: half_frac(count) <= 1 - accuracy)
    return counts[at] if at < len(counts) else None


def run_length_sentences(experiment: Experiment) -> list[str]:
    """Say of each load which length is cheapest, and which cannot be told from it."""
    rows = run_length_rows(experiment)
    parts = dict.fromkeys(row.part_of_peak for row in rows)
    return [
        _cheapest(experiment, [row for row in rows if row.part_of_peak == part]) for part in parts
    ]


def _cheapest(experiment: Experiment, rows: Sequence[RunLength]) -> str:
    goal = experiment.start.goal
    where = f"At {format_percent(rows[0].part_of_peak)} of the peak"
    asked = f"{100 * goal.accuracy:.4g}% accuracy of the response at {100 * goal.confidence:.4g}%"
    able = [row for row in rows if row.cost_s is not None and row.reads_as_longest]
    best = min(able, key=lambda row: row.cost_s.value if row.cost_s else math.inf, default=None)
    if best is None or best.cost_s is None or best.needed is None:
        return f"{where} no run length that was tried reaches {asked}."
    count = format_count(round(best.needed.value), "trial")
    said = (
        f"{where} the cheapest way to {asked} is {count} of {format_seconds(best.seconds)}"
        f"{_span(best.needed)}: {format_seconds(best.cost_s.value)} of test time"
    )
    near = [
        format_seconds(row.seconds)
        for row in able
        if row is not best and row.cost_s is not None and _overlap(row.cost_s, best.cost_s)
    ]
    said += f"; {join_words(near)} cannot be told from it." if near else "."
    other = [format_seconds(row.seconds) for row in rows if row.reads_as_longest is False]
    if other:
        said += (
            f" Trials of {join_words(other)} read another response than those of "
            f"{format_seconds(rows[-1].seconds)}, and are left out."
        )
    return said


def _span(count: Interval) -> str:
    if count.low is None or count.high is None:
        return ""
    return f" {format_ends(f'{count.low:.0f}', f'{count.high:.0f}')}"


def _overlap(one: Interval, other: Interval) -> bool:
    if one.low is None or one.high is None or other.low is None or other.high is None:
        return True
    return one.low <= other.high and other.low <= one.high


def _row(
    experiment: Experiment, part: float, group: Sequence[Trial], longest: Sequence[float]
) -> RunLength:
    goal, asked = experiment.start.goal, experiment.start.run_lengths
    means = _means_ms(group)
    request = group[0].request
    lengths = 0 if asked is None else len(asked.seconds)
    # Each length is held against the longest, and all verdicts together are to be that sure.
    all_of_them = 1 - (1 - goal.confidence) / max(1, lengths - 1)
    response = spread = needed = cost = None
    if len(means) >= 2:
        mean = math.fsum(means) / len(means)
        low, high = t_interval(means, goal.confidence) or (None, None)
        response = Interval(mean, low, high, len(means))
        spread = _over(sd_interval(means, goal.confidence), mean)
        needed = _needed(spread, goal.accuracy, goal.confidence)
    if needed is not None:
        cost = _times(needed, math.fsum(trial.cost_s for trial in group) / len(group))
    return RunLength(
        part_of_peak=part,
        rate_per_s=request.rate_per_s,
        seconds=request.seconds,
        trials=len(means),
        response_ms=response,
        sd_frac=spread,
        needed=needed,
        cost_s=cost,
        reads_as_longest=_alike(means, longest, all_of_them),
    )


def _means_ms(group: Sequence[Trial]) -> list[float]:
    return [
        trial.measured.response_ms.mean
        for trial in group
        if trial.state is TrialState.DONE
        and trial.measured is not None
        and trial.measured.response_ms is not None
    ]


def _needed(spread: Interval, accuracy: float, confidence: float) -> Interval | None:
    """Return the trials that are needed, with what either end of the spread's interval takes."""
    found = [
        None if frac is None else trials_needed(frac, accuracy, confidence)
        for frac in (spread.value, spread.low, spread.high)
    ]
    if found[0] is None:
        return None
    high = NEEDED_MAX if found[2] is None else found[2]
    return Interval(found[0], found[1], high, spread.n)


def _over(number: Interval, by: float) -> Interval:
    return _times(number, 1 / by) if by > 0 else number


def _times(number: Interval, by: float) -> Interval:
    low, high = (None if end is None else end * by for end in (number.low, number.high))
    return Interval(number.value * by, low, high, number.n)


def _alike(means: Sequence[float], longest: Sequence[float], confidence: float) -> bool | None:
    """Whether two lengths read the same: Welch's t interval of the difference holds zero."""
    if min(len(means), len(longest)) < 2:
        return None
    one, other = (_mean_and_error(each) for each in (means, longest))
    square = one[1] ** 2 + other[1] ** 2
    if square == 0:
        return one[0] == other[0]
    df = square**2 / sum(
        error**4 / (len(each) - 1) for (_, error), each in ((one, means), (other, longest))
    )
    return abs(one[0] - other[0]) <= student_t(df, confidence) * math.sqrt(square)


def _mean_and_error(values: Sequence[float]) -> tuple[float, float]:
    mean = math.fsum(values) / len(values)
    variance = math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1)
    return mean, math.sqrt(variance / len(values))
