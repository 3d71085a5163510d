"""The workbench's NFS server: nfs-ganesha per trial, its factors seen in what it does."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from nfs_server import why_not

from engine_events import when_measuring
from leadline.engine.child import ENGINE_COMMAND
from leadline.engine.nfs_load import prepare_data, remove_data
from leadline.engine.targets.claim import EXPORT, claim
from leadline.engine.targets.nfs_address import NfsAddress
from leadline.errors import ServerLost, TargetRefused
from leadline.record.jobs.nfs import NfsData
from leadline.record.workbench import (
    NfsServer,
    Threshold,
    Trial,
    TrialOrder,
    TrialRequest,
    TrialState,
)
from leadline.servers import release_server, run_trial
from leadline.servers.ganesha import OWNER, GaneshaSettings, ganesha, why_no_ganesha
from leadline.servers.striped_disks import why_no_disks

pytestmark = pytest.mark.real
MIB = 2**20


@pytest.fixture
def directory(tmp_path: Path) -> Iterator[Path]:
    if reason := why_not(tmp_path) or why_no_ganesha(None, "mem"):
        pytest.skip(f"no NFS server here: {reason}")
    before = left_behind(tmp_path)
    yield tmp_path
    assert left_behind(tmp_path) - before == set()


def left_behind(directory: Path) -> set[str]:
    """Groups of this process, and loop devices of files below a directory."""
    own = f"leadline-{os.getpid()}-"
    groups = {str(path) for path in Path("/sys/fs/cgroup").glob(f"*/**/{own}*")}
    loops = subprocess.run(["losetup", "-a"], capture_output=True, text=True, check=True).stdout
    return groups | {line for line in loops.splitlines() if str(directory) in line}


def trial_of(
    directory: Path, rate_per_s: float, seconds: float = 1.0, data_mib: int = 16, **settings: Any
) -> Trial:
    server = NfsServer(
        directory=str(directory),
        workload="db_tp",
        data_bytes=data_mib * MIB,
        settings=settings,
        warm_up_s=0.2,
    )
    request = TrialRequest(rate_per_s=rate_per_s, seconds=seconds)
    return run_trial(
        TrialOrder(
            server=server,
            sample={},
            threshold=Threshold(mean_ms=40),
            request=request,
            order=0,
            seed=1,
        )
    )


def test_a_data_set_is_made_once_and_removed_when_it_is_released(directory: Path) -> None:
    server = NfsServer(directory=str(directory), workload="db_tp", data_bytes=16 * MIB)
    first = trial_of(directory, 100)
    assert first.measured is not None, first.failure
    assert first.measured.response_ms is not None
    exported = directory / ".leadline" / EXPORT
    (made,) = (exported / ".leadline").glob("data-*")
    inode = next(path for path in made.rglob("*") if path.is_file()).stat().st_ino
    second = trial_of(directory, 100)
    assert second.measured is not None, second.failure
    assert any(path.stat().st_ino == inode for path in made.rglob("*"))
    release_server(server, [{}, {}])
    assert not list(directory.iterdir())


def test_three_workers_that_stall_for_a_millisecond_end_no_more_than_they_can(
    directory: Path,
) -> None:
    """3000 requests/s, and some have no stall; that many workers do more, a calm machine says."""
    trial = trial_of(directory, 4500, seconds=1.0, back_end="mem", threads=4)
    assert trial.measured is not None, trial.failure
    assert 0 < trial.measured.completed_per_s < 3600


def test_disks_are_made_throttled_and_taken_away(directory: Path) -> None:
    """That they limit what is done, a calm machine says."""
    if reason := why_no_disks():
        pytest.skip(f"no throttled disks here: {reason}")
    trial = trial_of(
        directory, 100, seconds=1.0, data_mib=16, disks=2, disk_iops=500, cache_cap="48MiB"
    )
    assert trial.measured is not None, trial.failure
    assert trial.measured.completed_per_s > 0
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
def test_a_server_that_dies_or_stalls_under_load_is_lost(
    directory: Path, monkeypatch: pytest.MonkeyPatch, how: signal.Signals
) -> None:
    def harm() -> None:
        pid = own_ganesha()
        assert pid is not None
        os.kill(pid, how)

    harmed = when_measuring(monkeypatch, harm)
    trial = trial_of(directory, 200, seconds=3600.0)
    assert harmed
    assert trial.state is TrialState.SERVER_LOST, trial.failure
    assert "lost at 200 operations/s" in (trial.failure or "")


# ---- who reaches it ------------------------------------------------------------------------------


def test_only_root_reaches_the_server_and_writes_as_nobody(directory: Path) -> None:
    """As it was, any user of the machine made files of root's through it."""
    with claim(directory) as claimed:
        exported = claimed.export_folder(OWNER)
        with ganesha(GaneshaSettings(directory=exported, owner=OWNER)) as server:
            linked = subprocess.run(
                ["ip", "-4", "addr"], capture_output=True, text=True, check=True
            )
            assert server.address.rpartition(".")[0] not in linked.stdout, "no link leads there"
            own = exported.stat()
            assert (own.st_uid, own.st_mode & 0o777) == (OWNER, 0o700)
            assert exported.parent.stat().st_mode & 0o777 == 0o700
            assert exported.parent.stat().st_uid == 0, "nobody himself does not come so far"
            become = ("setpriv", f"--reuid={OWNER}", "--clear-groups")
            for words in (server.reaching(["true"]), ("ls", str(exported))):
                refused = subprocess.run([*become, *words], capture_output=True, check=False)
                assert refused.returncode != 0
            address = NfsAddress.parse(server.url_with_ports())
            data = NfsData(workload="db_tp", data_bytes=4 * MIB)
            with pytest.raises((TargetRefused, ServerLost)):
                prepare_data(address, data)
            prepare_data(address, data, server.reaching(ENGINE_COMMAND))
            made = [path.lstat() for path in exported.rglob("*")]
            assert {(each.st_uid, each.st_gid) for each in made} == {(OWNER, OWNER)}
            unprivileged = ("setpriv", "--bounding-set=-net_bind_service", *ENGINE_COMMAND)
            with pytest.raises((TargetRefused, ServerLost)):
                prepare_data(address, data, server.reaching(unprivileged))
            remove_data(address, data, server.reaching(ENGINE_COMMAND))
    assert not list(directory.iterdir())
