"""NFS end to end: a real server measured, surveyed, killed, stalled and restarted in the middle."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from nfs_server import NfsServer

from command import LEADLINE, environment, leadline
from leadline.record import Measurement
from leadline.store import open_store

pytestmark = pytest.mark.real
Serve = Callable[..., NfsServer]
MIB = 2**20
END_S_MAX = 15.0
"""A run that meets a dead or silent server ends within this (issue 5)."""
WORKLOAD = (
    "unique_bytes=16MiB,size_mean=4KiB,size_dist=fixed,seq_frac=0,process_num=2,queue_depth=4"
)
CACHE_MIB = 128
INTO_WINDOW_S = 2.0
"""After the layout; the warm-up ends within it."""
BUDGET = "45s"
SURVEYS_MAX = 3
WIDER = 1.35
"""A border's interval is widened by this before it must hold the truth."""
IN_FLIGHT = 8
"""Requests of WORKLOAD at a time."""


def measuring(server: NfsServer, *more: str, read_frac: float = 0.5) -> list[str]:
    workload = f"{WORKLOAD},read_frac={read_frac}"
    return ["measure", server.url(), "--workload", workload, "--runs", "1", "--json", *more]


def test_a_server_is_measured_and_nothing_is_left_on_it(serve: Serve, tmp_path: Path) -> None:
    server = serve()
    command = measuring(server, "--seconds", "0.5")
    done = leadline(*command, store=tmp_path / "store.sqlite")
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert answer["admissible"], answer["reasons"]
    assert answer["throughput_mb_s"]["value"] > 0
    assert answer["cached_share"] is None, "the client keeps nothing"
    assert not list(server.directory.iterdir())


@contextmanager
def running(command: list[str], store: Path) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [LEADLINE, *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env=environment(store), start_new_session=True,
    ) as child:  # fmt: skip
        try:
            yield child
        finally:
            if child.poll() is None:
                os.killpg(child.pid, signal.SIGKILL)


def when_measuring(server: NfsServer, child: subprocess.Popen[str], data_bytes: int) -> Path:
    """Wait until the data file is whole, and then well into the window; return it."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline and child.poll() is None:
        files = list(server.directory.glob(".leadline/*/data.bin"))
        if files and files[0].stat().st_size >= data_bytes:
            time.sleep(INTO_WINDOW_S)
            return files[0]
        time.sleep(0.05)
    pytest.fail("no data file within 30 s")


@pytest.mark.parametrize(
    ("export", "sync", "waits"),
    [("exp", "none", False), ("exp", "dsync", True), ("sync", "none", True)],
)
def test_writes_wait_for_the_servers_disk_when_client_or_export_say_so(
    serve: Serve, tmp_path: Path, export: str, sync: str, waits: bool
) -> None:
    server = serve()
    if server.dirty_pages(Path(__file__)) is None:
        pytest.skip("no cachestat(2) here: needs Linux 6.5")
    command = measuring(server, "--seconds", "20", "--sync", sync, read_frac=0.0)
    command[1] = server.url_with_ports(export)
    with running(command, tmp_path / "store.sqlite") as child:
        path = when_measuring(server, child, 16 * MIB)
        dirty = []
        for _ in range(10):
            time.sleep(0.05)
            dirty.append(server.dirty_pages(path) or 0)
    assert (min(dirty) <= 2 * IN_FLIGHT) == waits, f"pages dirty in the middle of the run: {dirty}"


@pytest.mark.parametrize(("harm", "read_frac"), [("kill", 1.0), ("stall", 0.5), ("restart", 0.0)])
def test_a_run_that_loses_its_server_ends_soon_and_is_kept_as_not_admissible(
    serve: Serve, tmp_path: Path, harm: str, read_frac: float
) -> None:
    server, store = serve(), tmp_path / "store.sqlite"
    with running(measuring(server, "--seconds", "60", read_frac=read_frac), store) as child:
        when_measuring(server, child, 16 * MIB)
        getattr(server, harm)()
        begin_s = time.monotonic()
        answered, talk = child.communicate(timeout=60)
        wall_s = time.monotonic() - begin_s
    assert wall_s < END_S_MAX, talk
    answer = json.loads(answered)
    assert not answer["admissible"]
    assert answer["reasons"][0].startswith(("server lost: ", "server silent: ")), answer["reasons"]
    assert "never answered are counted as lost" in answer["reasons"][0]
    with open_store(str(store)) as kept:
        assert not kept.measurement(answer["point"]).result.admissible
    assert child.returncode == (0 if harm == "restart" else 3), talk


def test_a_survey_finds_where_the_servers_cache_ends(serve: Serve, tmp_path: Path) -> None:
    """What others do to this machine may hide a border for a minute: one of three finds it."""
    server = serve(memory_bytes=CACHE_MIB * MIB)
    assert server.group is not None
    found = []
    for number in range(SURVEYS_MAX):
        done = leadline(
            "survey", server.url(), "--budget", BUDGET, "--max-bytes", f"{5 * CACHE_MIB}MiB",
            "--json", "--seed", str(number + 1), store=tmp_path / "store.sqlite", timeout_s=150,
        )  # fmt: skip
        assert not server.group.oom_kills(), "the server needs more memory"
        assert done.returncode == 0, done.stderr
        answer = json.loads(done.stdout)
        room_bytes = CACHE_MIB * MIB - server.resident_bytes()
        found.append((answer["borders_bytes"], room_bytes))
        if any(border["low"] / WIDER <= room_bytes <= border["high"] * WIDER
               for border in answer["borders_bytes"]):  # fmt: skip
            break
    else:
        pytest.fail(f"no border near what the server's cgroup leaves: {found}")
    assert not list(server.directory.iterdir())


def test_a_survey_that_loses_its_server_keeps_its_points(serve: Serve, tmp_path: Path) -> None:
    server, store = serve(), tmp_path / "store.sqlite"
    command = ["survey", server.url(), "--budget", BUDGET, "--max-bytes", "64MiB"]
    with running(command, store) as child:
        wait_for_points(store, 3)
        server.kill()
        begin_s = time.monotonic()
        _, talk = child.communicate(timeout=60)
        wall_s = time.monotonic() - begin_s
    assert child.returncode == 3, talk
    assert wall_s < END_S_MAX, talk
    points = stored_points(store)
    assert len(points) >= 3
    lost = [point for point in points if not point.result.admissible]
    assert any("server" in reason for point in lost for reason in point.result.reasons) or (
        "server" in talk
    )


def stored_points(store: Path) -> tuple[Measurement, ...]:
    if not store.exists():
        return ()
    with open_store(str(store)) as opened:
        surveys = opened.surveys()
        return opened.points(surveys[0].survey_id) if surveys else ()


def wait_for_points(store: Path, count: int) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if len(stored_points(store)) >= count:
            return
        time.sleep(0.2)
    pytest.fail(f"no {count} points within 60 s")
