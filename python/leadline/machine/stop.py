"""Ctrl-C and SIGTERM as one exception, held back while something is being cleaned up."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Stopped(KeyboardInterrupt):
    """Somebody asked for an early end; what was measured is kept.

    A KeyboardInterrupt, so that no `except Exception` on the way swallows it.
    """

    exit_code = 3

    def __init__(self, signal_name: str) -> None:
        super().__init__(f"stopped early by {signal_name}")
        self.signal_name = signal_name


class _State:
    """Signals reach only the main thread, so plain attributes are enough."""

    shields = 0
    pending: str | None = None
    raised = False
    within: FrameType | None = None
    """Who asked for stops; what is loaded around it is no affair of ours."""


@contextmanager
def stop_on_signals(*, at_last: bool = False) -> Iterator[None]:
    """Turn the first SIGINT, SIGTERM or SIGHUP into `Stopped`; later ones are ignored.

    The later ones must not interrupt the removal of the data files. Outside the main thread
    Python allows no signal handlers, and this does nothing.

    Args:
        at_last: after the block the process only ends: signals are ignored then, since one of them
            would change how it ends.

    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in _STOPPING}
    _State.pending, _State.raised = None, False
    _State.within = sys._getframe(2)
    try:
        for number, handler in before.items():
            if handler is not signal.SIG_IGN:  # nohup asked for it
                signal.signal(number, _handle)
        yield
    finally:
        _State.within = None
        for number, handler in before.items():
            signal.signal(number, signal.SIG_IGN if at_last else handler)


@contextmanager
def shielded() -> Iterator[None]:
    """Hold a stop back until the block has ended."""
    _State.shields += 1
    try:
        yield
    finally:
        _State.shields -= 1
        if not _State.shields and _State.pending is not None:
            _raise(_State.pending)


def taken_stop() -> str | None:
    """Return the name of the signal that a shield holds back, and have it done with.

    Whoever asks answers for the end himself: nothing is raised after the shield.
    """
    name, _State.pending = _State.pending, None
    return name


_IMPORT_S = 0.02
"""How long to wait before a signal that met an import is looked at again."""


def _handle(number: int, frame: FrameType | None) -> None:
    name = signal.Signals(number).name
    if _State.raised:
        return
    if _State.shields:
        _State.pending = name
    elif _imports(frame):
        threading.Timer(_IMPORT_S, os.kill, (os.getpid(), number)).start()
    else:
        _raise(name)


def _imports(frame: FrameType | None) -> bool:
    """Whether a module is being loaded: an extension in C makes an ImportError of any exception."""
    while frame is not None and frame is not _State.within:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False


def _raise(name: str) -> None:
    _State.pending, _State.raised = None, True
    raise Stopped(name)
