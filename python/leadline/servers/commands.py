"""The user's own commands: run without a shell, with deadlines, and nothing left running."""

from __future__ import annotations

import os
import select
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

import msgspec

from leadline.errors import EngineFault
from leadline.machine.stop import shielded
from leadline.servers import guardian

OUTPUT_BYTES_MAX = 512 << 20
"""Of one command; half an hour of latencies at 10 000 requests/s is less."""
_LINES_SHOWN, _LINE_LENGTH_SHOWN = 5, 300
_GRACE_S = 15.0
"""Beyond a command's time: its end may take so long to arrive."""
_CLOSE_S = 30.0
"""A process inside an uninterruptible write dies only when the device has answered."""


class Ended(msgspec.Struct, frozen=True):
    """How a command ended."""

    program: str
    code: int | None
    """Exit status; negative: killed by that signal."""
    ended: str | None
    """Why it was killed, or could not be started."""
    output: bytes
    last_lines: str
    """Of its standard error, or of its output when it left none there."""

    @property
    def trouble(self) -> str | None:
        """What went wrong, with its own last words; None when nothing did."""
        if self.ended is None and self.code == 0:
            return None
        how = self.ended
        if how is None:
            killed = self.code is not None and self.code < 0
            how = f"was killed by signal {-(self.code or 0)}" if killed else f"exited {self.code}"
        return f"{self.program} {how}" + (
            f"; it said: {self.last_lines}" if self.last_lines else ""
        )


class Commands:
    """Runs commands in a directory; when the block ends, all they started ends too."""

    def __init__(self, directory: Path, environment: Mapping[str, str]) -> None:
        self._directory = directory
        self._environment = dict(os.environ) | dict(environment)
        self._guardian: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Commands:
        with shielded():
            self._guardian = subprocess.Popen(
                # Neither the working directory nor PYTHON* variables decide which code runs.
                [sys.executable, "-I", "-S", guardian.__file__],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                start_new_session=True,
                cwd="/",
            )
        return self

    def __exit__(self, *raised: object) -> None:
        with shielded():
            process, self._guardian = self._guardian, None
            if process is not None:
                for pipe in (process.stdin, process.stdout):
                    if pipe is not None:
                        pipe.close()
                try:
                    process.wait(_CLOSE_S)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()

    def run(self, argv: Sequence[str], *, seconds_max: float, leaves_server: bool = False) -> Ended:
        """Run one command; its process group ends with it, unless it is to leave a server.

        Raises:
            EngineFault: the guardian itself was killed.

        """
        process = self._guardian
        if process is None:
            raise EngineFault("commands run inside the block of Commands only")
        # Files without names: whatever is killed, nothing is left of them. Fresh ones for each
        # command, because a server that was left may go on writing to its own.
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            asked = {
                "argv": list(argv),
                "cwd": str(self._directory),
                "env": self._environment,
                "seconds_max": seconds_max,
                "output_bytes_max": OUTPUT_BYTES_MAX,
                "leaves_server": leaves_server,
                "stdout": _shared(out),
                "stderr": _shared(err),
            }
            answer = _told(process, asked, seconds_max)
            return Ended(
                program=argv[0],
                code=answer["code"],
                ended=answer["ended"],
                output=out.read() if answer["ended"] is None else b"",
                last_lines=_last_lines(err) or _last_lines(out),
            )


def _shared(file: IO[bytes]) -> str:
    """Name an open file of this process for another one of this user."""
    return f"/proc/{os.getpid()}/fd/{file.fileno()}"


def _told(process: subprocess.Popen[bytes], asked: dict[str, Any], seconds_max: float) -> Any:
    """Have the guardian run a command, and return how it ended."""
    line = b""
    if process.stdin is not None and process.stdout is not None:
        with suppress(BrokenPipeError):
            process.stdin.write(msgspec.json.encode(asked) + b"\n")
            process.stdin.flush()
            line = _answer(process.stdin, process.stdout, seconds_max)
    if not line:
        raise EngineFault(
            f"the process that runs {asked['argv'][0]} was killed or stopped; free memory, or see "
            "who did it"
        )
    return msgspec.json.decode(line)


def _answer(asks: IO[bytes], answers: IO[bytes], seconds_max: float) -> bytes:
    """Wait for the end of a command; a stop ends it, so that the next one can be run."""
    try:
        return _line(answers, seconds_max + _GRACE_S)
    except BaseException:
        with shielded(), suppress(BrokenPipeError):
            asks.write(b"{}\n")
            asks.flush()
            _line(answers, _GRACE_S)
        raise


def _line(answers: IO[bytes], seconds_max: float) -> bytes:
    """Return the next line; nothing when there is none in time."""
    ready, _, _ = select.select([answers], [], [], seconds_max)
    return answers.readline() if ready else b""


def _last_lines(file: IO[bytes]) -> str:
    """Return the end of a command's words on one line."""
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - _LINES_SHOWN * _LINE_LENGTH_SHOWN))
    words = file.read().decode(errors="replace")
    lines = [line.strip() for line in words.splitlines() if line.strip()]
    return " / ".join(line[-_LINE_LENGTH_SHOWN:] for line in lines[-_LINES_SHOWN:])
