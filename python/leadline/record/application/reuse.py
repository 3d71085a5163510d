"""How an application comes back to its data, and what caches of any size miss of it."""

from __future__ import annotations

import msgspec


class AtDistance(msgspec.Struct, frozen=True, kw_only=True):
    """References that come back to a page after so many others."""

    pages: int
    """Least of the bin."""
    reads: float
    writes: float


class MissRatio(msgspec.Struct, frozen=True, kw_only=True):
    """Misses of one size of cache, first touches included."""

    cache_bytes: int
    lru: float
    lru_error: float | None
    """Standard error from sampling; None where every page was looked at."""
    two_lists: float | None
    """Under Linux's two lists; None where the sample is too small for this size."""


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
        pages = cache_bytes / self.page_bytes
        hits = 0.0
        for each, beyond in zip(self.distances, [*self.distances[1:], None], strict=True):
            wide = max(1, each.pages >> 6)
            end = each.pages + wide if beyond is None else min(each.pages + wide, beyond.pages)
            inside = min(1.0, max(0.0, (pages - each.pages) / (end - each.pages)))
            hits += inside * (each.reads + each.writes)
        return 1.0 - hits / max(1, self.references)
