"""The workbench's NFS server: nfs-ganesha per trial, its factors seen in what it does."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from nfs_server import why_not

from leadline.engine.servers import release_server, run_trial
from leadline.engine.servers.ganesha import why_no_ganesha
from leadline.engine.servers.striped_disks import why_no_disks
from leadline.record.workbench import (
    NfsServer,
    Threshold,
    Trial,
    TrialOrder,
    TrialRequest,
    TrialState,
)

pytestmark = pytest.mark.real
MIB = 2**20
LOST_S_MAX = 15.0
"""From a server's end to the end of its trial."""


@pytest.fixture
def directory(tmp_path: Path) -> Iterator[Path]:
    if reason := why_not(tmp_path) or why_no_ganesha(None, "mem"):
        pytest.skip(f"no NFS server here: {reason}")
    before = left_behind()
    yield tmp_path
    assert left_behind() - before == set()


def left_behind() -> set[str]:
    """Loop devices, groups and mounts of this process."""
    own = f"leadline-{os.getpid()}-"
    groups = {str(path) for path in Path("/sys/fs/cgroup").glob(f"*/**/{own}*")}
    loops = subprocess.run(["losetup", "-a"], capture_output=True, text=True, check=True).stdout
    return groups | {line for line in loops.splitlines() if "pytest" in line}


def trial_of(
    directory: Path, rate_per_s: float, seconds: float = 2.0, data_mib: int = 16, **settings: Any
) -> Trial:
    server = NfsServer(
        directory=str(directory), workload="db_tp", data_bytes=data_mib * MIB,
        settings=settings, warm_up_s=1.0,
    )  # fmt: skip
    request = TrialRequest(rate_per_s=rate_per_s, seconds=seconds)
    return run_trial(
        TrialOrder(server=server, sample={}, threshold=Threshold(mean_ms=40), request=request,
                   order=0, seed=1)
    )  # fmt: skip


def completed_per_s(trial: Trial) -> float:
    assert trial.state in (TrialState.DONE, TrialState.GENERATOR_LIMITED), trial.failure
    assert trial.measured is not None
    return trial.measured.completed_per_s


def test_a_data_set_is_made_once_and_removed_when_it_is_released(directory: Path) -> None:
    server = NfsServer(directory=str(directory), workload="db_tp", data_bytes=16 * MIB)
    first = trial_of(directory, 100)
    assert first.state is TrialState.DONE, first.failure
    assert first.measured is not None
    assert first.measured.response_ms is not None
    assert first.measured.response_ms.mean < 40
    (made,) = (directory / ".leadline").glob("data-*")
    inode = next(path for path in made.rglob("*") if path.is_file()).stat().st_ino
    second = trial_of(directory, 100)
    assert second.state is TrialState.DONE
    assert any(path.stat().st_ino == inode for path in made.rglob("*"))
    release_server(server, [{}, {}])
    assert not list(directory.iterdir())


def test_the_threads_that_stall_limit_what_is_done(directory: Path) -> None:
    """A stall of 1 ms per request: 3 workers end at most 3000 requests/s, 16 about as offered."""
    few = completed_per_s(trial_of(directory, 4500, back_end="mem", threads=4))
    many = completed_per_s(trial_of(directory, 4500, back_end="mem", threads=24))
    assert few < 3600, "of calls with a stall; some have none"
    assert many > 1.2 * few


def test_the_disks_limit_what_is_done(directory: Path) -> None:
    """Each disk does 50 requests a second; the file cache is smaller than the data."""
    if reason := why_no_disks():
        pytest.skip(f"no throttled disks here: {reason}")
    slow: dict[str, Any] = {"disk_iops": 50, "cache_cap": "48MiB", "data_mib": 128, "seconds": 4.0}
    one = completed_per_s(trial_of(directory, 600, disks=1, **slow))
    four = completed_per_s(trial_of(directory, 600, disks=4, **slow))
    assert four > 1.8 * one
    assert not (directory / ".leadline").exists()


def own_ganesha() -> int | None:
    """Process of the server that a trial of this process runs."""
    own = os.getpid()
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and (entry / "comm").read_text().strip() == "ganesha.nfsd":
                parent = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
                if parent == own:
                    return int(entry.name)
        except OSError:
            continue
    return None


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP])
def test_a_server_that_dies_or_stalls_under_load_is_lost_soon(
    directory: Path, how: signal.Signals
) -> None:
    harmed_s: list[float] = []

    def harm() -> None:
        end_s = time.monotonic() + 30
        while (pid := own_ganesha()) is None and time.monotonic() < end_s:
            time.sleep(0.05)
        time.sleep(4.0)  # into the window
        if pid is not None:
            os.kill(pid, how)
            harmed_s.append(time.monotonic())

    thread = threading.Thread(target=harm)
    thread.start()
    trial = trial_of(directory, 200, seconds=60.0)
    ended_s = time.monotonic()
    thread.join()
    assert trial.state is TrialState.SERVER_LOST, trial.failure
    assert "lost at 200 operations/s" in (trial.failure or "")
    assert ended_s - harmed_s[0] < LOST_S_MAX
