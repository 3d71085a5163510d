"""Streaming studies (AD98): models of what moves, bounds, disk scaling and balance. Pure."""

from __future__ import annotations

import os
from collections.abc import Mapping

_NAMES = ("OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID")


def rank_started(environment: Mapping[str, str] = os.environ) -> int:
    """Return the number that the launcher gave this process; 0 without one."""
    for name in _NAMES:
        if environment.get(name, "").isdigit():
            return int(environment[name])
    return 0
