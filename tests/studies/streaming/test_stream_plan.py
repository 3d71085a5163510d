"""What is asked of `leadline stream`, held against what is there, before anything is touched."""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import Any

import msgspec
import pytest

from leadline.engine import TargetRefused
from leadline.engine.streams import places
from leadline.engine.streams.jobs import record_format_of, scan_of_share
from leadline.machine.space import Space
from leadline.record.job import Scan, Transpose
from leadline.record.streaming import KernelName
from leadline.studies.streaming import rank_started
from leadline.studies.streaming.plan import Wanted, plan_check, plan_records, plan_run

MIB = 2**20
GIB = 2**30


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "in"
    path.write_bytes(bytes(100 * 4096))  # whole records and whole blocks
    return path


def wanted(data: Path, out: Path | None = None, /, **others: object) -> Wanted:
    asked = Wanted(
        source=str(data), destination=str(out or data.parent / "out"), memory_bytes=64 * MIB
    )
    return msgspec.structs.replace(asked, **others)


def refused(said: str, asked: Wanted, kernel: KernelName = "sort", **shape: Any) -> None:
    place = Path(asked.source or ".").parent
    place = place if place.is_dir() else Path.cwd()
    before = sorted(path.name for path in place.iterdir())
    with pytest.raises(TargetRefused) as refusal:
        plan_run(kernel, asked, **shape)
    assert said in str(refusal.value), refusal.value
    assert refusal.value.exit_code in {2, 5}
    assert sorted(path.name for path in place.iterdir()) == before


def test_paths_become_absolute_and_directories_lose_their_links(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    real = tmp_path / "disk"
    real.mkdir()
    Path("link").symlink_to(real)
    asked = wanted(Path("in"), Path("link/out"), stripes=("link",), temporary=("disk",))
    job = plan_run("sort", asked).job
    assert job.output is not None
    assert (job.input, job.output.path) == (str(source), str(real / "out"))
    assert job.output.stripes == job.temporary == (str(real),), "the engine follows no link"
    document = msgspec.to_builtins(msgspec.structs.replace(job, job_id="sort-1"))
    assert document["kernel"] == {"name": "sort"}
    assert (document["kind"], document["job_id"], document["version"]) == ("stream", "sort-1", 1)


def test_the_input_is_never_the_output(source: Path, tmp_path: Path) -> None:
    refused("is the input itself", wanted(source, source, replace=True))
    (tmp_path / "same").hardlink_to(source)
    refused("is the input itself", wanted(source, tmp_path / "same", replace=True))
    (tmp_path / "link").symlink_to(source)
    refused("is the input itself", wanted(source, tmp_path / "link", replace=True))
    layout = {"version": 1, "parts": [{"files": [str(source)], "bytes": 100, "stripe_bytes": 4096}]}
    (tmp_path / "striped.layout").write_bytes(msgspec.json.encode(layout))
    refused("is the input itself", wanted(tmp_path / "striped", source, replace=True))


def test_what_exists_is_replaced_only_when_that_was_asked_for(source: Path, tmp_path: Path) -> None:
    (tmp_path / "out").write_text("somebody's")
    refused("--replace", wanted(source))
    assert (tmp_path / "out").read_text() == "somebody's"
    assert plan_run("sort", wanted(source, replace=True)).job.output is not None
    (tmp_path / "striped.layout").write_text("{}")
    refused("striped.layout exists already", wanted(source, tmp_path / "striped"))
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    refused("exists already", wanted(source, tmp_path / "dangling"))


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"destination": "nowhere/out"}, "nowhere does not exist; make it first: mkdir -p"),
        ({"destination": "in/out"}, "is no directory"),
        ({"destination": "folder"}, "is a directory; name the file"),
        ({"destination": "out.layout"}, "layout files; name it otherwise"),
        ({"source": "folder"}, "is a directory; name the file with the data"),
        ({"source": "nothing"}, "leadline stream generate"),
        ({"source": "empty"}, "is empty: there is nothing to stream"),
        ({"source": "odd"}, "99 bytes, which is no whole number of records of 100 bytes (99 are"),
        ({"source": "pipe"}, "is no plain file"),
        ({"source": "both"}, "is a file and has stripes as well"),
        ({"source": "torn"}, "cannot be read"),
        ({"source": "lost"}, "stripe-2 of"),
        ({"source": ""}, "is no path"),
        ({"source": "~nobody-of-that-name/in"}, "no such user"),
        ({"stripes": ("folder", "in")}, "--stripe:"),
        ({"stripes": ("folder", "./folder")}, "--stripe names a directory twice"),
        ({"temporary": ("nowhere",)}, "--temp:"),
        ({"memory_bytes": 32 * MIB - 1}, "at least 32 MiB"),
        ({"memory_bytes": 2**60}, "is more than the"),
        ({"read": "pread"}, "--io is mmap or uring, not 'pread'"),
    ],
    ids=lambda value: str(value) if isinstance(value, dict) else None,
)
def test_what_cannot_be_done_is_refused(
    changed: dict[str, object],
    said: str,
    source: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("folder").mkdir()
    Path("empty").touch()
    Path("odd").write_bytes(bytes(99))
    os.mkfifo("pipe")
    Path("both").touch()
    Path("both.layout").write_text("{}")
    Path("torn.layout").write_text('{"version": 1, "parts": [{"fil')
    stripes = [str(source), str(tmp_path / "stripe-2")]
    layout = {"version": 1, "parts": [{"files": stripes, "bytes": 200, "stripe_bytes": 4096}]}
    Path("lost.layout").write_bytes(msgspec.json.encode(layout))
    refused(said, wanted(source, **changed))


def test_a_transpose_is_square_unless_told_otherwise(source: Path, tmp_path: Path) -> None:
    def shape(**sides: Any) -> tuple[int, int]:
        kernel = plan_run("transpose", wanted(source), **sides).job.kernel
        assert isinstance(kernel, Transpose)
        return kernel.rows, kernel.columns

    assert shape() == (10, 10)
    assert shape(rows=4) == (4, 25)
    assert shape(columns=50) == (2, 50)
    assert shape(rows=100, columns=1) == (100, 1)
    impossible: list[dict[str, int]] = [{"rows": 3}, {"rows": 10, "columns": 11}, {"columns": 200}]
    for sides in impossible:
        refused("100 blocks of 4 KiB, which are not", wanted(source), "transpose", **sides)
    (tmp_path / "oblong").write_bytes(bytes(6 * 4096))
    refused("no square; give --rows", wanted(tmp_path / "oblong"), "transpose")
    (tmp_path / "records").write_bytes(bytes(4100))
    refused("blocks of 4096 bytes", wanted(tmp_path / "records"), "transpose")


@pytest.mark.parametrize("share", [0.001, 0.25, 0.5, 0.9])
def test_the_range_of_a_scan_selects_the_share_of_uniform_keys(share: float) -> None:
    draw = random.Random(1)
    binary = [draw.randbytes(10) for _ in range(20_000)]
    printable = [bytes(draw.randrange(0x20, 0x7F) for _ in range(10)) for _ in range(20_000)]
    for keys, record_format in ((binary, "binary"), (printable, "ascii")):
        scan = scan_of_share(share, "ascii" if record_format == "ascii" else "binary")
        assert scan.high is not None
        assert len(scan.low) == len(scan.high) == 20
        low, high = bytes.fromhex(scan.low), bytes.fromhex(scan.high)
        selected = sum(low <= key < high for key in keys) / len(keys)
        assert selected == pytest.approx(share, abs=0.012)
    assert scan_of_share(1.0, "ascii") == Scan(low="0" * 20, high=None)


def test_the_form_of_records_is_seen_in_the_first() -> None:
    assert record_format_of(b"~" * 98 + b"\r\n") == "ascii"
    assert record_format_of(b"~" * 100) == "binary"
    assert record_format_of(b"\xff" + b"~" * 97 + b"\r\n") == "binary"
    assert record_format_of(b"") == "binary"


def test_a_scan_looks_which_form_the_records_have(tmp_path: Path) -> None:
    (tmp_path / "in").write_bytes((b"A" * 98 + b"\r\n") * 3)
    kernel = plan_run("scan", wanted(tmp_path / "in")).job.kernel
    assert isinstance(kernel, Scan)
    # Half of 95 characters: the one in the middle, or just behind it.
    assert kernel.high is not None
    assert bytes.fromhex(kernel.high)[0] == 0x20 + 47
    for share in (0.0, 1.5):
        with pytest.raises(TargetRefused, match="no share of the records"):
            plan_run("scan", wanted(tmp_path / "in"), match_frac=share)


def test_the_floor_of_free_space_is_kept(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    size = source.stat().st_size

    def room(capacity: int) -> None:
        floor = Space(total_bytes=100 * GIB, free_bytes=0).floor_bytes
        space = Space(total_bytes=100 * GIB, free_bytes=floor + capacity)
        monkeypatch.setattr(places, "read_space", lambda _: space)

    room(size - 1)
    refused("too little free space", wanted(source))
    assert plan_run("scan", wanted(source), match_frac=0.5).output_bytes == size // 2
    room(size)
    plan_run("sort", wanted(source))
    with pytest.raises(TargetRefused, match="too little free space"):
        plan_records(wanted(source, source=None), size // 100 + 1, "binary", 0.0)


def test_two_passes_need_room_for_the_runs_as_well(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (tmp_path / "in").open("wb") as file:
        file.truncate(80_000_000)
    floor = Space(total_bytes=100 * GIB, free_bytes=0).floor_bytes
    space = Space(total_bytes=100 * GIB, free_bytes=floor + 80_000_000)
    monkeypatch.setattr(places, "read_space", lambda _: space)
    refused("give less data, or free some", wanted(tmp_path / "in"))
    plan_run("sort", wanted(tmp_path / "in", memory_bytes=128 * MIB))


def test_buffered_and_mapped_input_are_not_direct(source: Path) -> None:
    def direct(**changed: Any) -> tuple[bool, bool]:
        way = plan_run("sort", wanted(source, **changed)).job.io
        return way.read_direct, way.write_direct

    assert direct() == (True, True)
    assert direct(read="mmap") == (False, True)
    assert direct(buffered=True) == (False, False)


def test_what_decides_a_run_is_recorded(source: Path) -> None:
    asked = wanted(source, threads=2, depth=3)
    options = plan_run("transpose", asked, rows=4).options
    assert (options.platform, options.parties, options.depth) == ("threads", 2, 3)
    assert (options.rows, options.columns) == (4, 25)
    assert plan_run("sort", wanted(source, ranks=4)).options.platform == "cluster"
    assert plan_run("scan", wanted(source), match_frac=0.25).options.match_frac == 0.25


def test_checking_needs_no_output(source: Path) -> None:
    job = plan_check(wanted(source, destination=None))
    assert job.output is None
    assert msgspec.to_builtins(job)["kernel"] == {"name": "check"}


def test_memory_is_half_of_what_is_free_when_nothing_was_said(source: Path) -> None:
    job = plan_run("sort", wanted(source, memory_bytes=None)).job
    free = next(
        int(line.split()[1]) * 1024
        for line in Path("/proc/meminfo").read_text().splitlines()
        if line.startswith("MemAvailable")
    )
    assert 32 * MIB <= job.memory_bytes <= 0.6 * free


def test_the_launcher_says_which_rank_this_is() -> None:
    assert rank_started({}) == 0
    assert rank_started({"OMPI_COMM_WORLD_RANK": "3"}) == 3
    assert rank_started({"PMI_RANK": "2"}) == 2
