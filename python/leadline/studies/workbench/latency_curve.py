"""The load-latency curve: response times against the rate, up to where the rate is still kept.

Trials of a search lie where it learnt most, close to the peak; on a wish further ones are run at
even parts of it, as vdbench and SPECstorage print them.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

import msgspec

from leadline.record import derive_seed
from leadline.record.workbench import (
    ExperimentStart,
    PeakRate,
    ResponseMs,
    SamplePeak,
    Trial,
    TrialOrder,
    TrialRequest,
    TrialState,
)

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
