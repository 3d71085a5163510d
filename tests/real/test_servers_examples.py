"""The examples of workloads/: PostgreSQL under pgbench, and a web server under h2load, for real.

How fast they are, where they queue and where their peaks lie needs a calm machine:
`make check-machine`.
"""

from __future__ import annotations

import os
import signal
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from server_examples import EXAMPLES, FOLDER, Example, example_trial, released, short_form, why_no

from leadline.record.workbench import CommandServer, TrialState
from leadline.studies.workbench.experiments.read import load_experiment

pytestmark = pytest.mark.real
HANG_S = 60.0
"""Nothing that is waited for takes this long, unless it hangs."""
MEASURED = (TrialState.DONE, TrialState.ABORTED, TrialState.GENERATOR_LIMITED)
"""A busy host's generator may offer less than it was asked to, and says so."""


@pytest.fixture(
    params=[
        pytest.param(each, id=each.name, marks=[pytest.mark.long] * (each.name == "pgbench"))
        for each in EXAMPLES
    ]
)
def example(request: pytest.FixtureRequest) -> Iterator[Example]:
    found: Example = request.param
    if why := why_no(found):
        pytest.skip(why)
    with released(found):
        yield found


def test_at_twice_its_limit_it_does_no_more_than_that(example: Example) -> None:
    trial = example_trial(example, 2 * example.limit_per_s, seconds=2.0)
    assert trial.state in MEASURED, trial.failure
    assert trial.measured is not None
    assert 0 < trial.measured.completed_per_s < 1.1 * example.limit_per_s
    assert trial.measured.response_ms is not None


@pytest.mark.parametrize(
    "example",
    [
        pytest.param(EXAMPLES[0], id="pgbench", marks=pytest.mark.long),
        pytest.param(EXAMPLES[1], id="http"),
    ],
    indirect=True,
)
def test_a_load_far_too_high_is_given_up(example: Example) -> None:
    trial = example_trial(example, 3 * example.limit_per_s, seconds=300.0, abort_above_ms=400.0)
    assert trial.state in MEASURED, trial.failure
    assert trial.measured is not None
    assert trial.measured.aborted
    assert trial.measured.seconds < 300


class Killer(threading.Thread):
    """Kills the server of a sample, with all its processes, once its generator is at work."""

    def __init__(self, states: Path, pid_file: str, generator: str) -> None:
        super().__init__()
        self._states, self._pid_file, self._generator = states, pid_file, generator
        self.killed = False

    def run(self) -> None:
        end_s = time.monotonic() + HANG_S
        while time.monotonic() < end_s and not (self._files() and self._loaded()):
            time.sleep(0.05)
        for path in self._files():
            os.killpg(os.getpgid(int(path.read_text().split()[0])), signal.SIGKILL)
            self.killed = True

    def _files(self) -> list[Path]:
        prepared = [path.parent for path in self._states.glob("*/prepared")]
        paths = [folder / "state" / self._pid_file for folder in prepared]
        return [path for path in paths if path.exists()]

    def _loaded(self) -> bool:
        """Whether the generator runs, begun by a load.py that was given this server's state."""
        for entry in Path("/proc").glob("[0-9]*"):
            try:
                if (entry / "comm").read_text().strip() == self._generator:
                    parent = (entry / "stat").read_text().rpartition(")")[2].split()[1]
                    words = Path("/proc", parent, "cmdline").read_bytes()
                    if os.fsencode(self._states) in words:
                        return True
            except OSError:
                continue
        return False


@pytest.mark.parametrize(
    ("example", "pid_file", "generator", "said"),
    [
        (EXAMPLES[0], "postgresql/data/postmaster.pid", "pgbench", "pg_isready"),
        (EXAMPLES[1], "pid", "h2load", "does not accept connections"),
    ],
    indirect=["example"],
    ids=["pgbench", "http"],
)
def test_a_server_that_dies_under_load_is_lost(
    example: Example, pid_file: str, generator: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:  # short: PostgreSQL's socket is in it
        Path(folder).chmod(0o711)  # its user is to come through
        killer = Killer(Path(folder) / f"leadline-{os.geteuid()}", pid_file, generator)
        killer.start()
        with monkeypatch.context() as patch:
            patch.setattr("tempfile.tempdir", folder)
            trial = example_trial(example, 100.0, seconds=20.0)
        killer.join()
    assert killer.killed, trial.failure
    assert trial.state is TrialState.SERVER_LOST, trial.failure
    assert said in (trial.failure or "")


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_the_examples_are_commands(example: Example, tmp_path: Path) -> None:
    (tmp_path / "short.toml").write_text(short_form(example))
    for path in (FOLDER / example.name / "experiment.toml", tmp_path / "short.toml"):
        experiment = load_experiment(path)
        assert isinstance(experiment.server, CommandServer)
        assert experiment.sample is not None
