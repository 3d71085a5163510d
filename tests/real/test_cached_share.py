"""Where the bytes came from, against a cache of known size: a memory cgroup of 512 MiB."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from command import leadline

pytestmark = pytest.mark.real
CACHE_MIB = 512
WITHIN = 0.05


ATTEMPTS = 3
"""A second of warm-up may be too short for the cache to settle on a machine that is busy."""


@pytest.mark.parametrize("unique_mib", [128, 640, 1024, 2048])
def test_the_share_from_cache_is_the_share_of_the_data_that_the_cache_holds(
    unique_mib: int, tmp_path: Path
) -> None:
    target = tmp_path / "target"
    target.mkdir()
    expected: Any = pytest.approx(min(1.0, CACHE_MIB / unique_mib), abs=WITHIN)
    shares: list[float] = []
    while not shares or (shares[-1] != expected and len(shares) < ATTEMPTS):
        shares.append(cached_share(target, unique_mib, store=tmp_path / "store.sqlite"))
        assert not list(target.iterdir())
    assert shares[-1] == expected, shares


def cached_share(target: Path, unique_mib: int, *, store: Path) -> float:
    done = leadline(
        "measure", str(target), "--cache-limit", f"{CACHE_MIB}MiB", "--seconds", "1", "--runs", "1",
        "--workload", f"unique_bytes={unique_mib}MiB,size_mean=4KiB,size_dist=fixed,read_frac=1,"
        "seq_frac=0,process_num=1", "--json", store=store, timeout_s=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert answer["provenance"]["cached_share_from"] == "residency", answer["provenance"]
    return float(answer["cached_share"])
