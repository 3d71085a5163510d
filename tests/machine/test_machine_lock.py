"""The machine's lock: one trial at a time, and no user keeps root from it."""

from __future__ import annotations

import fcntl
import os
import pwd
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

import pytest

from attacker import NOBODY, as_nobody, attacker
from leadline.engine import TargetRefused
from leadline.machine.lock import LOST, WAITING, machine_locked

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
    said = rf"leadline-machine was locked .*process {holder.pid} of user \w+\).*or as root remove"
    with (
        pytest.raises(TargetRefused, match=said),
        machine_locked(told.append, tmp_path, timeout_s=0.0),
    ):
        pass
    assert told == [WAITING]
    assert (tmp_path / "leadline-machine").exists(), "it is the other's"
    holder.kill()
    _said(holder)


def test_a_lock_that_is_no_file_is_refused_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("leadline.machine.lock.os.geteuid", lambda: NOBODY)
    (tmp_path / "leadline-machine").symlink_to("/dev/null")
    with (
        pytest.raises(TargetRefused, match=r"leadline-machine: .*; remove it"),
        machine_locked(print, tmp_path),
    ):
        pass


class Nobody:
    """A process of an unprivileged user that keeps the machine's lock in a directory for all."""

    def __init__(self, folder: Path, act: Callable[[Path], None]) -> None:
        folder.chmod(0o1777)
        self.told: list[str] = []
        self._folder = folder
        self._user = attacker(lambda: act(folder / "leadline-machine"))

    def __enter__(self) -> Nobody:
        self._user.__enter__()
        ready = self._folder / "ready"
        while not ready.exists():
            time.sleep(0.01)
        return self

    def __exit__(self, *_: object) -> None:
        self._user.__exit__(None, None, None)


def _keep(path: Path) -> None:
    """Take it, and every file that comes to its place, again and again."""
    while True:
        with suppress(OSError):
            lock = os.open(path, os.O_RDONLY | os.O_CREAT, 0o644)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                os.close(lock)
        path.with_name("ready").touch()
        time.sleep(0.001)


def _is_free(path: Path) -> bool:
    """Whether nobody has the lock; tried in passing."""
    try:
        lock = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return True
    try:
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(lock)
    return True


def _keep_as_root_to_be_seen(path: Path) -> None:
    """Keep it in a process that becomes a setuid program, which waits."""
    os.set_inheritable(lock := os.open(path, os.O_RDONLY | os.O_CREAT, 0o644), True)
    fcntl.flock(lock, fcntl.LOCK_EX)
    path.with_name("ready").touch()
    os.execv(path.with_name("setuid"), ["setuid", "3600"])  # noqa: S606


@pytest.fixture
def public() -> Iterator[Path]:
    """Return a directory that others can write to, as /run/lock; none of pytest's own is."""
    with tempfile.TemporaryDirectory(prefix="leadline-lock-") as text:
        Path(text).chmod(0o1777)
        yield Path(text)


@pytest.fixture(autouse=True)
def strangers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody was waited for yet."""
    monkeypatch.setattr("leadline.machine.lock._WAITED_FOR", set())


ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="an unprivileged user needs root beside him")


@ROOT
def test_another_user_cannot_keep_root_from_the_machine(public: Path) -> None:
    told: list[str] = []
    with Nobody(public, _keep):
        for foreign_s in (0.3, 3600.0):  # he is not waited for so long again
            while _is_free(public / "leadline-machine"):
                time.sleep(0.001)
            with machine_locked(told.append, public, timeout_s=60.0, foreign_s=foreign_s):
                facts = (public / "leadline-machine").stat()
                assert facts.st_uid == 0, "it is root's own"
                assert not _is_free(public / "leadline-machine")
    assert told[0] == WAITING
    named = f"of user {pwd.getpwuid(NOBODY).pw_name} kept"
    assert [named in line for line in told if line.startswith("warning: process")] == [True, True]


@ROOT
def test_a_setuid_program_does_not_pass_for_roots(public: Path) -> None:
    sleep = shutil.which("sleep")
    assert sleep is not None
    shutil.copy(sleep, public / "setuid")
    (public / "setuid").chmod(0o4755)
    told: list[str] = []
    with (
        Nobody(public, _keep_as_root_to_be_seen),
        machine_locked(told.append, public, timeout_s=60.0, foreign_s=0.3),
    ):
        assert "of user" in told[-1]


@ROOT
@pytest.mark.parametrize("lay", ["pipe", "link", "folder"])
def test_root_puts_a_lock_in_the_place_of_what_is_none(public: Path, lay: str) -> None:
    path = public / "leadline-machine"

    def act() -> None:
        if lay == "pipe":
            os.mkfifo(path)
        elif lay == "link":
            path.symlink_to("/etc/passwd")
        else:
            (path / "full").mkdir(parents=True)

    as_nobody(act)
    told: list[str] = []
    with machine_locked(told.append, public):
        assert path.is_file()
        assert not path.is_symlink()
    assert "it is replaced" in told[0]
    assert not os.path.lexists(path)


@ROOT
def test_root_waits_for_root(public: Path) -> None:
    holder = _holder(public, 3600)
    assert holder.stdout is not None
    assert holder.stdout.readline() == "holds\n"
    with (
        pytest.raises(TargetRefused, match=rf"process {holder.pid} of user root"),
        machine_locked(print, public, timeout_s=0.5, foreign_s=0.0),
    ):
        pass
    holder.kill()
    _said(holder)


def test_whoever_lost_the_machine_is_told(tmp_path: Path) -> None:
    told: list[str] = []
    with machine_locked(told.append, tmp_path):
        (tmp_path / "leadline-machine").unlink()
    assert told == [LOST]
