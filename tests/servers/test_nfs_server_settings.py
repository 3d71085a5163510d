"""What a sample may set on an NFS server, and what is refused before anything is started."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from leadline.engine import TargetRefused
from leadline.record.workbench import NfsServer, Threshold, TrialOrder, TrialRequest
from leadline.servers import nfs, run_trial
from leadline.servers.ganesha import Ganesha, GaneshaSettings
from leadline.servers.nfs import NfsSettings, nfs_settings


def server_of(directory: str = "/srv", **settings: Any) -> NfsServer:
    return NfsServer(directory=directory, workload="db_tp", data_bytes=32 << 20, settings=settings)


def test_factors_are_set_over_the_experiments_own() -> None:
    server = server_of(threads=8, disk_iops=100)
    settings = nfs_settings(server, {"disks": 4, "threads": 32})
    assert settings == NfsSettings(threads=32, disk_iops=100, disks=4)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"thread": 4}, "no setting 'thread'; did you mean 'threads'"),
        ({"colour": 4}, "there are: threads, back_end"),
        ({"threads": 1}, "threads is 1; it may be from 2 to"),
        ({"threads": "many"}, "settings: .*threads"),
        ({"disks": 17}, "disks is 17"),
        ({"back_end": "tape"}, "tape"),
        ({"back_end": "mem", "disks": 2}, "disks changes nothing with back_end = 'mem'"),
        ({"back_end": "mem", "cache_cap": "64MiB"}, "cache_cap changes nothing"),
        ({"stall_us": 500}, "stall_us changes nothing with back_end = 'vfs'"),
        ({"back_end": "mem", "stall_us": 2000}, "stall_us is 2000"),
        ({"cache_cap": "much"}, "cache_cap is 'much'"),
        ({"stable": "always"}, "always"),
    ],
)
def test_a_setting_that_makes_no_sense_is_refused(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(TargetRefused, match=said):
        nfs_settings(server_of(), settings)


def order_of(server: NfsServer) -> TrialOrder:
    return TrialOrder(
        server=server,
        sample={},
        threshold=Threshold(mean_ms=40),
        request=TrialRequest(rate_per_s=100, seconds=1),
        order=0,
        seed=1,
    )


def test_without_root_it_is_refused_with_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(TargetRefused, match=r"not root; .* kind = \"command\""):
        run_trial(order_of(server_of(str(tmp_path))))


def test_without_its_packages_it_is_refused_by_their_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr("shutil.which", lambda _name: None)
    with pytest.raises(TargetRefused, match="missing packages: nfs-ganesha rpcbind"):
        run_trial(order_of(server_of(str(tmp_path))))


def test_without_throttles_disks_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nfs, "why_no_ganesha", lambda *_: None)
    monkeypatch.setattr(nfs, "why_no_disks", lambda: "there is no blkio")
    with pytest.raises(TargetRefused, match="there is no blkio"):
        run_trial(order_of(server_of(str(tmp_path), disks=2)))


def test_a_directory_that_is_not_there_is_refused() -> None:
    with pytest.raises(TargetRefused, match="no directory /no/where"):
        run_trial(order_of(server_of("/no/where")))


@pytest.mark.parametrize(
    ("settings", "has", "lacks"),
    [
        (
            GaneshaSettings(directory=Path("/srv/x"), threads=9),
            ("RPC_Ioq_ThrdMax = 9;", 'Path = "/srv/x"', "Name = VFS", "NFS_Commit = true"),
            "MEM",
        ),
        (GaneshaSettings(mount=("-t", "btrfs", "/dev/loop1")), ('Path = "/run/export"',), "MEM"),
        (
            GaneshaSettings(back_end="mem", threads=100, stall_us=700),
            ("Async_Threads = 100;", "Async_Stall_Delay = 700;", "Async_Delay = 100;"),
            "VFS",
        ),
    ],
)
def test_the_configuration_says_what_the_settings_say(
    settings: GaneshaSettings, has: tuple[str, ...], lacks: str
) -> None:
    text = Ganesha(1, settings)._configuration()
    assert all(words in text for words in has), text
    assert lacks not in text
