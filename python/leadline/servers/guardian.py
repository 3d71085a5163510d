"""Runs commands one after another, and ends whatever they started when its own starter is gone.

A program of its own (`python -I -S guardian.py`), so the standard library only. It is the reaper of
everything below it (PR_SET_CHILD_SUBREAPER, Linux 3.4): a server that made itself a daemon, left
its process group and overwrote its environment is still its child. Each line of its standard input
is a command, each line of its output the answer; an empty one interrupts the command that runs,
and the end of its input is the end of all.

It is two processes, since one could be killed: the outer one waits for the inner one, which does
the work, and ends what that leaves; the inner one is told when the outer one dies.
"""

from __future__ import annotations

import contextlib
import ctypes
import io
import json
import os
import selectors
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_LOOK_S = 0.1
"""How often orphans are reaped and the size of the output is looked at."""


def _control(option: int, value: int) -> None:
    ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)


def _guard() -> None:
    """Be the outer process: wait until the inner one has ended, then end what it left."""
    _control(_PR_SET_CHILD_SUBREAPER, 1)
    outer = os.getpid()
    inner = os.fork()
    if inner == 0:
        _serve(outer)
        return
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (sys.stdin, sys.stdout):  # the starter is to see the inner one's end
        os.dup2(nothing, stream.fileno())
    while os.waitpid(-1, 0)[0] != inner:
        pass
    _end_all()


def _serve(outer: int) -> None:
    """Answer commands until the input ends, then end every process that is left."""
    _control(_PR_SET_CHILD_SUBREAPER, 1)
    signal.signal(signal.SIGTERM, _leave)
    _control(_PR_SET_PDEATHSIG, signal.SIGTERM)
    try:
        if os.getppid() != outer:
            raise _StarterGone
        # Without a buffer: an interruption that came with its command would not be seen in one.
        asks = io.FileIO(sys.stdin.fileno(), closefd=False)
        for line in iter(asks.readline, b""):
            asked = json.loads(line)
            if not asked:
                continue  # the command that was to be interrupted has just ended
            answer = _run(asked, asks)
            sys.stdout.write(json.dumps(answer) + "\n")
            sys.stdout.flush()
    except (_StarterGone, BrokenPipeError):
        pass
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        _end_all()


class _StarterGone(Exception):
    """Nobody waits for the answer any more."""


def _leave(_number: int, _frame: object) -> None:
    """The outer process died, or a stop was requested: what runs is ended on the way out."""
    raise _StarterGone


def _run(asked: dict[str, Any], asks: io.FileIO) -> dict[str, Any]:
    """Run one command to its end, its deadline, or as much output as is allowed."""
    with Path(asked["stdout"]).open("wb") as out, Path(asked["stderr"]).open("wb") as err:
        try:
            process = subprocess.Popen(
                asked["argv"],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                cwd=asked["cwd"],
                env=asked["env"],
                start_new_session=True,
            )
        except OSError as error:
            return {"code": None, "ended": f"cannot be started: {error.strerror or error}"}
        try:
            ended = _watch(process, (out.fileno(), err.fileno()), asked, asks)
            if ended or not asked["leaves_server"]:
                # Before it is reaped, so that the number cannot be somebody else's by now.
                _kill_group(process.pid)
        except BaseException:
            _kill_group(process.pid)
            raise
        return {"code": process.wait(), "ended": ended}


def _watch(
    process: subprocess.Popen[bytes],
    outputs: tuple[int, int],
    asked: dict[str, Any],
    asks: io.FileIO,
) -> str | None:
    """Wait for the end without reaping; say why it has to be killed, if it has."""
    end_s = time.monotonic() + asked["seconds_max"]
    with selectors.DefaultSelector() as selector:
        pidfd = os.pidfd_open(process.pid)
        try:
            selector.register(pidfd, selectors.EVENT_READ, "ended")
            selector.register(asks, selectors.EVENT_READ, "starter")
            while True:
                left_s = end_s - time.monotonic()
                if left_s <= 0:
                    return f"did not end within {asked['seconds_max']:.3g} s"
                seen = {key.data for key, _ in selector.select(min(left_s, _LOOK_S))}
                if "ended" in seen:
                    return None
                if "starter" in seen:
                    if not asks.readline():
                        raise _StarterGone
                    return "was interrupted"  # all that is sent before the answer
                _reap_others(process.pid)
                if max(os.fstat(each).st_size for each in outputs) > asked["output_bytes_max"]:
                    return f"printed more than {asked['output_bytes_max']} bytes"
        finally:
            os.close(pidfd)


def _reap_others(number: int) -> None:
    """Reap daemons that ended: whoever waits for one to be gone would wait for its zombie."""
    while True:
        found = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        if found is None or found.si_pid == number:
            return
        os.waitpid(found.si_pid, 0)


def _kill_group(number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(number, signal.SIGKILL)


def _end_all() -> None:
    """Kill all children; theirs become ours, until there are none."""
    while True:
        for number in _children():
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(number, signal.SIGKILL)
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        time.sleep(0.005)


def _children() -> list[int]:
    own, found = os.getpid(), []
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            try:
                stat = Path(entry.path, "stat").read_bytes()
            except OSError:
                continue
            if int(stat[stat.rindex(b")") + 2 :].split()[1]) == own:
                found.append(int(entry.name))
    return found


if __name__ == "__main__":
    # Its starter ends it by closing the input; a terminal's Ctrl-C is for the starter alone.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _guard()
