"""A real NFS server for tests and benchmarks: the product's, on a directory of this machine.

By hand, until Ctrl-C: `python tests/real/nfs_server.py DIR [128MiB]`.
"""

from __future__ import annotations

import ctypes
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from leadline.servers.ganesha import (
    MOUNT_PORT,
    NFS_PORT,
    Ganesha,
    GaneshaSettings,
    ServerFailed,
    ganesha,
    why_no_ganesha,
)
from leadline.units import parse_bytes

__all__ = ["MOUNT_PORT", "NFS_PORT", "NfsServer", "ServerFailed", "nfs_server", "why_not"]

CACHESTAT = 451
"""Number of cachestat(2), since Linux 6.5, on every architecture."""


def why_not(directory: Path) -> str | None:
    """Say why no server can run here on this directory; None when one can."""
    why = why_no_ganesha(directory)
    return f"{why}; tests/packages installs what is missing" if why else None


class NfsServer(Ganesha):
    """A running server of a directory, which this machine's programs reach."""

    near_is_here = True

    @property
    def directory(self) -> Path:
        """What it exports."""
        assert self.settings.directory is not None
        return self.settings.directory

    def dirty_pages(self, path: Path) -> int | None:
        """Pages of a file below `directory` that no disk has yet; None without cachestat(2)."""
        found = (ctypes.c_uint64 * 5)()
        whole = (ctypes.c_uint64 * 2)(0, 0)
        libc = ctypes.CDLL(None, use_errno=True)
        with path.open("rb") as file:
            if libc.syscall(CACHESTAT, file.fileno(), ctypes.byref(whole), ctypes.byref(found), 0):
                return None
        return found[1] + found[2]


@contextmanager
def nfs_server(directory: Path, *, memory_bytes: int | None = None) -> Iterator[NfsServer]:
    """Serve a directory until the block ends, under a memory limit when one is given.

    Raises:
        ServerFailed: it did not start; the message has the end of its log.
        CacheLimitRefused: no memory cgroup can be had.

    """
    settings = GaneshaSettings(directory=directory.resolve())
    with ganesha(settings, memory_bytes=memory_bytes, kind=NfsServer) as server:
        assert isinstance(server, NfsServer)
        yield server


def main() -> None:
    """Serve a directory until Ctrl-C."""
    directory = Path(sys.argv[1])
    memory_bytes = parse_bytes(sys.argv[2]) if len(sys.argv) > 2 else None
    if reason := why_not(directory):
        sys.exit(f"no NFS server here: {reason}")
    for number in (signal.SIGINT, signal.SIGTERM):  # a shell's background job ignores the first
        signal.signal(number, signal.default_int_handler)
    with nfs_server(directory, memory_bytes=memory_bytes) as server:
        print(
            f"{server.url()}  {server.url('sync')}  pid {server.pid}  log {server.log}", flush=True
        )
        with suppress(KeyboardInterrupt):
            signal.pause()


if __name__ == "__main__":
    main()
