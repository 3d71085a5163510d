"""An unprivileged user against root: he owns the target's directory, and knows the run's name.

As soon as Leadline has claimed the directory he renames `.leadline` and puts a tree of his own in
its place, whose links lead to files of root's. Nothing of root's may be made, written, emptied or
removed by that, in any kind of run; Leadline goes on in the directory that it claimed, wherever
that lies by now, and leaves nothing in it.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest

from attacker import (
    LAYS,
    MIB,
    NOBODY,
    Arena,
    Lay,
    arena_below_tmp,
    as_nobody,
    attacker,
    lay_linked_run,
    swap,
)
from command import leadline
from leadline.engine import (
    Limits,
    PointFailed,
    Target,
    TargetRefused,
    open_engine,
    open_file_tests,
    until_completed,
    why_not_made,
)
from leadline.engine.file_tests import ProgramsAsked
from leadline.engine.streams.disks import DATA_MULTIPLE_BYTES, Effort, open_stream_disks
from leadline.engine.targets.claim import DIRECTORY, claim
from leadline.record import Workload
from leadline.record.access import Access
from leadline.record.files import FilesCell, FileSystemUnderTest
from leadline.record.streaming import StreamOptions

MOUNTED_S = 1.0
"""By then the file system is made and mounted, and its files are not yet done."""

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0, reason="only root has something that an unprivileged user may not write"
)


@pytest.fixture
def arena() -> Iterator[Arena]:
    with arena_below_tmp() as arena:
        yield arena
        assert arena.facts() == arena.before, "something of root's was touched"


@pytest.mark.parametrize("lay", LAYS)
def test_plain_files_are_written_where_they_were_claimed(arena: Arena, lay: Lay) -> None:
    cell = FilesCell(system=FileSystemUnderTest(fs="any", block_bytes=None, made=False), drives=1)
    asked = ProgramsAsked(
        file_bytes=MIB,
        runs=2,
        paper=False,
        seed=1,
        total_s_max=20.0,
        tests=("rewrite_8192", "read_8192", "write_4096"),
    )
    with open_file_tests([Target.parse(str(arena.place))]) as tests:
        swap(arena, lay)
        result = tests.run(cell, asked)
        assert len(result.tests) == 3
        assert [name for name in arena.left() if name.endswith(".bin")] == ["raw-0.bin"]
    assert arena.left() == []


@pytest.mark.parametrize("lay", LAYS)
@pytest.mark.parametrize("backend", ["pread", "uring", "mmap"])
def test_a_workload_goes_where_it_was_claimed(arena: Arena, lay: Lay, backend: str) -> None:
    """What measure, survey, predict, compare and cache all rest on."""
    workload = Workload(unique_bytes=MIB, size_mean=4096, read_frac=0.5)
    limits = Limits(
        warm_up_s_max=0.05, measure_s_min=0.02, measure_s_max=10.0, accuracy=0.5, total_s_max=20.0
    )
    with open_engine(Target.parse(str(arena.place)), Access(backend=backend)) as engine:
        swap(arena, lay)
        result = engine.run(workload, seed=1, limits=limits)
        assert result.workload_bytes.write > 0
        run = next(arena.moved.glob("run-*"))
        assert (run / "data.bin").stat().st_size == MIB
        # Once more, when the child knows the file by then.
        engine.run(workload.with_value("unique_bytes", 2 * MIB), seed=2, limits=limits)
    assert arena.left() == []


@pytest.mark.skipif(shutil.which("fio") is None, reason="fio is not installed")
def test_fio_runs_where_it_was_claimed(arena: Arena) -> None:
    workload = Workload(unique_bytes=MIB, size_mean=4096, read_frac=0.0)
    limits = Limits(warm_up_s_max=0.05, measure_s_min=0.02, measure_s_max=1.0, total_s_max=20.0)
    with open_engine(Target.parse(str(arena.place)), engine="fio") as engine:
        swap(arena, lay_linked_run)
        run = until_completed(partial(engine.run, workload, seed=1), limits)
    assert run.workload_bytes.write > 0
    assert arena.left() == []


@pytest.mark.parametrize(
    "lay", [LAYS[0], *(pytest.param(each, marks=pytest.mark.long) for each in LAYS[1:])]
)
def test_streams_go_where_they_were_claimed(arena: Arena, lay: Lay) -> None:
    """What balance and `stream scale` lay out, sort and remove again."""
    effort = Effort(
        data_bytes=DATA_MULTIPLE_BYTES, memory_bytes=48 * MIB, threads=1, seed=1, total_s_max=20.0
    )
    options = StreamOptions(
        kernel="sort",
        memory_bytes=48 * MIB,
        threads=1,
        read="uring",
        read_direct=False,
        write_direct=False,
        depth=2,
        stripe_bytes=65536,
    )
    with open_stream_disks([str(arena.place)]) as disks:
        disks.lay(1, effort)
        swap(arena, lay)
        assert disks.run(options, 1, seed=1, total_s_max=20.0).bytes_out == DATA_MULTIPLE_BYTES
        disks.capacities(effort)
        disks.lay(1, effort)
    assert arena.left() == []


def test_the_way_to_the_target_is_followed_once(arena: Arena) -> None:
    """The attacker swaps a directory on the way for a link after the path was looked at."""
    (arena.home / "on" / "the").mkdir(parents=True)
    for folder in (arena.home / "on", arena.home / "on" / "the"):
        os.chown(folder, NOBODY, NOBODY)
    target = Target.parse(str(arena.home / "on" / "the"))
    (arena.victim / "the").mkdir()

    def act() -> None:
        (arena.home / "on").rename(arena.home / "off")
        (arena.home / "on").symlink_to(arena.victim)

    as_nobody(act)
    try:
        with pytest.raises(TargetRefused), claim(target.path or ""):
            pytest.fail(f"claimed {list((arena.victim / 'the').iterdir())}")
    finally:
        (arena.victim / "the").rmdir()


def watch_and_swap(place: Path, victim: Path) -> None:
    """Wait for a loop device that tells the run's name, then keep links in the files' places."""
    run = None
    while run is None:
        images = [Path(_backing_file(device)) for device in Path("/sys/block").glob("loop*")]
        mine = (image for image in images if image.is_relative_to(place))
        run = next((image.parent for image in mine if image.name == "image-0.bin"), None)
    time.sleep(MOUNTED_S)
    (place / DIRECTORY).rename(place / "moved")
    (run / "mount-0").mkdir(parents=True)
    while True:
        for name in ("mount-0/file.bin", "file.bin", "raw-0.bin"):
            with suppress(FileExistsError):
                (run / name).symlink_to(victim)


def _backing_file(device: Path) -> str:
    try:
        return (device / "loop/backing_file").read_text().strip()
    except OSError:
        return ""


def test_a_loop_device_tells_the_runs_name_and_nothing_comes_of_it(
    arena: Arena, tmp_path: Path
) -> None:
    """The whole attack, as it was made: the name is read from the world-readable backing_file."""
    if (reason := why_not_made("ext4", 4096)) is not None:
        pytest.skip(f"no made file systems here: {reason}")
    words = ["files", str(arena.place), "--filesystems", "ext4", "--block-sizes", "4KiB"]
    words += ["--file-size", "8MiB", "--runs", "12"]
    with attacker(lambda: watch_and_swap(arena.place, arena.victim / "file.bin")):
        done = leadline(*words, store=tmp_path / "store.sqlite")
    assert (arena.place / "moved").is_dir(), "the attack came too late"
    assert arena.facts() == arena.before, "root's file was overwritten"
    assert done.returncode in (0, 2), done.stderr
    assert arena.left() == []


def test_a_file_with_a_second_name_is_not_written(arena: Arena) -> None:
    """A user may link to his own files anywhere; where the kernel lets him, to root's as well."""
    workload = Workload(unique_bytes=MIB, size_mean=4096, read_frac=0.5)
    limits = Limits(
        warm_up_s_max=0.05, measure_s_min=0.02, measure_s_max=10.0, accuracy=0.5, total_s_max=20.0
    )
    with open_engine(Target.parse(str(arena.place))) as engine:
        run = arena.place / DIRECTORY / arena.run()
        (run / "data.bin").hardlink_to(arena.victim / "data.bin")
        with pytest.raises((TargetRefused, PointFailed), match="second name elsewhere"):
            engine.run(workload, seed=1, limits=limits)
