"""`nfs://` targets as a user has them: a real server in memory, and one that goes away."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from typer.testing import CliRunner

from command import LEADLINE, environment, leadline
from engine_events import when_measuring
from leadline.app import app
from leadline.engine import CacheLimitRefused, Limits, ServerLost, Target, TargetRefused
from leadline.engine import open_engine as opened_engine
from leadline.errors import LeadlineError
from leadline.record import Access, Network, Workload, WritePolicy
from leadline.store import open_store
from leadline.studies.cache.sizes import Rates, judge, promised
from leadline.studies.survey.explain import server_level_names
from memfs_server import MemfsServer, memfs_server
from proving.samples import sample_point

MIB = 2**20
WORKLOAD = Workload(unique_bytes=4 * MIB, size_mean=8192, queue_depth=4)
SHORT = Limits(
    warm_up_s_max=0.3, measure_s_min=0.1, measure_s_max=5.0, accuracy=0.5, total_s_max=30.0
)
MEASURE = ["--workload", "unique_bytes=4MiB,size_mean=8KiB,read_frac=0.5,process_num=2"]


@pytest.fixture
def server() -> Iterator[MemfsServer]:
    with memfs_server() as running:
        yield running


def test_the_engine_measures_and_leaves_the_server_as_it_was(server: MemfsServer) -> None:
    target = Target.parse(server.url)
    with opened_engine(target) as engine:
        assert engine.memory_bytes is None, "the cache is the server's, nobody knows its size"
        assert engine.facts["nfs_export"] == "/x"
        assert engine.facts["nfs_read_bytes_max"] >= 4096
        assert engine.facts["nfs_round_trip_us"] > 0
        result = engine.run(WORKLOAD, seed=1, limits=SHORT)
        with pytest.raises(TargetRefused, match=r"in use by another Leadline \(process \d+ on"):
            opened_engine(target).__enter__()
    assert result.network is not None
    assert result.network.payload_received_bytes == result.read.bytes
    assert result.network.received_bytes > result.read.bytes
    assert result.cached_share is None
    assert not result.server_lost
    with opened_engine(target) as again:
        assert again.run(WORKLOAD, seed=1, limits=SHORT).written_bytes.layout == 4 * MIB


def test_what_does_not_go_with_a_server_is_refused_with_a_sentence(server: MemfsServer) -> None:
    target = Target.parse(server.url)
    with pytest.raises(CacheLimitRefused, match=r"the cache is the server's, cap it there"):
        opened_engine(target, Access(cache_limit_bytes=64 * MIB)).__enter__()
    with pytest.raises(TargetRefused, match=r"the server's cannot be passed by from here"):
        opened_engine(target, Access(direct=True)).__enter__()
    with pytest.raises(TargetRefused, match="it takes nfs"):
        opened_engine(target, Access(backend="uring")).__enter__()
    with pytest.raises(TargetRefused, match="--engine fio needs a directory"):
        opened_engine(target, engine="fio").__enter__()
    with (
        opened_engine(target) as engine,
        pytest.raises(TargetRefused, match="--precondition writes to a real device"),
    ):
        engine.run(WORKLOAD, seed=1, limits=SHORT, precondition_bytes_max=MIB)


def test_no_server_is_a_refusal_that_names_the_target() -> None:
    with pytest.raises(TargetRefused, match=r"nfs://127.0.0.1:1/x: the server does not answer"):
        opened_engine(Target.parse("nfs://127.0.0.1:1/x")).__enter__()


def test_measure_tells_what_went_over_the_network(server: MemfsServer, tmp_path: Path) -> None:
    done = leadline(
        "measure",
        server.url,
        *MEASURE,
        "--seconds",
        "0.3",
        "--runs",
        "1",
        store=tmp_path / "store.sqlite",
    )
    assert done.returncode == 0, done.stderr
    said = " ".join(done.stdout.split())
    assert "received, " in said
    assert "of them data" in said
    assert "the client keeps nothing" in said
    assert "device: the server's cannot be seen from here" in said


def test_regions_of_a_server_are_not_called_what_cannot_be_seen() -> None:
    assert server_level_names(1) == ["whole range"]
    assert server_level_names(3) == [
        "server's first level",
        "server's second level",
        "server's last level",
    ]


def _until_measuring(store: Path, child: subprocess.Popen[str], points: int) -> None:
    """Wait until a survey has so many points, and is then in the middle of the next."""
    end = time.monotonic() + 60
    while time.monotonic() < end and child.poll() is None:
        if store.exists():
            kept = open_store(str(store)).list()
            if kept and kept[0].items >= points:
                time.sleep(0.4)
                return
        time.sleep(0.05)
    pytest.fail(f"the survey has not come so far: {child.poll()}")


@pytest.mark.parametrize(
    "how", ["killed", pytest.param("stalled", marks=[pytest.mark.real, pytest.mark.long])]
)
def test_a_survey_whose_server_goes_away_keeps_its_points_and_says_why(
    server: MemfsServer, tmp_path: Path, how: str
) -> None:
    store = tmp_path / "store.sqlite"
    command = [LEADLINE, "survey", server.url, "--budget", "40s", "--max-bytes", "16MiB"]
    child = subprocess.Popen(
        command, env=environment(store), text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    try:
        _until_measuring(store, child, 2)
        server.kill() if how == "killed" else server.stall()
        _, talk = child.communicate(timeout=100)
    finally:
        child.kill()
    assert child.returncode == 3, talk
    assert "points are kept" in talk
    kept = open_store(str(store))
    points = kept.items(kept.list()[0].study_id)
    lost = [point for point in points if point.result.server_lost]
    # Between two points nothing is lost but the next one's beginning.
    assert len(lost) <= 1
    for point in lost:
        assert point is points[-1]
        assert not point.result.admissible
        word = "server lost:" if how == "killed" else "server silent:"
        assert point.result.reasons[0].startswith(word)
        assert point.result.network is not None
        assert point.result.network.lost_requests > 0


def test_a_run_whose_server_dies_is_stored_with_its_verdict(
    server: MemfsServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = tmp_path / "store.sqlite"
    killed = when_measuring(monkeypatch, server.kill)
    command = ["measure", server.url, *MEASURE, "--seconds", "3600", "--runs", "2"]
    done = CliRunner().invoke(app, ["--store", str(store), *command])
    assert killed, done.exception
    assert isinstance(done.exception, LeadlineError)
    assert done.exception.exit_code == 3
    said = " ".join(done.stdout.split())
    assert "no: server lost:" in said, said
    assert "count as lost" in said
    told = " ".join((str(done.exception), *getattr(done.exception, "__notes__", ())))
    assert "could not be removed, because the server is gone" in told
    point = said.split()[-1]
    stored = open_store(str(store)).item(point).document
    assert stored.result.server_lost
    assert not stored.result.admissible


def test_the_next_run_says_that_the_server_is_gone(server: MemfsServer) -> None:
    with (  # noqa: PT012 - the first run must go well
        pytest.raises(ServerLost, match="does not answer") as told,
        opened_engine(Target.parse(server.url)) as engine,
    ):
        engine.run(WORKLOAD, seed=1, limits=SHORT)
        server.kill()
        engine.run(WORKLOAD, seed=2, limits=SHORT)
    assert told.value.exit_code == 3
    assert any("could not be removed" in note for note in told.value.__notes__)


@pytest.mark.parametrize(
    ("shares", "policy"),
    [
        ([1.0, 1.0], WritePolicy.THROUGH),
        ([0.0, 0.0], WritePolicy.UNKNOWN),
        ([1.0, 0.4], WritePolicy.UNKNOWN),
        ([], WritePolicy.UNKNOWN),
    ],
)
def test_a_server_that_promises_every_write_writes_through(
    shares: list[float], policy: WritePolicy
) -> None:
    network = Network(
        sent_bytes=1,
        received_bytes=1,
        payload_sent_bytes=1,
        payload_received_bytes=0,
        lost_requests=0,
        retransmitted_segments=0,
        round_trip_us=50.0,
    )
    points = [
        msgspec.structs.replace(
            point,
            result=msgspec.structs.replace(
                point.result, network=msgspec.structs.replace(network, stable_share=share)
            ),
        )
        for point, share in ((sample_point(f"point-{share}"), share) for share in shares)
    ]
    found, evidence = judge(Rates(), None, beyond=False, word=promised(points))
    assert found is policy
    assert ("the server's word" in {item.name for item in evidence}) == bool(shares)
