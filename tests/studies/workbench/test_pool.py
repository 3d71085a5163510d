"""Trials on this machine: one at a time, between processes too; and what the pool refuses."""

from __future__ import annotations

import os
import sys
import threading
import time
from pathlib import Path

import pytest

from leadline.engine import TargetRefused
from leadline.machine.lock import WAITING, machine_locked
from leadline.machine.stop import Stopped
from leadline.record.workbench import SimulatedServer, Threshold, Trial, TrialOrder, TrialRequest
from leadline.servers import run_trial
from leadline.studies.workbench.pool import PoolRefused, open_pool

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
    monkeypatch.setattr("leadline.studies.workbench.dask_pool._CONNECT_S", 0.1)
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
    monkeypatch.delitem(sys.modules, "leadline.studies.workbench.dask_pool", raising=False)
    with pytest.raises(PoolRefused, match=r"pip install 'leadline\[cluster\]'"):
        open_pool("tcp://127.0.0.1:1")


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("tcp://127.0.0.1:1", "no Dask scheduler answers at tcp://127.0.0.1:1"),
        ("ftp://127.0.0.1:1", "cannot be used as a scheduler's address"),
        ("ucx://127.0.0.1:1", "ucx is none of tcp, tls, ws, wss"),
        ("tls://127.0.0.1:1", "TLS"),
    ],
)
def test_a_scheduler_that_is_none_is_refused(
    address: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("distributed")
    monkeypatch.setattr("leadline.studies.workbench.dask_pool._CONNECT_S", 0.5)
    with pytest.raises(PoolRefused, match=words):
        open_pool(address)
