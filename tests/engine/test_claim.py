"""Ownership of `.leadline`: nothing foreign is touched, nothing of ours is left behind."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from leadline.engine import TargetRefused
from leadline.engine.targets import claim as claim_module
from leadline.engine.targets.claim import DATA, DIRECTORY, LOCK, MARKER, Claim, claim
from leadline.engine.targets.dirfd import Folder

OURS = '{"made_by":"leadline","version":1,"id":"x"}\n'
RUN = "run-" + "0" * 32
DATA_SET = "data-db_tp-67108864-1"
HANG_S = 60.0
"""Nothing that is waited for takes this long, unless it hangs."""


def tree(place: Path) -> dict[str, str]:
    """Everything below a directory: kind and content by path."""
    found = {}
    for path in sorted(place.rglob("*")):
        name = str(path.relative_to(place))
        if path.is_symlink():
            found[name] = f"link to {path.readlink()}"
        else:
            plain = path.read_text() if path.is_file() else "pipe"
            found[name] = "directory" if path.is_dir() else plain
    return found


def test_a_claim_comes_and_goes(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("kept")
    with claim(tmp_path) as claimed:
        marker = json.loads((tmp_path / DIRECTORY / MARKER).read_text())
        assert (marker["made_by"], marker["version"]) == ("leadline", 1)
        assert uuid.UUID(marker["id"])
        assert (tmp_path / DIRECTORY).stat().st_mode & 0o777 == 0o700
        assert list(claimed.run_directory.iterdir()) == []
        assert claimed.data_bytes() == 0
        (claimed.run_directory / DATA).write_bytes(os.urandom(8192))
        assert claimed.data_bytes() == 8192
    assert tree(tmp_path) == {"mine": "kept"}


ON_BTRFS = """
mount -o loop "$1/image" "$1/point"
"$2" -c "
import os, sys
from leadline.engine.targets.claim import DATA, claim
with claim(sys.argv[1]) as claimed:
    (claimed.run_directory / DATA).write_bytes(os.urandom(8192))
" "$1/point"
ls -A "$1/point"
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root mounts")
def test_what_came_after_a_directory_was_opened_is_removed_on_btrfs_too(tmp_path: Path) -> None:
    with (tmp_path / "image").open("wb") as image:
        image.truncate(128 * 2**20)
    (tmp_path / "point").mkdir()
    subprocess.run(["mkfs.btrfs", "-q", tmp_path / "image"], check=True, capture_output=True)
    shell = ["unshare", "--mount", "sh", "-e", "-c", ON_BTRFS, "sh"]
    command = [*shell, str(tmp_path), sys.executable]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_lock_on_a_file_system_that_is_gone_is_let_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    close = os.close
    told: list[int] = []
    with claim(tmp_path) as claimed:
        assert claimed._held is not None
        lock_fd = claimed._held.lock_fd

        def gone(fd: int) -> None:
            close(fd)
            if fd == lock_fd and not told:
                told.append(fd)
                raise OSError(errno.ENOTCONN, os.strerror(errno.ENOTCONN))

        monkeypatch.setattr(os, "close", gone)
    assert told, "what it waits to be told was told"
    assert tree(tmp_path) == {}


class Boom(BaseException):
    pass


def test_an_error_inside_cleans_up(tmp_path: Path) -> None:
    with pytest.raises(Boom), claim(tmp_path) as claimed:  # noqa: PT012 - the block is tested
        (claimed.run_directory / DATA).write_text("data")
        raise Boom
    assert tree(tmp_path) == {}


def lay_symlink(place: Path) -> None:
    (place / "elsewhere").mkdir()
    (place / "elsewhere" / MARKER).write_text(OURS)
    (place / DIRECTORY).symlink_to("elsewhere")


def lay_file(place: Path) -> None:
    (place / DIRECTORY).write_text("a file")


def lay_own(place: Path, name: str, text: str) -> None:
    (place / DIRECTORY).mkdir()
    (place / DIRECTORY / MARKER).write_text(OURS)
    (place / DIRECTORY / name).write_text(text)


def lay_marker(place: Path, text: str) -> None:
    (place / DIRECTORY).mkdir()
    (place / DIRECTORY / MARKER).write_text(text)


def lay_run(place: Path, name: str, *, link: bool = False, marker: bool = True) -> None:
    (place / "precious").write_text("precious")
    (place / DIRECTORY / RUN).mkdir(parents=True)
    if marker:
        (place / DIRECTORY / MARKER).write_text(OURS)
    if link:
        (place / DIRECTORY / RUN / name).symlink_to(place / "precious")
    else:
        (place / DIRECTORY / RUN / name).write_text("data")


def lay_mount(place: Path, *within: str) -> None:
    lay_run(place, "raw-0.bin")
    for number in (0, 1):
        (place / DIRECTORY / RUN / f"image-{number}.bin").write_text("data")
        (place / DIRECTORY / RUN / f"mount-{number}").mkdir()
    for name in within:
        (place / DIRECTORY / RUN / "mount-1" / name).write_text("precious")


def lay_linked_run(place: Path) -> None:
    (place / "elsewhere").mkdir()
    (place / "elsewhere" / DATA).write_text("precious")
    (place / DIRECTORY).mkdir()
    (place / DIRECTORY / MARKER).write_text(OURS)
    (place / DIRECTORY / RUN).symlink_to(place / "elsewhere")


def lay_linked(place: Path, name: str) -> None:
    (place / "precious").write_text("")
    (place / DIRECTORY).mkdir()
    (place / DIRECTORY / name).symlink_to(place / "precious")


def lay_second_name(place: Path, name: str, text: str = "") -> None:
    """What has one of our names is a file of the user's as well."""
    (place / "precious").write_text(text)
    (place / DIRECTORY / name).parent.mkdir(parents=True)
    (place / DIRECTORY / name).hardlink_to(place / "precious")


def lay_linked_data(place: Path) -> None:
    lay_second_name(place, f"{RUN}/{DATA}", "precious")
    (place / DIRECTORY / MARKER).write_text(OURS)


def lay_pipe(place: Path, name: str) -> None:
    (place / DIRECTORY).mkdir()
    os.mkfifo(place / DIRECTORY / name)


def lay_data_set(place: Path, name: str = DATA_SET, *, marker: bool = True) -> None:
    (place / DIRECTORY / name).mkdir(parents=True)
    (place / DIRECTORY / name / "f0000000").write_text("data")
    if marker:
        (place / DIRECTORY / MARKER).write_text(OURS)


@pytest.mark.parametrize(
    ("lay", "message"),
    [
        (lay_symlink, "is a symlink, and Leadline did not make it"),
        (lay_file, "is not a directory"),
        (lambda place: lay_own(place, "thesis.tex", "x"), "thesis.tex was not made by"),
        (lambda place: lay_own(place, "run-1", "x"), "run-1 was not made by"),
        (lambda place: lay_own(place, RUN, "x"), f"{RUN} was not made by"),
        (lambda place: lay_own(place, LOCK, "my own lock"), "lock was not made by"),
        (lambda place: lay_marker(place, "notes"), f"{MARKER} was not made by"),
        (lambda place: lay_marker(place, OURS.replace("1", "99")), "was not made by this"),
        (lambda place: lay_marker(place, OURS.replace("leadline", "other")), "not made by"),
        (lambda place: lay_run(place, "other.bin"), f"{RUN} was not made by"),
        (lambda place: lay_run(place, DATA, link=True), f"{RUN} was not made by"),
        (lambda place: lay_run(place, "image-0.bin", link=True), f"{RUN} was not made by"),
        (lambda place: lay_run(place, "mount-0"), f"{RUN} was not made by"),
        (lambda place: lay_mount(place, "thesis.tex"), f"{RUN} was not made by"),
        (lambda place: lay_run(place, DATA, marker=False), f"no {MARKER} file"),
        (lambda place: lay_own(place, DATA_SET, "x"), f"{DATA_SET} was not made by"),
        (lambda place: lay_own(place, "data-1", "x"), "data-1 was not made by"),
        (lambda place: lay_data_set(place, marker=False), f"no {MARKER} file"),
        (lambda place: lay_data_set(place, "data-db_tp-067108864-1"), "was not made by"),
        (lay_linked_run, f"{RUN} was not made by"),
        (lambda place: lay_linked(place, MARKER), f"{MARKER} was not made by"),
        (lambda place: lay_linked(place, LOCK), "lock was not made by"),
        (lambda place: lay_second_name(place, LOCK), "lock has a second name elsewhere"),
        (lambda place: lay_second_name(place, MARKER), f"{MARKER} has a second name elsewhere"),
        (lay_linked_data, rf"{RUN} holds data\.bin, which has a second name elsewhere"),
        (lambda place: lay_pipe(place, LOCK), "lock was not made by"),
        (lambda place: lay_pipe(place, MARKER), f"{MARKER} was not made by"),
    ],
)
def test_foreign_things_are_refused_and_kept(tmp_path: Path, lay: object, message: str) -> None:
    assert callable(lay)
    lay(tmp_path)
    before = tree(tmp_path)
    with pytest.raises(TargetRefused, match=message) as refused, claim(tmp_path):
        pytest.fail("claimed")
    assert refused.value.exit_code == 5
    assert tree(tmp_path) == before


def test_the_data_set_of_an_nfs_load_outlives_a_claim(tmp_path: Path) -> None:
    lay_data_set(tmp_path)
    before = tree(tmp_path)
    with claim(tmp_path) as claimed:
        (claimed.run_directory / DATA).write_text("data")
    assert tree(tmp_path) == before


def test_what_a_killed_file_test_left_is_removed(tmp_path: Path) -> None:
    lay_mount(tmp_path)
    (tmp_path / DIRECTORY / RUN / "file.bin").write_text("data")
    with claim(tmp_path) as claimed:
        assert list(claimed.run_directory.iterdir()) == []
        assert [path for path in claimed.run_directory.parent.iterdir() if path.is_dir()] == [
            claimed.run_directory
        ]
        (claimed.run_directory / "mount-0").mkdir()
        (claimed.run_directory / "raw-1.bin").write_text("data")
    assert tree(tmp_path) == {"precious": "precious"}


def test_another_users_directory_is_refused(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can make a directory that belongs to somebody else")
    (tmp_path / DIRECTORY).mkdir()
    os.chown(tmp_path / DIRECTORY, 12345, 12345)
    with pytest.raises(TargetRefused, match=r"another user .uid 12345"), claim(tmp_path):
        pytest.fail("claimed")
    assert tree(tmp_path) == {DIRECTORY: "directory"}


@pytest.mark.parametrize("names", [(), (LOCK,), (MARKER,), (LOCK, MARKER)])
def test_what_a_kill_between_the_first_steps_left_is_taken(
    tmp_path: Path, names: tuple[str, ...]
) -> None:
    (tmp_path / DIRECTORY).mkdir()
    for name in names:
        (tmp_path / DIRECTORY / name).touch()
    with claim(tmp_path):
        pass
    assert tree(tmp_path) == {}


def test_two_at_once(tmp_path: Path) -> None:
    with claim(tmp_path) as first:
        (first.run_directory / DATA).write_text("data")
        with (
            pytest.raises(TargetRefused, match=f"in use by another.*process {os.getpid()}\\)"),
            claim(tmp_path),
        ):
            pytest.fail("claimed")
        assert (first.run_directory / DATA).read_text() == "data"
    with claim(tmp_path):
        pass
    assert tree(tmp_path) == {}


def test_a_lock_on_a_removed_file_is_no_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another Leadline lets go between our opening of the lock and our locking of it."""
    real = fcntl.flock
    calls: list[int] = []

    def flock(descriptor: int, how: int) -> None:
        if not calls:
            (tmp_path / DIRECTORY / LOCK).unlink()
            (tmp_path / DIRECTORY / LOCK).touch()
        calls.append(descriptor)
        real(descriptor, how)

    monkeypatch.setattr(fcntl, "flock", flock)
    with claim(tmp_path):
        assert len(calls) == 2, "the first was on a file that nobody else will find"
        with pytest.raises(TargetRefused, match="in use"), claim(tmp_path):
            pytest.fail("claimed")
    assert tree(tmp_path) == {}


def test_what_appears_before_the_lock_is_held_is_refused_and_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the first look and the lock somebody else puts something there."""
    real = fcntl.flock

    def flock(descriptor: int, how: int) -> None:
        (tmp_path / DIRECTORY / "thesis.tex").write_text("precious")
        real(descriptor, how)

    monkeypatch.setattr(fcntl, "flock", flock)
    with pytest.raises(TargetRefused, match=r"thesis\.tex was not made by"), claim(tmp_path):
        pytest.fail("claimed")
    assert (tmp_path / DIRECTORY / "thesis.tex").read_text() == "precious"


def test_a_lock_that_gets_a_second_name_before_it_is_held_is_not_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the first look and the opening somebody puts a link to his own file there."""
    (tmp_path / "precious").write_text("precious")
    real = claim_module._lock

    def lock(shown: Path, own: Folder) -> int:
        (tmp_path / DIRECTORY / LOCK).hardlink_to(tmp_path / "precious")
        return real(shown, own)

    monkeypatch.setattr(claim_module, "_lock", lock)
    with pytest.raises(TargetRefused, match="second name elsewhere"), claim(tmp_path):
        pytest.fail("claimed")
    assert (tmp_path / "precious").read_text() == "precious"


def test_a_target_moved_away_is_cleaned_where_it_lies(tmp_path: Path) -> None:
    place, elsewhere = tmp_path / "place", tmp_path / "elsewhere"
    place.mkdir()
    with claim(place) as claimed:
        (claimed.run_directory / DATA).write_text("data")
        place.rename(elsewhere)
        place.mkdir()
        lay_run(place, DATA)
        theirs = tree(place)
    assert tree(elsewhere) == {}
    assert tree(place) == theirs


def test_a_name_swapped_for_a_symlink_leads_nowhere(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / DATA).write_text("precious")
    with claim(tmp_path) as claimed:
        claimed.run_directory.rmdir()
        claimed.run_directory.symlink_to(tmp_path / "elsewhere")
        with pytest.raises(Exception, match="could not be removed"):
            claimed.release()
    assert (tmp_path / "elsewhere" / DATA).read_text() == "precious"


def test_leadline_swapped_for_a_symlink_leads_nowhere(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    with claim(tmp_path) as claimed:
        run = claimed.run_directory.name
        (claimed.run_directory / DATA).write_text("data")
        (tmp_path / DIRECTORY).rename(tmp_path / "moved")
        (elsewhere / run).mkdir(parents=True)
        (elsewhere / run / DATA).write_text("precious")
        (tmp_path / DIRECTORY).symlink_to(elsewhere)
    assert (elsewhere / run / DATA).read_text() == "precious"
    assert list((tmp_path / "moved").iterdir()) == [], "ours is found by its handle"


def test_a_foreign_file_that_appears_meanwhile_stays(tmp_path: Path) -> None:
    with claim(tmp_path) as claimed:
        (claimed.run_directory / DATA).write_text("data")
        (tmp_path / DIRECTORY / "foreign").write_text("kept")
    assert tree(tmp_path) == {DIRECTORY: "directory", f"{DIRECTORY}/foreign": "kept"}


def test_removed_by_hand(tmp_path: Path) -> None:
    with claim(tmp_path) as claimed:
        claimed.run_directory.rmdir()
        for name in (MARKER, LOCK):
            (tmp_path / DIRECTORY / name).unlink()
        (tmp_path / DIRECTORY).rmdir()
    assert tree(tmp_path) == {}


def test_a_fork_does_not_release(tmp_path: Path) -> None:
    with claim(tmp_path) as claimed:
        child = os.fork()
        if not child:
            claimed.release()
            os._exit(0)
        os.waitpid(child, 0)
        assert claimed.run_directory.is_dir()


def test_release_twice(tmp_path: Path) -> None:
    with claim(tmp_path) as claimed:
        assert isinstance(claimed, Claim)
        claimed.release()
        claimed.release()
    assert tree(tmp_path) == {}


HOLDER = """
import signal, sys, time
# A shell's background job starts with SIGINT ignored, which Leadline honours.
signal.signal(signal.SIGINT, signal.default_int_handler)
from leadline.engine import Stopped, stop_on_signals
from leadline.engine.targets.claim import claim
try:
    with stop_on_signals(), claim(sys.argv[1]) as claimed:
        (claimed.run_directory / "data.bin").write_text("data")
        print("held", flush=True)
        time.sleep(600)
except Stopped as stopped:
    print(stopped, flush=True)
    raise SystemExit(stopped.exit_code)
"""


@contextmanager
def hold(place: Path) -> Iterator[subprocess.Popen[str]]:
    """Another Leadline that holds the directory; it ends with the block, whatever fails in it."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(place)], stdout=subprocess.PIPE, text=True
    ) as holder:
        try:
            assert holder.stdout is not None
            assert holder.stdout.readline() == "held\n"
            yield holder
        finally:
            holder.kill()


def test_after_kill_the_next_start_cleans(tmp_path: Path) -> None:
    with hold(tmp_path) as holder:
        with pytest.raises(TargetRefused, match=f"process {holder.pid}"), claim(tmp_path):
            pytest.fail("claimed")
        holder.kill()
        holder.wait(60)
    left = tree(tmp_path)
    assert any(name.endswith(DATA) for name in left), "the kill was meant to leave something"
    with claim(tmp_path) as claimed:
        runs = [path for path in (tmp_path / DIRECTORY).iterdir() if path.is_dir()]
        assert runs == [claimed.run_directory], "the killed run's data is gone at once"
    assert tree(tmp_path) == {}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_cleans_up(tmp_path: Path, number: signal.Signals) -> None:
    with hold(tmp_path) as holder:
        holder.send_signal(number)
        said, _ = holder.communicate(timeout=60)
    assert (holder.returncode, said) == (3, f"stopped early by {number.name}\n")
    assert tree(tmp_path) == {}


COMING_AND_GOING = """
import sys
from leadline.engine import TargetRefused
from leadline.engine.targets.claim import claim
held = 0
for _ in range(20):
    try:
        with claim(sys.argv[1]) as claimed:
            (claimed.run_directory / "data.bin").write_text("data")
            (claimed.run_directory / "data.bin").read_text()
            held += 1
    except TargetRefused as error:
        if "in use" not in str(error) and "coming and going" not in str(error):
            raise
print(held)
"""


def test_many_that_come_and_go(tmp_path: Path) -> None:
    """Whatever the interleaving, a holder's file stays until it lets go, and nothing is left."""
    several = [
        subprocess.Popen(
            [sys.executable, "-c", COMING_AND_GOING, str(tmp_path)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(3)
    ]
    try:
        ends = [process.communicate(timeout=HANG_S) for process in several]
    finally:
        for process in several:
            process.kill()
    assert [process.returncode for process in several] == [0, 0, 0], ends
    assert sum(int(said) for said, _ in ends) > 0
    assert tree(tmp_path) == {}
