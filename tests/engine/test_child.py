"""The engine child: every way it can answer, die or hang ends in an answer or a clear error."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from leadline.engine import (
    EngineFault,
    NothingCompleted,
    PointFailed,
    Stopped,
    TargetRefused,
    child,
    stop_on_signals,
)
from leadline.engine.child import EngineChild
from leadline.record import Access, Limits, Workload
from leadline.record.job import DirectoryTarget, JobTarget, MeasureJob, NullTarget
from places import TESTS

FAKE = str(TESTS / "fake_child.py")
LONG_S = 100.0
"""A child that is not to be ended for its slowness gets this, however busy the machine is."""


def job(
    job_id: str = "job-1", *, total_s_max: float = LONG_S, target: JobTarget | None = None
) -> MeasureJob:
    return MeasureJob.of(
        job_id,
        target or NullTarget(),
        Access(backend="null"),
        Workload(unique_bytes=2**20, size_mean=4096),
        seed=1,
        limits=Limits(total_s_max=total_s_max),
    )


LARGE = DirectoryTarget("/" + "x" * 2**20)


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait longer than real runs do: what a test says of a child is not that it was slow."""
    monkeypatch.setattr(child, "_POLITE_S", LONG_S)


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait shorter than real runs do, for children that would never end."""
    monkeypatch.setattr(child, "GRACE_S", 0.2)
    monkeypatch.setattr(child, "_POLITE_S", 0.2)


@pytest.fixture
def started() -> Iterator[list[EngineChild]]:
    """Return a list whose children must all be gone in the end."""
    children: list[EngineChild] = []
    yield children
    for one in children:
        one.close()
        assert not one.alive


def start(started: list[EngineChild], mode: str) -> EngineChild:
    started.append(EngineChild([sys.executable, FAKE, mode]))
    return started[-1]


def test_jobs_one_after_another(started: list[EngineChild]) -> None:
    engine = start(started, "answers")
    for job_id in ("job-1", "job-2"):
        seen: list[dict[str, Any]] = []
        result = engine.exchange(job(job_id), seen.append)
        assert (result["event"], result["job_id"]) == ("result", job_id)
        assert [event["event"] for event in seen] == ["phase", "progress"]
    assert engine.alive


def test_a_session_of_its_own(started: list[EngineChild]) -> None:
    """A Ctrl-C on the terminal goes to the controller alone."""
    engine = start(started, "answers")
    assert os.getsid(engine.pid) == engine.pid != os.getsid(0)


@pytest.mark.parametrize(
    ("mode", "message"),
    [
        ("dies", "ended with exit code 7 before it answered; it said: panicked at the disco"),
        ("killed", r"killed by SIGKILL \(by another process, or by the kernel for want of memory"),
        ("garbage", "no event: 'Segmentation fault'"),
        ("wrong-job", "no event: .*another"),
        ("error-fault", "told to: fault"),
    ],
)
def test_faults(started: list[EngineChild], mode: str, message: str) -> None:
    engine = start(started, mode)
    with pytest.raises(EngineFault, match=message) as fault:
        engine.exchange(job())
    assert fault.value.exit_code == 1
    assert mode == "error-fault" or not engine.alive


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("mode", ["hangs", "deaf"])
def test_one_that_never_answers_is_ended(started: list[EngineChild], mode: str) -> None:
    engine = start(started, mode)
    with pytest.raises(EngineFault, match="no answer in time") as fault:
        engine.exchange(job(total_s_max=0.2))
    assert fault.value.exit_code == 1
    assert not engine.alive


@pytest.mark.usefixtures("impatient")
def test_one_that_closes_its_output_is_ended(started: list[EngineChild]) -> None:
    engine = start(started, "closes")
    with pytest.raises(EngineFault, match="closed its output without an answer"):
        engine.exchange(job())
    assert not engine.alive


@pytest.mark.usefixtures("impatient")
def test_a_job_larger_than_a_pipe_does_not_block_on_a_deaf_child(
    started: list[EngineChild],
) -> None:
    engine = start(started, "deaf")
    with pytest.raises(EngineFault, match="no answer in time"):
        engine.exchange(job(total_s_max=0.2, target=LARGE))


def test_a_large_job_arrives_whole(started: list[EngineChild]) -> None:
    engine = start(started, "answers")
    assert engine.exchange(job(target=LARGE))["event"] == "result"


def test_an_io_error_fails_the_point_and_not_the_engine(started: list[EngineChild]) -> None:
    engine = start(started, "error-io")
    for _ in range(2):
        with pytest.raises(PointFailed, match="told to: io"):
            engine.exchange(job())


def test_a_window_without_a_request_is_told_from_an_io_error(started: list[EngineChild]) -> None:
    engine = start(started, "error-nothing_completed")
    with pytest.raises(NothingCompleted):
        engine.exchange(job())


@pytest.mark.parametrize("kind", ["target", "bad_job"])
def test_refusals_by_the_engine(started: list[EngineChild], kind: str) -> None:
    engine = start(started, f"error-{kind}")
    with pytest.raises(TargetRefused, match=f"told to: {kind}") as refused:
        engine.exchange(job())
    assert refused.value.exit_code == 5


def test_no_such_engine() -> None:
    with pytest.raises(EngineFault, match=r"cannot be started: /nowhere/engine"):
        EngineChild(["/nowhere/engine"])


@pytest.mark.usefixtures("impatient")
def test_one_that_ignores_sigterm_is_killed(started: list[EngineChild]) -> None:
    engine = start(started, "stubborn")

    def it_ignores(_event: dict[str, Any]) -> None:
        raise ValueError("its first word")

    with pytest.raises(ValueError, match="its first word"):
        engine.exchange(job(), it_ignores)
    assert engine._process.returncode == -signal.SIGKILL


def test_an_idle_one_ends_by_itself(started: list[EngineChild]) -> None:
    engine = start(started, "answers")
    engine.exchange(job())
    engine.close()
    assert engine._process.returncode == 0


def test_a_signal_during_a_job_ends_the_child(started: list[EngineChild]) -> None:
    engine = start(started, "hangs")
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGTERM))
    with pytest.raises(Stopped), stop_on_signals():  # noqa: PT012 - the timer belongs inside
        timer.start()
        engine.exchange(job())
    timer.join()
    assert not engine.alive


def test_an_error_in_the_callback_ends_the_child(started: list[EngineChild]) -> None:
    """Else the rest of this job's events would answer the next one."""
    engine = start(started, "answers")

    def fail(_event: dict[str, Any]) -> None:
        raise ValueError("callback")

    with pytest.raises(ValueError, match="callback"):
        engine.exchange(job(), fail)
    assert not engine.alive


def test_the_child_ends_with_a_killed_controller() -> None:
    """Its stdin ends, whatever else the engine does about it."""
    code = (
        "import sys, time; from leadline.engine.child import EngineChild\n"
        f"engine = EngineChild([sys.executable, {FAKE!r}, 'answers'])\n"
        "print(engine.pid, flush=True); time.sleep(600)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True
    ) as controller:
        assert controller.stdout is not None
        pid = int(controller.stdout.readline())
        descriptor = os.pidfd_open(pid)
        controller.kill()
    assert select.select([descriptor], [], [], 60)[0], "the child still runs"
    os.close(descriptor)


def test_a_job_is_looked_after_although_the_engine_says_nothing(started: list[EngineChild]) -> None:
    engine = start(started, "hangs")
    looks: list[float] = []

    def look() -> None:
        looks.append(time.monotonic())
        if len(looks) == 2:
            raise TargetRefused("the disk is full")

    with pytest.raises(TargetRefused, match="the disk is full"):
        engine.exchange(job(), look=look)
    assert len(looks) == 2
    assert not engine.alive
