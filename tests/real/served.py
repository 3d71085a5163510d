"""What tests on this machine's disk need; conftest.py gives it to them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path

import pytest
from nfs_server import NfsServer, nfs_server, why_not

from leadline.engine import CacheLimitRefused, memory_cgroup


@pytest.fixture(scope="module", autouse=True)
def cgroup_or_skip() -> None:
    try:
        with memory_cgroup(64 << 20):
            pass
    except CacheLimitRefused as reason:
        pytest.skip(f"no memory cgroup here: {reason}")


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Callable[..., NfsServer]]:
    """Start NFS servers of a directory; all end with the test."""
    if reason := why_not(tmp_path):
        pytest.skip(f"no NFS server here: {reason}")
    directory = tmp_path / "served"
    directory.mkdir()
    with ExitStack() as stack:

        def start(*, memory_bytes: int | None = None) -> NfsServer:
            made: AbstractContextManager[NfsServer] = nfs_server(
                directory, memory_bytes=memory_bytes
            )
            return stack.enter_context(made)

        yield start
