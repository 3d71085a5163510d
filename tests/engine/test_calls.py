"""What calls about files take in a claimed directory."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from leadline.engine.targets.calls import time_calls
from leadline.engine.targets.claim import claim
from leadline.engine.targets.dirfd import Folder

CALLS = {
    *("mkdir", "create", "chmod", "fadvise", "fallocate", "truncate", "end of file", "getdents"),
    *("close", "stat", "open", "unlink", "rmdir"),
}


@pytest.mark.parametrize("made", [0, 3])
def test_where_files_cannot_be_made_the_others_are_timed_and_nothing_is_left(
    made: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A quota lets so many files in."""
    make = Folder.make_file

    def full(folder: Folder, name: str) -> int:
        if name.endswith(f"-{made}.bin"):
            raise OSError(errno.EDQUOT, os.strerror(errno.EDQUOT))
        return make(folder, name)

    monkeypatch.setattr(Folder, "make_file", full)
    with claim(tmp_path) as claimed:
        found = time_calls(claimed.folder)
        assert not claimed.folder.names()
    assert "create" not in found
    assert {"mkdir", "stat", "rmdir"} <= set(found)


class Stop(BaseException):
    """Of a study, amid a call."""


def test_each_call_is_timed_and_nothing_is_left(tmp_path: Path) -> None:
    with claim(tmp_path) as claimed:
        found = time_calls(claimed.folder)
        assert not claimed.folder.names()
    assert set(found) == CALLS
    for name, us in found.items():
        assert us.low is not None, name
        assert us.high is not None, name
        assert 0 < us.low <= us.value <= us.high, name


def test_a_call_that_is_refused_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object, **__: object) -> None:
        raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP))

    monkeypatch.setattr(os, "posix_fallocate", refused)
    with claim(tmp_path) as claimed:
        found = time_calls(claimed.folder)
        assert not claimed.folder.names()
    assert set(found) == CALLS - {"fallocate"}


def test_a_stop_amid_it_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped(*_: object, **__: object) -> None:
        raise Stop

    monkeypatch.setattr(os, "posix_fadvise", stopped)
    with claim(tmp_path) as claimed:
        with pytest.raises(Stop):
            time_calls(claimed.folder)
        assert not claimed.folder.names()
