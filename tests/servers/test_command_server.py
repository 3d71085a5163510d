"""Servers and generators by commands: what they are given, how they end, and that they do end."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from leadline.engine import TargetRefused
from leadline.record.workbench import (
    CommandServer,
    Sample,
    Threshold,
    Trial,
    TrialOrder,
    TrialRequest,
    TrialState,
)
from leadline.servers import commands, release_server, run_trial
from places import TESTS

FAKE = (sys.executable, str(TESTS / "fake_generator.py"))
HERE = (str(Path(__file__).parent), os.environ.get("PYTHONPATH"))
GUARDIAN = str(Path(str(commands.__file__)).with_name("guardian.py"))
LOAD = ("{rate}", "{seconds}")
LONG_S = 100.0
"""A command that is not to be ended for its slowness gets this, however busy the machine is."""


@pytest.fixture(autouse=True)
def own_temporary_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))


def server_of(mode: str, **more: Any) -> CommandServer:
    return CommandServer(load=(*FAKE, mode, *LOAD), **{"time_out_s": LONG_S, **more})


def order_of(server: CommandServer, sample: Sample | None = None, **more: Any) -> TrialOrder:
    return TrialOrder(
        server=server,
        sample=sample or {},
        threshold=Threshold(mean_ms=40),
        request=TrialRequest(rate_per_s=100, seconds=2, **more),
        order=0,
        seed=7,
    )


def trial_of(server: CommandServer, sample: Sample | None = None, **more: Any) -> Trial:
    return run_trial(order_of(server, sample, **more))


def test_a_good_trial_has_its_numbers_and_its_cost() -> None:
    trial = trial_of(server_of("good"))
    assert (trial.state, trial.failure, trial.seed) == (TrialState.DONE, None, 7)
    assert trial.measured is not None
    assert (trial.measured.due, trial.measured.offered_per_s) == (200, 100)
    assert trial.measured.response_ms is not None
    assert trial.measured.response_ms.mean == 5
    assert trial.cost_s > 0
    assert trial.started_at.startswith("20")


@pytest.mark.parametrize(
    ("mode", "state", "said"),
    [
        ("saturated", TrialState.ABORTED, None),
        ("short", TrialState.GENERATOR_LIMITED, "offered 50 requests/s of 100"),
        ("late", TrialState.GENERATOR_LIMITED, "45 ms late"),
        ("errors", TrialState.FAILED, "20 of 220 requests were answered with an error"),
        ("lost", TrialState.SERVER_LOST, "reset after 312 requests"),
        ("nonsense", TrialState.FAILED, "it begins 'Requests/sec: 312.5'"),
        ("silent", TrialState.FAILED, "did not print the JSON"),
        (
            "dies",
            TrialState.FAILED,
            "exited 1; it said: first line / second: cannot connect / last",
        ),
        ("killed", TrialState.FAILED, "was killed by signal 6"),
    ],
)
def test_however_a_generator_ends_the_trial_has_a_state(
    mode: str, state: TrialState, said: str | None
) -> None:
    trial = trial_of(server_of(mode))
    assert trial.state is state, trial.failure
    if said is None:
        assert trial.failure is None
    else:
        assert said in (trial.failure or "")


def test_a_generator_that_hangs_is_killed_in_time() -> None:
    trial = trial_of(server_of("hangs", time_out_s=1.0))
    assert trial.state is TrialState.FAILED
    assert "did not end within 3 s" in (trial.failure or "")


@pytest.mark.parametrize("mode", ["floods", "floods-stderr"])
def test_a_generator_that_floods_is_killed(mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commands, "OUTPUT_BYTES_MAX", 8 << 20)
    trial = trial_of(server_of(mode))
    assert "printed more than 8388608 bytes" in (trial.failure or "")


def noted(tmp_path: Path, name: str) -> tuple[str, ...]:
    return (*FAKE, "note", str(tmp_path / "notes"), name)


def test_commands_are_given_their_values_in_order(tmp_path: Path) -> None:
    server = server_of(
        "good",
        prepare=noted(tmp_path, "prepare {disks}"),
        set_up=noted(tmp_path, "set_up {seed} {limit_ms}|{abort_above_ms} {{rate}} {odd {0}"),
        tear_down=noted(tmp_path, "tear_down {scale}"),
    )
    sample: Sample = {"disks": 4, "scale": 0.25}
    for _ in range(2):
        assert trial_of(server, sample, abort_above_ms=400.0).state is TrialState.DONE
    each = ["set_up 7 |400 {rate} {odd {0}", "tear_down 0.25"]
    assert (tmp_path / "notes").read_text().splitlines() == ["prepare 4", *each, *each]


def test_what_prepare_made_stays_for_the_sample_until_it_is_released(tmp_path: Path) -> None:
    server = server_of(
        "good", prepare=("touch", "{state}/database"), set_up=("test", "-e", "{state}/database")
    )
    folder = tmp_path / f"leadline-{os.geteuid()}"
    assert trial_of(server).state is TrialState.DONE
    assert trial_of(server).state is TrialState.DONE
    assert len(list(folder.glob("*/state/database"))) == 1
    release_server(server, [{}])
    assert not folder.exists()


def test_a_preparation_that_failed_is_done_again_from_the_start(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    make = f"test ! -e {{state}}/half && touch {{state}}/half && test -e {gate}"
    server = server_of("good", prepare=("sh", "-c", make))
    failed = trial_of(server)
    assert failed.state is TrialState.FAILED
    assert (failed.failure or "").startswith("prepare: sh exited 1")
    gate.touch()
    assert trial_of(server).state is TrialState.DONE


def test_what_was_not_used_for_a_day_is_removed(tmp_path: Path) -> None:
    assert trial_of(server_of("good")).state is TrialState.DONE
    (old,) = (tmp_path / f"leadline-{os.geteuid()}").iterdir()
    os.utime(old / "lock", (0, 0))
    assert trial_of(server_of("saturated")).state is TrialState.ABORTED
    assert not old.exists()


def test_a_server_that_does_not_start_is_no_measurement_and_is_torn_down(tmp_path: Path) -> None:
    server = server_of(
        "good", set_up=(*FAKE, "fail", "port 80 is taken"), tear_down=noted(tmp_path, "torn down")
    )
    trial = trial_of(server)
    assert trial.state is TrialState.FAILED
    assert (trial.failure or "").startswith("set_up: ")
    assert "port 80 is taken" in (trial.failure or "")
    assert (tmp_path / "notes").read_text() == "torn down\n"


def test_a_tear_down_that_fails_is_no_quiet_success() -> None:
    trial = trial_of(server_of("good", tear_down=(*FAKE, "fail", "still there")))
    assert trial.state is TrialState.FAILED
    assert "tear_down: " in (trial.failure or "")
    assert "still there" in (trial.failure or "")


@pytest.mark.parametrize(
    ("check", "state", "said"),
    [
        ((*FAKE, "fail", "no answer at 5432"), TrialState.SERVER_LOST, "no answer at 5432"),
        (("true",), TrialState.FAILED, "cannot connect"),
    ],
)
def test_the_check_tells_a_dead_server_from_a_dead_generator(
    check: tuple[str, ...], state: TrialState, said: str
) -> None:
    trial = trial_of(server_of("dies", check=check))
    assert trial.state is state
    assert said in (trial.failure or "")


def alive(pid: int) -> bool:
    """Whether a process runs; one that nobody has reaped yet does not."""
    try:
        return bool(Path(f"/proc/{pid}/cmdline").read_bytes())
    except OSError:
        return False


def wait_until(holds: Callable[[], bool], seconds_max: float = 60.0) -> bool:
    end_s = time.monotonic() + seconds_max
    while time.monotonic() < end_s:
        if holds():
            return True
        time.sleep(0.02)
    return False


@pytest.mark.parametrize("mode", ["good", "dies"])
def test_a_daemon_that_nobody_stopped_ends_with_its_trial(tmp_path: Path, mode: str) -> None:
    pids = tmp_path / "pids"
    trial_of(server_of(mode, set_up=(*FAKE, "daemon", str(pids))))
    (pid,) = map(int, pids.read_text().split())
    assert not alive(pid)


def test_a_tear_down_sees_that_the_daemon_it_stopped_is_gone(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    waits = "kill $(cat $0); while kill -0 $(cat $0) 2>&1 >/dev/null; do sleep 0.02; done"
    server = server_of(
        "good",
        set_up=(*FAKE, "daemon", str(pids)),
        tear_down=("sh", "-c", waits, str(pids)),
        time_out_s=LONG_S,
    )
    trial = trial_of(server)
    assert trial.state is TrialState.DONE, trial.failure


STARTS = """
import sys, tempfile
tempfile.tempdir = sys.argv[1]
from test_command_server import FAKE, server_of, trial_of
trial_of(server_of(sys.argv[3], set_up=(*FAKE, "daemon", sys.argv[2]), time_out_s=100.0))
"""


def processes_of(*words: bytes) -> list[int]:
    """Processes with all these words in their command line."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            said = (entry / "cmdline").read_bytes().split(b"\0")
        except OSError:  # it ended meanwhile
            continue
        if set(words) <= set(said):
            found.append(int(entry.name))
    return sorted(found)


def generators() -> list[int]:
    # argv, not the guardian's input: only the generator itself has the rate.
    return processes_of(b"hangs", b"100", os.fsencode(FAKE[1]))


@contextmanager
def trial_under_way(tmp_path: Path) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """A trial that hangs in a process of its own, and the daemon that its set-up left."""
    pids = tmp_path / "pids"
    child = subprocess.Popen(
        [sys.executable, "-c", STARTS, str(tmp_path), str(pids), "hangs"],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, HERE))},
        stderr=subprocess.DEVNULL,
    )
    try:
        assert wait_until(lambda: pids.exists() and bool(generators()))
        (pid,) = map(int, pids.read_text().split())
        assert alive(pid)
        yield child, pid
    finally:
        child.kill()
        child.wait()


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_a_killed_leadline_leaves_no_server_and_no_generator(
    tmp_path: Path, how: signal.Signals
) -> None:
    with trial_under_way(tmp_path) as (child, pid):
        child.send_signal(how)
        child.wait(100)
        assert wait_until(lambda: not alive(pid) and not generators())
    left = {path.name for path in tmp_path.iterdir()}
    assert left == {"pids", f"leadline-{os.geteuid()}"}, "what its commands said is gone, too"


@pytest.mark.parametrize("which", [0, 1], ids=["the outer process", "the inner process"])
def test_a_killed_guardian_takes_with_it_what_it_guards(tmp_path: Path, which: int) -> None:
    with trial_under_way(tmp_path) as (child, pid):
        children = Path(f"/proc/{child.pid}/task/{child.pid}/children").read_text().split()
        below = [Path(f"/proc/{one}/task/{one}/children").read_text().split() for one in children]
        guardians = [int(one) for one in (*children, *(each for own in below for each in own))]
        running = [one for one in guardians if one in processes_of(os.fsencode(GUARDIAN))]
        os.kill(running[which], signal.SIGKILL)
        assert wait_until(lambda: not alive(pid) and not generators())
        child.wait(100)


def test_the_first_interruption_still_tears_down(tmp_path: Path) -> None:
    """It comes from the load generator itself, so that it comes in the middle of the load."""
    interrupts = f"kill -ALRM {os.getpid()}; exec sleep 600"
    server = CommandServer(
        load=("sh", "-c", interrupts, *LOAD),
        tear_down=noted(tmp_path, "torn down"),
        time_out_s=LONG_S,
    )
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            trial_of(server)
    finally:
        signal.signal(signal.SIGALRM, before)
    assert (tmp_path / "notes").read_text() == "torn down\n"


def guarded(*asked: dict[str, Any]) -> list[dict[str, Any]]:
    """Ask a guardian all at once, as one that is just starting is asked; return its answers."""
    lines = "".join(json.dumps(each) + "\n" for each in asked)
    with subprocess.Popen(
        [sys.executable, "-I", "-S", GUARDIAN],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as guardian:
        assert guardian.stdin is not None
        assert guardian.stdout is not None
        guardian.stdin.write(lines)
        guardian.stdin.flush()
        commands = sum(bool(each) for each in asked)
        answers = [json.loads(guardian.stdout.readline()) for _ in range(commands)]
        _, said = guardian.communicate(timeout=LONG_S)
        assert said == ""
        return answers


def asking(*argv: str) -> dict[str, Any]:
    asked: dict[str, Any] = {"argv": argv, "cwd": "/", "env": {}, "stdout": "/dev/null"}
    return asked | {
        "stderr": "/dev/null",
        "seconds_max": LONG_S,
        "output_bytes_max": 1,
        "leaves_server": False,
    }


def test_an_interruption_that_comes_with_its_command_ends_it() -> None:
    (ended,) = guarded(asking("/bin/sleep", "600"), {})
    assert ended["ended"] == "was interrupted"


def test_an_interruption_that_comes_when_nothing_runs_is_none_of_the_next_command() -> None:
    first, second = guarded(asking("/bin/true"), {}, asking("/bin/true"))
    assert first["code"] is not None
    assert second == {"code": 0, "ended": None}


@pytest.mark.parametrize(
    ("server", "sample", "said"),
    [
        (CommandServer(load=("true", "{rte}", "{seconds}")), {}, "did you mean {rate}"),
        (CommandServer(load=("true", "{rate}")), {}, "no command is given {seconds}"),
        (CommandServer(load=("no-such-program", *LOAD)), {}, "no program 'no-such-program'"),
        (CommandServer(load=("./here", *LOAD)), {}, "no program './here'"),
        (CommandServer(load=("true", *LOAD)), {"disks": 4}, "'disks' is in no command"),
        (CommandServer(load=("true", *LOAD)), {"seed": 4}, "'seed' has a placeholder's name"),
        (CommandServer(load=("true", *LOAD), directory="/no/where"), {}, "/no/where"),
        (CommandServer(load=()), {}, "needs it"),
    ],
)
def test_an_experiment_that_makes_no_sense_is_refused(
    server: CommandServer, sample: Sample, said: str
) -> None:
    with pytest.raises(TargetRefused, match=said):
        trial_of(server, sample)


def test_a_temporary_directory_of_somebody_else_is_not_used(tmp_path: Path) -> None:
    folder = tmp_path / f"leadline-{os.geteuid()}"
    folder.mkdir()
    folder.chmod(0o777)
    with pytest.raises(TargetRefused, match="not a directory of this user's alone"):
        trial_of(server_of("good"))
