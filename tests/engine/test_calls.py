"""What calls about files take in a claimed directory."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from leadline.engine.targets.calls import time_calls
from leadline.engine.targets.claim import claim

CALLS = {
    *("mkdir", "create", "chmod", "fadvise", "fallocate", "truncate", "end of file", "getdents"),
    *("close", "stat", "open", "unlink", "rmdir"),
}


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
        assert 0 < us.low <= us.value <= us.high < 1e6, name


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
