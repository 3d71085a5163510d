"""What writeback and the write modes cost on this disk, as root: whole, and the limits come back.

Whether writeback rested and worked, and what reached the device when, needs a calm machine:
`make check-machine`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from leadline.engine import NothingCompleted, Target, open_engine
from leadline.machine.dirty_guard import read_limits
from leadline.machine.dirty_limits import VM, why_not
from leadline.record import Workload
from leadline.studies.cache.flusher import measure_flusher
from leadline.studies.cache.write_costs import measure_disciplines

pytestmark = pytest.mark.real
WRITES = Workload(unique_bytes=8 << 20, size_mean=32 << 10, read_frac=0.0, size_dist="fixed")


@pytest.mark.skipif(why_not() is not None, reason=why_not() or "")
def test_the_flusher_is_measured_at_rest_and_at_work_and_the_limits_come_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("leadline.studies.cache.flusher.RUN_S", 0.3)
    before, target = read_limits(VM), Target.parse(str(tmp_path))
    with open_engine(target) as engine:
        found, results = measure_flusher(engine, target, WRITES, pairs=2)
    assert read_limits(VM) == before
    assert list(tmp_path.iterdir()) == []
    if found.reason != "a write took longer than a whole run of 300 ms":  # another's load
        assert len(results) == 4
        assert found.resting_reach is not None, found.reason
        assert found.working_reach is not None, found.reason


@pytest.mark.skipif(why_not() is not None, reason=why_not() or "")
def test_a_write_that_outlasts_its_run_leaves_the_cost_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, target = read_limits(VM), Target.parse(str(tmp_path))
    with open_engine(target) as engine:

        def stall(*_: object, **__: object) -> None:
            raise NothingCompleted("no request completed")

        monkeypatch.setattr(engine, "run", stall)
        found, results = measure_flusher(engine, target, WRITES, pairs=2)
    assert read_limits(VM) == before
    assert (found.verdict, results) == ("inconclusive", ())
    assert found.reason == "a write took longer than a whole run of 1.5 s"


def test_every_discipline_is_measured(tmp_path: Path) -> None:
    with open_engine(Target.parse(str(tmp_path))) as engine:
        found, results = measure_disciplines(engine, WRITES, passes=1, run_s=0.2)
    rates = {rate.name: rate for rate in found.rates}
    assert {"buffered", "O_DSYNC", "fsync each 8", "direct"} <= set(rates)
    assert all(rate.device_reach is not None for rate in found.rates), found
    assert len(results) >= len(rates)
    assert list(tmp_path.iterdir()) == []
