"""One directory reached in five ways, surveyed and drawn together: CP93 Fig. 6, CP94 Fig. 23.

    local             this machine's file system, buffered
    local-dsync       the same, every write O_DSYNC
    nfs               through nfs-ganesha on this machine, writes UNSTABLE: in the server's memory
    nfs-file-sync     the same server, every write FILE_SYNC: on the server's disk when answered
    nfs-sync-export   an export with synchronous writes: UNSTABLE is asked, FILE_SYNC is done

The local ways have a page cache of the same size (a memory cgroup) as the server; the NFS client
has none. Client and server share this machine's processors and talk through a veth pair, so the
"network" costs no wire time, only the work at both ends. Needs root and nfs-ganesha
(tests/real/nfs_server.py); prints throughput at three shares of reads with 95% intervals, and
writes the comparison page and its chart as PNG beside it.

    .venv/bin/python bench/client_server.py [--budget 120s] [--cache 128MiB] [--only nfs …]
        [--store client-server.sqlite] [-o client-server.html]
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from leadline.units import parse_bytes

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "real"))

from nfs_server import NfsServer, nfs_server, why_not

LEADLINE = str(Path(sys.executable).with_name("leadline"))
DATA_PER_CACHE = 5
"""Data is so many times the cache, so that the disk has a level of its own."""
CHART = "read_share_own"
EXIT_STOPPED = 3


@dataclass(frozen=True)
class Way:
    """How the directory is reached."""

    name: str
    export: str | None
    """Of the server; None is local."""
    sync: str = "none"

    def target(self, server: NfsServer, local: Path) -> str:
        """The target as the command line has it."""
        return str(local) if self.export is None else server.url(self.export)


WAYS = (
    Way("local", None),
    Way("local-dsync", None, "dsync"),
    Way("nfs", "exp"),
    Way("nfs-file-sync", "exp", "dsync"),
    Way("nfs-sync-export", "sync"),
)


def survey(way: Way, server: NfsServer, local: Path, asked: argparse.Namespace) -> dict[str, Any]:
    """Survey one way; returns what `leadline survey --json` says."""
    command = [
        "survey",
        way.target(server, local),
        "--name",
        way.name,
        "--budget",
        asked.budget,
        "--max-bytes",
        str(DATA_PER_CACHE * parse_bytes(asked.cache)),
        "--sync",
        way.sync,
        "--json",
    ]
    if way.export is None:
        command += ["--cache-limit", asked.cache]
    print(f"surveying {way.name} ...", file=sys.stderr)
    answer: dict[str, Any] = json.loads(leadline(asked.store, command))
    return answer


def leadline(store: Path, command: Iterable[str]) -> str:
    """Run the command on a store of its own; its talk goes to our stderr."""
    done = subprocess.run(
        [LEADLINE, *command],
        stdout=subprocess.PIPE,
        text=True,
        check=False,
        env=os.environ | {"LEADLINE_STORE": str(store)},
    )
    if done.returncode not in (0, EXIT_STOPPED):
        sys.exit(f"leadline {' '.join(command)}: exit code {done.returncode}")
    return done.stdout


def row(way: Way, answer: dict[str, Any]) -> str:
    """One line of the table: MB/s of the first level at each read fraction, 95%."""
    curves = [c for c in answer["curves"] if c["parameter"] == "read_frac" and c["region"] == 0]
    cells = [
        f"{100 * p['x']:.0f}%: {span(p['throughput_mb_s'])}" for c in curves for p in c["points"]
    ]
    boundaries = ", ".join(f"{b['value'] / 2**20:.0f} MiB" for b in answer["boundaries_bytes"])
    return f"| {way.name} | {'; '.join(cells) or 'n.m.: no such curve'} | {boundaries or 'none'} |"


def span(rate: dict[str, Any]) -> str:
    """Write `12.3 (11.9 to 12.8)`."""
    if rate["low"] is None:
        return f"{rate['value']:.4g} (n={rate['n']})"
    return f"{rate['value']:.4g} ({rate['low']:.4g} to {rate['high']:.4g})"


def main() -> None:
    """Survey, print, draw."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--budget", default="120s", help="of each survey (120s)")
    parser.add_argument("--cache", default="128MiB", help="of the machine and the server (128MiB)")
    parser.add_argument("--only", nargs="+", choices=[way.name for way in WAYS], default=None)
    parser.add_argument("--directory", type=Path, default=None, help="where (a temporary one)")
    parser.add_argument("--store", type=Path, default=Path("client-server.sqlite"))
    parser.add_argument("-o", "--output", type=Path, default=Path("client-server.html"))
    asked = parser.parse_args()
    chosen = [way for way in WAYS if asked.only is None or way.name in asked.only]
    with tempfile.TemporaryDirectory(dir=asked.directory, prefix="leadline-bench-") as folder:
        local, served = Path(folder, "local"), Path(folder, "served")
        local.mkdir()
        served.mkdir()
        if reason := why_not(served):
            sys.exit(f"no NFS server here: {reason}")
        with nfs_server(served, memory_bytes=parse_bytes(asked.cache)) as server:
            rows = [row(way, survey(way, server, local, asked)) for way in chosen]
    print("| way | MB/s by read fraction, first level, 95% | boundaries |\n|---|---|---|")
    print("\n".join(rows))
    if len(chosen) > 1:
        draw([way.name for way in chosen], asked)


def draw(names: list[str], asked: argparse.Namespace) -> None:
    """Write the comparison page, and its chart of shares of reads as PNG beside it."""
    leadline(asked.store, ["compare", *names, "-o", str(asked.output), "--force"])
    picture = asked.output.with_name(f"{asked.output.stem}-{CHART}.png")
    with tempfile.TemporaryDirectory() as folder:
        leadline(asked.store, ["compare", *names, "-o", str(Path(folder, "all.png"))])
        picture.write_bytes(Path(folder, f"all-{CHART}.png").read_bytes())
    print(f"\nwrote {asked.output} and {picture}")


if __name__ == "__main__":
    main()
