"""Programs that are watched: whatever becomes of Leadline, they go on as if nobody had looked.

What strace's own tests try (detaching while asleep, running or stopped, execve by another thread,
blocked and ignored signals, signals without an end, vfork, PID namespaces), by both ways, ended in
order and by kill -9 at a random moment.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from random import Random

from attempts.outcome import Asked, Attempt
from attempts.scene import GONE_S, HANG_S, Scene, ended, pid_of, scene, wait_or_end
from left_behind import children_of, processes_with

FAMILY = "capture"
WAYS = ("bpf", "ptrace")
PROGRAM = Path(__file__).with_name("watched_program.py")
MODES = ("running", "asleep", "stopped", "blocks", "ignores", "storm", "exec", "vfork", "namespace")
SPAN_S = 3.0
"""A kill comes within this time of the start."""
WHOLE = "whole\n"


def attempts(asked: Asked) -> Iterator[Attempt]:
    """Watch a program of every mode by every way."""
    if os.geteuid() != 0:
        yield Attempt(FAMILY, "all", asked.seed, untried="programs of BPF are for root")
        return
    for way in WAYS:
        for mode in MODES[:1] if asked.short else MODES:
            draws = asked.draws(FAMILY, way, mode)
            yield _watched(way, mode, asked.seed, None)
            for _ in range(asked.rounds(0.1)):
                yield _watched(way, mode, asked.seed, draws.uniform(0.0, SPAN_S))
        draws = asked.draws(FAMILY, way, "started")
        for _ in range(asked.rounds(1.0)):
            yield _started(way, asked.seed, draws)


@contextmanager
def _program(place: Scene, mode: str) -> Iterator[subprocess.Popen[str]]:
    """Run a program until it is told to end, or the block does."""
    before = ["unshare", "--pid", "--fork", "--kill-child"] if mode == "namespace" else []
    name, _, value = place.mark.partition("=")
    with subprocess.Popen(
        [*before, sys.executable, "-I", "-S", PROGRAM, mode, place.base],
        stdout=subprocess.PIPE,
        text=True,
        env={name: value},
    ) as child:
        try:
            assert child.stdout is not None
            child.stdout.readline()
            yield child
        finally:
            child.kill()


def _watched(way: str, mode: str, seed: int, kill_s: float | None) -> Attempt:
    """Watch a program that runs, and end the watching in order or by a kill."""
    how = f"{mode}, {'to the end' if kill_s is None else 'killed'}"
    attempt = Attempt(FAMILY, f"--pid, {way}", seed, how)
    with scene() as place, _program(place, mode) as program:
        pid = int(children_of(program.pid)[0]) if mode == "namespace" else program.pid
        words = ("characterize", "--way", way, "--pid", str(pid))
        with place.start(*words, "--seconds", "0.7") as child:
            if kill_s is None:
                done = ended(child)
                # 2: it made too few requests to be described, as one that is stopped does; 3: too
                # few of its calls were seen to predict it, and that is said.
                attempt.expect_code(done.code, 0, 2, 3, said=done.said)
            elif wait_or_end(child, kill_s):
                os.kill(pid_of(child), signal.SIGKILL)
                child.process.join()
        _gone_on(attempt, place, program, pid, stopped=mode == "stopped")
        attempt.left += place.left()
    return attempt


def _gone_on(
    attempt: Attempt, place: Scene, program: subprocess.Popen[str], pid: int, *, stopped: bool
) -> None:
    """Hold a watched program to what it does when nobody watches."""
    end_s = time.monotonic() + GONE_S
    while (held := _held(pid, stopped=stopped)) and time.monotonic() < end_s:
        time.sleep(0.02)
    attempt.left += held
    if stopped:
        os.kill(pid, signal.SIGCONT)
    (place.base / "end").touch()
    try:
        out, _ = program.communicate(timeout=HANG_S)
    except subprocess.TimeoutExpired:
        attempt.lost.append("the program does not end any more")
        return
    if (program.returncode, out) != (0, WHOLE):
        attempt.lost.append(f"the program ended with {program.returncode} and said {out!r}")


def _held(pid: int, *, stopped: bool) -> list[str]:
    """Say which of a process's threads are stopped or traced, that were not."""
    found = []
    for task in Path(f"/proc/{pid}/task").glob("*"):
        with suppress(OSError):
            lines = (task / "status").read_text().splitlines()
            facts = dict(line.split(":\t", 1) for line in lines if ":\t" in line)
            if facts["TracerPid"] != "0":
                found.append(f"thread {task.name} is traced")
            if (facts["State"][0] in "tT") != stopped:
                found.append(f"thread {task.name} is in state {facts['State']}")
    return found


def _started(way: str, seed: int, draws: Random) -> Attempt:
    """Kill Leadline at a random moment of a command that it started."""
    attempt = Attempt(FAMILY, f"a command, {way}", seed, "killed")
    with scene() as place:
        program = [shutil.which(sys.executable) or sys.executable, "-I", "-S", str(PROGRAM)]
        command = (*program, "running", str(place.base))
        with place.start("characterize", "--way", way, "--", *command) as child:
            if wait_or_end(child, draws.uniform(0.0, SPAN_S)):
                os.kill(pid_of(child), signal.SIGKILL)
                child.process.join()
        end_s = time.monotonic() + GONE_S
        while time.monotonic() < end_s:
            pids = [int(found.split()[0]) for found in processes_with(place.mark)]
            held = [each for pid in pids for each in _held(pid, stopped=False)]
            if not held:
                break
            time.sleep(0.02)
        attempt.left += held
        (place.base / "end").touch()
        attempt.left += place.left()
    return attempt
