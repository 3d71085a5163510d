"""A phase that was run, beside its description: rate, what the file cache held, time in I/O."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from leadline.record import Interval, Measurement
from leadline.record.application import Application, PhaseFound, Reuse
from leadline.record.wording import say_count, say_interval, say_number
from leadline.studies.application.synthetic import Synthetic
from leadline.units import format_bytes, say_percent


class Beside(msgspec.Struct, frozen=True, kw_only=True):
    """What was measured, and what the description says of the same."""

    phase: int
    """From 1."""
    requests_per_s: Interval
    described_per_s: float | None
    in_io: float
    """Share of the issuers' time."""
    described_in_io: float | None
    miss_ratio: float | None
    """Of the bytes read; None where nothing tells."""
    like_cache_bytes: float | None
    """Size of the LRU cache that would miss as much, first touches left out."""
    weights_error: float
    """Largest difference between a stream's share of the requests and the one asked."""
    begun_again: int
    """Rounds through data that the application used once."""
    not_mapped: tuple[str, ...]


def beside(application: Application, synthetic: Synthetic, point: Measurement) -> Beside:
    """Return both sides."""
    phase, result = synthetic.phase, point.result
    misses = None if result.cached_share is None else 1.0 - result.cached_share
    once = [
        count.rounds
        for asked, count in zip(synthetic.streams, result.streams, strict=True)
        if asked.places.__struct_config__.tag == "once"
    ]
    return Beside(
        phase=phase.order + 1,
        requests_per_s=result.iops,
        described_per_s=_rate(phase),
        in_io=result.io_share,
        described_in_io=phase.in_io,
        miss_ratio=misses,
        like_cache_bytes=None if misses is None else _like(application.found.reuse, misses),
        weights_error=_weights_error(synthetic, point),
        begun_again=sum(once),
        not_mapped=tuple(str(each) for each in point.findings if each.code == "not_mapped"),
    )


def _rate(phase: PhaseFound) -> float | None:
    if phase.from_s is None or phase.to_s is None or phase.to_s <= phase.from_s:
        return None
    return phase.requests / (phase.to_s - phase.from_s)


def _like(reuse: Reuse, misses: float) -> float | None:
    """Return the bytes of the LRU cache that misses so much once it is full of this."""
    first = reuse.first_touches
    if first >= 1.0 or not 0.0 < misses < 1.0:
        return None
    low, high = 0.0, 1.1 * reuse.unique_pages * reuse.page_bytes
    for _ in range(60):
        middle = (low + high) / 2
        steady = (reuse.lru_misses(middle) - first) / (1.0 - first)
        low, high = (low, middle) if steady <= misses else (middle, high)
    return high


def _weights_error(synthetic: Synthetic, point: Measurement) -> float:
    asked = [stream.weight for stream in synthetic.streams]
    counts = [count.operations for count in point.result.streams]
    pairs = zip(asked, counts, strict=True)
    return max(abs(weight / sum(asked) - count / max(1, sum(counts))) for weight, count in pairs)


def say_beside(found: Beside) -> Iterator[str]:
    """Say it in sentences."""
    rate = say_interval(found.requests_per_s, lambda value: f"{value:,.0f}")
    described = (
        "the trace says no times"
        if found.described_per_s is None
        else f"{found.described_per_s:,.0f} where it was traced"
    )
    yield f"Phase {found.phase} ran at {rate} requests/s; {described}."
    traced = (
        "" if found.described_in_io is None else f"; {say_percent(found.described_in_io)} traced"
    )
    yield f"It was in I/O for {say_percent(found.in_io)} of the issuers' time{traced}."
    if found.miss_ratio is not None:
        like = (
            ""
            if found.like_cache_bytes is None
            else (
                f", as of an LRU cache of {format_bytes(found.like_cache_bytes)} (first touches "
                "left out)"
            )
        )
        yield f"{say_percent(found.miss_ratio)} of the bytes read came from the device{like}."
    yield f"Its streams' shares are within {say_number(100 * found.weights_error)} points."
    if found.begun_again:
        rounds = say_count(found.begun_again, "time")
        yield f"Data used once began again {rounds}: a cache that holds them finds them there."
    yield from (f"{said[0].upper()}{said[1:]}." for said in found.not_mapped)
