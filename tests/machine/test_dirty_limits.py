"""The kernel's dirty limits are varied only with a guard, and always put back.

Most of it runs on a folder that stands for /proc/sys/vm; what the kernel itself does with the six
files is in tests/real/test_dirty_limits.py.
"""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from threading import Timer

import pytest

from leadline.engine import Stopped, stop_on_signals
from leadline.machine.dirty_guard import read_limits
from leadline.machine.dirty_limits import (
    RECORD,
    DirtyLimitsRefused,
    restore_left_limits,
    varied_dirty_limits,
)

BEFORE = {
    "dirty_ratio": 0,
    "dirty_bytes": 4 << 30,
    "dirty_background_ratio": 0,
    "dirty_background_bytes": 1 << 30,
    "dirty_expire_centisecs": 3000,
    "dirty_writeback_centisecs": 500,
}
HOLDER = """
import sys, time
from pathlib import Path
from leadline.machine.dirty_limits import varied_dirty_limits
with varied_dirty_limits(Path(sys.argv[1]), Path(sys.argv[2])) as limits:
    limits.put(dirty_bytes=8192, dirty_writeback_centisecs=0)
    print("changed", flush=True)
    time.sleep(60)
"""


@pytest.fixture
def vm(tmp_path: Path) -> Path:
    """A folder like /proc/sys/vm."""
    folder = tmp_path / "vm"
    folder.mkdir()
    for name, value in BEFORE.items():
        (folder / name).write_text(f"{value}\n")
    return folder


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    """Where what was there is recorded."""
    return tmp_path / "kept"


def test_what_was_there_comes_back_and_nothing_is_left(vm: Path, kept: Path) -> None:
    with varied_dirty_limits(vm, kept) as limits:
        assert limits.before == BEFORE
        record = json.loads((kept / RECORD).read_text())
        assert record["before"] == BEFORE, "recorded before the first change"
        limits.put(dirty_bytes=1 << 20, dirty_expire_centisecs=7)
        now = read_limits(vm)
        assert (now["dirty_bytes"], now["dirty_expire_centisecs"]) == (1 << 20, 7)
        limits.put_back()
        assert read_limits(vm) == BEFORE
        limits.put(dirty_background_bytes=4096)
    assert read_limits(vm) == BEFORE
    assert not kept.exists()


def test_an_error_within_and_a_stop_put_them_back(vm: Path, kept: Path) -> None:
    def vary(then: Callable[[], object]) -> None:
        with varied_dirty_limits(vm, kept) as limits:
            limits.put(dirty_bytes=8192)
            then()

    with pytest.raises(ZeroDivisionError):
        vary(lambda: 1 / 0)
    assert read_limits(vm) == BEFORE
    with pytest.raises(Stopped), stop_on_signals():
        vary(lambda: signal.raise_signal(signal.SIGTERM))
    assert read_limits(vm) == BEFORE
    assert not kept.exists()


def holder(vm: Path, kept: Path) -> subprocess.Popen[str]:
    """Another Leadline that has changed the limits."""
    child = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(vm), str(kept)],
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "changed\n"
    assert read_limits(vm)["dirty_bytes"] == 8192
    return child


def guards_of(pid: int) -> set[int]:
    """The process ids of guards that a process has started."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return {
        int(child)
        for child in children
        if b"dirty_guard" in Path(f"/proc/{child}/cmdline").read_bytes()
    }


def guard_of(pid: int) -> int:
    """The process id of a holder's guard."""
    (guard,) = guards_of(pid)
    return guard


def wait_until_put_back(vm: Path, kept: Path) -> None:
    end = time.monotonic() + 10
    while kept.exists() and time.monotonic() < end:  # a file may be read half written
        time.sleep(0.01)
    assert read_limits(vm) == BEFORE
    assert not kept.exists()


def end(child: subprocess.Popen[str], number: int) -> None:
    child.send_signal(number)
    child.communicate(timeout=30)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM], ids=["kill -9", "kill"])
def test_the_guard_outlives_a_killed_leadline(vm: Path, kept: Path, number: int) -> None:
    end(holder(vm, kept), number)
    wait_until_put_back(vm, kept)


def test_the_guard_outlives_the_kill_of_a_whole_process_group(vm: Path, kept: Path) -> None:
    child = holder(vm, kept)
    os.killpg(child.pid, signal.SIGKILL)
    child.communicate(timeout=30)
    wait_until_put_back(vm, kept)


def test_the_guard_ignores_what_ends_leadline_politely(vm: Path, kept: Path) -> None:
    child = holder(vm, kept)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        os.kill(guard_of(child.pid), number)
    end(child, signal.SIGKILL)
    wait_until_put_back(vm, kept)


def test_where_the_guard_was_killed_alone_leadline_puts_them_back(vm: Path, kept: Path) -> None:
    before = guards_of(os.getpid())  # an earlier test of this process may have left one that ends
    with varied_dirty_limits(vm, kept) as limits:
        limits.put(dirty_bytes=8192)
        (guard,) = guards_of(os.getpid()) - before
        os.kill(guard, signal.SIGKILL)
    assert read_limits(vm) == BEFORE
    assert not kept.exists()


def killed_with_its_guard(vm: Path, kept: Path) -> None:
    child = holder(vm, kept)
    guard = guard_of(child.pid)
    os.kill(guard, signal.SIGKILL)
    end(child, signal.SIGKILL)
    assert read_limits(vm)["dirty_bytes"] == 8192


def test_where_both_were_killed_the_next_start_puts_them_back(vm: Path, kept: Path) -> None:
    killed_with_its_guard(vm, kept)
    assert restore_left_limits(vm, kept)
    assert read_limits(vm) == BEFORE
    assert not kept.exists()
    assert not restore_left_limits(vm, kept), "there is nothing left to do"


def test_the_next_that_varies_them_takes_what_was_there_at_first(vm: Path, kept: Path) -> None:
    killed_with_its_guard(vm, kept)
    with varied_dirty_limits(vm, kept) as limits:
        assert limits.before == BEFORE
    assert read_limits(vm) == BEFORE


def test_a_record_of_another_boot_is_thrown_away(vm: Path, kept: Path) -> None:
    killed_with_its_guard(vm, kept)
    record = json.loads((kept / RECORD).read_text())
    (kept / RECORD).write_text(json.dumps(record | {"boot_id": "another"}))
    restore_left_limits(vm, kept)
    assert read_limits(vm)["dirty_bytes"] == 8192, "the machine's own limits since then"
    assert not kept.exists()


def test_two_at_once_are_refused_and_a_living_one_is_left_alone(vm: Path, kept: Path) -> None:
    child = holder(vm, kept)
    begin = time.monotonic()
    assert not restore_left_limits(vm, kept)
    assert time.monotonic() - begin < 2, "nobody waits for one that lives"
    with (
        pytest.raises(DirtyLimitsRefused, match="another Leadline is varying"),
        varied_dirty_limits(vm, kept),
    ):
        pass
    assert read_limits(vm)["dirty_bytes"] == 8192
    end(child, signal.SIGKILL)
    wait_until_put_back(vm, kept)


def test_a_guard_that_has_put_them_back_and_not_ended_yet_is_waited_for(
    vm: Path, kept: Path
) -> None:
    kept.mkdir()
    lock = os.open(kept, os.O_RDONLY | os.O_DIRECTORY)
    fcntl.flock(lock, fcntl.LOCK_EX)  # no record: the guard's last step but its end
    Timer(0.2, os.close, [lock]).start()
    with varied_dirty_limits(vm, kept) as limits:
        limits.put(dirty_bytes=8192)
    assert read_limits(vm) == BEFORE


def test_a_limit_that_is_not_there_or_not_known_is_refused(vm: Path, kept: Path) -> None:
    (vm / "dirty_bytes").unlink()
    with (
        pytest.raises(DirtyLimitsRefused, match=r"this kernel has no vm\.dirty_bytes"),
        varied_dirty_limits(vm, kept),
    ):
        pass
    (vm / "dirty_bytes").write_text(f"{BEFORE['dirty_bytes']}\n")
    with varied_dirty_limits(vm, kept) as limits, pytest.raises(ValueError, match="is none of"):
        limits.put(dirty_ratio=5)


def test_without_root_it_is_refused_with_the_reason(
    vm: Path, kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(DirtyLimitsRefused, match="run as root"), varied_dirty_limits(vm, kept):
        pass
    assert not kept.exists()
