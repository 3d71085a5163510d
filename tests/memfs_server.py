"""A real NFS server without root: its files live in memory (crates/engine/examples/memfs.rs)."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

TREE = Path(__file__).parents[1]
PLACES = ("target/checked/examples/memfs", "target/release/examples/memfs")


class MemfsServer:
    """One server process; `/x` is its only directory."""

    def __init__(self, program: Path) -> None:
        self.process = subprocess.Popen(
            [str(program)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self.process.stdout is not None
        self.port = int(self.process.stdout.readline())

    @property
    def url(self) -> str:
        """What a user types."""
        return f"nfs://127.0.0.1:{self.port}/x"

    def kill(self) -> None:
        """As a crash."""
        self.process.kill()
        self.process.wait()

    def stall(self) -> None:
        """It keeps its connections and says nothing more."""
        self.process.send_signal(signal.SIGSTOP)

    def close(self) -> None:
        """End it, also when it is stalled."""
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                pipe.close()


@contextmanager
def memfs_server() -> Iterator[MemfsServer]:
    """Run a server until the block ends; without the program the test is skipped, in words."""
    program = next((TREE / place for place in PLACES if (TREE / place).exists()), None)
    if program is None:
        pytest.skip("no NFS server here: cargo build -p leadline-engine --example memfs")
    server = MemfsServer(program)
    try:
        yield server
    finally:
        server.close()
