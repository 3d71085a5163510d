"""The memory that could hold page cache, and a cap on it that lets a budget reach the disk."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from leadline.engine import (
    LAYOUT_BYTES_PER_S,
    CacheLimitRefused,
    available_memory_bytes,
    is_in_memory,
    memory_cgroup,
)
from leadline.units import format_bytes, parse_bytes

LAYOUT_SHARE = 0.2
"""Most of the budget that may go into writing data before the first point."""
MEMORY_FACTOR = 6
"""Past six times the memory five of six random requests miss any cache in it."""
CACHE_LIMIT_MIN, CACHE_LIMIT_MAX = 64 * 2**20, 2**30
BEYOND_CACHE_MIN = 4
"""A survey that touches less than so many times the cache reads much of its last level from it."""


def memory_bytes_of(
    cache_limit_bytes: int | None, facts: Mapping[str, Any], profile: Mapping[str, Any] | None
) -> int | None:
    """Return the cap where there is one, else the machine's memory; None when nobody knows.

    Args:
        cache_limit_bytes: of the cgroup that it was measured in.
        facts: of the machine; nothing of it counts for a simulated system.
        profile: the simulated system, whose facts begin "32 MB, 100 MB/s peak".

    """
    if profile is not None:
        text = str(profile.get("meta", {}).get("facts", {}).get("memory", ""))
        amount = re.match(r"\s*([0-9.]+\s*[KMGT]i?B)\b(?!/)", text)
        return parse_bytes(amount[1]) if amount else None
    if "nfs_server" in facts:
        return None  # the memory is the server's, and the facts are the client's
    known = (facts.get("memory_bytes"), facts.get("cgroup_memory_limit_bytes"))
    machine = min((int(size) for size in known if size), default=None)
    return cache_limit_bytes or machine


def advised_cache_limit(
    budget_s: float, memory_bytes: int, max_bytes: int | None = None
) -> int | None:
    """Memory cap with which a survey reaches beyond the page cache within its budget and room.

    None when the machine's whole memory can be outgrown in time. A point must be able to warm
    the cache within its few seconds, which bounds the cap whatever the budget.
    """
    affordable = int(LAYOUT_SHARE * budget_s * LAYOUT_BYTES_PER_S)
    if max_bytes is not None:
        affordable = min(affordable, max_bytes)
    if affordable >= MEMORY_FACTOR * memory_bytes:
        return None
    return max(CACHE_LIMIT_MIN, min(CACHE_LIMIT_MAX, affordable // MEMORY_FACTOR))


def choose_cache_limit(
    directory: Path,
    asked_bytes: int | None,
    budget_s: float,
    say: Callable[[str], None],
    *,
    most_bytes: int | None = None,
    max_bytes: int | None = None,
) -> int | None:
    """The memory cap to use: the user's, or one without which the disk could not be reached.

    A cap that Leadline chose itself is given up, in words, where the machine does not allow it;
    one that the user asked for never is.

    Args:
        directory: what is surveyed.
        asked_bytes: the user's cap; 0 is none at all, None leaves it to Leadline.
        budget_s: of the survey.
        say: is told what was chosen, and why.
        most_bytes: a cap that Leadline chooses is no larger than this.
        max_bytes: most data that may lie on the target.

    """
    if asked_bytes is not None:
        return asked_bytes or None
    if is_in_memory(directory):
        say("this file system is memory itself: no disk lies behind it, and memory is not capped")
        return None
    advised = advised_cache_limit(budget_s, available_memory_bytes() or 0, max_bytes)
    if advised is None:
        return None
    advised = min(advised, most_bytes or advised)
    try:
        with memory_cgroup(advised):
            pass
    except CacheLimitRefused as reason:
        say(
            f"the page cache keeps the machine's whole memory, so that the disk behind it may not "
            f"be reached: {reason}"
        )
        return None
    say(
        f"memory is capped at {format_bytes(advised)}, so that the disk behind the page cache is "
        "reached in time; --cache-limit SIZE chooses another cap, none leaves it out"
    )
    if max_bytes is not None and max_bytes < BEYOND_CACHE_MIN * advised:
        say(
            f"--max-bytes {format_bytes(max_bytes)} is less than {BEYOND_CACHE_MIN} x this cap: "
            "reads of the last level partly hit the page cache; "
            f"use --max-bytes {format_bytes(BEYOND_CACHE_MIN * advised)} or more"
        )
    return advised
