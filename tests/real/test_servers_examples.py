"""The examples of workloads/: PostgreSQL under pgbench, and a web server under h2load, for real."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from command import leadline
from leadline.engine.servers import release_server, run_trial
from leadline.record.workbench import (
    CommandServer,
    Sample,
    Trial,
    TrialOrder,
    TrialRequest,
    TrialState,
)
from leadline.workbench.experiment import load_experiment

pytestmark = pytest.mark.real
EXAMPLES = Path(__file__).parents[2] / "workloads"
BRANCHES: Sample = {"branches": 2, "commit": "off"}
THREADS: Sample = {"threads": 2, "work_ms": 10}
PEAK_S_MAX = 180.0


@pytest.fixture(autouse=True)
def own_environment(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The programs of this environment first, as for a user who has activated it."""
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    yield
    for name, sample in (("pgbench", BRANCHES), ("http", THREADS)):
        release_server(load_experiment(EXAMPLES / name / "experiment.toml").server, [sample])


def require(*programs: str) -> None:
    absent = [program for program in programs if shutil.which(program) is None]
    if absent:
        pytest.skip(f"not installed: {' '.join(absent)} (tests/packages, pip install -e .[dev])")
    if "pgbench" in programs and not any(Path("/usr/lib/postgresql").glob("*/bin/initdb")):
        pytest.skip("PostgreSQL is not installed here (tests/packages)")


def trial_of(
    name: str, sample: Sample, rate_per_s: float, seconds: float = 4.0,
    abort_above_ms: float | None = None,
) -> Trial:  # fmt: skip
    experiment = load_experiment(EXAMPLES / name / "experiment.toml")
    request = TrialRequest(rate_per_s=rate_per_s, seconds=seconds, abort_above_ms=abort_above_ms)
    return run_trial(
        TrialOrder(server=experiment.server, sample=sample, threshold=experiment.goal.threshold,
                   request=request, order=0, seed=3)
    )  # fmt: skip


EACH = pytest.mark.parametrize(
    ("name", "sample", "programs", "limit_per_s"),
    [
        ("pgbench", BRANCHES, ("pgbench",), 400.0),
        ("http", THREADS, ("granian", "h2load"), 200.0),
    ],
    ids=["pgbench", "http"],
)
"""`limit_per_s`: what the example cannot do more than, however fast the machine is."""


@EACH
def test_at_half_its_limit_it_answers_and_at_twice_it_queues(
    name: str, sample: Sample, programs: tuple[str, ...], limit_per_s: float
) -> None:
    require(*programs)
    half, twice = (trial_of(name, sample, limit_per_s * factor) for factor in (0.5, 2.0))
    assert half.state is TrialState.DONE, half.failure
    assert twice.state is TrialState.DONE, twice.failure
    assert half.measured is not None
    assert twice.measured is not None
    assert half.measured.offered_per_s == pytest.approx(limit_per_s / 2, rel=0.2)
    assert twice.measured.completed_per_s < 1.1 * limit_per_s
    assert twice.measured.offered_per_s == pytest.approx(2 * limit_per_s, rel=0.2)
    means_ms = [
        trial.measured.response_ms.mean
        for trial in (half, twice)
        if trial.measured is not None and trial.measured.response_ms is not None
    ]
    assert means_ms[0] < 200 < means_ms[1], means_ms
    assert twice.measured.unanswered > 0


@EACH
def test_a_load_far_too_high_is_given_up(
    name: str, sample: Sample, programs: tuple[str, ...], limit_per_s: float
) -> None:
    require(*programs)
    begin_s = time.monotonic()
    trial = trial_of(name, sample, 3 * limit_per_s, seconds=90.0, abort_above_ms=400.0)
    assert trial.state is TrialState.ABORTED, trial.failure
    assert trial.measured is not None
    assert 9 < trial.measured.seconds < 25
    assert time.monotonic() - begin_s < 60


class Killer(threading.Thread):
    """Kills the server of a sample, with all its processes, some seconds into its first load."""

    def __init__(self, states: Path, pid_file: str) -> None:
        super().__init__()
        self._states, self._pid_file = states, pid_file
        self.killed = False

    def run(self) -> None:
        end_s = time.monotonic() + 30
        while time.monotonic() < end_s and not self._files():
            time.sleep(0.05)
        time.sleep(5.0)
        for path in self._files():
            os.killpg(os.getpgid(int(path.read_text().split()[0])), signal.SIGKILL)
            self.killed = True

    def _files(self) -> list[Path]:
        prepared = [path.parent for path in self._states.glob("*/prepared")]
        paths = [folder / "state" / self._pid_file for folder in prepared]
        return [path for path in paths if path.exists()]


@pytest.mark.parametrize(
    ("name", "pid_file", "said"),
    [
        ("pgbench", "postgresql/data/postmaster.pid", "pg_isready"),
        ("http", "pid", "does not accept connections"),
    ],
)
def test_a_server_that_dies_under_load_is_lost(
    name: str, pid_file: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    require(*(("pgbench",) if name == "pgbench" else ("granian", "h2load")))
    sample = BRANCHES if name == "pgbench" else THREADS
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:  # short: PostgreSQL's socket is in it
        Path(folder).chmod(0o711)  # its user is to come through
        killer = Killer(Path(folder) / f"leadline-{os.geteuid()}", pid_file)
        killer.start()
        with monkeypatch.context() as patch:
            patch.setattr("tempfile.tempdir", folder)
            trial = trial_of(name, sample, 100.0, seconds=20.0)
        killer.join()
    assert killer.killed, trial.failure
    assert trial.state is TrialState.SERVER_LOST, trial.failure
    assert said in (trial.failure or "")


SHORT = {"run_length": "3s", "accuracy": 0.7, "deadline": "90s", "rate_start": 50, "rate_max": 900}


@EACH
def test_its_peak_is_found(
    name: str, sample: Sample, programs: tuple[str, ...], limit_per_s: float, tmp_path: Path
) -> None:
    """The example in a short form: trials of 3 s and ± 30 %."""
    require(*programs)
    text = (EXAMPLES / name / "experiment.toml").read_text()
    for key, value in SHORT.items():
        lines = [f"{key} = {value!r}".replace("'", '"') if line.startswith(f"{key} =") else line
                 for line in text.splitlines()]  # fmt: skip
        text = "\n".join(lines)
    text = text.replace('kind = "command"', f'kind = "command"\ndirectory = "{EXAMPLES / name}"')
    (tmp_path / "short.toml").write_text(text)
    at = [word for factor, level in sample.items() for word in ("--at", f"{factor}={level}")]
    done = leadline(
        "peak", str(tmp_path / "short.toml"), *at, "--policy", "mlrsearch", "--json",
        store=tmp_path / "store.sqlite", timeout_s=PEAK_S_MAX,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    answer = msgspec.json.decode(done.stdout)
    bounds = answer["lower_bound_per_s"], answer["upper_bound_per_s"]
    assert 0.2 * limit_per_s < (bounds[0] or 0) <= 1.3 * limit_per_s, answer


def test_the_examples_are_commands() -> None:
    for name in ("pgbench", "http"):
        experiment = load_experiment(EXAMPLES / name / "experiment.toml")
        assert isinstance(experiment.server, CommandServer)
        assert experiment.sample is not None
