"""A program that reads until a file named `end` is in its folder, and then says that it is whole.

usage: watched_program.py MODE FOLDER [EXECS LEFT]
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time

ALL = signal.valid_signals()
EXECS = 8
ENDING = threading.Lock()


def main(mode: str, folder: str, left: str = "") -> None:
    """Get into the mode, say so, and read."""
    fd = os.open(folder + "/data", os.O_RDWR | os.O_CREAT, 0o600)
    os.ftruncate(fd, 1 << 20)
    settle(mode)
    if mode == "exec":
        threading.Thread(target=become_another, args=(folder, int(left or EXECS))).start()
    if not left:
        print("ready", flush=True)
    if mode == "stopped":
        os.kill(os.getpid(), signal.SIGSTOP)
    number = 0
    while number % 100 or not os.path.exists(folder + "/end"):  # noqa: PTH110 - without pathlib
        if len(os.pread(fd, 4096, number % 256 * 4096)) != 4096:
            sys.exit("a read was cut short")
        number += 1
        if mode == "vfork" and number % 1000 == 0:
            os.waitpid(os.posix_spawn("/bin/true", ["true"], {}), 0)
        if number % 100 == 0:
            time.sleep(0.3 if mode == "asleep" else 0.002)
    with ENDING:
        print("whole", flush=True)
        os._exit(0)


def settle(mode: str) -> None:
    """Do with signals what the mode says."""
    if mode == "blocks":
        signal.pthread_sigmask(signal.SIG_BLOCK, ALL)
    if mode == "ignores":
        for ignored in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGURG):
            signal.signal(ignored, signal.SIG_IGN)
    if mode == "storm":
        begin_storm()


def begin_storm() -> None:
    """Have a child send signals without an end."""
    signal.signal(signal.SIGUSR1, lambda *_: None)
    parent = os.getpid()
    if os.fork() == 0:
        while os.getppid() == parent:
            os.kill(parent, signal.SIGUSR1)
            time.sleep(0.001)
        os._exit(0)


def become_another(folder: str, left: int) -> None:
    """Execute this program anew, by a thread that does not lead."""
    time.sleep(0.2)
    with ENDING:
        if left > 1:
            words = [sys.executable, "-I", "-S", __file__, "exec", folder, str(left - 1)]
            os.execv(sys.executable, words)  # noqa: S606 - it is what is watched


if __name__ == "__main__":
    main(*sys.argv[1:])
