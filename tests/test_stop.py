"""Stopping by signal: once, at a point where cleaning up is whole."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest

from leadline.engine.stop import Stopped, shielded, stop_on_signals


@pytest.fixture(autouse=True)
def in_the_foreground() -> Iterator[None]:
    """A shell's background job starts with SIGINT ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_the_first_signal_stops_and_the_rest_do_not_disturb() -> None:
    before = signal.getsignal(signal.SIGTERM)
    cleaned = False
    with pytest.raises(Stopped, match="SIGTERM") as stopped, stop_on_signals():  # noqa: PT012
        try:
            os.kill(os.getpid(), signal.SIGTERM)
            pytest.fail("not stopped")
        finally:
            os.kill(os.getpid(), signal.SIGINT)
            os.kill(os.getpid(), signal.SIGTERM)
            cleaned = True
    assert cleaned
    assert stopped.value.exit_code == 3
    assert not isinstance(stopped.value, Exception), "no `except Exception` may swallow it"
    assert signal.getsignal(signal.SIGTERM) == before


def test_a_shield_holds_the_stop_back() -> None:
    steps = []
    with pytest.raises(Stopped), stop_on_signals():  # noqa: PT012
        with shielded():
            with shielded():
                os.kill(os.getpid(), signal.SIGINT)
                steps.append("inner")
            steps.append("outer")
        steps.append("after")
    assert steps == ["inner", "outer"]


def test_a_shield_outside_any_context_is_plain() -> None:
    with shielded():
        pass


def test_an_ignored_signal_stays_ignored() -> None:
    """`nohup` and a shell's background jobs ask for it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with stop_on_signals():
        os.kill(os.getpid(), signal.SIGINT)
