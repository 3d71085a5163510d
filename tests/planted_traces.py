"""Traces of programs that are known: mixtures of streams, made apart from what analyses them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

PAGE_BYTES = 4096
Kind = Literal["uniform", "loop", "once-only", "moving"]


@dataclass(frozen=True)
class Planted:
    """One stream: what it does, and which share of the requests is its."""

    kind: Kind
    weight: float
    unique_bytes: int
    """Of a moving one those it is within at a time; of once-only ones no matter."""
    size: int
    read_frac: float = 1.0


@dataclass(frozen=True)
class Requests:
    """A trace as arrays, a row for each request."""

    at_s: NDArray[np.float64]
    reads: NDArray[np.bool_]
    offsets: NDArray[np.int64]
    sizes: NDArray[np.int64]

    def then(self, other: Requests) -> Requests:
        """Return this one and after it another."""
        later = other.at_s + self.at_s[-1] + 1e-3
        return Requests(
            np.concatenate([self.at_s, later]),
            np.concatenate([self.reads, other.reads]),
            np.concatenate([self.offsets, other.offsets]),
            np.concatenate([self.sizes, other.sizes]),
        )


def mixture(
    streams: Sequence[Planted], requests: int, seed: int, rate_hz: float = 1000.0
) -> Requests:
    """Draw requests of streams that take turns at random, each over data of its own."""
    draw = np.random.default_rng(seed)
    weights = np.array([stream.weight for stream in streams])
    whose = draw.choice(len(streams), p=weights / weights.sum(), size=requests)
    offsets, sizes = np.zeros(requests, np.int64), np.zeros(requests, np.int64)
    reads = np.zeros(requests, bool)
    base = 0
    for number, stream in enumerate(streams):
        own = whose == number
        count = int(own.sum())
        places = _places(stream, count, draw)
        offsets[own], sizes[own] = base + places * stream.size, stream.size
        reads[own] = draw.random(count) < stream.read_frac
        base += (int(places.max(initial=0)) + 2) * stream.size + (1 << 30)
        base -= base % (1 << 20)
    at_s = np.cumsum(draw.exponential(1.0 / rate_hz, requests))
    return Requests(at_s, reads, offsets, sizes)


def _places(stream: Planted, count: int, draw: np.random.Generator) -> NDArray[np.int64]:
    blocks = max(1, stream.unique_bytes // stream.size)
    turns = np.arange(count)
    if stream.kind == "uniform":
        return draw.integers(0, blocks, count)
    if stream.kind == "loop":
        return turns % blocks
    if stream.kind == "once-only":
        return turns
    # A window that goes on by one block every eight requests.
    return turns // 8 + draw.integers(0, blocks, count)


def write_msr(requests: Requests, path: Path, took_s: float = 1e-4) -> Path:
    """Write a trace as MSR Cambridge's CSV."""
    at = 128166372003061629 + np.round(requests.at_s * 1e7).astype(np.int64)
    took = round(took_s * 1e7)
    rows = zip(at, requests.reads, requests.offsets, requests.sizes, strict=True)
    with path.open("w", encoding="ascii") as file:
        file.writelines(
            f"{when},usr,0,{'Read' if read else 'Write'},{offset},{size},{took}\n"
            for when, read, offset, size in rows
        )
    return path


def drawn_mixture(seed: int) -> list[Planted]:
    """Draw two to four streams that come back to their data at paces of their own."""
    draw = np.random.default_rng(seed)
    count = int(draw.integers(2, 5))
    weights = draw.uniform(0.15, 1.0, count)
    weights /= weights.sum()
    others: list[Kind] = ["uniform", "loop", "once-only"]
    kinds: list[Kind] = ["uniform", *(others[place] for place in draw.permutation(3))]
    # Requests between two uses of a block.
    paces = draw.permutation([600.0, 2600.0, 11_000.0, 40_000.0]) * draw.uniform(0.8, 1.25, 4)
    streams: list[Planted] = []
    for kind, weight, pace in zip(kinds, weights, paces, strict=False):
        size = int(PAGE_BYTES * 2 ** draw.integers(0, 5))
        read_frac = float(draw.choice([0.0, 1.0] if kind == "once-only" else [0.0, 0.5, 1.0]))
        streams.append(Planted(kind, float(weight), round(pace * weight) * size, size, read_frac))
    return streams
