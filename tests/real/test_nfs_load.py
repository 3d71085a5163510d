"""Loads of SH08 Table 3 on a real server: data sets made, reused, put right, removed; killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from nfs_server import NfsServer

from leadline.engine import ServerLost, TargetRefused
from leadline.engine.child import ENGINE_COMMAND
from leadline.engine.nfs_load import prepare_data, remove_data, run_nfs_load
from leadline.engine.targets.claim import claim
from leadline.engine.targets.nfs_address import NfsAddress
from leadline.record.jobs.nfs import NfsData
from leadline.record.workbench import TrialRequest

pytestmark = pytest.mark.real
Serve = Callable[..., NfsServer]
MIB = 2**20
SMALL = NfsData(workload="db_tp", data_bytes=16 * MIB)
HANG_S = 60.0
"""Nothing that is waited for takes this long, unless it hangs."""


def address_of(server: NfsServer) -> NfsAddress:
    return NfsAddress.parse(server.url_with_ports())


def request(rate_per_s: float = 300.0, seconds: float = 2.0) -> TrialRequest:
    return TrialRequest(rate_per_s=rate_per_s, seconds=seconds)


def below(server: NfsServer, data: NfsData) -> Path:
    name = f"data-{data.workload}-{data.data_bytes}-{data.seed}"
    return server.directory / ".leadline" / name


SHAPES = {
    "specsfs97": (8 * MIB, {"lookup": 0.273, "read": 0.182, "getattr": 0.111, "commit": 0.051}),
    "web_server": (8 * MIB, {"lookup": 0.30, "getattr": 0.25, "access": 0.05, "read": 0.40}),
    "db_tp": (8 * MIB, {"read": 0.60, "write": 0.389, "commit": 0.011}),
    "mail": (8 * MIB, {"lookup": 0.20, "read": 0.32, "write": 0.24, "setattr": 0.04}),
}


@pytest.mark.parametrize(
    "workload",
    [
        pytest.param(each, marks=[pytest.mark.long] * (each in {"web_server", "specsfs97"}))
        for each in SHAPES
    ],
)
def test_a_workload_is_made_loaded_and_removed(serve: Serve, workload: str) -> None:
    server = serve()
    (server.directory / "mine").write_text("kept")
    address = address_of(server)
    data_bytes, shares = SHAPES[workload]
    data = msgspec.convert({"workload": workload, "data_bytes": data_bytes}, NfsData)
    made = prepare_data(address, data)
    files = [path for path in below(server, data).rglob("f*") if path.is_file()]
    assert (made.made, made.files, len(files)) == (True, len(files), made.files)
    assert sum(path.stat().st_size for path in files) == made.bytes
    assert made.bytes == pytest.approx(data_bytes, rel=0.02)
    written = sum(path.stat().st_blocks * 512 for path in files)
    assert written >= made.bytes, "no holes"

    found = run_nfs_load(address, data, request(900.0, 2.0), seed=2, warm_up_s=0.2)
    measured = found.measured
    assert measured.due == pytest.approx(1800, rel=0.15), "arrivals that the seed has drawn"
    assert (measured.failed, found.generator.first_failure) == (0, None)
    assert measured.response_ms is not None
    assert measured.completed_per_s > 0
    assert not found.data.made
    dues = {operation.procedure: operation.due for operation in found.operations}
    assert sum(dues.values()) == measured.due
    for procedure, share in shares.items():
        expected = measured.due * share
        assert abs(dues[procedure] - expected) < 5 * expected**0.5 + 9, (procedure, dues)

    assert remove_data(address, data) == 1
    assert [path.name for path in server.directory.iterdir()] == ["mine"]


def test_a_data_set_outlives_its_server_and_is_not_made_again(serve: Serve) -> None:
    server = serve()
    address = address_of(server)
    assert prepare_data(address, SMALL).made
    server.restart()
    again = prepare_data(address, SMALL)
    assert (again.made, again.repaired) == (False, 0)
    other = msgspec.structs.replace(SMALL, seed=2)
    assert prepare_data(address, other).made
    # A survey of the very directory leaves them alone.
    with claim(server.directory) as claimed:
        assert claimed.run_directory.exists()
    assert not prepare_data(address, SMALL).made
    assert remove_data(address) == 2
    assert not list(server.directory.iterdir())


def test_one_that_was_damaged_is_made_anew_and_never_loaded(serve: Serve) -> None:
    server = serve()
    address = address_of(server)
    prepare_data(address, SMALL)
    os.truncate(below(server, SMALL) / "d000000" / "f0000001", 8192)
    server.restart()  # it must not remember what the file was like
    with pytest.raises(TargetRefused, match="f0000001 is gone or too short; prepare"):
        run_nfs_load(address, SMALL, request(), seed=1)
    assert prepare_data(address, SMALL).made
    (below(server, SMALL) / "manifest").unlink()
    server.restart()
    with pytest.raises(TargetRefused, match="it is half made; prepare the data set first"):
        run_nfs_load(address, SMALL, request(), seed=1)
    assert prepare_data(address, SMALL).made


def test_foreign_files_among_the_data_stay_and_are_named(serve: Serve) -> None:
    server = serve()
    address = address_of(server)
    prepare_data(address, SMALL)
    precious = below(server, SMALL) / "d000000" / "thesis.tex"
    precious.write_text("precious")
    with pytest.raises(TargetRefused, match="d000000 holds something that this Leadline did not"):
        remove_data(address)
    assert precious.read_text() == "precious"
    precious.unlink()
    assert remove_data(address) == 1


def job(address: NfsAddress, data: NfsData, action: dict[str, object]) -> str:
    return json.dumps(
        {
            "version": 1,
            "kind": "nfs_load",
            "job_id": "j",
            "server": msgspec.to_builtins(address),
            "data": msgspec.to_builtins(data),
            "action": action,
            "total_s_max": 120.0,
        }
    )


def started(text: str) -> subprocess.Popen[str]:
    child = subprocess.Popen(
        ENGINE_COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert child.stdin is not None
    child.stdin.write(text + "\n")
    child.stdin.flush()
    return child


def when_measuring(child: subprocess.Popen[str]) -> None:
    assert child.stdout is not None
    for line in child.stdout:
        event = json.loads(line)
        assert event["event"] in ("phase", "progress"), line
        if event.get("phase") == "measure":
            return


def until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + HANG_S
    while not holds():
        assert time.monotonic() < end, "it never came so far"
        time.sleep(0.002)


def sizes(directory: Path) -> dict[Path, int]:
    """Every file below a directory; one that goes meanwhile has no size."""
    found = {}
    for path in directory.rglob("*"):
        try:
            found[path] = path.stat().st_size
        except FileNotFoundError:
            continue
    return found


LOAD = {"kind": "load", "rate_per_s": 500.0, "seconds": 60.0, "warm_up_s": 0.2, "seed": 1}


def test_after_kill_9_the_next_one_takes_over_and_puts_right(serve: Serve) -> None:
    server = serve()
    address = address_of(server)
    data = NfsData(workload="mail", data_bytes=8 * MIB)
    prepare_data(address, data)
    before = sizes(below(server, data))
    child = started(job(address, data, LOAD))
    when_measuring(child)
    until(lambda: len(before.items() ^ sizes(below(server, data)).items()) >= 4)
    with pytest.raises(TargetRefused, match="in use by another Leadline"):
        prepare_data(address, data)
    child.send_signal(signal.SIGKILL)
    child.communicate()
    again = prepare_data(address, data)
    assert (again.made, again.repaired > 0) == (False, True), again
    assert remove_data(address) == 1
    assert not list(server.directory.iterdir())


def test_a_making_that_was_killed_is_made_anew(serve: Serve) -> None:
    server = serve()
    address = address_of(server)
    data = NfsData(workload="web_server", data_bytes=32 * MIB)
    child = started(job(address, data, {"kind": "prepare"}))
    until((below(server, data) / "d000005").exists)
    child.send_signal(signal.SIGKILL)
    child.communicate()
    assert not (below(server, data) / "manifest").exists(), "killed in the middle"
    assert prepare_data(address, data).made
    assert remove_data(address) == 1
    assert not list(server.directory.iterdir())


@pytest.mark.parametrize("harm", ["kill", pytest.param("stall", marks=pytest.mark.long)])
def test_a_lost_server_ends_the_load(serve: Serve, harm: str) -> None:
    """How soon is for a calm machine to say; by itself it would end in an hour."""
    server = serve()
    address = address_of(server)
    prepare_data(address, SMALL)
    harmed: list[str] = []

    def on_event(event: dict[str, object]) -> None:
        if event.get("phase") == "measure" and not harmed:
            harmed.append(harm)
            getattr(server, harm)()

    with pytest.raises(ServerLost, match=r"server (lost|silent)"):
        run_nfs_load(
            address, SMALL, request(seconds=3600.0), seed=1, warm_up_s=0.2, on_event=on_event
        )
    assert harmed
