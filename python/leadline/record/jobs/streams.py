"""Several streams of requests that share one data set, as a measurement asks for them."""

from __future__ import annotations

import msgspec

STREAMS_MAX = 64
"""Streams of one job, and sizes of one stream."""


class SizeShare(msgspec.Struct, frozen=True):
    """Requests of one size; their share is the weight over the sum of all."""

    bytes: int
    weight: float


class Uniform(msgspec.Struct, frozen=True, tag_field="kind", tag="uniform"):
    """Anywhere, each place as likely as any other."""

    seq_frac: float = 0.0
    """Share of requests that go on where the worker's last of this stream ended."""


class Pieces(msgspec.Struct, frozen=True):
    """Parts of a stream's data that are gone through as files are."""

    bytes: int
    at_once: int = 1
    """How many a worker is in at a time; which goes on is drawn anew each time."""


class Loop(msgspec.Struct, frozen=True, tag_field="kind", tag="loop"):
    """Round and round; each worker has a part of the data."""

    scattered: bool = False
    """In an order without neighbours."""
    pieces: Pieces | None = None


class Once(msgspec.Struct, frozen=True, tag_field="kind", tag="once"):
    """Through the data once."""

    scattered: bool = False
    pieces: Pieces | None = None


class Moving(msgspec.Struct, frozen=True, tag_field="kind", tag="moving"):
    """Anywhere in a window, which goes on by a share of each request's length."""

    window_bytes: int
    fresh_frac: float


Places = Uniform | Loop | Once | Moving


class StreamAsked(msgspec.Struct, frozen=True, kw_only=True):
    """Requests that are alike (crates/wire/src/job/streams.rs)."""

    weight: float
    """Its share of the requests is this over the sum of all."""
    read_frac: float
    from_bytes: int
    """Where its data begin in the workload's."""
    unique_bytes: int
    sizes: tuple[SizeShare, ...]
    places: Places


class StreamCount(msgspec.Struct, frozen=True, kw_only=True):
    """What one of several streams did in the window."""

    operations: int
    reads: int
    bytes: int
    response_s: float
    """Response times, added up."""
    rounds: int
    """Requests that began its data anew, warm-up included."""
