"""How an application comes back to its data, and what caches of any size miss of it."""

from __future__ import annotations

import itertools
import math

import msgspec


class AtDistance(msgspec.Struct, frozen=True, kw_only=True):
    """References that come back to a page after so many others."""

    pages: int
    """Least of the bin."""
    reads: float
    writes: float


class MissRatio(msgspec.Struct, frozen=True, kw_only=True):
    """Misses of one size of cache, compulsory misses included."""

    cache_bytes: int
    lru: float
    lru_error: float | None
    """Standard error from sampling; None where every page was looked at."""
    two_lists: float | None
    """Under active/inactive LRU; None where the sample is too small for this size."""


class Reuse(msgspec.Struct, frozen=True, kw_only=True):
    """How the application comes back to its data: any cache's miss ratio can be asked of it."""

    page_bytes: int
    references: int
    """To pages."""
    rate: float
    """Share of the pages that were looked at."""
    two_lists_rate: float
    unique_pages: float
    first_reads: float
    first_writes: float
    distances: tuple[AtDistance, ...]
    """Stack distances of all others."""
    points: tuple[MissRatio, ...]

    @property
    def first_touches(self) -> float:
        """Share of the references that no cache could have had."""
        return (self.first_reads + self.first_writes) / max(1, self.references)

    def lru_misses(self, cache_bytes: float) -> float:
        """Return the miss ratio of an LRU cache of any size."""
        return 1.0 - sum(self._lru_hits(cache_bytes)) / max(1, self.references)

    def lru_misses_apart(self, cache_bytes: float) -> tuple[float, float]:
        """Return the miss ratios of reads and of writes; 1 of what there is none of."""
        hits = self._lru_hits(cache_bytes)
        firsts = (self.first_reads, self.first_writes)
        again = (
            sum(each.reads for each in self.distances),
            sum(each.writes for each in self.distances),
        )
        reads, writes = (
            1.0 - hit / (first + more) if first + more > 0 else 1.0
            for hit, first, more in zip(hits, firsts, again, strict=True)
        )
        return reads, writes

    def two_lists_misses(self, cache_bytes: float) -> float | None:
        """Return the miss ratio under active/inactive LRU, between the sizes that were simulated.

        Of a cache that holds all it is that of compulsory misses; None below the smallest size.
        """
        known = [point for point in self.points if point.two_lists is not None]
        if known and cache_bytes > known[-1].cache_bytes >= self.unique_pages * self.page_bytes:
            return self.first_touches
        if not known or not known[0].cache_bytes <= cache_bytes <= known[-1].cache_bytes:
            return None
        at = next(place for place, point in enumerate(known) if point.cache_bytes >= cache_bytes)
        above, below = known[at], known[max(0, at - 1)]
        if above is below:
            return above.two_lists
        span = math.log(above.cache_bytes / below.cache_bytes)
        share = math.log(cache_bytes / below.cache_bytes) / span
        return (1 - share) * (below.two_lists or 0.0) + share * (above.two_lists or 0.0)

    def lru_error(self, cache_bytes: float) -> float:
        """Return the standard error of a sampled miss ratio: that of the nearest size told."""
        told = [point for point in self.points if point.lru_error is not None]
        if not told or cache_bytes <= 0:
            return 0.0
        near = min(told, key=lambda point: abs(math.log(point.cache_bytes / cache_bytes)))
        return near.lru_error or 0.0

    def _lru_hits(self, cache_bytes: float) -> tuple[float, float]:
        """Reads and writes that a cache of so many bytes holds."""
        pages = cache_bytes / self.page_bytes
        reads = writes = 0.0
        for each, beyond in itertools.zip_longest(self.distances, self.distances[1:]):
            wide = max(1, each.pages >> 6)
            end = each.pages + wide if beyond is None else min(each.pages + wide, beyond.pages)
            inside = min(1.0, max(0.0, (pages - each.pages) / (end - each.pages)))
            reads += inside * each.reads
            writes += inside * each.writes
        return reads, writes
