"""Stopping by signal: once, at a point where cleaning up is whole."""

from __future__ import annotations

import importlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

import pytest

from leadline import app as command_line
from leadline.machine.stop import Stopped, shielded, stop_on_signals
from places import TESTS

STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
NAMES = [number.name for number in STOPPING]


def handlers() -> list[object]:
    return [signal.getsignal(number) for number in STOPPING]


def send(number: signal.Signals) -> None:
    os.kill(os.getpid(), number)


@pytest.fixture(autouse=True)
def in_the_foreground() -> Iterator[None]:
    """A shell's background job starts with SIGINT ignored; the other two would end the tests."""

    def unheard(number: int, _frame: FrameType | None) -> None:
        raise AssertionError(f"{signal.Signals(number).name} met no handler of Leadline's")

    handler = {signal.SIGINT: signal.default_int_handler}
    before = {n: signal.signal(n, handler.get(n, unheard)) for n in STOPPING}
    yield
    for number, kept in before.items():
        signal.signal(number, kept)


@pytest.mark.parametrize("number", STOPPING, ids=NAMES)
def test_the_first_signal_stops_and_the_rest_do_not_disturb(number: signal.Signals) -> None:
    before, steps = handlers(), []
    with pytest.raises(Stopped) as stopped, stop_on_signals():  # noqa: PT012
        try:
            steps.append("working")
            send(number)
            steps.append("not stopped")
        finally:
            for later in STOPPING:
                send(later)
            steps.append("cleaned")
    assert steps == ["working", "cleaned"]
    assert str(stopped.value) == f"stopped early by {number.name}"
    assert stopped.value.signal_name == number.name, "the first one's"
    assert stopped.value.exit_code == 3
    assert not isinstance(stopped.value, Exception), "no `except Exception` may swallow it"
    assert handlers() == before


def test_each_context_can_be_stopped_anew() -> None:
    for number in STOPPING:
        with pytest.raises(Stopped, match=number.name), stop_on_signals():
            send(number)


def test_a_context_that_nobody_stops_leaves_nothing_behind() -> None:
    before = handlers()
    with stop_on_signals():
        assert all(new != old for new, old in zip(handlers(), before, strict=True))
    assert handlers() == before
    with pytest.raises(ValueError, match="its own"), stop_on_signals():
        raise ValueError("its own")
    assert handlers() == before


def test_a_shield_holds_the_stop_back_to_its_outermost_end() -> None:
    steps = []
    with pytest.raises(Stopped, match="SIGINT"), stop_on_signals():  # noqa: PT012
        with shielded():
            with shielded():
                send(signal.SIGINT)
                steps.append("inner")
            steps.append("outer")
        steps.append("after")
    assert steps == ["inner", "outer"]


def test_of_several_signals_behind_a_shield_one_stops() -> None:
    stops = []
    with stop_on_signals():
        for number in STOPPING:
            try:
                with shielded():
                    send(number)
                    send(number)
            except Stopped as stopped:
                stops.append(stopped.signal_name)
    assert stops == ["SIGINT"]


def test_a_block_that_fails_behind_its_shield_is_stopped_and_its_error_kept() -> None:
    with pytest.raises(Stopped) as stopped, stop_on_signals(), shielded():  # noqa: PT012
        send(signal.SIGTERM)
        raise OSError("while cleaning")
    assert isinstance(stopped.value.__context__, OSError)
    with pytest.raises(Stopped, match="SIGHUP"), stop_on_signals():
        send(signal.SIGHUP)  # at once: the shield that failed is down


def test_cleaning_up_after_a_stop_behind_a_shield_is_not_stopped_again() -> None:
    steps = []
    with pytest.raises(Stopped, match="SIGTERM"), stop_on_signals():  # noqa: PT012
        try:
            send(signal.SIGTERM)
        finally:
            with shielded():
                send(signal.SIGINT)
                steps.append("shielded")
            steps.append("cleaned")
    assert steps == ["shielded", "cleaned"]


def test_a_shield_outside_any_context_is_plain() -> None:
    steps = []
    with shielded():
        steps.append("inside")
    assert steps == ["inside"]
    with pytest.raises(KeyboardInterrupt) as plain, shielded():
        send(signal.SIGINT)
    assert not isinstance(plain.value, Stopped), "no handler of ours"


@pytest.mark.parametrize("number", STOPPING, ids=NAMES)
def test_an_ignored_signal_stays_ignored_and_the_others_stop(number: signal.Signals) -> None:
    """`nohup` and a shell's background jobs ask for it."""
    other = next(each for each in STOPPING if each != number)
    before = signal.signal(number, signal.SIG_IGN)
    steps = []
    try:
        with pytest.raises(Stopped, match=other.name), stop_on_signals():  # noqa: PT012
            assert signal.getsignal(number) is signal.SIG_IGN
            send(number)
            steps.append("not stopped")
            send(other)
        assert signal.getsignal(number) is signal.SIG_IGN
    finally:
        signal.signal(number, before)
    assert steps == ["not stopped"]


def test_outside_the_main_thread_no_signal_is_touched() -> None:
    before, found = handlers(), []

    def elsewhere() -> None:
        with stop_on_signals():
            found.append(handlers())

    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
    assert found == [before]


def test_a_stop_waits_until_a_module_is_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SciPy's extensions made an ImportError of it: exit code 1, and a study that never ended."""
    source = "import os, signal\nos.kill(os.getpid(), signal.SIGTERM)\nWHOLE = True\n"
    (tmp_path / "stopped_while_loaded.py").write_text(source)
    monkeypatch.syspath_prepend(tmp_path)
    whole = []
    with pytest.raises(Stopped, match="SIGTERM"), stop_on_signals():  # noqa: PT012
        whole.append(importlib.import_module("stopped_while_loaded").WHOLE)
        time.sleep(60)
    assert whole == [True]
    source = "from leadline.machine.stop import Stopped, stop_on_signals\nimport os, signal\n"
    source += "try:\n    with stop_on_signals():\n        os.kill(os.getpid(), signal.SIGTERM)\n"
    source += "        SAID = 'not stopped'\nexcept Stopped:\n    SAID = 'stopped'\n"
    (tmp_path / "stops_while_loaded.py").write_text(source)
    assert importlib.import_module("stops_while_loaded").SAID == "stopped"


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_stop_beside_typers_own_try_is_told_as_any_other(
    when: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def command() -> None:
        if when == "after":
            print("the answer")
        raise Stopped("SIGTERM")

    monkeypatch.setattr(command_line, "app", command)
    with pytest.raises(SystemExit) as left:
        command_line.main()
    assert left.value.code == command_line.EXIT_STOPPED
    assert "stopped early" in capsys.readouterr().err


def test_a_signal_after_the_last_block_changes_nothing() -> None:
    before = handlers()
    with stop_on_signals(at_last=True):
        pass
    for number in STOPPING:
        send(number)
    for number, handler in zip(STOPPING, before, strict=True):
        signal.signal(number, handler)  # type: ignore[arg-type]


COMMAND = """
import signal, sys
from pathlib import Path
from types import SimpleNamespace
import leadline.app as cli
from leadline.engine.child import EngineChild
from leadline.machine.stop import shielded

signal.signal(signal.SIGINT, signal.default_int_handler)

def wait(folder: Path) -> None:
    mark = folder / "data"
    mark.touch()
    child = EngineChild([sys.executable, FAKE, "hangs"])
    try:
        with shielded():
            print("shielded", child.pid, flush=True)
            sys.stdin.readline()
            print("unshielded", flush=True)
        print("never", flush=True)
    finally:
        child.close()
        mark.unlink()
        print("cleaned", flush=True)

cli.COMMANDS["wait"] = "Hold a child and a file until told."
sys.modules["leadline.studies.wait.command"] = SimpleNamespace(command=wait)
cli.main()
"""


@pytest.mark.parametrize("number", STOPPING, ids=NAMES)
def test_a_stopped_command_cleans_up_in_order_ends_its_child_and_exits_with_3(
    tmp_path: Path, number: signal.Signals
) -> None:
    """The signal comes behind a shield, twice; only then may the shield end."""
    fake = str(TESTS / "fake_child.py")
    script = f"FAKE = {fake!r}\n{COMMAND}"
    with subprocess.Popen(
        [sys.executable, "-c", script, "wait", str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as command:
        assert command.stdout is not None
        word, pid = command.stdout.readline().split()
        child = os.pidfd_open(int(pid))
        command.send_signal(number)
        command.send_signal(number)
        printed, said = command.communicate("go on\n")
    assert word == "shielded"
    assert printed.split() == ["unshielded", "cleaned"]
    assert "stopped early" in said
    assert "Traceback" not in said
    assert command.returncode == 3
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(ProcessLookupError):
        signal.pidfd_send_signal(child, signal.SIGKILL)
    os.close(child)


@pytest.mark.parametrize("rank", [None, 0, 1])
def test_of_many_ranks_the_first_alone_says_that_it_was_stopped(
    rank: int | None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The launcher ends all of them when one is refused, while they load or while they wait."""
    if rank is not None:
        monkeypatch.setenv("OMPI_COMM_WORLD_RANK", str(rank))
    monkeypatch.setattr(command_line, "app", lambda: sys.exit(command_line.TYPER_INTERRUPTED))
    with pytest.raises(SystemExit) as left:
        command_line.main()
    assert left.value.code == 3
    assert ("stopped early" in capsys.readouterr().err) == (not rank)
