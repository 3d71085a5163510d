"""`leadline stream` on this machine's disk: right, within its memory, nothing left behind."""

from __future__ import annotations

import hashlib
import json
import os
import resource
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
import pytest

import leadline as package
from command import LEADLINE, ended_after, environment, leadline
from leadline.engine import TargetRefused
from leadline.machine.loop_devices import loop_device, why_no_loop_devices
from leadline.record.streaming import KernelName
from leadline.studies.streaming.text import stream_document

pytestmark = pytest.mark.real
MIB = 1 << 20
RECORDS = 614_400
"""60 000 KiB: whole records, and 15 000 whole blocks."""
ROWS, COLUMNS = 120, 125
SMALL, LARGE = "32MiB", "160MiB"
"""Memory that the data does not fit, and memory that it does."""
Bytes = npt.NDArray[np.uint8]
stream_data = package.stream


def content(path: Path) -> Bytes:
    return np.fromfile(path, dtype=np.uint8)


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Records made once; no test may change them."""
    place = tmp_path_factory.mktemp("records")
    path = place / "in"
    done = leadline(
        "stream",
        "generate",
        str(path),
        "--records",
        str(RECORDS),
        "--memory",
        SMALL,
        "--threads",
        "2",
        store=place / "store.sqlite",
    )
    assert done.returncode == 0, done.stderr
    before = digest(path)
    yield path
    assert digest(path) == before, "the input was changed"
    shutil.rmtree(place)


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Path]:
    """A directory on the disk; what a test leaves there is freed."""
    folder = tmp_path / "disk"
    folder.mkdir()
    yield folder
    shutil.rmtree(folder)


def stream(*arguments: object, place: Path, code: int = 0) -> subprocess.CompletedProcess[str]:
    store = place.parent / "store.sqlite"
    done = leadline("stream", *map(str, arguments), store=store)
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    return done


def told_of(kernel: KernelName, source: Path, output: Path, **asked: Any) -> dict[str, Any]:
    """Run a kernel from Python, which saves the start of a command, and return its document."""
    store = str(output.parents[1] / "store.sqlite")
    done = stream_data(kernel, source, output, bound=False, store=store, **asked)
    document: dict[str, Any] = json.loads(msgspec.json.encode(stream_document(done.study)))
    return document


def sorted_records(path: Path) -> Bytes:
    records = content(path).reshape(-1, 100)
    keys = np.ascontiguousarray(records[:, :10]).view("S10").ravel()
    words = np.ascontiguousarray(records[:, :8]).view(">u8").ravel()
    rest = np.ascontiguousarray(records[:, 8:10]).view(">u2").ravel()
    assert len(keys) == len(records)
    return records[np.lexsort((rest, words))]


@pytest.mark.parametrize("memory", [LARGE, SMALL], ids=["fits", "does-not-fit"])
@pytest.mark.parametrize("threads", [1, 2])
def test_a_sort_orders_every_record(data: Path, place: Path, threads: int, memory: str) -> None:
    told = told_of("sort", data, place / "out", memory=memory, threads=threads)
    assert told["verified"] is True
    assert told["passes"] == (1 if memory == LARGE else 2)
    assert np.array_equal(content(place / "out").reshape(-1, 100), sorted_records(data))
    assert names(place) == ["out"]
    stream("check", place / "out", "--against", data, "--memory", SMALL, place=place)


@pytest.mark.parametrize("memory", [LARGE, SMALL], ids=["fits", "does-not-fit"])
@pytest.mark.parametrize("threads", [1, 2])
def test_a_scan_writes_the_records_of_its_range(
    data: Path, place: Path, threads: int, memory: str
) -> None:
    told = told_of("scan", data, place / "out", memory=memory, threads=threads, match=0.75)
    assert told["verified"] is True
    records = content(data).reshape(-1, 100)
    expected = records[records[:, 0] < 192]
    assert told["bytes_out"] == expected.size
    layout = json.loads((place / "out.layout").read_text()) if threads > 1 else None
    parts = [Path(name) for part in layout["parts"] for name in part["files"]] if layout else []
    written = b"".join(path.read_bytes() for path in parts or [place / "out"])
    assert written == expected.tobytes()


@pytest.mark.parametrize("memory", [LARGE, SMALL], ids=["fits", "does-not-fit"])
@pytest.mark.parametrize("threads", [1, 2])
def test_a_transpose_puts_every_block_in_its_place(
    data: Path, place: Path, threads: int, memory: str
) -> None:
    told = told_of(
        "transpose", data, place / "out", rows=ROWS, columns=COLUMNS, memory=memory, threads=threads
    )
    assert told["verified"] is True
    blocks = content(data).reshape(ROWS, COLUMNS, 4096)
    expected = blocks.transpose(1, 0, 2).reshape(-1)
    assert np.array_equal(content(place / "out"), expected)
    assert [phase["name"] for phase in told["phases"]] == (
        ["read", "write"] if memory == LARGE else ["tiles"]
    )


@pytest.mark.parametrize("how", [{"io": "mmap"}, {"buffered": True}, {"depth": 1}], ids=str)
def test_every_way_of_moving_bytes_gives_the_same(
    data: Path, place: Path, how: dict[str, Any]
) -> None:
    told_of("sort", data, place / "sorted", memory=SMALL, **how)
    assert np.array_equal(content(place / "sorted").reshape(-1, 100), sorted_records(data))
    told_of("transpose", data, place / "turned", memory=SMALL, rows=ROWS, **how)
    told_of("transpose", place / "turned", place / "back", memory=LARGE, rows=COLUMNS, **how)
    assert digest(place / "back") == digest(data)


def test_memory_is_a_hard_limit_and_a_cgroup_agrees(data: Path, place: Path) -> None:
    done = stream(
        "sort",
        data,
        place / "out",
        "--memory",
        SMALL,
        "--cache-limit",
        "112MiB",
        "--no-bound",
        "--json",
        place=place,
    )
    told = json.loads(done.stdout)
    assert told["memory_peak_bytes"] <= 1.1 * 32 * MIB
    refused = stream(
        "sort",
        data,
        place / "other",
        "--memory",
        "64MiB",
        "--cache-limit",
        "64MiB",
        place=place,
        code=5,
    )
    assert "leaves no room beside --memory" in refused.stderr


def test_stripes_are_found_again_by_their_layout(data: Path, place: Path) -> None:
    disks = [place / "disk-1", place / "disk-2"]
    for disk in disks:
        disk.mkdir()
    told = told_of("sort", data, place / "striped", stripes=disks, memory=SMALL)
    assert told["verified"] is True
    assert [len(names(disk)) for disk in disks] == [1, 1]
    stream("check", place / "striped", "--against", data, "--memory", SMALL, place=place)
    told_of("transpose", place / "striped", place / "out", memory=SMALL, rows=ROWS)
    whole = sorted_records(data).reshape(ROWS, COLUMNS, 4096).transpose(1, 0, 2).reshape(-1)
    assert np.array_equal(content(place / "out"), whole)


def test_the_document_has_the_promised_keys_and_numbers_that_agree(data: Path, place: Path) -> None:
    done = stream("sort", data, place / "out", "--memory", LARGE, "--json", place=place)
    told = json.loads(done.stdout)
    promised = {"kernel", "platform", "bytes", "seconds", "verified", "bound_mb_s", "phases"}
    assert promised <= set(told)
    size = RECORDS * 100
    assert (told["kernel"], told["platform"], told["bytes"]) == ("sort", "process", size)
    assert told["capacities"] is not None, told["findings"]
    assert told["bound_mb_s"] > 0
    assert sum(phase["bytes_read"] for phase in told["phases"]) == size
    for phase in told["phases"]:
        assert {"name", "mb_s", "cpu_user", "cpu_system", "io_bytes"} <= set(phase)
        moved = phase["bytes_read"] + phase["bytes_written"]
        assert phase["mb_s"] == pytest.approx(moved / phase["seconds"] / 1e6)
        assert phase["first_done_s"] <= phase["last_done_s"] <= phase["seconds"] * 1.01
        assert 0 <= phase["cpu_user"] + phase["cpu_system"] < os.cpu_count() + 0.5  # type: ignore[operator]
        if phase["io_bytes"] is not None:
            assert phase["io_bytes"] == pytest.approx(moved, rel=0.05)
    for field in ("instructions", "memory_bus_bytes"):
        if told["phases"][0][field] is None:
            assert field in told["not_measurable"]


def test_runs_that_were_killed_go_on_where_they_were_and_replace_only_what_is_said(
    data: Path, place: Path
) -> None:
    store, out = place / "store.sqlite", place / "out"
    options = ["sort", str(data), str(out), "--memory", LARGE, "--no-bound", "--json"]
    runs = ["stream", *options, "--runs", "3"]
    ended_after(2, signal.SIGKILL, *runs, store=store)
    first = digest(out)
    unsaid = leadline(*runs, "--resume", store=store)
    assert unsaid.returncode == 5, unsaid.stderr
    assert "--replace" in unsaid.stderr
    other = leadline(*runs, "--resume", "--replace", "--threads", "2", store=store)
    assert other.returncode == 2
    assert "runs with threads 1, not 2" in other.stderr
    resumed = leadline(*runs, "--resume", "--replace", store=store)
    assert resumed.returncode == 0, resumed.stderr
    told = json.loads(resumed.stdout)
    assert [run["repetition"] for run in told["runs"]] == [0, 1, 2]
    assert told["throughput_mb_s"]["n"] == 3
    assert digest(out) == first
    none = leadline(*runs, "--resume", "--replace", store=store)
    assert none.returncode == 2
    assert "leave out --resume" in none.stderr


def test_several_runs_give_an_interval_and_one_says_that_it_has_none(
    data: Path, place: Path
) -> None:
    one = stream(
        "sort", data, place / "out", "--memory", LARGE, "--no-bound", "--json", place=place
    )
    told = json.loads(one.stdout)
    assert told["throughput_mb_s"] | {"value": 0} == {"value": 0, "low": None, "high": None, "n": 1}
    assert "one run, no interval" in told["sentences"][0]
    three = stream(
        "sort",
        data,
        place / "again",
        "--memory",
        LARGE,
        "--no-bound",
        "--json",
        "--runs",
        3,
        place=place,
    )
    told = json.loads(three.stdout)
    rates = [
        sum(phase["bytes_read"] + phase["bytes_written"] for phase in run["phases"])
        / run["seconds"]
        / 1e6
        for run in told["runs"]
    ]
    assert [run["repetition"] for run in told["runs"]] == [0, 1, 2]
    assert told["throughput_mb_s"]["n"] == 3
    assert told["throughput_mb_s"]["value"] == pytest.approx(np.prod(rates) ** (1 / 3))
    found = told["throughput_mb_s"]
    assert found["low"] < float(np.median(rates)) < found["high"]
    assert "3 runs" in told["sentences"][0]
    assert np.array_equal(content(place / "again").reshape(-1, 100), sorted_records(data))
    refused = stream("sort", data, place / "again", "--runs", 2, place=place, code=5)
    assert "--replace" in refused.stderr


def test_a_run_is_stored_shown_listed_and_exported(data: Path, place: Path) -> None:
    told = told_of("scan", data, place / "out", memory=SMALL, name="here")
    store = place.parent / "store.sqlite"
    shown = leadline("show", "here", "--json", store=store)
    assert json.loads(shown.stdout)["study"] == told["study"]
    assert "scan read" in leadline("show", told["study"][:8], store=store).stdout
    listed = json.loads(leadline("systems", "--json", store=store).stdout)
    assert [(item["kind"], item["system"], item["status"]) for item in listed] == [
        ("stream", "here", "done")
    ]
    assert " stream " in leadline("systems", store=store).stdout
    rows = json.loads(leadline("export", "here", store=store).stdout)
    assert [row["name"] for row in rows] == [phase["name"] for phase in told["phases"]]
    drawn = leadline("report", "here", "-o", str(place / "stream.html"), store=store)
    assert drawn.returncode == 0, drawn.stderr
    assert "<html" in (place / "stream.html").read_text()


# --- damaged data sets: every one is caught by the checker


@pytest.fixture(scope="module")
def whole(data: Path) -> tuple[Path, Bytes]:
    return data, sorted_records(data)


def damaged(records: Bytes, how: str) -> bytes:
    changed = records.copy()
    middle = len(changed) // 2
    if how == "wrong":
        changed[middle, 50] ^= 1
    elif how == "unsorted":
        changed[[middle, middle + 1]] = changed[[middle + 1, middle]]
    elif how == "duplicate":
        changed[middle + 1] = changed[middle]
    elif how == "missing":
        changed = np.delete(changed, middle, axis=0)
    elif how == "short":
        return changed.tobytes()[:-37]
    return changed.tobytes()


@pytest.mark.parametrize(
    ("how", "code", "said"),
    [
        ("whole", 0, ""),
        ("wrong", 1, "records were changed, lost or doubled"),
        ("unsorted", 1, "out of order: 1 record, the first is number 307201"),
        ("duplicate", 1, "records were changed, lost or doubled"),
        ("missing", 1, "(1 missing)"),
        ("short", 5, "no whole number of records of 100 bytes"),
    ],
)
def test_the_checker_catches_every_damage(
    whole: tuple[Path, Bytes], place: Path, how: str, code: int, said: str
) -> None:
    source, records = whole
    (place / "out").write_bytes(damaged(records, how))
    done = stream(
        "check",
        place / "out",
        "--against",
        source,
        "--memory",
        SMALL,
        "--threads",
        "2",
        place=place,
        code=code,
    )
    assert said in done.stderr
    if code == 0:
        assert "SUCCESS - all records are in order" in done.stdout
    if how == "duplicate":
        assert "Duplicate keys: 1" in done.stdout


def test_a_checker_is_told_what_to_expect(data: Path, place: Path) -> None:
    any_order = ("check", data, "--any-order", "--memory", SMALL)
    told = json.loads(stream(*any_order, "--json", place=place).stdout)
    assert told["right"] is True
    found = told["check"]
    stream(*any_order, "--records", RECORDS, "--checksum", found["checksum"], place=place)
    done = stream(*any_order, "--records", RECORDS + 1, place=place, code=1)
    assert "(1 missing)" in done.stderr
    stream("check", data, "--memory", SMALL, place=place, code=1)


# --- ends of any kind


def descriptors(pid: int) -> list[str]:
    found = []
    for process in (str(pid), *children(pid)):
        for link in Path(f"/proc/{process}/fd").glob("*"):
            try:
                found.append(str(link.readlink()))
            except OSError:
                continue
    return found


def children(pid: int) -> list[str]:
    listed = Path(f"/proc/{pid}/task/{pid}/children")
    return listed.read_text().split() if listed.exists() else []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_and_leaves_nothing(
    data: Path, place: Path, number: signal.Signals
) -> None:
    command = [
        LEADLINE,
        "stream",
        "sort",
        str(data),
        str(place / "out"),
        "--memory",
        SMALL,
        "--depth",
        "1",
        "--no-bound",
    ]
    running = subprocess.Popen(
        command, stderr=subprocess.PIPE, text=True, env=environment(place.parent / "store.sqlite")
    )
    end = time.monotonic() + 60
    while not any(str(place) in name for name in descriptors(running.pid)):
        assert running.poll() is None, "it was done before it could be stopped"
        assert time.monotonic() < end
    engines = children(running.pid)
    running.send_signal(number)
    said = running.communicate(timeout=60)[1]
    assert running.returncode == 3, said
    assert "stopped early" in said
    assert names(place) == []
    # Files without a name go with the last process that has them open.
    assert not [pid for pid in engines if Path(f"/proc/{pid}").exists()]


def test_a_write_that_fails_is_told_and_leaves_nothing(data: Path, place: Path) -> None:
    def no_long_files() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (20 * MIB, 20 * MIB))

    (place / "out").write_text("the one before")
    done = subprocess.run(
        [
            LEADLINE,
            "stream",
            "sort",
            str(data),
            str(place / "out"),
            "--replace",
            "--memory",
            LARGE,
            "--no-bound",
        ],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        preexec_fn=no_long_files,
        env=environment(place.parent / "store.sqlite"),
    )
    assert done.returncode in (1, 2, 5), done.stderr
    assert "Traceback" not in done.stderr
    assert str(place) in done.stderr
    assert names(place) == ["out"]
    assert (place / "out").read_text() == "the one before"


def test_the_time_that_was_given_is_kept(data: Path, place: Path) -> None:
    done = stream(
        "transpose",
        data,
        place / "out",
        "--rows",
        ROWS,
        "--memory",
        SMALL,
        "--budget",
        "30ms",
        "--no-bound",
        place=place,
        code=3,
    )
    assert "more time" in done.stderr
    assert names(place) == []


@contextmanager
def mounted(arguments: Sequence[str], point: Path) -> Iterator[Path]:
    point.mkdir()
    command = ["mount", *arguments, str(point)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        pytest.skip(f"nothing may be mounted here: {done.stderr}")
    try:
        yield point
    finally:
        subprocess.run(["umount", str(point)], check=True)


def test_a_file_system_without_room_is_refused(data: Path, place: Path) -> None:
    with mounted(["-t", "tmpfs", "-o", "size=64M", "tmpfs"], place / "small") as small:
        done = stream("sort", data, small / "out", "--memory", LARGE, place=place, code=5)
        assert "too little free space" in done.stderr
        done = stream(
            "sort", data, place / "out", "--memory", SMALL, "--temp", small, place=place, code=5
        )
        assert "too little free space" in done.stderr
        assert names(small) == []
    assert names(place) == ["small"]


def test_a_stripe_that_is_gone_or_short_is_refused_by_name(data: Path, place: Path) -> None:
    disks = [place / "disk-1", place / "disk-2"]
    for disk in disks:
        disk.mkdir()
    told_of("sort", data, place / "in", stripes=disks, memory=LARGE)
    (stripe,) = disks[1].iterdir()
    os.truncate(stripe, stripe.stat().st_size - 4096)
    done = stream(
        "scan", place / "in", place / "out", "--memory", SMALL, "--no-bound", place=place, code=5
    )
    assert str(stripe) in done.stderr
    stripe.unlink()
    done = stream("scan", place / "in", place / "out", "--memory", SMALL, place=place, code=5)
    assert str(stripe) in done.stderr
    assert names(place) == ["disk-1", "disk-2", "in.layout"]


def test_a_disk_that_fails_in_the_middle_is_told_by_name(data: Path, place: Path) -> None:
    """The second half of a disk is cut away from under its file system."""
    if reason := why_no_loop_devices():
        pytest.skip(reason)
    image = place / "image"
    with image.open("wb") as file:
        file.truncate(128 * MIB)
    subprocess.run(["mkfs.ext4", "-q", str(image)], check=True)
    try:
        device = loop_device(image)
        with device as loop, mounted([str(loop.path)], place / "disk") as disk:
            shutil.copyfile(data, disk / "in")
            os.sync()
            os.truncate(image, 24 * MIB)
            done = stream(
                "sort",
                disk / "in",
                place / "out",
                "--memory",
                LARGE,
                "--no-bound",
                place=place,
                code=1,
            )
            assert str(disk / "in") in done.stderr
            os.truncate(image, 128 * MIB)
    except TargetRefused as reason:
        pytest.skip(str(reason))
    assert names(place) == ["disk", "image"]


def test_from_python(data: Path, place: Path) -> None:
    store = str(place.parent / "store.sqlite")
    done = stream_data("sort", data, place / "out", memory=LARGE, bound=False, store=store)
    assert done.result.verified
    assert done.bound is None
    assert "sort of 58.6 MiB took" in repr(done)
    assert "<table>" in done._repr_html_()
    with pytest.raises(TargetRefused, match="--replace"):
        stream_data("sort", data, place / "out", memory=LARGE, store=store)
