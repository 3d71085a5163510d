"""Leadline's NFS client and libnfs on one server and the same workloads, turn about, in one run.

Starts nfs-ganesha on a directory of this machine (tests/real/nfs_server.py; needs root), or takes
a server that is there (--server). Each client reads and writes a file of its own, of one size, in
the server's cache. In every round each workload is run by both, one right after the other; who goes
first changes from round to round. Both keep the same number of requests in flight on one TCP
connection and draw their places uniformly. Prints, for each workload, the ratio of the throughputs
(Leadline / libnfs) as the geometric mean of the rounds with its 95% interval (Student's t on the
logarithms; rounds are taken as independent), and latencies beside each other.

    .venv/bin/python bench/nfs_crosscheck.py [--rounds 6] [--seconds 1.5] [--link 100]
        [--server nfs://HOST/EXPORT]

The goal is agreement within 10%. The link to our own server has a known rate, so that the network
decides and both clients must report the same. With `--link 0` client and server share this
machine's processors, and the one that takes less of them for a request is the faster: that is a
race, not a check. FILE_SYNC writes wait for the server's disk, so their ratio is its noise as well.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path

from crosscheck import geometric_interval
from figures import Cell, Column, Row, add_save_option, save, slug
from leadline.engine import Engine, Limits, Target, open_engine
from leadline.record import NO_SYNC, Access, Workload
from nfs_bare import BareClient, Load, NotAvailable

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "real"))

from nfs_server import nfs_server, why_not

MEASURES = ("crates/engine/src/backend/nfs", "crates/engine/src/run", "bench/nfs_bare.c")
COLUMNS = (
    Column("what", "workload"),
    Column("own", "Leadline MB/s"),
    Column("bare", "libnfs MB/s"),
    Column("ratio", "Leadline over libnfs", ("{value:.2f} [{low:.2f}, {high:.2f}]", "{value:.2f}")),
    Column("latency", "mean µs, both", ("{value:.0f}, {bare:.0f}",)),
)
FILE_BYTES = 32 << 20
GOAL_FRAC = 0.1
WARM_S = 0.5
NAME = "/leadline-bench-bare"
"""The file of the other client."""


@dataclass
class Point:
    """One workload and its readings, by round."""

    title: str
    load: Load
    own_mb_s: list[float] = field(default_factory=list)
    bare_mb_s: list[float] = field(default_factory=list)
    own_us: list[float] = field(default_factory=list)
    bare_us: list[float] = field(default_factory=list)

    @property
    def workload(self) -> Workload:
        """The same as Leadline spells it."""
        load = self.load
        return Workload.parse(
            f"unique_bytes={load.file_bytes},size_mean={load.request_bytes},size_dist=fixed,"
            f"read_frac={load.read_frac},seq_frac=0,process_num=1,queue_depth={load.depth}"
        )

    def ratio(self) -> tuple[float, float | None, float | None]:
        """Leadline's throughput over libnfs's: geometric mean of the rounds, 95% interval."""
        pairs = zip(self.own_mb_s, self.bare_mb_s, strict=True)
        return geometric_interval([own / bare for own, bare in pairs])


def points() -> list[Point]:
    """Return the workloads."""
    return [
        Point("read 4 KiB, 1 in flight", Load(FILE_BYTES, 4096, 1, 1.0)),
        Point("read 4 KiB, 8 in flight", Load(FILE_BYTES, 4096, 8, 1.0)),
        Point("read 64 KiB, 4 in flight", Load(FILE_BYTES, 65536, 4, 1.0)),
        Point("write 4 KiB UNSTABLE, 8 in flight", Load(FILE_BYTES, 4096, 8, 0.0)),
        Point("half reads 16 KiB, 4 in flight", Load(FILE_BYTES, 16384, 4, 0.5)),
        Point("write 4 KiB FILE_SYNC, 4 in flight", Load(FILE_BYTES, 4096, 4, 0.0, True)),
    ]


@contextmanager
def serving(given: str | None, link_mbit_s: int | None) -> Iterator[str]:
    """Yield the URL of an export: the given one, or one of a server of our own."""
    if given is not None:
        yield given
        return
    with tempfile.TemporaryDirectory(prefix="leadline-bench-") as folder:
        if reason := why_not(Path(folder)):
            raise NotAvailable(f"no NFS server here: {reason}; give one with --server")
        with nfs_server(Path(folder)) as server:
            if link_mbit_s:
                server.limit_link(link_mbit_s)
            yield server.url()


Turn = Callable[[Point, int], None]


def measure(chosen: Sequence[Point], both: Both, rounds: int) -> None:
    """Fill in the readings: all rounds of UNSTABLE workloads, then those of FILE_SYNC."""
    for synchronous in (False, True):
        mine = [point for point in chosen if point.load.synchronous == synchronous]
        sync = "dsync" if synchronous else NO_SYNC
        with open_engine(Target.parse(both.url), Access(sync=sync), max_bytes=FILE_BYTES) as engine:
            for number in range(rounds):
                for point in mine:
                    turns: list[Turn] = [partial(both.run_own, engine), both.run_bare]
                    for run in turns if number % 2 else turns[::-1]:
                        run(point, number)
                print(f"round {number + 1} of {rounds}", file=sys.stderr)


@dataclass(frozen=True)
class Both:
    """The two clients of one server."""

    url: str
    client: BareClient
    seconds: float

    def run_own(self, engine: Engine, point: Point, number: int) -> None:
        """One reading of Leadline's."""
        limits = Limits(
            warm_up_s_max=WARM_S,
            measure_s_min=self.seconds,
            measure_s_max=self.seconds,
            accuracy=0.0,
            total_s_max=60.0,
        )
        found = engine.run(point.workload, seed=number, limits=limits)
        point.own_mb_s.append(found.throughput_mb_s.value)
        point.own_us.append(found.latency_us.mean)

    def run_bare(self, point: Point, number: int) -> None:
        """One reading of libnfs's."""
        found = self.client.measure(
            self.url, NAME, point.load, warm_s=WARM_S, seconds=self.seconds, seed=number + 1
        )
        point.bare_mb_s.append(found.throughput_mb_s)
        point.bare_us.append(found.latency_mean_us)


def lines(chosen: Iterable[Point]) -> Iterable[str]:
    """Yield the table."""
    yield "| workload | Leadline MB/s | libnfs MB/s | ratio [95%] | mean us, both |"
    yield "|---|---|---|---|---|"
    for point in chosen:
        value, low, high = point.ratio()
        span = "" if low is None or high is None else f" [{low:.3f}, {high:.3f}]"
        yield (
            f"| {point.title} | {statistics.median(point.own_mb_s):.4g} "
            f"| {statistics.median(point.bare_mb_s):.4g} | {value:.3f}{span} "
            f"| {statistics.median(point.own_us):.0f}, {statistics.median(point.bare_us):.0f} |"
        )


def row_of(point: Point) -> Row:
    """Return what is stored of a workload."""
    bare_us = {"bare": statistics.median(point.bare_us)}
    return Row(
        slug(point.title),
        {
            "what": point.title,
            "own": statistics.median(point.own_mb_s),
            "bare": statistics.median(point.bare_mb_s),
            "ratio": Cell(*point.ratio(), n=len(point.own_mb_s)),
            "latency": Cell(statistics.median(point.own_us), also=bare_us),
        },
    )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--seconds", type=float, default=1.5, help="per run (1.5)")
    parser.add_argument("--server", default=None, help="nfs://HOST/EXPORT instead of our own")
    parser.add_argument(
        "--link",
        type=int,
        default=100,
        metavar="MBIT/S",
        help="rate of the link to our own server (100); 0 leaves it as fast as this machine is",
    )
    parser.add_argument("--json", type=Path, default=None, help="write every number here")
    add_save_option(parser, "nfs_crosscheck")
    asked = parser.parse_args()
    chosen = points()
    began_s = time.monotonic()
    try:
        with tempfile.TemporaryDirectory() as folder, serving(asked.server, asked.link) as url:
            client = BareClient(Path(folder))
            client.lay(url, NAME, FILE_BYTES)
            try:
                measure(chosen, Both(url, client, asked.seconds), asked.rounds)
            finally:
                client.remove(url, NAME)
    except NotAvailable as reason:
        sys.exit(str(reason))
    print("\n".join(lines(chosen)))
    within = [point for point in chosen if abs(point.ratio()[0] - 1) <= GOAL_FRAC]
    shaped = asked.link and not asked.server
    link = f"a link of {asked.link} Mbit/s" if shaped else "the link as it is"
    print(
        f"\n{link}: {len(within)} of {len(chosen)} within {GOAL_FRAC:.0%}; {asked.rounds} rounds "
        f"of {asked.seconds:g} s, {time.monotonic() - began_s:.0f} s in all."
    )
    save(asked, COLUMNS, map(row_of, chosen), directory=Path(), rounds=asked.rounds)
    if asked.json:
        asked.json.write_text(json.dumps([asdict(each) for each in chosen], indent=1), "utf-8")


if __name__ == "__main__":
    main()
