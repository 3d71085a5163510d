"""Where the bytes came from, against a cache of known size: a memory cgroup.

That the share *is* what the cache holds needs a calm machine (`make check-machine`); that it is
never more than the cache can hold, and that direct reads have none of it, is so on any.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from command import leadline

pytestmark = pytest.mark.real
CACHE_MIB = 96
DRAWN = 0.05
"""The share is of the reads that were drawn, thousands of them."""


@pytest.mark.parametrize(
    ("unique_mib", "options", "share_min", "share_max"),
    [(16, [], 0.5, 1.0), (384, [], 0.0, CACHE_MIB / 384 + DRAWN), (16, ["--direct"], 0.0, 0.0)],
    ids=["within", "beyond", "direct"],
)
def test_the_share_from_cache_is_no_more_than_the_cache_can_hold(
    unique_mib: int, options: list[str], share_min: float, share_max: float, tmp_path: Path
) -> None:
    target = tmp_path / "target"
    target.mkdir()
    done = leadline(
        "measure",
        str(target),
        "--cache-limit",
        f"{CACHE_MIB}MiB",
        "--seconds",
        "0.5",
        "--runs",
        "1",
        "--workload",
        f"unique_bytes={unique_mib}MiB,size_mean=4KiB,size_dist=fixed,"
        "read_frac=1,seq_frac=0,process_num=1",
        "--json",
        *options,
        store=tmp_path / "store.sqlite",
    )
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    # The read under way when the window opens is charged before it and answered in it.
    reads = answer["read"]["operations"]
    assert share_min <= answer["cached_share"]
    assert round(answer["cached_share"] * reads, 6) <= share_max * reads + 1
    if not options:
        assert answer["provenance"]["cached_share_from"] == "residency", answer["provenance"]
    assert not list(target.iterdir())
