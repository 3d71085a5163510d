"""The file cache of this machine in a small memory cgroup: its sizes, and its policy twice."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from command import leadline
from leadline.engine import Limits, Target, open_engine
from leadline.file_cache.policy import Rates, judge, tally
from leadline.record import NO_SYNC, Measurement, Workload, WritePolicy
from leadline.store import open_store

pytestmark = pytest.mark.real
MIB = 2**20
CAP_MIB = 96
TRIES = 3


def test_both_sizes_are_those_of_the_cgroups_room(tmp_path: Path) -> None:
    """A neighbour's `sync` writes the cache out and hides its size: one of three studies has it."""
    tried: list[list[float]] = []
    while len(tried) < TRIES and not (tried and all(0.85 <= share <= 1.15 for share in tried[-1])):
        tried.append(studied_shares(tmp_path, len(tried)))
    assert all(0.85 <= share <= 1.15 for share in tried[-1]), tried


def studied_shares(folder: Path, number: int) -> list[float]:
    """Study a directory; return both sizes as shares of the room that the kernel gave files."""
    target, store = folder / "target", folder / "store.sqlite"
    target.mkdir(exist_ok=True)
    done = leadline(
        "cache", str(target), "--cache-limit", f"{CAP_MIB}MiB", "--budget", "48s", "--json",
        "--seed", str(number + 1), store=store, timeout_s=150,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert list(target.iterdir()) == []
    answer = json.loads(done.stdout)
    assert answer["policy"] in ("write-cancelling", "cannot tell")
    with open_store(str(store)) as kept:
        points = kept.study_points(answer["study"])
    room = max(point.result.cache_resident_bytes or 0 for point in points)
    assert 0.7 * CAP_MIB * MIB < room <= CAP_MIB * MIB
    sizes = (answer["read_cache"]["bytes"], answer["write_cache"]["bytes"])
    return [size["value"] / room if size else 0.0 for size in sizes]


@pytest.mark.parametrize(
    ("sync", "policy"), [(NO_SYNC, WritePolicy.CANCELLING), ("dsync", WritePolicy.THROUGH)]
)
def test_buffered_writes_are_cancelled_and_synchronous_ones_go_through(
    tmp_path: Path, sync: str, policy: WritePolicy
) -> None:
    work = Workload(
        unique_bytes=2 * MIB, size_mean=32768, read_frac=0.0, seq_frac=0.0, size_dist="fixed"
    )
    limits = Limits(warm_up_s_max=0.5, measure_s_min=2.0, measure_s_max=2.0, total_s_max=60.0)
    found = None
    for seed in range(TRIES):
        target = Target.parse(str(tmp_path))
        with open_engine(target, sync=sync, cache_limit_bytes=CAP_MIB * MIB) as engine:
            result = engine.run(work, seed=seed, limits=limits)
        point = Measurement(
            point_id="p", survey_id=None, order=0, stage="policy", started_at="", clock_s=0.0,
            seed=seed, workload=work, backend="pread", result=result,
        )  # fmt: skip
        found = judge(Rates(), tally([point]), beyond=False)
        if found[0] is policy:
            return
    pytest.fail(f"{found}")
