"""A file system that is memory has no cache before a disk: nothing to cap, nothing to outgrow."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from leadline.engine import CacheLimitRefused, Target, is_in_memory, open_engine
from leadline.record import Access
from leadline.studies.memory import choose_cache_limit
from leadline.studies.survey.plan import make_plan

MIB = 2**20
SHM = Path("/dev/shm")  # noqa: S108 - the one place where every Linux has a tmpfs
why = "" if SHM.is_dir() and is_in_memory(SHM) else f"{SHM} is no tmpfs here"
here = pytest.mark.skipif(bool(why), reason=why)


@pytest.fixture
def in_memory() -> Iterator[Path]:
    with TemporaryDirectory(dir=SHM, prefix=f"leadline-{os.getpid()}-") as folder:
        yield Path(folder)


def test_a_disk_is_not_memory(tmp_path: Path) -> None:
    if is_in_memory(tmp_path):
        pytest.skip("the temporary folder is a tmpfs here")
    assert not is_in_memory(tmp_path)
    assert not is_in_memory("/proc"), "no files can be written there, so it holds no data"


@here
def test_nothing_is_capped_where_files_are_memory(in_memory: Path) -> None:
    said: list[str] = []
    assert choose_cache_limit(in_memory, None, 60.0, said.append) is None
    assert said == [
        "this file system is memory itself: no disk lies behind it, and memory is not capped"
    ]


@here
def test_a_cap_on_memory_files_is_refused_and_leaves_nothing(in_memory: Path) -> None:
    target = Target.parse(str(in_memory))
    with (
        pytest.raises(CacheLimitRefused, match=r"file system is memory.*Leave --cache-limit"),
        open_engine(target, Access(cache_limit_bytes=256 * MIB)),
    ):
        pass
    assert list(in_memory.iterdir()) == []


@here
def test_an_engine_on_memory_files_knows_no_cache(in_memory: Path) -> None:
    with open_engine(Target.parse(str(in_memory)), max_bytes=64 * MIB) as engine:
        assert engine.memory_bytes is None


@pytest.mark.parametrize(("high", "low"), [(4096, 64), (256, 32)])
def test_the_range_still_starts_above_the_processors_cache(high: int, low: int) -> None:
    plan = make_plan(
        budget_s=4000.0,
        capacity_bytes=high * MIB,
        max_bytes=None,
        memory_bytes=None,
        l3_cache_bytes=32 * MIB,
        process_num_max=16,
        virtual=False,
    )
    assert plan.unique_bytes_min == low * MIB
    assert plan.unique_bytes_max == high * MIB
