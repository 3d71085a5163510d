"""Plain files on this machine's disk: the table, and nothing left behind after any end."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from command import LEADLINE, environment, leadline
from leadline.engine import PointFailed, Target, open_file_tests, why_not_made
from leadline.engine.file_tests import ProgramsAsked
from leadline.machine.loop_devices import loop_device, why_no_loop_devices
from leadline.record.files import FILES, FilesCell, FileSystemUnderTest
from leadline.store import open_store
from leadline.studies.files.plan import plan_cells
from leadline.studies.files.run import FilesOptions, begin_files
from left_behind import children_of, loops_of, mounted_below

pytestmark = pytest.mark.real
MIB = 1 << 20


def test_a_study_that_goes_on_says_what_was_typed_in_vain(tmp_path: Path) -> None:
    place, path = tmp_path / "drive", tmp_path / "store.sqlite"
    place.mkdir()
    targets = [Target.parse(str(place))]
    cells = plan_cells(targets, ("existing",), ())
    asked = FilesOptions(system="drive", cells=cells, budget_s=60.0, runs=2)
    with open_store(str(path)) as store:
        store.begin(FILES, begin_files(targets, asked))
    words = ["files", str(place), "--filesystems", "existing", "--file-size", "64KiB"]
    words += ["--name", "drive", "--resume"]
    done = leadline(*words, "--runs", "3", "--budget", "1m", "--seed", "7", store=path)
    assert done.returncode == 2
    assert "ended before the size of its files was decided" in done.stderr
    notes = [line for line in done.stderr.splitlines() if line.startswith("note: --")]
    assert notes == [
        "note: --runs is not used: with --resume it goes on as it began (2)",
        "note: --seed is not used: with --resume it goes on as it began (1)",
    ]


def until(condition: Any, seconds: float = 60.0) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.02)
    return False


@pytest.fixture
def makes_ext4() -> None:
    reason = why_not_made("ext4", 4096)
    if reason is not None:
        pytest.skip(f"no made file systems here: {reason}")


@pytest.fixture
def drive(tmp_path: Path) -> Iterator[Path]:
    place = tmp_path / "drive"
    place.mkdir()
    yield place
    assert loops_of(place) == []
    assert mounted_below(place) == []


def test_the_existing_file_system_on_one_and_two_directories(tmp_path: Path) -> None:
    places = [tmp_path / "a", tmp_path / "b"]
    for place in places:
        place.mkdir()
    store = tmp_path / "store.sqlite"
    done = leadline(
        "files",
        *map(str, places),
        "--filesystems",
        "existing",
        "--file-size",
        "8MiB",
        "--runs",
        "3",
        "-o",
        str(tmp_path / "rows.csv"),
        "--json",
        store=store,
    )
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    rows = answer["rows"]
    assert [(row["test"], row["drives"]) for row in rows] == [
        (test, drives)
        for drives in (1, 2)
        for test in ("read_8192", "write_4096", "write_8192", "rewrite_8192")
    ]
    for row in rows:
        assert row["missing"] is None
        assert row["kbytes_s"]["low"] < row["kbytes_s"]["value"] < row["kbytes_s"]["high"]
        assert row["kbytes_s"]["n"] == 2
        assert 0 < row["cpu_percent"] < 250
        if row["test"] == "read_8192":
            for run in row["runs"]:
                assert all(one["cached_share"] in (None, 0.0) for one in run["drives"])
    assert "lies on the device of an earlier directory" in " ".join(
        each["text"] for each in answer["findings"]
    )
    assert all(list(place.iterdir()) == [] for place in places)
    assert len((tmp_path / "rows.csv").read_text().splitlines()) == 9


def test_the_paper_leaves_its_files_in_the_cache(drive: Path, tmp_path: Path) -> None:
    done = leadline(
        "files",
        str(drive),
        "--filesystems",
        "existing",
        "--paper",
        "--json",
        store=tmp_path / "store.sqlite",
    )
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert answer["file_bytes"] == 8 * MIB
    assert "paper_cached" in [each["code"] for each in answer["findings"]]
    assert answer["rows"][4]["missing"] == "a second drive needs a second directory"


@pytest.mark.usefixtures("makes_ext4")
@pytest.mark.parametrize(("fs", "block"), [("ext4", 1024), ("xfs", 4096), ("btrfs", 4096)])
def test_a_made_file_system_is_what_was_asked_for_on_two_drives(
    drive: Path, fs: str, block: int
) -> None:
    if (reason := why_not_made(fs, block)) is not None:
        pytest.skip(reason)
    cell = FilesCell(system=FileSystemUnderTest(fs=fs, block_bytes=block, made=True), drives=2)
    with open_file_tests([Target.parse(str(drive))]) as tests:
        asked = ProgramsAsked(file_bytes=8 * MIB, runs=2, paper=False, seed=1, total_s_max=60.0)
        result = tests.run(cell, asked)
        assert loops_of(drive) == [], "the devices go with the cell"
        assert mounted_below(drive) == [], "the mounts were the engine's own"
    assert result.block_bytes == (block, block)
    reads = next(test for test in result.tests if test.test == "read_8192")
    for run in reads.runs:
        assert run.device_read_bytes is None or run.device_read_bytes >= 0.9 * 16 * MIB
        assert run.raw is not None
        assert run.raw.bytes == 16 * MIB
    assert list(drive.iterdir()) == []


def test_a_budget_is_kept_while_the_drives_are_laid_out(drive: Path) -> None:
    cell = FilesCell(system=FileSystemUnderTest(fs="ext4", block_bytes=4096, made=False), drives=1)
    asked = ProgramsAsked(file_bytes=4 << 30, runs=2, paper=False, seed=1, total_s_max=0.2)
    with open_file_tests([Target.parse(str(drive))]) as tests:
        with pytest.raises(PointFailed, match="time was up"):
            tests.run(cell, asked)
        (raw,) = next((drive / ".leadline").glob("run-*")).iterdir()
        assert raw.stat().st_size < 3 << 30
    assert list(drive.iterdir()) == []


def started(drive: Path, store: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [
            LEADLINE,
            "files",
            str(drive),
            "--filesystems",
            "ext4",
            "--file-size",
            "64MiB",
            "--runs",
            "50",
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(store),
        start_new_session=True,
    )


def in_the_middle(drive: Path, leader: subprocess.Popen[str]) -> bool:
    """Whether the engine has mounted a made file system and works on it."""
    return any(mounted_below(drive, engine) for engine in children_of(leader.pid))


@pytest.mark.usefixtures("makes_ext4")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_stop_in_the_middle_leaves_nothing(
    drive: Path, tmp_path: Path, number: signal.Signals
) -> None:
    child = started(drive, tmp_path / "store.sqlite")
    assert until(lambda: in_the_middle(drive, child))
    assert len(loops_of(drive)) == 2
    child.send_signal(number)
    _, talk = child.communicate(timeout=60)
    assert child.returncode == 3, talk
    assert loops_of(drive) == []
    assert list(drive.iterdir()) == []


@pytest.mark.usefixtures("makes_ext4")
def test_a_kill_in_the_middle_leaves_only_what_the_next_start_removes(
    drive: Path, tmp_path: Path
) -> None:
    store = tmp_path / "store.sqlite"
    child = started(drive, store)
    assert until(lambda: in_the_middle(drive, child))
    engines = children_of(child.pid)
    child.kill()
    child.communicate(timeout=60)
    assert until(lambda: not any(Path(f"/proc/{engine}").exists() for engine in engines))
    assert until(lambda: loops_of(drive) == []), "the kernel clears them with their last user"
    assert mounted_below(drive) == []
    assert [path.name for path in drive.iterdir()] == [".leadline"]
    done = leadline(
        "files", str(drive), "--filesystems", "existing", "--file-size", "8MiB", store=store
    )
    assert done.returncode == 0, done.stderr
    assert list(drive.iterdir()) == []


@pytest.mark.usefixtures("makes_ext4")
def test_a_dead_engine_is_a_fault_that_leaves_nothing(drive: Path, tmp_path: Path) -> None:
    child = started(drive, tmp_path / "store.sqlite")
    assert until(lambda: in_the_middle(drive, child))
    for engine in children_of(child.pid):
        os.kill(int(engine), signal.SIGKILL)
    _, talk = child.communicate(timeout=60)
    assert child.returncode == 1, talk
    assert "killed by SIGKILL" in talk
    assert loops_of(drive) == []
    assert list(drive.iterdir()) == []


def test_a_loop_device_goes_with_its_holder(drive: Path) -> None:
    if (reason := why_no_loop_devices()) is not None:
        pytest.skip(reason)
    image = drive / "image"
    image.write_bytes(os.urandom(MIB))
    with loop_device(image) as device:
        assert loops_of(drive) == [device.path.name]
        assert device.path.open("rb").read(4096) == image.open("rb").read(4096)
    assert loops_of(drive) == []
    code = (
        "import sys, time; from pathlib import Path; "
        "from leadline.machine.loop_devices import loop_device\n"
        "with loop_device(Path(sys.argv[1])): print(flush=True); time.sleep(60)"
    )
    holder = subprocess.Popen(
        [sys.executable, "-c", code, str(image)], stdout=subprocess.PIPE, text=True
    )
    assert holder.stdout is not None
    holder.stdout.readline()
    assert len(loops_of(drive)) == 1
    holder.kill()
    holder.communicate(timeout=60)
    assert until(lambda: loops_of(drive) == [])
    image.unlink()
