"""A quota of processor time, set for real: the capacities say how many processors that is."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from leadline.engine import open_streams
from leadline.record.job import Capacity, StreamJob

V1 = Path("/sys/fs/cgroup/cpu")
V2 = Path("/sys/fs/cgroup")
PERIOD_US = 100_000

CAPACITY = """
import sys
from leadline.engine import open_streams
from leadline.record.job import (Capacity, StreamJob)
job = StreamJob(kernel=Capacity(directories=(sys.argv[1],), bytes=1 << 20),
                memory_bytes=32 << 20, threads=1)
with open_streams() as streams:
    print(streams.run(job).capacity.processors)
"""


@contextlib.contextmanager
def quota(quota_us: int) -> Iterator[Path]:
    """Make a group with this quota, or skip where none can be made."""
    parent = V1 if (V1 / "cpu.cfs_quota_us").exists() else V2
    group = parent / f"leadline-test-{uuid.uuid4().hex[:8]}"
    try:
        group.mkdir()
    except OSError as error:
        pytest.skip(f"no group can be made in {parent}: {error}")
    try:
        if (group / "cpu.cfs_quota_us").exists():
            (group / "cpu.cfs_period_us").write_text(str(PERIOD_US))
            (group / "cpu.cfs_quota_us").write_text(str(quota_us))
        elif (group / "cpu.max").exists():
            (group / "cpu.max").write_text(f"{quota_us} {PERIOD_US}")
        else:
            pytest.skip(f"{parent} does not hand the cpu controller down")
        yield group
    finally:
        group.rmdir()


@pytest.mark.real
def test_a_quota_counts_as_part_of_a_processor(tmp_path: Path) -> None:
    with quota(PERIOD_US * 3 // 4) as group:
        enter = ["sh", "-c", 'echo $$ >"$0" && exec "$@"', str(group / "cgroup.procs")]
        done = subprocess.run(
            [*enter, sys.executable, "-c", CAPACITY, str(tmp_path)],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    assert done.stdout.strip() == "0.75", done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.real
def test_without_one_all_that_it_may_run_on_count(tmp_path: Path) -> None:
    job = StreamJob(
        kernel=Capacity(directories=(str(tmp_path),), bytes=1 << 20),
        memory_bytes=32 << 20,
        threads=1,
    )
    with open_streams() as streams:
        found = streams.run(job).capacity
    assert found is not None
    assert 0 < found.processors <= len(os.sched_getaffinity(0))
    assert len(found.disk_read_bytes_s[0]) == len(found.memory_copy_bytes_s) > 1
