"""Stopping by signal: once, at a point where cleaning up is whole."""

from __future__ import annotations

import os
import signal

import pytest

from leadline.engine.stop import Stopped, shielded, stop_on_signals


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
