"""The memory cgroup: on this machine's own controller, and on trees that look like others."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from leadline.engine import CacheLimitRefused
from leadline.machine import cgroup
from leadline.machine.cgroup import MemoryCgroup, memory_cgroup, remove_stale
from leadline.machine.hierarchy import Hierarchy, find_hierarchy

MIB = 2**20
LIMIT_BYTES = 64 * MIB


def allowed() -> str | None:
    """Why no group can be made here; None when one can."""
    # By plain means: were the code under test asked, its every fault would skip its tests.
    try:
        probe = find_hierarchy().parent / f"leadline-probe-{os.getpid()}"  # others look as well
        probe.mkdir()
        probe.rmdir()
    except (CacheLimitRefused, OSError) as error:
        return str(error)
    return None


here = pytest.mark.skipif(bool(why := allowed()), reason=f"no memory cgroup here: {why}")


@here
def test_a_group_comes_and_goes() -> None:
    with memory_cgroup(LIMIT_BYTES) as group:
        assert group.path.parent == find_hierarchy().parent, "below the own group, never the root"
        name = "memory.max" if group.version == 2 else "memory.limit_in_bytes"
        assert int((group.path / name).read_text()) == LIMIT_BYTES
        assert group.oom_kills() == 0
    assert not group.path.exists()


WRITE = """
import sys
sys.stdin.readline()  # the parent has moved this process by now
with open(sys.argv[1], "wb") as file:
    for _ in range(160):
        file.write(bytes(2**20))
print("written", flush=True)
sys.stdin.readline()
"""


@here
def test_a_childs_file_cache_stays_below_the_limit(tmp_path: Path) -> None:
    with memory_cgroup(LIMIT_BYTES) as group:
        with subprocess.Popen(
            [sys.executable, "-c", WRITE, str(tmp_path / "data")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as child:
            assert child.stdin is not None
            assert child.stdout is not None
            group.adopt(child.pid)
            child.stdin.write("go\n")
            child.stdin.flush()
            assert child.stdout.readline() == "written\n"
            stat = group.stat()
            cached = stat["file" if group.version == 2 else "cache"]
            assert LIMIT_BYTES / 2 < cached <= LIMIT_BYTES, "160 MiB were written"
            assert group.usage_bytes() <= LIMIT_BYTES
            assert group.oom_kills() == 0
        (tmp_path / "data").unlink()
    assert not group.path.exists()


@here
def test_an_error_inside_removes_the_group() -> None:
    with pytest.raises(ZeroDivisionError), memory_cgroup(LIMIT_BYTES) as group:
        _ = 1 // 0
    assert not group.path.exists()


@here
def test_a_fork_does_not_remove_the_group() -> None:
    with memory_cgroup(LIMIT_BYTES) as group:
        child = os.fork()
        if not child:
            group.remove()
            os._exit(0)
        os.waitpid(child, 0)
        assert group.path.is_dir()


def own_groups() -> set[str]:
    """Groups of this process: other tests make and remove theirs meanwhile."""
    groups = {path.name for path in find_hierarchy().parent.glob(f"*-{os.getpid()}-*")}
    return {name for name in groups if name.startswith("leadline-")}


@here
def test_a_limit_that_did_not_take_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel that takes the number and keeps another must not pass for a capped run."""
    half = LIMIT_BYTES // 2
    before = own_groups()
    write = cgroup._limit

    def other(group: MemoryCgroup) -> None:
        group.limit_bytes = half
        write(group)
        group.limit_bytes = LIMIT_BYTES
        monkeypatch.setattr(cgroup, "_write", lambda *_: None)
        write(group)

    monkeypatch.setattr(cgroup, "_limit", other)
    with (
        pytest.raises(CacheLimitRefused, match=f"asked for {LIMIT_BYTES} bytes.*says {half}"),
        memory_cgroup(LIMIT_BYTES),
    ):
        pytest.fail("made")
    assert own_groups() == before


@here
def test_a_limit_above_the_own_one_is_refused() -> None:
    """Run inside a group of 64 MiB, a limit of 128 MiB would bind at 64."""
    code = (
        "import sys; sys.stdin.readline()\n"
        "from leadline.machine.cgroup import memory_cgroup\n"
        "with memory_cgroup(128 * 2**20): print('made')\n"
    )
    with memory_cgroup(LIMIT_BYTES) as group:
        with subprocess.Popen(
            [sys.executable, "-c", code], stdin=subprocess.PIPE, stderr=subprocess.PIPE
        ) as child:
            group.adopt(child.pid)
            _, said = child.communicate(b"go\n", timeout=60)
        assert child.returncode == 1
        assert b"may itself use only 64 MiB" in said
        assert not [path for path in group.path.iterdir() if path.is_dir()]


@pytest.mark.parametrize(
    ("limit_bytes", "message"),
    [(31 * MIB, "31 MiB is too small.*at least 32 MiB"), (2**50, "is no limit on a machine with")],
)
def test_senseless_limits(limit_bytes: int, message: str) -> None:
    with pytest.raises(CacheLimitRefused, match=message) as refused, memory_cgroup(limit_bytes):
        pytest.fail("made")
    assert refused.value.exit_code == 5


def test_stale_groups_go_and_living_ones_stay(tmp_path: Path) -> None:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    stale, full = tmp_path / f"leadline-{gone.pid}-0123abcd", tmp_path / f"leadline-{gone.pid}-1"
    other = tmp_path / f"leadline-{gone.pid}-fedcba98"
    living = tmp_path / f"leadline-{os.getpid()}-0123abcd"
    foreign = tmp_path / "leadline-production"
    for group in (stale, full, living, foreign, other):
        group.mkdir()
    (other / "child").mkdir()
    remove_stale(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {
        path.name for path in (full, living, foreign, other)
    }


def process(place: Path, groups: str, mounts: str) -> Path:
    """Lay out a /proc/PID that says it is in these groups."""
    (place / "proc").mkdir()
    (place / "proc/cgroup").write_text(groups)
    (place / "proc/mountinfo").write_text(mounts.replace("{place}", str(place)))
    return place / "proc"


V1 = "31 25 0:27 /docker/abc {place}/memory rw,relatime - cgroup cgroup rw,memory\n"
V2 = "31 25 0:27 / {place}/unified rw,relatime - cgroup2 cgroup2 rw\n"


def test_version_1_inside_a_container(tmp_path: Path) -> None:
    """The mount shows only the container's part of the tree."""
    (tmp_path / "memory/inner").mkdir(parents=True)
    proc = process(tmp_path, "4:cpu,memory:/docker/abc/inner\n0::/\n", V1)
    assert find_hierarchy(proc) == Hierarchy(1, tmp_path / "memory/inner")


def lay_version_2(place: Path, *, own: str, above: str, limit: str = "max") -> Path:
    group = place / "unified/app/scope"
    group.mkdir(parents=True)
    (group / "cgroup.controllers").write_text("cpu memory pids\n")
    (group / "cgroup.subtree_control").write_text(own)
    (group / "memory.max").write_text(limit)
    (group.parent / "cgroup.subtree_control").write_text(above)
    return group


def refuse_writes(monkeypatch: pytest.MonkeyPatch) -> None:
    """As the kernel does for a group that holds processes (EBUSY)."""
    real = Path.open

    def opened(self: Path, *args: object, **more: object) -> object:
        if self.name == "cgroup.subtree_control" and args == ("r+",):
            raise OSError(16, "Device or resource busy")
        return real(self, *args, **more)  # type: ignore[call-overload]

    monkeypatch.setattr(Path, "open", opened)


def test_version_2_in_a_delegated_group(tmp_path: Path) -> None:
    own = lay_version_2(tmp_path, own="memory", above="")
    proc = process(tmp_path, "0::/app/scope\n", V2)
    assert find_hierarchy(proc) == Hierarchy(2, own)


def test_version_2_hands_the_controller_down_where_it_may(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = lay_version_2(tmp_path, own="", above="")
    real = Path.open

    def opened(self: Path, *args: object, **more: object) -> object:
        if self.name == "cgroup.subtree_control" and args == ("r+",):
            self.write_text("memory\n")  # what the kernel shows after "+memory"
            return (tmp_path / "sink").open("w")
        return real(self, *args, **more)  # type: ignore[call-overload]

    monkeypatch.setattr(Path, "open", opened)
    proc = process(tmp_path, "0::/app/scope\n", V2)
    assert find_hierarchy(proc) == Hierarchy(2, own)
    assert (tmp_path / "sink").read_text() == "+memory"


def test_version_2_beside_a_group_with_processes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refuse_writes(monkeypatch)
    own = lay_version_2(tmp_path, own="", above="cpu memory")
    proc = process(tmp_path, "0::/app/scope\n", V2)
    assert find_hierarchy(proc) == Hierarchy(2, own.parent)


@pytest.mark.parametrize(("above", "limit"), [("cpu", "max"), ("cpu memory", "1000000000")])
def test_version_2_never_evades_a_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, above: str, limit: str
) -> None:
    refuse_writes(monkeypatch)
    lay_version_2(tmp_path, own="", above=above, limit=limit)
    proc = process(tmp_path, "0::/app/scope\n", V2)
    with pytest.raises(CacheLimitRefused, match=r"may not hand the memory controller down.*root"):
        find_hierarchy(proc)


@pytest.mark.parametrize("groups", ["0::/\n", "1:cpu:/\n", ""])
def test_without_a_memory_controller(tmp_path: Path, groups: str) -> None:
    (tmp_path / "unified").mkdir()
    (tmp_path / "unified/cgroup.controllers").write_text("hugetlb\n")
    proc = process(tmp_path, groups, V2)
    with pytest.raises(CacheLimitRefused, match=r"sees neither.*leave --cache-limit out"):
        find_hierarchy(proc)


def test_where_no_group_may_be_made(tmp_path: Path) -> None:
    """/proc stands for a hierarchy that takes no new directories, even from root."""
    mounts = "31 25 0:27 / /proc rw - cgroup cgroup rw,memory\n"
    proc = process(tmp_path, "4:memory:/\n", mounts)
    with (
        pytest.raises(CacheLimitRefused, match=r"none may be made in /proc .*run as root"),
        memory_cgroup(LIMIT_BYTES, process=proc),
    ):
        pytest.fail("made")


def test_adopting_is_verified(tmp_path: Path) -> None:
    (tmp_path / "cgroup.procs").touch()
    group = MemoryCgroup(tmp_path, Hierarchy(1, tmp_path), LIMIT_BYTES)
    group.adopt(os.getpid())  # a plain file keeps what was written
    (tmp_path / "cgroup.procs").unlink()
    (tmp_path / "cgroup.procs").symlink_to("/dev/null")
    with pytest.raises(CacheLimitRefused, match="did not arrive"):
        group.adopt(os.getpid())
    (tmp_path / "cgroup.procs").unlink()
    (tmp_path / "cgroup.procs").mkdir()
    with pytest.raises(CacheLimitRefused, match="cannot be moved"):
        group.adopt(os.getpid())


def lay_made_group(place: Path, outer: str) -> MemoryCgroup:
    """Lay out a fresh version 2 group as the kernel does, below one with a limit."""
    path = place / "outer/leadline-1-0123abcd"
    path.mkdir(parents=True)
    (place / "outer/memory.max").write_text(outer)
    for name in ("memory.max", "memory.swap.max"):
        (path / name).write_text("")
    (path / "memory.current").write_text("4096\n")
    (path / "memory.events").write_text("low 0\noom 3\noom_kill 2\n")
    return MemoryCgroup(path, Hierarchy(2, path.parent), LIMIT_BYTES)


def test_version_2_limits_and_counts(tmp_path: Path) -> None:
    group = lay_made_group(tmp_path, "max")
    cgroup._limit(group)
    assert (group.path / "memory.max").read_text() == str(LIMIT_BYTES)
    assert (group.path / "memory.swap.max").read_text() == "0"
    assert (group.usage_bytes(), group.oom_kills()) == (4096, 2)


def test_version_2_below_a_tighter_limit(tmp_path: Path) -> None:
    with pytest.raises(CacheLimitRefused, match="may itself use only 32 MiB"):
        cgroup._limit(lay_made_group(tmp_path, str(LIMIT_BYTES // 2)))
