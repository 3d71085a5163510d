"""The pool on a real scheduler with real workers on loopback: killed, wrong, gone, encrypted."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from concurrent.futures import wait
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import msgspec
import pytest
from test_pool import order

from dask_cluster import Cluster, dask_cluster, written_address
from leadline.errors import LeadlineError, TargetRefused
from leadline.record.workbench import EXPERIMENT, Experiment, Sample, Trial, TrialOrder, TrialState
from leadline.servers import run_trial
from leadline.store import open_store
from leadline.studies.workbench.pool import PoolLost, PoolRefused, open_pool
from leadline.studies.workbench.search import run_experiment
from workbench_fixture import TEXT, surface_start

pytest.importorskip("distributed", reason="the pool's tests need leadline[cluster]")

import distributed

from leadline.studies.workbench.dask_pool import DaskPool

pytestmark = pytest.mark.real

HERE = {
    "PYTHONPATH": os.pathsep.join(
        [str(Path(__file__).parent), *filter(None, [os.environ.get("PYTHONPATH")])]
    )
}
"""Workers find the functions of this file."""
WATCHDOG_S = 100.0
"""Only what hangs takes longer."""


class Occupied(NamedTuple):
    worker: int
    begin: float
    end: float


def occupy(_order: TrialOrder | None = None) -> Occupied:
    begin = time.monotonic()
    time.sleep(0.2)
    return Occupied(os.getpid(), begin, time.monotonic())


def die(_order: TrialOrder) -> Trial:
    time.sleep(0.2)
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError


def forever(_order: TrialOrder) -> Trial:
    time.sleep(10 * WATCHDOG_S)
    raise AssertionError


def forever_on_boreas(order: TrialOrder) -> Trial:
    """A trial that only a kill ends, on the machine that is to be killed."""
    return forever(order) if distributed.get_worker().name == "boreas" else run_trial(order)


def meet(order: TrialOrder, place: str, count: int) -> int:
    """End only when this many are under way at once."""
    (Path(place) / str(order.order)).touch()
    end = time.monotonic() + WATCHDOG_S
    while len(list(Path(place).iterdir())) < count:
        assert time.monotonic() < end, "the others never began"
        time.sleep(0.01)
    return os.getpid()


@pytest.fixture(scope="module")
def calm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Three workers that nobody kills, with more threads than a testbed needs."""
    with dask_cluster(tmp_path_factory.mktemp("calm"), environment=HERE) as cluster:
        cluster.add_workers(["atlas", "boreas", "castor"], threads=4)
        yield cluster


@pytest.fixture(scope="module")
def scheduler(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A scheduler whose workers come and go with the tests."""
    with dask_cluster(tmp_path_factory.mktemp("shared"), environment=HERE) as cluster:
        yield cluster


@pytest.fixture
def shared(scheduler: Cluster) -> Iterator[Cluster]:
    """The scheduler without any worker of another test."""
    yield scheduler
    for name in [each for each in scheduler.processes if each != "scheduler"]:
        scheduler.kill(name)
    with distributed.Client(scheduler.address, set_as_default=False, timeout=100) as client:
        end = time.monotonic() + WATCHDOG_S
        while client.scheduler_info()["workers"]:
            assert time.monotonic() < end, "the scheduler keeps workers that were killed"
            time.sleep(0.05)


@pytest.fixture(autouse=True)
def however_busy_this_machine_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """Loopback answers within minutes; where a refusal is the matter, a test says how soon."""
    monkeypatch.setattr("leadline.studies.workbench.dask_pool._CONNECT_S", 100.0)
    monkeypatch.setattr("leadline.studies.workbench.dask_pool._WORKERS_S", 100.0)


def wait_for(pool: DaskPool, machines: int) -> None:
    end = time.monotonic() + WATCHDOG_S
    while len(pool.names) != machines:
        assert time.monotonic() < end
        time.sleep(0.05)


def kill_at_work(cluster: Cluster, pool: DaskPool, name: str) -> None:
    """Kill a worker in the middle of a trial, which does not end by itself."""
    end = time.monotonic() + WATCHDOG_S
    while name not in pool.busy:
        assert time.monotonic() < end
        time.sleep(0.02)
    cluster.kill(name)


def test_trials_run_side_by_side(calm: Cluster, tmp_path: Path) -> None:
    with DaskPool(calm.address, print) as pool:
        wait_for(pool, 3)
        assert pool.machines == 3
        assert set(pool.names) == {"atlas", "boreas", "castor"}
        futures = [pool.submit(meet, order(n), str(tmp_path), 3) for n in range(3)]
        assert len({future.result(timeout=WATCHDOG_S) for future in futures}) == 3


def test_never_two_on_one_worker(calm: Cluster) -> None:
    with DaskPool(calm.address, print) as pool:
        wait_for(pool, 3)
        futures = [pool.submit(occupy, order(n)) for n in range(9)]
        found = sorted(future.result(timeout=WATCHDOG_S) for future in futures)
    assert not [1 for a, b in pairwise(found) if a.worker == b.worker and b.begin < a.end]


def test_three_workers_of_one_machine_are_one_machine_to_a_server_that_is_real(
    calm: Cluster,
) -> None:
    with DaskPool(calm.address, print) as pool:
        wait_for(pool, 3)
        futures = [pool.submit(occupy) for _ in range(5)]
        found = sorted(
            (each.result(timeout=WATCHDOG_S) for each in futures), key=lambda each: each.begin
        )
    assert not [1 for a, b in pairwise(found) if b.begin < a.end]


def test_a_trial_says_the_same_on_a_worker_and_here(calm: Cluster) -> None:
    with open_pool(calm.address) as pool:
        there = pool.submit(run_trial, order(5)).result(timeout=WATCHDOG_S)
    assert there.worker in {"atlas", "boreas", "castor"}
    assert there.measured == run_trial(order(5)).measured


def test_a_killed_workers_trial_runs_again_elsewhere_and_is_counted(shared: Cluster) -> None:
    told: list[str] = []
    shared.add_workers(["atlas", "boreas", "castor"])
    with DaskPool(shared.address, told.append) as pool:
        wait_for(pool, 3)
        futures = [pool.submit(forever_on_boreas, order(n)) for n in range(6)]
        kill_at_work(shared, pool, "boreas")
        wait(futures, timeout=WATCHDOG_S)
        trials = [future.result(timeout=0) for future in futures]
        assert pool.lost_trials == 1
        assert set(pool.names) == {"atlas", "castor"}
    assert [trial.order for trial in trials] == list(range(6))
    assert {trial.state for trial in trials} == {TrialState.DONE}
    assert {trial.worker for trial in trials} == {"atlas", "castor"}
    assert [line.partition(";")[0] for line in told] == ["worker boreas was lost"]


def test_a_trial_that_kills_its_machines_is_given_up(tmp_path: Path) -> None:
    few = HERE | {"DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "1"}
    with (
        dask_cluster(tmp_path, ["atlas", "boreas", "castor"], environment=few) as cluster,
        DaskPool(cluster.address, print) as pool,
    ):
        wait_for(pool, 3)
        trial = pool.submit(die, order(7)).result(timeout=WATCHDOG_S)
        assert trial.state is TrialState.FAILED
        assert trial.order == 7
        assert trial.measured is None
        assert "every machine that began it was lost" in (trial.failure or "")
        assert pool.lost_trials == 1
        # The machine that is left goes on.
        assert pool.submit(run_trial, order(8)).result(timeout=WATCHDOG_S).order == 8


def test_without_a_machine_trials_end_instead_of_waiting_for_ever(shared: Cluster) -> None:
    shared.add_worker("atlas")
    with DaskPool(shared.address, print, timeout_s=0.5) as pool:
        wait_for(pool, 1)
        future = pool.submit(forever, order(0))
        kill_at_work(shared, pool, "atlas")
        with pytest.raises(PoolLost, match=r"no machine of the pool .* --resume"):
            future.result(timeout=WATCHDOG_S)
        # One that comes later takes what comes later.
        shared.add_worker("boreas")
        wait_for(pool, 1)
        later = pool.submit(run_trial, order(1))
        assert later.result(timeout=WATCHDOG_S).worker == "boreas"


def test_a_scheduler_that_goes_away_ends_the_trials(tmp_path: Path) -> None:
    with (
        dask_cluster(tmp_path, ["atlas"]) as cluster,
        DaskPool(cluster.address, print, timeout_s=0.5) as pool,
    ):
        future = pool.submit(forever, order(0))
        cluster.kill("scheduler")
        with pytest.raises(PoolLost, match=r"the scheduler at .* went away"):
            future.result(timeout=WATCHDOG_S)


def found_without_places(experiment: Experiment) -> list[tuple[Sample, list[Trial], object]]:
    """What was measured, whatever the order of samples and wherever it ran."""
    plain = [
        (
            peak.sample,
            [msgspec.structs.replace(t, worker=None, started_at="") for t in peak.trials],
            peak.peak,
        )
        for peak in experiment.peaks
    ]
    return sorted(plain, key=lambda each: str(each[0]))


def test_a_surface_on_three_machines_of_which_one_dies_is_that_of_one_machine(
    shared: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rough = TEXT.replace('run_length = "20s"', 'run_length = "60s"\naccuracy = "60%"')
    start = surface_start(rough)
    with open_store(str(tmp_path / "alone.sqlite")) as store, open_pool() as pool:
        store.begin(EXPERIMENT, start)
        alone = run_experiment(start, store, pool)
    monkeypatch.setattr("leadline.studies.workbench.search.run_trial", forever_on_boreas)
    shared.add_workers(["atlas", "boreas", "castor"])
    with (
        open_store(str(tmp_path / "pool.sqlite")) as store,
        DaskPool(shared.address, print) as machines,
    ):
        wait_for(machines, 3)
        store.begin(EXPERIMENT, start)
        killer = threading.Thread(target=kill_at_work, args=(shared, machines, "boreas"))
        killer.start()
        found = run_experiment(start, store, machines)
        killer.join()
        assert machines.lost_trials == 1
        assert set(machines.names) == {"atlas", "castor"}
    assert found_without_places(found) == found_without_places(alone)
    assert "trials_moved" in [each.code for each in found.findings]


def test_whoever_is_stopped_leaves_the_pool_at_once(shared: Cluster) -> None:
    shared.add_worker("atlas")
    pool = DaskPool(shared.address, print)
    futures = [pool.submit(forever, order(n)) for n in range(4)]
    pool.__exit__(KeyboardInterrupt, None, None)
    assert all(isinstance(future.exception(timeout=0), PoolLost) for future in futures)


_OLDER = """
import leadline.studies.workbench.dask_pool as pool
pool.own_handshake = lambda: pool.Handshake("0.0.9", "")
"""
_OTHER_RECORDS = """
import leadline.studies.workbench.dask_pool as pool
own = pool.own_handshake()
pool.own_handshake = lambda: own._replace(records="")
"""
_NONE_AT_ALL = "import sys; sys.modules['leadline'] = None"


@pytest.mark.parametrize(
    ("preload", "testbeds", "words"),
    [
        (_OLDER, 1, r"has Leadline 0\.0\.9, and this is"),
        (_OTHER_RECORDS, 1, "with other records"),
        (_NONE_AT_ALL, 1, "ModuleNotFoundError"),
        ("", 2, "offers testbed=2, but two trials at once"),
    ],
)
def test_a_worker_that_cannot_run_our_trials_is_refused(
    shared: Cluster, preload: str, testbeds: int, words: str
) -> None:
    shared.add_worker("odd", testbeds=testbeds, preload=preload)
    with pytest.raises(PoolRefused, match=rf"cannot run these trials: .*{words}.*install"):
        open_pool(shared.address)


def test_one_that_joins_later_is_refused_when_it_gets_a_trial(shared: Cluster) -> None:
    shared.add_worker("atlas")
    with DaskPool(shared.address, print) as pool:
        shared.add_worker("older", preload=_OLDER)
        wait_for(pool, 2)
        errors: list[BaseException | None] = []
        while not (None in errors and any(errors)):
            futures = [pool.submit(run_trial, order(n)) for n in range(8)]
            errors += [future.exception(timeout=WATCHDOG_S) for future in futures]
    for error in filter(None, errors):
        assert isinstance(error, PoolRefused)
        assert "worker older cannot run these trials: it has Leadline 0.0.9" in str(error)


_EVIL = """
import leadline.studies.workbench.dask_pool as pool

class Evil(Exception):
    def __reduce__(self):
        return eval, (f"open({folder!r} + str(__import__('os').getpid()), 'w') and None",)

folder = {folder!r}
"""
_EVIL_ANSWERS = {
    "result": "pool._run_on_worker = lambda call: Evil()",
    "type": "pool._run_on_worker = lambda call: type('Odd', (), {})()",
    "bytes": "pool._run_on_worker = lambda call: b'{'",
    "error": """
def fail(call):
    raise Evil()
pool._run_on_worker = fail
""",
}


@pytest.mark.parametrize("answer", _EVIL_ANSWERS)
def test_no_pickle_of_a_workers_making_is_loaded_here(
    shared: Cluster, answer: str, tmp_path: Path
) -> None:
    folder = tmp_path / "loaded-by"
    folder.mkdir()
    head = _EVIL.replace("{folder!r}", repr(f"{folder}/"))
    shared.add_worker("evil", preload=head + _EVIL_ANSWERS[answer])
    with DaskPool(shared.address, print) as pool:
        error = pool.submit(run_trial, order(0)).exception(timeout=WATCHDOG_S)
    assert isinstance(error, PoolRefused)
    assert "install the same Leadline there" in str(error) or "cannot run" in str(error)
    assert str(os.getpid()) not in {path.name for path in folder.iterdir()}


def refuse(_order: TrialOrder) -> Trial:
    raise TargetRefused("no such thing here")


def stumble(_order: TrialOrder) -> Trial:
    raise ZeroDivisionError("a defect")


def test_an_error_on_a_worker_is_the_futures(calm: Cluster) -> None:
    with DaskPool(calm.address, print) as pool:
        with pytest.raises(TargetRefused, match="no such thing here"):
            pool.submit(refuse, order()).result(timeout=WATCHDOG_S)
        with pytest.raises(LeadlineError, match="ZeroDivisionError: a defect"):
            pool.submit(stumble, order()).result(timeout=WATCHDOG_S)


def test_workers_without_a_testbed_are_none(
    shared: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("leadline.studies.workbench.dask_pool._WORKERS_S", 0.0)
    shared.add_worker("plain", testbeds=None)
    with pytest.raises(PoolRefused, match=r"dask worker .* --resources testbed=1"):
        open_pool(shared.address)


def certificate(folder: Path) -> dict[str, str]:
    """One self-signed certificate that is its own authority, as Dask's settings name it."""
    key, cert = folder / "key.pem", folder / "cert.pem"
    subprocess.run(
        [
            "openssl",
            "req",
            "-x509",
            "-newkey",
            "rsa:2048",
            "-nodes",
            "-days",
            "1",
            "-subj",
            "/CN=leadline-test",
            "-keyout",
            str(key),
            "-out",
            str(cert),
        ],
        check=True,
        capture_output=True,
    )
    tls = "DASK_DISTRIBUTED__COMM__TLS"
    roles = {
        f"{tls}__{role}__{what}": str(path)
        for role in ("SCHEDULER", "WORKER", "CLIENT")
        for what, path in (("KEY", key), ("CERT", cert))
    }
    return {f"{tls}__CA_FILE": str(cert), **roles}


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl makes the certificate")
def test_tls_is_dasks_own_and_without_the_key_nobody_gets_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dask = pytest.importorskip("dask")
    settings = certificate(tmp_path)
    names = {key: key.removeprefix("DASK_").lower().replace("__", ".") for key in settings}
    own = {names[key].replace("ca_file", "ca-file"): value for key, value in settings.items()}
    with dask_cluster(tmp_path / "c", ["atlas"], environment=settings, protocol="tls") as cluster:
        assert cluster.address.startswith("tls://")
        with dask.config.set(own), open_pool(cluster.address) as pool:
            assert pool.submit(run_trial, order(4)).result(timeout=WATCHDOG_S).worker == "atlas"
        monkeypatch.setattr("leadline.studies.workbench.dask_pool._CONNECT_S", 1.0)
        with pytest.raises(PoolRefused, match="TLS"):
            open_pool(cluster.address)
        with pytest.raises(PoolRefused, match="no Dask scheduler answers"):
            open_pool(cluster.address.replace("tls:", "tcp:"))


def test_a_schedulers_file_that_is_not_whole_yet_is_no_address(tmp_path: Path) -> None:
    file = tmp_path / "scheduler.json"
    assert written_address(file) is None
    for written, address in (("", None), ('{"address": "tcp', None), ('{"address": "a"}', "a")):
        file.write_text(written, encoding="utf-8")
        assert written_address(file) == address
