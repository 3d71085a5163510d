"""Trials on this machine: one at a time, between processes too; and what the pool refuses."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import threading
import time
from itertools import pairwise
from pathlib import Path

import pytest

from leadline.engine import TargetRefused
from leadline.machine.lock import WAITING, machine_locked
from leadline.machine.stop import Stopped
from leadline.record.workbench import SimulatedServer, Threshold, Trial, TrialOrder, TrialRequest
from leadline.servers import run_trial
from leadline.studies.workbench.pools.pool import PoolRefused, open_pool

SYSTEM = {"workers": 4, "service_ms": 5.0, "service": {"kind": "exponential"}}


def order(number: int = 0, wall_scale: float = 0.0) -> TrialOrder:
    return TrialOrder(
        server=SimulatedServer(system=SYSTEM, wall_scale=wall_scale),
        sample={},
        threshold=Threshold(mean_ms=20),
        request=TrialRequest(rate_per_s=300, seconds=180),
        order=number,
        seed=number,
    )


def test_a_trial_is_done_when_it_was_submitted_and_says_where_and_when_it_ran() -> None:
    with open_pool() as pool:
        future = pool.submit(run_trial, order(3))
        assert future.done()
        trial = future.result()
        assert trial.worker == os.uname().nodename == pool.names[0]
        assert trial.started_at.endswith("Z")
        assert pool.machines == 1
        assert pool.lost_trials == 0
    # Where it ran changes nothing of what was measured.
    assert trial.measured == run_trial(order(3)).measured


@pytest.mark.parametrize(
    "address", ["tcp://head:8786", "head:8786", "ws://10.1.2.3:80", "tcp://localhost.evil.org:1"]
)
def test_a_scheduler_without_tls_on_another_machine_is_refused(address: str) -> None:
    told: list[str] = []
    with pytest.raises(PoolRefused, match=r"without TLS.*tls://.*--insecure-scheduler"):
        open_pool(address, told.append)
    assert told == []


@pytest.mark.parametrize(
    ("address", "insecure", "warned"),
    [
        ("tcp://127.0.0.1:1", False, True),
        ("tcp://localhost:1", False, True),
        ("tcp://[::1]:1", False, True),
        ("tcp://leadline.invalid:1", True, True),
        ("tls://leadline.invalid:1", False, False),
    ],
)
def test_a_scheduler_without_tls_is_warned_of(
    address: str, insecure: bool, warned: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("distributed", reason="the pool's tests need leadline[cluster]")
    monkeypatch.setattr("leadline.studies.workbench.pools.dask_pool._CONNECT_S", 0.1)
    told: list[str] = []
    with pytest.raises(PoolRefused) as refused:
        open_pool(address, told.append, insecure=insecure)
    assert "without TLS" not in str(refused.value)
    assert ["without TLS" in line for line in told] == [True] * warned


def _refuse(_order: TrialOrder) -> Trial:
    raise TargetRefused("no such thing")


def _stop(_order: TrialOrder) -> Trial:
    raise Stopped("SIGINT")


def test_an_error_is_the_futures_and_a_stop_is_the_callers() -> None:
    with open_pool() as pool:
        refused = pool.submit(_refuse, order())
        with pytest.raises(TargetRefused, match="no such thing"):
            refused.result()
        with pytest.raises(Stopped):
            pool.submit(_stop, order())


_HOLDER = """
import sys, time
from pathlib import Path
from leadline.machine.lock import machine_locked
with machine_locked(lambda line: print(line, flush=True), Path(sys.argv[1])):
    begin = time.monotonic()
    print("holds", flush=True)
    time.sleep(float(sys.argv[2]))
    print("held", begin, time.monotonic(), flush=True)
"""


def _holder(folder: Path, seconds: float) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", _HOLDER, str(folder), str(seconds)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def _said(holder: subprocess.Popen[str]) -> list[str]:
    return holder.communicate(timeout=60)[0].splitlines()


def test_processes_have_the_machine_one_after_another_and_leave_no_file(tmp_path: Path) -> None:
    with machine_locked(print, tmp_path):
        holders = [_holder(tmp_path, 0.01) for _ in range(3)]
        for each in holders:
            assert each.stdout is not None
            assert each.stdout.readline() == f"{WAITING}\n"
    said = [_said(each) for each in holders]
    held = sorted(tuple(map(float, lines[-1].split()[1:])) for lines in said)
    assert len(held) == 3
    for (_, end), (begin, _) in pairwise(held):
        assert begin >= end
    assert all(WAITING not in lines for lines in said), "it is told once"
    assert list(tmp_path.iterdir()) == []


def test_a_killed_process_gives_the_machine_back(tmp_path: Path) -> None:
    holder = _holder(tmp_path, 3600)
    assert holder.stdout is not None
    assert holder.stdout.readline() == "holds\n"
    told: list[str] = []

    def kill(line: str) -> None:
        told.append(line)
        holder.kill()

    with machine_locked(kill, tmp_path):
        assert told == [WAITING]
    _said(holder)


def test_a_lock_whose_file_is_gone_is_no_lock(tmp_path: Path) -> None:
    first = os.open(tmp_path / "leadline-machine", os.O_CREAT)
    fcntl.flock(first, fcntl.LOCK_EX)
    waits, entered = threading.Event(), threading.Event()

    def second() -> None:
        with machine_locked(lambda _line: waits.set(), tmp_path):
            entered.set()

    waiting = threading.Thread(target=second)
    waiting.start()
    assert waits.wait(60)
    (tmp_path / "leadline-machine").unlink()
    with machine_locked(print, tmp_path):
        os.close(first)
        assert not entered.wait(0.4)
    waiting.join(60)
    assert entered.is_set()


def test_a_lock_that_somebody_keeps_is_refused_in_time_and_says_who_has_it(tmp_path: Path) -> None:
    holder = _holder(tmp_path, 3600)
    assert holder.stdout is not None
    assert holder.stdout.readline() == "holds\n"
    told: list[str] = []
    said = rf"leadline-machine was locked .*process {holder.pid}\).*end that process, or as root"
    with (
        pytest.raises(TargetRefused, match=said),
        machine_locked(told.append, tmp_path, patience_s=0.0),
    ):
        pass
    assert told == [WAITING]
    assert (tmp_path / "leadline-machine").exists(), "it is the other's"
    holder.kill()
    _said(holder)


def test_a_lock_that_is_no_file_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "leadline-machine").symlink_to("/dev/null")
    with (
        pytest.raises(TargetRefused, match=r"leadline-machine: .*; remove it"),
        machine_locked(print, tmp_path),
    ):
        pass


def test_only_what_uses_the_machine_waits_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("leadline.machine.lock._RUN_LOCK", tmp_path)
    told: list[str] = []
    with open_pool(tell=told.append) as pool:
        with machine_locked(print, tmp_path):
            assert pool.submit(run_trial, order()).result().order == 0
            waiting = threading.Thread(target=lambda: pool.submit(time.monotonic))
            waiting.start()
            waiting.join(0.4)
            assert waiting.is_alive()
        waiting.join(60)
        assert not waiting.is_alive()
    assert told == [WAITING]


def test_without_dask_the_refusal_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    monkeypatch.delitem(sys.modules, "leadline.studies.workbench.pools.dask_pool", raising=False)
    with pytest.raises(PoolRefused, match=r"pip install 'leadline\[cluster\]'"):
        open_pool("tcp://127.0.0.1:1")


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("tcp://127.0.0.1:1", "no Dask scheduler answers at tcp://127.0.0.1:1"),
        ("ftp://127.0.0.1:1", "cannot be used as a scheduler's address"),
        ("tls://127.0.0.1:1", "TLS"),
    ],
)
def test_a_scheduler_that_is_none_is_refused(
    address: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("distributed")
    monkeypatch.setattr("leadline.studies.workbench.pools.dask_pool._CONNECT_S", 0.5)
    with pytest.raises(PoolRefused, match=words):
        open_pool(address)
