"""Listens to the wire: what Leadline asks of the engine, byte for byte, and what is answered.

Real engines are heard through `wire_tee.py`, whoever starts them; the ones in this process through
the native module's own functions, whoever calls them. So no module of Leadline is named here.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

from leadline import _engine

_TEE = Path(__file__).with_name("wire_tee.py")
_SERVES = "_engine.serve()"
"""In the command line of an engine child, and of nothing else."""


class _Tap:
    """One of the native module's functions, which also tells what it was asked and answered."""

    def __init__(self, ask: Callable[..., Any]) -> None:
        self._ask = ask
        self.log: list[str] = []

    def __call__(self, *asked: str) -> Any:
        lines = self._ask(*asked)
        self.log += [f"> {line}" for line in asked] + [f"< {line}" for line in lines]
        return lines


def _tapped(name: str) -> _Tap:
    """Put a tap before a function, in every module that has it by name; it stays there."""
    ask = getattr(_engine, name)
    if isinstance(ask, _Tap):
        return ask
    tap = _Tap(ask)
    for module in list(sys.modules.values()):
        if vars(module).get(name) is ask:
            setattr(module, name, tap)
    return tap


@contextmanager
def heard(log: Path) -> Iterator[list[str]]:
    """Collect what goes over the wire while the block runs: `> ` asked, `< ` answered."""
    tap = _tapped("run_job")
    tap.log.clear()
    found: list[str] = []

    class Heard(subprocess.Popen[bytes]):
        def __init__(self, args: Any, *rest: Any, **how: Any) -> None:
            command = [str(word) for word in args]
            if any(_SERVES in word for word in command):
                command = [sys.executable, "-I", "-S", str(_TEE), str(log), *command]
            super().__init__(command, *rest, **how)

    with mock.patch("subprocess.Popen", Heard):
        yield found
    found += tap.log
    if log.exists():
        found += log.read_text("utf-8").splitlines()
