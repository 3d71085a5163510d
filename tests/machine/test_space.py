"""The floor of free space."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from leadline.engine import Target, TargetRefused, open_engine
from leadline.machine.space import Space, capacity_bytes, read_space, require_space

GIB = 2**30


@pytest.mark.parametrize(
    ("total", "free", "floor", "capacity"),
    [
        (100 * GIB, 50 * GIB, 5 * GIB, 45 * GIB),
        (10 * GIB, 5 * GIB, GIB, 4 * GIB),
        (20 * GIB, GIB, GIB, 0),
        (2 * GIB, 2 * GIB, GIB // 2, GIB * 3 // 2),
        (300 << 20, 300 << 20, 75 << 20, 225 << 20),
        (2**26, 2**26, GIB, 0),
    ],
)
def test_the_floor_is_a_share_and_of_small_file_systems_a_quarter(
    total: int, free: int, floor: int, capacity: int
) -> None:
    space = Space(total, free)
    assert (space.floor_bytes, space.capacity_bytes) == (floor, capacity)


def test_the_refusal_says_the_three_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("leadline.machine.space.read_space", lambda _: Space(100 * GIB, 8 * GIB))
    require_space(5, "/data", 3 * GIB)
    with pytest.raises(
        TargetRefused,
        match=r"^/data: .*8 GiB of 100 GiB free, 3 GiB needed, and 5 GiB must .*at most 3 GiB can",
    ):
        require_space(5, "/data", 3 * GIB + 1)


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """Return a tmpfs of 64 MiB."""
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", str(tmp_path)],
        capture_output=True,
        check=False,
    )
    if made.returncode:
        pytest.skip(f"no tmpfs may be mounted here: {made.stderr.decode().strip()}")
    yield tmp_path
    subprocess.run(["umount", str(tmp_path)], check=True)


@pytest.mark.parametrize("full", [False, True])
def test_a_small_file_system_is_refused_and_left_as_it_was(small: Path, full: bool) -> None:
    before = ["filler"] if full else []
    if full:
        with contextlib.suppress(OSError), (small / "filler").open("wb", buffering=0) as filler:
            while filler.write(bytes(2**20)):
                pass
    assert read_space(small).total_bytes == 2**26
    assert capacity_bytes(small) == 0
    with (
        pytest.raises(TargetRefused, match=r"must stay free|file system is full"),
        open_engine(Target.parse(str(small))),
    ):
        pytest.fail("opened")
    assert [path.name for path in small.iterdir()] == before
