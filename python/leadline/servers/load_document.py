"""What a load generator of the user's prints (docs/reference/load-generator.md), as `Measured`."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Literal, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from leadline.inputs import UNREADABLE_JSON
from leadline.record.workbench import Batch, Measured, ResponseMs, Threshold, TrialRequest

BATCHES = 60
"""Equal parts of a window, as in the engine (crates/engine/src/load/tally.rs)."""
_SHORTEST_FRAC, _LONGEST_FRAC = 0.9, 1.5
"""Of the run length: how far a window may be from what was asked."""

Numbers = npt.NDArray[np.float64]


class NonsensePrinted(Exception):
    """The document cannot be understood, or contradicts itself."""


class _Counted(NamedTuple):
    """What happened in the window, in seconds since it began."""

    due_s: Numbers
    response_ms: Numbers
    failed_s: Numbers
    done_s: Numbers


class _Requests(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    due_s: list[float]
    response_ms: list[float | None]
    """From due; null: there was no answer when the generator stopped waiting."""
    sent_late_ms: list[float] | None = None


class _Histogram(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    upper_ms: list[float]
    count: list[int]


class _Counts(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    due: int
    unanswered: int = 0
    failed: int = 0
    completed_per_s: float
    histogram: _Histogram | None = None
    response_ms: ResponseMs | None = None
    batches: list[Batch] = []


class LoadDocument(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The document as it is printed."""

    leadline_load: Literal[1]
    seconds: float | None = None
    warm_up_s: float = 0.0
    aborted: bool = False
    server_lost: str | None = None
    requests: _Requests | None = None
    failed_due_s: list[float] = []
    ended_s: float | None = None
    counts: _Counts | None = None
    sent_late_ms_p99: float | None = None


def read_document(output: bytes) -> LoadDocument:
    """Read what a generator printed.

    Raises:
        NonsensePrinted: it is no JSON, or not the document that is asked for.

    """
    try:
        document = msgspec.json.decode(output.strip(), type=LoadDocument)
    except UNREADABLE_JSON as error:
        begins = output[:80].decode(errors="replace").strip()
        raise NonsensePrinted(f"{error}; it begins {begins!r}") from error
    if document.server_lost is None and (document.requests is None) == (document.counts is None):
        raise NonsensePrinted("exactly one of `requests` and `counts` is needed")
    return document


def measured_of(document: LoadDocument, request: TrialRequest, threshold: Threshold) -> Measured:
    """Return what the document says of the measured window.

    Raises:
        NonsensePrinted: it contradicts itself or what was asked.

    """
    seconds = request.seconds if document.seconds is None else document.seconds
    _require(math.isfinite(seconds) and seconds > 0, f"seconds is {seconds}")
    _require(document.warm_up_s >= 0, f"warm_up_s is {document.warm_up_s}")
    longest_s = _LONGEST_FRAC * request.seconds
    _require(seconds <= longest_s, f"{seconds:g} s were measured, {request.seconds:g} s asked")
    _require(
        document.aborted or seconds >= _SHORTEST_FRAC * request.seconds,
        f"only {seconds:g} s of {request.seconds:g} s were measured, and it is not `aborted`",
    )
    # Numbers that make others infinite are refused below, without a word of numpy's before.
    with np.errstate(over="ignore", invalid="ignore"):
        # A limit without a share is no target, but is counted by.
        first_ms = [] if threshold.limit_ms is None else [threshold.limit_ms]
        limits_ms = [*first_ms, *threshold.also_limits_ms]
        measured = _measured(document, request, seconds, limits_ms)
    try:
        return msgspec.json.decode(msgspec.json.encode(measured), type=Measured)
    except msgspec.ValidationError as error:
        raise NonsensePrinted(
            f"a number in it is too large to be a time or a count: {error}"
        ) from error


def _measured(
    document: LoadDocument, request: TrialRequest, seconds: float, limits_ms: Sequence[float]
) -> Measured:
    if document.requests is not None:
        return _from_requests(document, document.requests, request, seconds, limits_ms)
    assert document.counts is not None  # noqa: S101 - read_document has seen to it
    return _from_counts(document, document.counts, seconds)


def _from_requests(
    document: LoadDocument,
    requests: _Requests,
    asked: TrialRequest,
    seconds: float,
    limits_ms: Sequence[float],
) -> Measured:
    rows = len(requests.due_s)
    _require(
        rows == len(requests.response_ms),
        f"{rows} due_s and {len(requests.response_ms)} response_ms",
    )
    due_s = np.asarray(requests.due_s, dtype=np.float64) - document.warm_up_s
    response_ms = np.asarray(requests.response_ms, dtype=np.float64)  # null becomes NaN
    answered = ~np.isnan(response_ms)
    _require(bool((response_ms[answered] >= 0).all()), "a response_ms is negative")
    if not answered.all():
        ended_s = document.ended_s
        _require(ended_s is not None, "requests without an answer need `ended_s`")
        age_ms = ((ended_s or 0.0) - document.warm_up_s - due_s) * 1e3
        response_ms = np.where(answered, response_ms, np.maximum(age_ms, 0.0))
    failed_s = np.asarray(document.failed_due_s, dtype=np.float64) - document.warm_up_s
    inside = (due_s >= 0) & (due_s < seconds)
    failed_s = failed_s[(failed_s >= 0) & (failed_s < seconds)]
    done_s = (due_s + response_ms / 1e3)[answered]
    done_s = done_s[(done_s >= 0) & (done_s < seconds)]
    counted = _Counted(due_s[inside], response_ms[inside], failed_s, done_s)
    return Measured(
        seconds=seconds,
        warm_up_s=document.warm_up_s,
        due=int(inside.sum()) + len(failed_s),
        unanswered=int((inside & ~answered).sum()),
        failed=len(failed_s),
        completed_per_s=len(done_s) / seconds,
        response_ms=_summary(counted.response_ms),
        batches=_batches(counted, asked.seconds, seconds, limits_ms),
        aborted=document.aborted,
        sent_late_ms_p99=_late(document, requests, inside),
    )


def _late(
    document: LoadDocument, requests: _Requests, inside: npt.NDArray[np.bool_]
) -> float | None:
    late_ms = requests.sent_late_ms
    if late_ms is None or not inside.any():
        return document.sent_late_ms_p99
    _require(len(late_ms) == len(inside), f"{len(inside)} due_s and {len(late_ms)} sent_late_ms")
    return float(np.quantile(np.asarray(late_ms)[inside], 0.99, method="inverted_cdf"))


def _summary(response_ms: Numbers) -> ResponseMs | None:
    if not len(response_ms):
        return None
    at = np.quantile(response_ms, (0.5, 0.9, 0.95, 0.99, 0.999), method="inverted_cdf").tolist()
    mean, longest = float(response_ms.mean()), float(response_ms.max())
    return ResponseMs(
        mean=mean, p50=at[0], p90=at[1], p95=at[2], p99=at[3], p99_9=at[4], max=longest
    )


def _batches(
    counted: _Counted, asked_s: float, seconds: float, limits_ms: Sequence[float]
) -> tuple[Batch, ...]:
    """The window asked for in equal parts; of one that ended early the whole parts of it."""
    part_s = asked_s / BATCHES
    parts = min(BATCHES, int(seconds / part_s + 1e-9))

    def count(times_s: Numbers, weights: Numbers | None = None) -> Numbers:
        part = np.minimum((times_s / part_s).astype(np.int64), BATCHES - 1)
        return np.bincount(part, weights=weights, minlength=BATCHES).astype(np.float64)

    due_s, response_ms = counted.due_s, counted.response_ms
    answered, sums_ms = count(due_s), count(due_s, response_ms)
    over = [count(due_s[response_ms > limit_ms]) for limit_ms in limits_ms or (math.inf,)]
    due, completed = answered + count(counted.failed_s), count(counted.done_s)
    means_ms = sums_ms / np.maximum(answered, 1)
    return tuple(
        Batch(
            due=int(due[k]),
            mean_ms=float(means_ms[k]),
            over=int(over[0][k]),
            completed=int(completed[k]),
            also_over=tuple(int(each[k]) for each in over[1:]),
        )
        for k in range(parts)
    )


def _from_counts(document: LoadDocument, counts: _Counts, seconds: float) -> Measured:
    _require(
        counts.histogram is None or counts.response_ms is None,
        "one of `histogram` and `response_ms` is needed, not both",
    )
    _require(0 <= counts.unanswered + counts.failed <= counts.due, "more went wrong than was due")
    response_ms = counts.response_ms
    if counts.histogram is not None:
        response_ms = _of_histogram(counts.histogram)
    elif response_ms is not None:
        _require(_rises(response_ms), "response_ms: its percentiles do not rise up to its max")
    _require(response_ms is not None or counts.due == counts.failed, "no response times")
    return Measured(
        seconds=seconds,
        warm_up_s=document.warm_up_s,
        due=counts.due,
        unanswered=counts.unanswered,
        failed=counts.failed,
        completed_per_s=counts.completed_per_s,
        response_ms=response_ms,
        batches=tuple(counts.batches),
        aborted=document.aborted,
        sent_late_ms_p99=document.sent_late_ms_p99,
    )


def _of_histogram(histogram: _Histogram) -> ResponseMs:
    """Mean from the middles of the buckets, a percentile as the upper end of its bucket."""
    upper_ms = np.asarray(histogram.upper_ms, dtype=np.float64)
    count = np.asarray(histogram.count, dtype=np.float64)
    _require(len(upper_ms) == len(count), f"{len(upper_ms)} upper_ms and {len(count)} counts")
    _require(bool((np.diff(upper_ms, prepend=0.0) > 0).all()), "upper_ms does not rise from 0")
    _require(bool((count >= 0).all()) and count.sum() > 0, "the histogram counts nothing")
    middle_ms = (upper_ms + np.concatenate(([0.0], upper_ms[:-1]))) / 2
    share = np.cumsum(count) / count.sum()

    def at(quantile: float) -> float:
        return float(upper_ms[np.searchsorted(share, quantile - 1e-12)])

    return ResponseMs(
        mean=float((middle_ms * count).sum() / count.sum()),
        p50=at(0.5),
        p90=at(0.9),
        p95=at(0.95),
        p99=at(0.99),
        p99_9=at(0.999),
        max=at(1.0),
    )


def _rises(response_ms: ResponseMs) -> bool:
    steps: Sequence[float] = (
        0.0,
        response_ms.p50,
        response_ms.p90,
        response_ms.p95,
        response_ms.p99,
        response_ms.p99_9,
        response_ms.max,
    )
    ordered = all(low <= high for low, high in itertools.pairwise(steps))
    return ordered and 0 <= response_ms.mean <= response_ms.max


def _require(holds: bool, otherwise: str) -> None:
    if not holds:
        raise NonsensePrinted(otherwise)
