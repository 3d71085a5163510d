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
from typing import IO

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
        self._outputs: tempfile.TemporaryDirectory[str] | None = None

    def __enter__(self) -> Commands:
        with shielded():
            self._outputs = tempfile.TemporaryDirectory(prefix="leadline-command-")
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
            if self._outputs is not None:
                self._outputs.cleanup()

    def run(self, argv: Sequence[str], *, seconds_max: float, leaves_server: bool = False) -> Ended:
        """Run one command; its process group ends with it, unless it is to leave a server.

        Raises:
            EngineFault: the guardian itself was killed.

        """
        process, folder = self._guardian, Path(self._outputs.name if self._outputs else "")
        if process is None or process.stdin is None or process.stdout is None:
            raise EngineFault("commands run inside the block of Commands only")
        asked = {
            "argv": list(argv),
            "cwd": str(self._directory),
            "env": self._environment,
            "seconds_max": seconds_max,
            "output_bytes_max": OUTPUT_BYTES_MAX,
            "leaves_server": leaves_server,
            "stdout": str(folder / "stdout"),
            "stderr": str(folder / "stderr"),
        }
        line = b""
        with suppress(BrokenPipeError):
            process.stdin.write(msgspec.json.encode(asked) + b"\n")
            process.stdin.flush()
            line = _answer(process.stdin, process.stdout, seconds_max)
        if not line:
            raise EngineFault(
                f"the process that runs {argv[0]} was killed or stopped; free memory, or see who "
                "did it"
            )
        answer = msgspec.json.decode(line)
        output = (folder / "stdout").read_bytes() if answer["ended"] is None else b""
        return Ended(
            program=argv[0],
            code=answer["code"],
            ended=answer["ended"],
            output=output,
            last_lines=_last_lines(folder / "stderr") or _last_lines(folder / "stdout"),
        )


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


def _last_lines(path: Path) -> str:
    """Return the end of a command's words on one line."""
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - _LINES_SHOWN * _LINE_LENGTH_SHOWN))
        words = file.read().decode(errors="replace")
    lines = [line.strip() for line in words.splitlines() if line.strip()]
    return " / ".join(line[-_LINE_LENGTH_SHOWN:] for line in lines[-_LINES_SHOWN:])
