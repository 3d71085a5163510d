"""NFS end to end: a real server measured, surveyed, killed, stalled and restarted in the middle.

How soon a run that lost its server ends, and where a survey finds the server's cache to end, needs
a calm machine: `make check-machine`. Here it is seen that it ends, with what, and what is left.
"""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from nfs_server import NfsServer
from typer.testing import CliRunner

from command import POINT_S, hurried, leadline, running, steered
from engine_events import when_measuring
from leadline.app import app
from leadline.errors import LeadlineError
from leadline.record import Measurement
from leadline.store import open_store

pytestmark = pytest.mark.real
Serve = Callable[..., NfsServer]
MIB = 2**20
WORKLOAD = (
    "unique_bytes=16MiB,size_mean=4KiB,size_dist=fixed,seq_frac=0,process_num=2,queue_depth=4"
)
FOR_EVER = "3600"
"""Seconds of a window that is not to end by itself."""
HANG_S = 60.0
"""Nothing that is waited for takes this long, unless it hangs."""
IN_FLIGHT = 8
"""Requests of WORKLOAD at a time."""


def measuring(server: NfsServer, *more: str, read_frac: float = 0.5) -> list[str]:
    workload = f"{WORKLOAD},read_frac={read_frac}"
    return ["measure", server.url(), "--workload", workload, "--runs", "1", "--json", *more]


def test_a_server_is_measured_and_nothing_is_left_on_it(serve: Serve, tmp_path: Path) -> None:
    server = serve()
    done = leadline(*measuring(server, "--seconds", "0.5"), store=tmp_path / "store.sqlite")
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert answer["throughput_mb_s"]["value"] > 0
    assert answer["result"]["read"]["operations"] > 0
    assert answer["result"]["write"]["operations"] > 0
    assert answer["cached_share"] is None, "the client keeps nothing"
    assert not list(server.directory.iterdir())


def here(store: Path, *arguments: str) -> Any:
    """Run the command in this process, where its engine's events can be seen."""
    return CliRunner().invoke(app, ["--store", str(store), *arguments])


@pytest.mark.parametrize(
    ("export", "sync"),
    [("exp", "none"), ("exp", "dsync"), pytest.param("sync", "none", marks=pytest.mark.long)],
)
def test_writes_wait_for_the_servers_disk_when_client_or_export_say_so(
    serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, export: str, sync: str
) -> None:
    server = serve()
    if server.dirty_pages(Path(__file__)) is None:
        pytest.skip("no cachestat(2) here: needs Linux 6.5")
    dirty: list[int] = []
    when_measuring(monkeypatch, lambda: dirty.extend(looks_at(server)))
    command = measuring(server, "--seconds", "1", "--sync", sync, read_frac=0.0)
    command[1] = server.url_with_ports(export)
    done = here(tmp_path / "store.sqlite", *command)
    assert done.exit_code == 0, done.exception
    if "sync" in export + sync:
        assert min(dirty) <= 2 * IN_FLIGHT, dirty
    else:
        assert max(dirty) > 2 * IN_FLIGHT, dirty


def looks_at(server: NfsServer) -> list[int]:
    """Dirty pages of the data file, each time that something more was written into it."""
    (path,) = server.directory.glob(".leadline/*/data.bin")
    found: list[int] = []
    written_ns, end = path.stat().st_mtime_ns, time.monotonic() + 10
    while len(found) < 10 and time.monotonic() < end:
        if path.stat().st_mtime_ns != written_ns:
            written_ns = path.stat().st_mtime_ns
            found.append(server.dirty_pages(path) or 0)
        time.sleep(0.01)
    return found


@pytest.mark.parametrize(
    ("harm", "read_frac"),
    [
        pytest.param("stall", 0.5, marks=pytest.mark.long),
        ("restart", 0.0),
        pytest.param("kill", 1.0, marks=pytest.mark.long),
    ],
)
def test_a_run_that_loses_its_server_ends_and_is_kept_as_not_admissible(
    serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, harm: str, read_frac: float
) -> None:
    server, store = serve(), tmp_path / "store.sqlite"
    harmed = when_measuring(monkeypatch, getattr(server, harm))
    done = here(store, *measuring(server, "--seconds", FOR_EVER, read_frac=read_frac))
    assert harmed, (done.exception, done.stderr)
    answer = json.loads(done.stdout)
    assert not answer["admissible"]
    (lost,) = [each for each in answer["findings"] if each["code"] == "server_lost"]
    assert lost["text"].startswith(("server lost: ", "server silent: ")), lost
    assert "unanswered requests count as lost" in lost["text"]
    with open_store(str(store)) as kept:
        assert not kept.item(answer["point"]).document.result.admissible
    if harm == "restart":
        assert done.exit_code == 0, done.exception
    else:
        assert isinstance(done.exception, LeadlineError)
        assert done.exception.exit_code == 3


@pytest.mark.long
def test_a_survey_of_a_small_cache_needs_no_more_memory_and_leaves_nothing(
    serve: Serve, tmp_path: Path
) -> None:
    server = serve(memory_bytes=128 * MIB)
    assert server.group is not None
    done = hurried(
        "survey",
        server.url(),
        "--budget",
        "90s",
        "--max-bytes",
        "192MiB",
        "--json",
        store=tmp_path / "store.sqlite",
    )
    assert not server.group.oom_kills(), "the server needs more memory"
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert answer["points"] == len(stored_points(tmp_path / "store.sqlite")) > 0
    assert not list(server.directory.iterdir())


def test_a_survey_that_loses_its_server_keeps_its_points(serve: Serve, tmp_path: Path) -> None:
    server, store = serve(), tmp_path / "store.sqlite"
    command = steered(
        "survey", server.url(), "--budget", "90s", "--max-bytes", "16MiB", point_s=POINT_S
    )
    with running(command, store) as child:
        wait_for_points(store, 2, child)
        server.kill()
        _, talk = child.communicate(timeout=HANG_S)
    assert child.returncode == 3, talk
    points = stored_points(store)
    assert len(points) >= 2
    lost = [point for point in points if not point.result.admissible]
    assert any("server" in reason for point in lost for reason in point.result.reasons) or (
        "server" in talk
    )


def stored_points(store: Path) -> tuple[Measurement, ...]:
    if not store.exists():
        return ()
    with open_store(str(store)) as opened:
        surveys = opened.list()
        return opened.items(surveys[0].study_id) if surveys else ()


def wait_for_points(store: Path, count: int, child: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + HANG_S
    while len(stored_points(store)) < count:
        assert child.poll() is None, child.communicate()
        assert time.monotonic() < deadline, f"no {count} points within {HANG_S:g} s"
        time.sleep(0.05)
