"""Files beneath an open directory: no name leads elsewhere, and what is not ours is not opened."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from leadline.engine.targets.claim import DATA, claim
from leadline.engine.targets.dirfd import (
    Folder,
    claimed,
    facts_of,
    open_directory,
    open_input,
    resolved,
)
from leadline.errors import TargetRefused


def test_the_way_is_resolved_once_and_then_no_link_is_followed(tmp_path: Path) -> None:
    (tmp_path / "real/inner").mkdir(parents=True)
    (tmp_path / "link").symlink_to("real")
    (tmp_path / "file").touch()
    assert resolved(tmp_path / "link/inner") == tmp_path.resolve() / "real/inner"
    assert resolved(tmp_path / "link") == tmp_path.resolve() / "link", "the end is not followed"
    with open_directory(tmp_path.resolve() / "real/inner") as folder:
        assert os.path.samestat(os.fstat(folder.fd), (tmp_path / "real/inner").stat())
    for path, number in (
        ("link", errno.ELOOP),
        ("link/inner", errno.ELOOP),
        ("file", errno.ENOTDIR),
        ("gone", errno.ENOENT),
    ):
        with pytest.raises(OSError, match=r".") as refused:
            open_directory(tmp_path / path)
        assert refused.value.errno == number, path


def lay_link(path: Path) -> None:
    path.symlink_to(path.parent / "precious")


def lay_dangling_link(path: Path) -> None:
    path.symlink_to(path.parent / "nowhere")


def lay_second_name(path: Path) -> None:
    path.hardlink_to(path.parent / "precious")


def lay_another_users(path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can make a file of somebody else's")
    path.write_text("theirs")
    os.chown(path, 12345, 12345)


@pytest.mark.parametrize(
    ("lay", "said"),
    [
        (lay_link, "symbolic links"),
        (lay_dangling_link, "symbolic links"),
        (lay_second_name, "has a second name elsewhere"),
        (os.mkfifo, "is no regular file"),
        (Path.mkdir, "directory|no regular file"),
        (lay_another_users, r"belongs to another user \(uid 12345\)"),
    ],
)
@pytest.mark.parametrize("flags", [os.O_RDONLY, os.O_RDWR])
def test_what_is_not_ours_is_neither_opened_nor_made(
    tmp_path: Path, lay: Callable[[Path], None], said: str, flags: int
) -> None:
    (tmp_path / "precious").write_text("precious")
    lay(tmp_path / DATA)
    with open_directory(tmp_path) as folder:
        with pytest.raises((OSError, TargetRefused), match=said):
            folder.open_file(DATA, flags)
        with pytest.raises(FileExistsError):
            folder.make_file(DATA)
        with pytest.raises((OSError, TargetRefused), match=said):
            folder.make_or_open_file(DATA)
    assert (tmp_path / "precious").read_text() == "precious"
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "/etc", "a\0b"])
def test_a_name_is_one_component(tmp_path: Path, name: str) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a/b").touch()
    with open_directory(tmp_path) as folder:
        for act in (
            folder.look,
            folder.below,
            folder.open_file,
            folder.make_file,
            folder.make_folder,
            folder.remove_file,
            folder.remove_folder,
        ):
            with pytest.raises(OSError, match="Invalid argument"):
                act(name)
    assert (tmp_path / "a/b").exists()


def test_a_file_of_ours_is_made_opened_and_removed_where_the_directory_lies(tmp_path: Path) -> None:
    place, moved = tmp_path / "place", tmp_path / "moved"
    place.mkdir()
    with open_directory(place) as folder:
        os.close(folder.make_file(DATA))
        place.rename(moved)
        place.mkdir()
        (place / DATA).write_text("theirs")
        fd = folder.open_file(DATA, os.O_RDWR)
        assert os.get_blocking(fd), "a pipe was feared, and it is none"
        os.write(fd, b"ours")
        os.close(fd)
        assert (moved / DATA).read_text() == "ours"
        assert (moved / DATA).stat().st_mode & 0o777 == 0o600
        folder.remove_file(DATA)
        folder.remove_file(DATA)
        assert folder.names() == []
    assert (place / DATA).read_text() == "theirs"


def test_one_that_is_removed_as_it_is_opened_is_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / DATA).touch()
    real = os.open

    def opened(path: str, *arguments: int, dir_fd: int | None = None) -> int:
        fd = real(path, *arguments, dir_fd=dir_fd)
        if path == DATA:
            (tmp_path / DATA).unlink()
        return fd

    with open_directory(tmp_path) as folder:
        monkeypatch.setattr(os, "open", opened)
        with pytest.raises(FileNotFoundError):
            folder.open_file(DATA)


def text_at(path: Path) -> str:
    with open(open_input(path)) as file:  # noqa: PTH123 - a handle
        return file.read()


def test_a_claimed_directorys_path_means_its_handle(tmp_path: Path) -> None:
    with claim(tmp_path) as claimed_here:
        run = claimed_here.run_directory
        assert claimed()[run] is claimed_here.folder
        (run / DATA).write_text("ours")
        run.rename(tmp_path / "moved")
        run.mkdir()
        (run / DATA).write_text("theirs, and longer")
        assert text_at(run / DATA) == "ours"
        found, of_run = facts_of(run / DATA), facts_of(run)
        assert found is not None
        assert found.st_size == len("ours")
        assert of_run is not None
        assert of_run.st_ino == (tmp_path / "moved").stat().st_ino
        assert facts_of(run / "gone") is None
        (tmp_path / "moved" / DATA).unlink()
        (tmp_path / "moved" / DATA).symlink_to(run / DATA)
        with pytest.raises(OSError, match="symbolic links"):
            open_input(run / DATA)
        run_left = run
    assert run_left not in claimed()


def test_an_input_may_be_anywhere_and_is_a_plain_file(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("mine")
    (tmp_path / "link").symlink_to("data")
    (tmp_path / "dangling").symlink_to("nowhere")
    assert text_at(tmp_path / "link") == "mine"
    assert facts_of(tmp_path / "dangling") is None
    os.mkfifo(tmp_path / "pipe")
    for name in ("pipe", "."):
        with pytest.raises(TargetRefused, match="no plain file"):
            open_input(tmp_path / name)


def test_a_closed_folder_may_be_closed_again(tmp_path: Path) -> None:
    folder = open_directory(tmp_path)
    assert isinstance(folder, Folder)
    folder.close()
    folder.close()
    # To os.listdir -1 is the working directory.
    for act in (folder.names, lambda: folder.look(DATA), lambda: folder.remove_file(DATA)):
        with pytest.raises(OSError, match="Bad file descriptor"):
            act()
