"""The page cache of this machine in a small memory cgroup: a whole study, and a policy.

How near the sizes come to the truth needs a calm machine: `make check-machine`.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from command import hurried
from leadline.engine import Limits, Target, open_engine
from leadline.record import Access, Measurement, Status, Workload, WritePolicy
from leadline.store import open_store
from leadline.studies.cache.sizes import Rates, judge, tally

pytestmark = pytest.mark.real
MIB = 2**20
CAP_MIB = 64


def test_a_study_ends_with_what_it_found_and_leaves_nothing(tmp_path: Path) -> None:
    target, store = tmp_path / "target", tmp_path / "store.sqlite"
    target.mkdir()
    done = hurried(
        "cache",
        str(target),
        "--cache-limit",
        f"{CAP_MIB}MiB",
        "--budget",
        "90s",
        "--json",
        store=store,
    )
    assert done.returncode == 0, done.stderr
    assert list(target.iterdir()) == []
    answer = json.loads(done.stdout)
    assert answer["status"] == Status.DONE
    assert answer["policy"] in [policy.value for policy in WritePolicy]
    for kind in ("read_cache", "write_cache"):
        found = answer[kind]["bytes"]
        assert found is None or found["low"] <= found["value"] <= found["high"]
        assert found is not None or answer[kind]["reason"]
    with open_store(str(store)) as kept:
        points = kept.items(answer["study"])
    assert len(points) == answer["points"] > 0
    assert all(0 < (point.result.cache_resident_bytes or 1) <= CAP_MIB * MIB for point in points)


def test_synchronous_writes_go_through(tmp_path: Path) -> None:
    """The device has written what was asked, whatever else it wrote for others.

    A hundred requests and no fixed time: a disk may stall for longer than a window.
    """
    work = Workload(
        unique_bytes=2 * MIB, size_mean=32768, read_frac=0.0, seq_frac=0.0, size_dist="fixed"
    )
    limits = Limits(warm_up_s_max=0.1, measure_s_min=60, measure_s_max=60, operations_max=100)
    with open_engine(
        Target.parse(str(tmp_path)), Access(sync="dsync", cache_limit_bytes=CAP_MIB * MIB)
    ) as engine:
        result = engine.run(work, seed=1, limits=limits)
    point = Measurement(
        point_id="p",
        order=0,
        stage="policy",
        started_at="",
        clock_s=0.0,
        seed=1,
        workload=work,
        backend="pread",
        result=result,
    )
    policy, evidence = judge(Rates(), tally([point]), beyond=False)
    assert policy is WritePolicy.THROUGH, evidence
