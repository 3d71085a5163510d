"""NFS end to end: a real server measured, surveyed, killed, stalled and restarted in the middle."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from nfs_server import NfsServer

from command import leadline

pytestmark = pytest.mark.real
Serve = Callable[..., NfsServer]
MIB = 2**20
END_S_MAX = 15.0
"""A run that meets a dead or silent server ends within this."""
WORKLOAD = (
    "unique_bytes=16MiB,size_mean=4KiB,size_dist=fixed,seq_frac=0,process_num=1,queue_depth=4"
)
CACHE_MIB = 96
SURVEYS_MAX = 3


def measure(server: NfsServer, store: Path, *more: str, read_frac: float = 0.5) -> dict[str, Any]:
    done = leadline(
        "measure", server.url(), "--workload", f"{WORKLOAD},read_frac={read_frac}", "--seconds",
        "0.5", "--runs", "1", "--json", *more, store=store,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


@pytest.mark.parametrize("read_frac", [1.0, 0.5, 0.0])
def test_a_server_is_measured_and_nothing_is_left_on_it(
    serve: Serve, tmp_path: Path, read_frac: float
) -> None:
    server = serve()
    answer = measure(server, tmp_path / "store.sqlite", read_frac=read_frac)
    assert answer["admissible"], answer["reasons"]
    assert answer["throughput_mb_s"]["value"] > 0
    assert answer["cached_share"] is None, "the client keeps nothing"
    assert not list(server.directory.iterdir())
