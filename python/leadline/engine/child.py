"""The engine child: jobs as JSON lines on its stdin, events as JSON lines from its stdout.

Nothing here waits without a deadline. The child has a session of its own, so a Ctrl-C on the
terminal reaches the controller alone, which then ends the child in order.
"""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from typing import IO, Any

import msgspec

from leadline.engine.targets.dirfd import claimed
from leadline.errors import EngineFault, NothingCompleted, PointFailed, ServerLost, TargetRefused
from leadline.inputs import UNREADABLE_JSON
from leadline.machine.cgroup import MemoryCgroup
from leadline.machine.stop import shielded
from leadline.record.job import Answer, Job

ENGINE_COMMAND = (
    sys.executable,
    "-I",  # neither the working directory nor PYTHON* variables decide which code runs
    "-c",
    "from leadline import _engine; raise SystemExit(_engine.serve())",
)
CLAIMED = "LEADLINE_CLAIMED"
"""In a child's environment: which inherited handle stands for which claimed directory (JSON)."""
GRACE_S = 8.0
"""How far past its longest time an answer may come before the engine counts as hung."""
_POLITE_S = 2.0
_KILL_S = 30.0
"""A process inside an uninterruptible write dies only when the device has answered."""
_SELECT_S_MAX = 3600.0
"""The system call takes no more than some weeks at once."""
_LOOK_S = 0.25
"""How often a job is looked after that runs."""
_LINE_MAX_BYTES = 64 * 2**20
_STDERR_SHOWN_BYTES = 2000

OnEvent = Callable[[dict[str, Any]], None]
Look = Callable[[], None]
"""Looks after a running job; what it raises ends the job, and the child with it."""


class EngineChild:
    """One running engine; `close` ends it. Not for use by two threads at once."""

    def __init__(
        self, command: Sequence[str] = ENGINE_COMMAND, cgroup: MemoryCgroup | None = None
    ) -> None:
        """Start the process and put it into the group; no job is sent before it is inside."""
        self._cgroup = cgroup
        self._buffer = bytearray()
        self._oom_kills_before = cgroup.oom_kills() if cgroup else 0
        # A file, not a pipe: nobody reads it while a job runs, and a full pipe would stop it.
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115 - closed in close
        handles = {str(path): folder.fd for path, folder in claimed().items()}
        try:
            self._process = subprocess.Popen(
                list(command),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._stderr,
                bufsize=0,
                start_new_session=True,
                cwd="/",  # so that it pins no file system but the target's
                # What is in a target is opened by these, whatever its path leads to by then.
                pass_fds=tuple(handles.values()),
                env=os.environ | {CLAIMED: msgspec.json.encode(handles).decode()},
            )
        except OSError as error:
            self._stderr.close()
            raise EngineFault(f"the engine cannot be started: {command[0]}: {error}") from error
        self._stdin = _open_pipe(self._process.stdin)
        self._stdout = _open_pipe(self._process.stdout)
        self._busy = False
        self._looks = _Looks(None)
        if cgroup is not None:
            try:
                cgroup.adopt(self._process.pid)
            except BaseException:
                self.close()
                raise

    @property
    def alive(self) -> bool:
        """Whether the process runs."""
        return self._process.poll() is None

    @property
    def pid(self) -> int:
        """Process id."""
        return self._process.pid

    def exchange(
        self, job: Job[Any], on_event: OnEvent | None = None, look: Look | None = None
    ) -> dict[str, Any]:
        """Run one job and return its result event; `on_event` gets the events before it.

        `look` is called four times a second meanwhile, whether or not the engine says anything.

        Raises:
            PointFailed: the job met an I/O error; the child is ready for another.
            TargetRefused: the engine refuses the target or the job.
            EngineFault: the child died, hung, or spoke nonsense; it has been ended.

        """
        end = time.monotonic() + job.seconds_max + GRACE_S
        self._busy = True
        self._looks = _Looks(look)
        try:
            self._send(msgspec.json.encode(job) + b"\n", end)
            while True:
                event = self._event(self._line(end), job.job_id)
                if event["event"] in ("result", "answer", "error"):
                    break
                if on_event is not None:
                    on_event(event)
        except BaseException:
            # A stop included: the rest of this job's events must not answer the next one.
            self.close()
            raise
        self._busy = False
        return answer(event)

    def close(self) -> None:
        """End the process: close its stdin, then SIGTERM, then SIGKILL."""
        with shielded():
            if self._stderr.closed:
                return
            try:
                self._stdin.close()
                self._end()
            finally:
                self._stdout.close()
                self._stderr.close()

    def _end(self) -> None:
        # A child inside a job does not look at its stdin, so there is nothing to wait for.
        if not self._busy and self._ended_within(_POLITE_S):
            return
        self._process.send_signal(signal.SIGTERM)
        if self._ended_within(_POLITE_S):
            return
        self._process.send_signal(signal.SIGKILL)
        if not self._ended_within(_KILL_S):
            raise EngineFault(
                f"the engine (process {self._process.pid}) does not die: the device under the "
                "target does not answer; look at the kernel log"
            )

    def _ended_within(self, seconds: float) -> bool:
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        return True

    def _send(self, line: bytes, end: float) -> None:
        rest = memoryview(line)
        try:
            while rest:
                self._wait(self._stdin.fileno(), selectors.EVENT_WRITE, end)
                rest = rest[os.write(self._stdin.fileno(), rest) :]
        except BrokenPipeError:
            raise EngineFault(self._death()) from None

    def _line(self, end: float) -> bytes:
        while (newline := self._buffer.find(b"\n")) < 0:
            self._wait(self._stdout.fileno(), selectors.EVENT_READ, end)
            piece = os.read(self._stdout.fileno(), 2**18)
            if not piece:
                raise EngineFault(self._death())
            self._buffer += piece
            if len(self._buffer) > _LINE_MAX_BYTES:
                raise EngineFault(self._nonsense(bytes(self._buffer[:200])))
        line = bytes(self._buffer[:newline])
        del self._buffer[: newline + 1]
        return line

    def _wait(self, fd: int, events: int, end: float) -> None:
        with selectors.DefaultSelector() as selector:
            selector.register(fd, events)
            while (rest := end - time.monotonic()) > 0:
                if selector.select(min(rest, self._looks.due_s())):
                    return
            raise EngineFault(
                "the engine gave no answer in time and was ended; the device under the target "
                f"may be stuck{self._said()}"
            )

    def _event(self, line: bytes, job_id: str) -> dict[str, Any]:
        try:
            event = msgspec.json.decode(line)
        except UNREADABLE_JSON:
            raise EngineFault(self._nonsense(line)) from None
        if not isinstance(event, dict) or event.get("job_id") != job_id or "event" not in event:
            raise EngineFault(self._nonsense(line))
        return event

    def _nonsense(self, line: bytes) -> str:
        shown = line[:200].decode("utf-8", "backslashreplace")
        return f"the engine answered with something that is no event: {shown!r}{self._said()}"

    def _death(self) -> str:
        if not self._ended_within(_POLITE_S):
            return f"the engine closed its output without an answer{self._said()}"
        code = self._process.returncode
        if self._cgroup is not None and self._cgroup.oom_kills() > self._oom_kills_before:
            return (
                "the engine was killed by the kernel, because it needed more memory than its "
                "cgroup has; raise --cache-limit, or ask for fewer processes or smaller requests"
            )
        if code < 0:
            how = f"was killed by {signal_name(-code)}"
            if code == -signal.SIGKILL:
                how += " (by another process, or by the kernel for want of memory: see its log)"
        else:
            how = f"ended with exit code {code}"
        return f"the engine {how} before it answered{self._said()}"

    def _said(self) -> str:
        size = os.fstat(self._stderr.fileno()).st_size
        shown = min(size, _STDERR_SHOWN_BYTES)
        text = os.pread(self._stderr.fileno(), shown, size - shown).decode("utf-8", "replace")
        return f"; it said: {text.strip()}" if text.strip() else ""


class _Looks:
    """The moments at which a running job is looked after, the first a little after its start."""

    def __init__(self, look: Look | None) -> None:
        self._look = look
        self._next_s = time.monotonic() + _LOOK_S

    def due_s(self) -> float:
        """Look if it is time to; return the seconds until it is again."""
        if self._look is None:
            return _SELECT_S_MAX
        if time.monotonic() >= self._next_s:
            self._look()
            self._next_s = time.monotonic() + _LOOK_S
        return max(0.0, self._next_s - time.monotonic())


class Child:
    """An engine child that is started when there is none; `close` ends it."""

    def __init__(
        self, command: Sequence[str] = ENGINE_COMMAND, group: MemoryCgroup | None = None
    ) -> None:
        """Start nothing yet."""
        self._command = command
        self._group = group
        self._started: EngineChild | None = None

    @property
    def pid(self) -> int | None:
        """Process id, of one that was started."""
        return None if self._started is None else self._started.pid

    def run(
        self, job: Job[Answer], on_event: OnEvent | None = None, look: Look | None = None
    ) -> Answer:
        """Run one job and return its answer; see `EngineChild.exchange`.

        Raises:
            PointFailed: the job met an I/O error; the child is ready for another.
            TargetRefused: the engine refuses the target or the job.
            EngineFault: the child died, hung, or spoke nonsense; the next job starts another.

        """
        if self._started is None or not self._started.alive:
            self.close()
            with shielded():  # a child that nobody knows could not be ended
                self._started = EngineChild(self._command, self._group)
        return read_answer(job, self._started.exchange(job, on_event, look))

    def close(self) -> None:
        """End the process; what it has mounted goes with it."""
        if self._started is not None:
            child, self._started = self._started, None
            child.close()


def read_answer(job: Job[Answer], event: dict[str, Any]) -> Answer:
    """Return the record of a job's result or answer event.

    Raises:
        EngineFault: it does not fit the record.

    """
    try:
        return job.read(event)
    except (msgspec.ValidationError, KeyError) as error:
        raise EngineFault(f"the engine's result does not fit the record: {error}") from error


def answer(event: dict[str, Any]) -> dict[str, Any]:
    """Return a result or an answer, or raise what an error event stands for."""
    if event["event"] in ("result", "answer"):
        return event
    kind, message = event.get("kind"), str(event.get("message", "no message"))
    if kind == "io":
        raise PointFailed(message)
    if kind == "nothing_completed":
        raise NothingCompleted(message)
    if kind == "lost":
        raise ServerLost(message)
    if kind in ("target", "bad_job"):
        raise TargetRefused(message)
    raise EngineFault(message)


def _open_pipe(pipe: IO[bytes] | None) -> IO[bytes]:
    if pipe is None:
        raise EngineFault("the engine was started without its pipes")
    os.set_blocking(pipe.fileno(), False)
    return pipe


def signal_name(number: int) -> str:
    """Return `SIGKILL` for 9; the number itself when it has no name."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
