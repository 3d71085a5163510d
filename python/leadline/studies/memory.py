"""The memory that could hold file cache, from what is recorded of a system."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from leadline.units import parse_bytes


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
