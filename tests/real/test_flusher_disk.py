"""What the flusher costs on this disk, as root; the disciplines; the limits come back."""

from __future__ import annotations

from pathlib import Path

import pytest

from leadline.engine import Target, open_engine
from leadline.engine.dirty_guard import read_limits
from leadline.engine.dirty_limits import VM, why_not
from leadline.file_cache.disciplines import measure_disciplines
from leadline.file_cache.flusher import measure_flusher
from leadline.record import Workload

pytestmark = pytest.mark.real
WRITES = Workload(unique_bytes=48 << 20, size_mean=32 << 10, read_frac=0.0, size_dist="fixed")
TRIES = 3


@pytest.mark.skipif(why_not() is not None, reason=why_not() or "")
def test_the_flusher_rests_and_works_as_the_limits_say(tmp_path: Path) -> None:
    """Whether it slows anything is the machine's affair; that it rested and worked is seen."""
    before, target = read_limits(VM), Target.parse(str(tmp_path))
    for _ in range(TRIES):  # others write to the disk, too
        with open_engine(target) as engine:
            found, results = measure_flusher(engine, target, WRITES, pairs=2)
        assert read_limits(VM) == before
        assert len(results) == 4
        if found.resting_reach is None:
            pytest.skip(f"no device to watch: {found.reason}")
        assert found.working_reach is not None
        if found.resting_reach < 0.1 and found.working_reach > 4 * found.resting_reach:
            return
    pytest.fail(f"never told apart: {found}")


def test_what_waits_reaches_the_device_and_what_is_buffered_need_not(tmp_path: Path) -> None:
    with open_engine(Target.parse(str(tmp_path))) as engine:
        found, _ = measure_disciplines(engine, WRITES, passes=2, run_s=0.5)
    rates = {rate.name: rate for rate in found.rates}
    if rates["buffered"].device_reach is None:
        pytest.skip("no block device under the temporary directory")
    for name in ("O_DSYNC", "fsync each 8", "direct"):
        reach = rates[name].device_reach
        assert reach is not None, rates[name].reasons
        assert reach > 0.9, found
    dsync = rates["O_DSYNC"].against_buffered
    assert dsync is not None
    assert dsync.value < 0.5, found
