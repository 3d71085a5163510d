"""The kernel's own dirty limits, as root: changed, and put back after a real kill."""

from __future__ import annotations

import signal
import subprocess
import sys
import time

import pytest

from leadline.machine.dirty_guard import read_limits
from leadline.machine.dirty_limits import FOLDER, VM, varied_dirty_limits, why_not

pytestmark = [pytest.mark.real, pytest.mark.skipif(why_not() is not None, reason=why_not() or "")]
HOLDER = """
import time
from leadline.machine.dirty_limits import varied_dirty_limits
with varied_dirty_limits() as limits:
    limits.put(dirty_bytes=1 << 30, dirty_background_bytes=1 << 29, dirty_writeback_centisecs=0)
    print("changed", flush=True)
    time.sleep(60)
"""


def test_the_kernel_takes_them_and_gets_back_what_it_had() -> None:
    before = read_limits(VM)
    with varied_dirty_limits() as limits:
        limits.put(dirty_bytes=1 << 30, dirty_expire_centisecs=2999)
        now = read_limits(VM)
        assert (now["dirty_bytes"], now["dirty_ratio"]) == (1 << 30, 0)
        assert now["dirty_expire_centisecs"] == 2999
    assert read_limits(VM) == before
    assert not FOLDER.exists()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM], ids=["kill -9", "kill"])
def test_a_killed_leadline_leaves_the_kernel_as_it_was(number: int) -> None:
    before = read_limits(VM)
    child = subprocess.Popen([sys.executable, "-c", HOLDER], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    assert child.stdout.readline() == "changed\n"
    assert read_limits(VM)["dirty_writeback_centisecs"] == 0
    child.send_signal(number)
    child.communicate(timeout=30)
    end = time.monotonic() + 60
    while read_limits(VM) != before and time.monotonic() < end:
        time.sleep(0.01)
    assert read_limits(VM) == before
