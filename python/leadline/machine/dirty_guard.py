"""Puts the kernel's dirty limits back when the Leadline that changed them has gone.

It is run by itself, `python -I -S dirty_guard.py VM_FOLDER RECORD`, in a session of its own, and
needs nothing but the standard library. Its stdin is a pipe whose other end only that Leadline has:
the kernel closes it at an end of any kind, `kill -9` included. Then the limits in the record are
written back and the record is removed. `leadline.machine.dirty_limits` holds the other half.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

PAIRS = (("dirty_ratio", "dirty_bytes"), ("dirty_background_ratio", "dirty_background_bytes"))
"""Writing either of a pair makes the kernel set the other to 0."""
TIMES = ("dirty_expire_centisecs", "dirty_writeback_centisecs")
READY = b"ready\n"


def read_limits(vm: Path) -> dict[str, int]:
    """Read all six limits from the kernel's folder.

    Raises:
        OSError: one of them is not there.

    """
    names = [name for pair in PAIRS for name in pair] + list(TIMES)
    return {name: int((vm / name).read_text()) for name in names}


def write_limit(vm: Path, name: str, value: int) -> None:
    """Write one limit; the file is never made.

    Raises:
        OSError: the kernel refuses, or this user may not.

    """
    file = os.open(vm / name, os.O_WRONLY | os.O_TRUNC)
    try:
        os.write(file, f"{value}\n".encode())
    finally:
        os.close(file)


def put_back(vm: Path, before: Mapping[str, int]) -> None:
    """Write what was there before: of each pair the one that was in force.

    Raises:
        OSError: the kernel refuses, or this user may not.

    """
    for ratio, amount in PAIRS:
        name = amount if before[amount] else ratio
        write_limit(vm, name, before[name])
    for name in TIMES:
        write_limit(vm, name, before[name])


def main(vm: Path, record: Path) -> int:
    """Wait for the end of stdin, then put back what the record says."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE):
        signal.signal(number, signal.SIG_IGN)
    before = json.loads(record.read_text())["before"]
    os.write(1, READY)
    while os.read(0, 64):
        pass
    put_back(vm, before)
    record.unlink(missing_ok=True)
    with suppress(OSError):
        record.parent.rmdir()
    return 0


if __name__ == "__main__":
    raise SystemExit(main(Path(sys.argv[1]), Path(sys.argv[2])))
