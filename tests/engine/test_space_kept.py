"""The floor of free space is kept while data are laid out and written, by every kind of run.

Somebody else fills the disk as soon as Leadline has begun: the room is told to be gone then.
"""

from __future__ import annotations

import errno
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from leadline.engine import Target, TargetRefused, open_file_tests, open_streams
from leadline.engine.file_tests import ProgramsAsked
from leadline.engine.streams.disks import DATA_MULTIPLE_BYTES, Effort, open_stream_disks
from leadline.engine.targets.claim import claim
from leadline.engine.targets.dirfd import Folder
from leadline.machine.space import Growth, Space
from leadline.record.files import FilesCell, FileSystemUnderTest
from leadline.record.job import Generate, Output, StreamJob
from leadline.servers.striped_disks import striped_disks
from places import TESTS

MIB = 1 << 20
GIB = 1 << 30
FAKE = str(TESTS / "fake_child.py")
Fill = Callable[[Callable[[], bool]], None]


@pytest.fixture
def fill(monkeypatch: pytest.MonkeyPatch) -> Fill:
    """Fill the disk from the moment on at which something holds."""

    def fill(begun: Callable[[], bool]) -> None:
        def room(_directory: object) -> Space:
            return Space(100 * GIB, GIB if begun() else 50 * GIB)

        # What is asked before a job of streams is left alone: it would refuse by itself.
        monkeypatch.setattr("leadline.machine.space.read_space", room)

    return fill


def written(place: Path, name: str) -> Callable[[], bool]:
    """Whether a file of Leadline's has a byte."""

    def holds() -> bool:
        return any(path.stat().st_size > 0 for path in place.glob(f".leadline/run-*/{name}"))

    return holds


def asked(file_bytes: int = 8 * MIB, runs: int = 1000) -> ProgramsAsked:
    return ProgramsAsked(file_bytes=file_bytes, runs=runs, paper=False, seed=1, total_s_max=100.0)


@pytest.mark.parametrize("name", ["raw-0.bin", "file.bin"])
def test_files_stop_at_the_floor_while_they_lay_out_and_while_they_write(
    tmp_path: Path, fill: Fill, name: str
) -> None:
    cell = FilesCell(system=FileSystemUnderTest(fs="any", block_bytes=None, made=False), drives=1)
    fill(written(tmp_path, name))
    with open_file_tests([Target.parse(str(tmp_path))]) as tests:
        with pytest.raises(TargetRefused, match=r"5 GiB must stay free .*ask for smaller files"):
            tests.run(cell, asked())
        raw = next(tmp_path.glob(".leadline/run-*/raw-0.bin")).stat().st_size
        assert raw == (0 if name == "raw-0.bin" else 8 * MIB)
    assert list(tmp_path.iterdir()) == []


def full(*_: object) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


IS_FULL = "cannot be used: the file system is full; free some"


@pytest.mark.parametrize("deed", ["make_folder", "make_or_open_file"])
def test_a_full_disk_without_room_for_a_name_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, deed: str
) -> None:
    system = FileSystemUnderTest(fs="ext4", block_bytes=4096, made=True)
    with open_file_tests([Target.parse(str(tmp_path))]) as tests:
        monkeypatch.setattr(Folder, deed, full)
        with pytest.raises(TargetRefused, match=IS_FULL):
            tests.run(FilesCell(system=system, drives=1), asked())
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_without_room_for_an_export_or_an_image_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with claim(tmp_path) as claimed, monkeypatch.context() as patched:
        patched.setattr(Folder, "make_folder", full)
        patched.setattr(Folder, "make_file", full)
        with pytest.raises(TargetRefused, match=IS_FULL):
            claimed.export_folder(0)
        with pytest.raises(TargetRefused, match=IS_FULL), striped_disks(claimed.folder, 1, MIB):
            pass
    assert list(tmp_path.iterdir()) == []


def test_plain_files_need_their_own_room_beside_the_raw_one(tmp_path: Path, fill: Fill) -> None:
    cell = FilesCell(system=FileSystemUnderTest(fs="any", block_bytes=None, made=False), drives=1)
    laid = written(tmp_path, "raw-0.bin")
    fill(lambda: laid() and not any(tmp_path.glob(".leadline/run-*/file.bin")))
    with (
        open_file_tests([Target.parse(str(tmp_path))]) as tests,
        pytest.raises(TargetRefused, match="too little free space"),
    ):
        # One piece: the floor is looked at before it, and then for the programs' own file.
        tests.run(cell, asked(file_bytes=MIB, runs=1))


def test_streams_stop_at_the_floor_while_they_write(tmp_path: Path, fill: Fill) -> None:
    job = StreamJob(
        kernel=Generate(records=1000),
        output=Output(path=str(tmp_path / "records")),
        memory_bytes=48 * MIB,
        threads=1,
        seed=1,
        total_s_max=100.0,
    )
    looks = iter([False])
    fill(lambda: next(looks, True))
    with (
        open_streams(command=(sys.executable, FAKE, "hangs")) as streams,
        pytest.raises(TargetRefused, match=r"5 GiB must stay free .*give less data"),
    ):
        streams.run(job)
    assert list(tmp_path.iterdir()) == []


def test_disks_of_streams_stop_at_the_floor_in_the_claimed_directory(
    tmp_path: Path, fill: Fill
) -> None:
    effort = Effort(
        data_bytes=DATA_MULTIPLE_BYTES, memory_bytes=48 * MIB, threads=1, seed=1, total_s_max=100.0
    )
    with open_stream_disks([str(tmp_path)]) as disks:
        disks.lay(1, effort)
        fill(written(tmp_path, "stream-in*"))

        def go_on() -> None:
            for _ in range(50):
                disks.capacities(msgspec.structs.replace(effort, data_bytes=64 * MIB))

        with pytest.raises(TargetRefused, match=r"5 GiB must stay free .*give less data"):
            go_on()
    assert list(tmp_path.iterdir()) == []


def test_every_file_system_that_is_written_to_is_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folders: list[tuple[str | int, str]] = [(str(tmp_path), "one"), (5, "two")]
    growth = Growth(folders=folders, bytes=GIB, advice="do something else")

    def room(folder: object) -> Space:
        return Space(100 * GIB, 4 * GIB if folder == 5 else 50 * GIB)

    monkeypatch.setattr("leadline.machine.space.read_space", room)
    with pytest.raises(TargetRefused, match=r"^two: .*or do something else$"):
        growth.keep_floors()
