"""Compiles and runs bench/nfs_bare.c, the NFS client that has nothing of Leadline's."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


class NotAvailable(Exception):
    """The client cannot be built here; the message says what to install."""


class ClientFailed(Exception):
    """The client met an error of the server; the message is its own."""


@dataclass(frozen=True)
class Load:
    """One workload: random places of one request size, on one connection."""

    file_bytes: int
    request_bytes: int
    depth: int
    """Requests in flight."""
    read_frac: float
    synchronous: bool = False
    """Whether writes ask for FILE_SYNC; otherwise for UNSTABLE."""


@dataclass(frozen=True)
class Reading:
    """One run's answer; a request counts when it is answered within the window."""

    requests_per_s: float
    throughput_mb_s: float
    latency_mean_us: float
    latency_p50_us: float
    latency_p99_us: float
    requests: int


class BareClient:
    """The compiled program."""

    def __init__(self, folder: Path) -> None:
        """Compile it into a folder.

        Raises:
            NotAvailable: no compiler, or no libnfs.

        """
        self.program = folder / "nfs_bare"
        source = Path(__file__).with_name("nfs_bare.c")
        command = ["cc", "-O2", str(source), "-lnfs", "-o", str(self.program)]
        try:
            subprocess.run(command, check=True, capture_output=True, text=True)
        except FileNotFoundError:
            raise NotAvailable("cc is missing: apt-get install gcc libc6-dev") from None
        except subprocess.CalledProcessError as error:
            if "libnfs.h" in error.stderr:
                raise NotAvailable("libnfs is missing: apt-get install libnfs-dev") from None
            raise NotAvailable(f"cc: {error.stderr.strip()}") from error

    def lay(self, url: str, name: str, file_bytes: int) -> None:
        """Write a file of random bytes and commit it."""
        self._run([url, name, "lay", file_bytes])

    def remove(self, url: str, name: str) -> None:
        """Remove the file."""
        self._run([url, name, "remove"])

    def measure(
        self, url: str, name: str, load: Load, *, warm_s: float, seconds: float, seed: int
    ) -> Reading:
        """Run one workload on a laid file; `url` is as libnfs has it (`nfs://HOST/EXPORT`).

        Raises:
            ClientFailed: the server answered with an error, or did not answer.

        """
        answer = self._run(
            [
                url,
                name,
                "run",
                load.file_bytes,
                load.request_bytes,
                load.depth,
                load.read_frac,
                int(load.synchronous),
                warm_s,
                seconds,
                seed,
            ]
        )
        per_s, mb_s, mean_us, p50_us, p99_us, count = answer.split()
        return Reading(
            float(per_s), float(mb_s), float(mean_us), float(p50_us), float(p99_us), int(count)
        )

    def _run(self, words: Sequence[object]) -> str:
        command = [str(self.program), f"{words[0]}?version=3", *map(str, words[1:])]
        done = subprocess.run(command, check=False, capture_output=True, text=True)
        if done.returncode:
            raise ClientFailed(done.stderr.strip())
        return done.stdout
