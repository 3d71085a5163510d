"""What tests on this machine's disk need."""

from __future__ import annotations

import pytest

from leadline.engine import CacheLimitRefused, memory_cgroup


@pytest.fixture(scope="module", autouse=True)
def _cgroup_or_skip() -> None:
    try:
        with memory_cgroup(64 << 20):
            pass
    except CacheLimitRefused as reason:
        pytest.skip(f"no memory cgroup here: {reason}")
