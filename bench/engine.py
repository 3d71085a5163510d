"""Leadline's engine beside its peers, in one run, as ratios.

All contenders read one file that the engine laid out, at places drawn uniformly, pinned to one
processor (two in row f), one right after the other; who goes first changes from round to round and
the first round is thrown away. Cached rows keep the file in memory by a mapping of it (an idle
file may be reclaimed at any time); direct rows drop it from the cache. Prints one table: medians
with the smallest and the largest value, and the median of the ratios within each round. Goals are
on the stronger peer: fio with registered buffers and files, and the bare loops.

    .venv/bin/python bench/engine.py [--pairs 10] [--rows a,b,d] [--json FILE] [--repeat 30]
        [--save [NAME]]

Rows: (a) null backend; (b) cached pread of 4 KiB and 512 B; (c) cached io_uring at depth 32;
(d) direct io_uring at depth 1 and 32; (e) mmap; (f) row b on two processors; (g) direct at depth
32 where io_uring is forbidden, beside fio's libaio. `--repeat N` measures one cached and one direct
point N times instead: do the stated intervals cover the grand mean? (`--save` keeps those apart, as
engine_repeat.)
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import engine_repeat
from engine_runs import (
    Contender,
    NotAvailable,
    Reading,
    Setting,
    bare_loop,
    bare_ring,
    built,
    drop_from_cache,
    fio,
    leadline,
    pinned,
    watched,
)
from figures import Cell, Column, Content, add_save_option, markdown, save, slug
from figures import Row as Line

MEASURES = (
    "crates/base/src",
    "crates/engine/src",
    ":!crates/engine/src/backend/nfs",
    ":!crates/engine/src/load",
    ":!crates/engine/src/file_test",
    "bench/bare.h",
    "bench/bare_pread.c",
    "bench/bare_uring.c",
)
ENDS = "least and greatest of the rounds"
AIO = ("--iodepth=32", "--direct=1")
FILE_BYTES = 256 << 20
BUSY_CPU = 0.12
"""Foreign CPU seconds per second above which a run is counted as disturbed (RECIPES, Method)."""


@dataclass(frozen=True)
class Quantity:
    """What is compared, and how it is printed."""

    of: Callable[[Reading], float]
    unit: str
    more_is_better: bool = True


THROUGHPUT = Quantity(lambda reading: reading.operations_per_s / 1e3, "k/s")
OWN_COST = Quantity(lambda reading: 1e9 / reading.operations_per_s, "ns/op", more_is_better=False)
CPU_COST = Quantity(lambda reading: reading.cpu_us_per_operation, "CPU µs/op", more_is_better=False)


@dataclass(frozen=True)
class Goal:
    """A bound the issue sets."""

    quantity: Quantity
    value: float
    absolute: bool = False
    """On Leadline's own value instead of the ratio to the peer's."""

    @property
    def ends(self) -> dict[str, float]:
        """The same as a cell of a table has it."""
        return {"least" if self.quantity.more_is_better else "most": self.value}


@dataclass(frozen=True)
class Peer:
    """One contender beside Leadline, what is compared with it, and the goals."""

    contender: Contender
    quantities: tuple[Quantity, ...] = (THROUGHPUT,)
    goals: tuple[Goal, ...] = ()


@dataclass(frozen=True)
class Row:
    """One line of the issue's table, with all its peers."""

    letter: str
    what: str
    own: Contender
    peers: tuple[Peer, ...]
    cached: bool = True
    processors: int = 1


@dataclass
class Outcome:
    """What one row gave: readings by contender, in the order of the rounds that count."""

    row: Row
    readings: dict[str, list[Reading]] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)


def at_least(value: float) -> tuple[Goal, ...]:
    """Return a goal on the ratio of the rates."""
    return (Goal(THROUGHPUT, value),)


def compiled(name: str, folder: Path) -> Path | None:
    """Return a bare loop that was compiled; None, told, where that fails."""
    try:
        return built(name, folder)
    except NotAvailable as error:
        print(f"no {name}: {error}", file=sys.stderr)
        return None


def pread_peers(program: Path | None, request_bytes: int, of_bare: float) -> tuple[Peer, ...]:
    """Return fio psync in both forms, and the bare loop if it could be compiled."""
    peers = (
        Peer(fio("fio psync", "psync", request_bytes)),
        Peer(fio("fio psync gtod_reduce", "psync", request_bytes, "--gtod_reduce=1")),
    )
    if program is None:
        return peers
    return (*peers, Peer(bare_loop(program, request_bytes), goals=at_least(of_bare)))


def ring_peer(program: Path | None, depth: int) -> tuple[Peer, ...]:
    """Return the bare loop of direct reads, if it could be compiled: what the kernel costs."""
    if program is None:
        return ()
    goals = (Goal(THROUGHPUT, 0.95), Goal(CPU_COST, 1.1))
    return (Peer(bare_ring(program, 4096, depth), (THROUGHPUT, CPU_COST), goals),)


def uring_peers(depth: int, *options: str, goals: tuple[Goal, ...]) -> tuple[Peer, ...]:
    """Return fio io_uring as it comes and with registered files and buffers."""
    quantities = tuple(goal.quantity for goal in goals)
    options = (f"--iodepth={depth}", *options)
    plain = fio("fio io_uring", "io_uring", 4096, *options)
    tuned = ("--registerfiles=1", "--fixedbufs=1")
    best = fio("fio io_uring registerfiles fixedbufs", "io_uring", 4096, *options, *tuned)
    return (Peer(plain, quantities), Peer(best, quantities, goals))


def table_rows(program: Path | None, ring: Path | None) -> tuple[Row, ...]:
    """Return the table."""
    direct = (Goal(THROUGHPUT, 1.0), Goal(CPU_COST, 0.8))
    own_cost = (Goal(OWN_COST, 40.0, absolute=True),)
    pread, small = leadline("pread", 4096), leadline("pread", 512)
    return (
        Row(
            "a",
            "null",
            leadline("null", 4096),
            (Peer(fio("fio null", "null", 4096), (OWN_COST,), own_cost),),
        ),
        Row("b", "cached 4 KiB pread", pread, pread_peers(program, 4096, 0.95)),
        Row("b", "cached 512 B pread", small, pread_peers(program, 512, 0.93)),
        Row(
            "c",
            "cached 4 KiB io_uring, depth 32",
            leadline("uring", 4096, depth=32),
            uring_peers(32, goals=at_least(1.25)),
        ),
        *(
            Row(
                "d",
                f"direct 4 KiB io_uring, depth {depth}",
                leadline("uring", 4096, depth=depth, direct=True),
                (*uring_peers(depth, "--direct=1", goals=direct), *ring_peer(ring, depth)),
                cached=False,
            )
            for depth in (1, 32)
        ),
        Row(
            "e",
            "cached 4 KiB mmap",
            leadline("mmap", 4096),
            (Peer(fio("fio mmap", "mmap", 4096), goals=at_least(1.25)),),
        ),
        Row(
            "f",
            "cached 4 KiB pread, two workers",
            pread,
            pread_peers(program, 4096, 0.95),
            processors=2,
        ),
        Row(
            "f",
            "cached 512 B pread, two workers",
            small,
            pread_peers(program, 512, 0.95),
            processors=2,
        ),
        Row(
            "g",
            "direct 4 KiB Linux AIO, depth 32",
            leadline("uring", 4096, depth=32, direct=True, ring=False),
            (Peer(fio("fio libaio", "libaio", 4096, *AIO), goals=at_least(0.95)),),
            cached=False,
        ),
    )


def measure_row(row: Row, setting: Setting, rounds: int) -> Outcome:
    """Run the contenders of a row in turn; the first round warms up and does not count."""
    outcome = Outcome(row)
    contenders = [row.own, *(peer.contender for peer in row.peers)]
    with cache_state(row, setting):
        for number in range(rounds + 1):
            for contender in contenders if number % 2 else contenders[::-1]:
                if contender.name in outcome.missing:
                    continue
                try:
                    reading = watched(contender, setting)
                except NotAvailable as error:
                    outcome.missing[contender.name] = str(error)
                    continue
                if number:
                    outcome.readings.setdefault(contender.name, []).append(reading)
            if row.own.name in outcome.missing:
                break
            print(
                f"\r({row.letter}) {row.what}: round {number} of {rounds} ",
                end="",
                file=sys.stderr,
                flush=True,
            )
    print(file=sys.stderr)
    return outcome


@contextmanager
def cache_state(row: Row, setting: Setting) -> Iterator[None]:
    """Keep the file in memory, or keep it out."""
    if row.cached:
        with pinned(setting.data_file):
            yield
    else:
        drop_from_cache(setting.data_file)
        yield


COLUMNS = (
    Column("what", "row"),
    Column("own", "Leadline", ("{value:.4g} [{low:.4g}, {high:.4g}] {unit}",)),
    Column("peer", "peer"),
    Column("theirs", "peer's", ("{value:.4g} [{low:.4g}, {high:.4g}] {unit}",)),
    Column("ratio", "ratio, round by round", ("{value:.3f} [{low:.3f}, {high:.3f}]",)),
)


def lines_of(outcome: Outcome) -> Iterator[Line]:
    """Yield the table's lines of one row."""
    row = outcome.row
    title = f"({row.letter}) {row.what}"
    own = outcome.readings.get(row.own.name, [])
    if not own:
        reason = outcome.missing.get(row.own.name, "no reading")
        print(f"{title}: not available: {reason}", file=sys.stderr)
        yield Line(slug(title), {"what": title, "own": "not available"})
        return
    for peer in row.peers:
        name = peer.contender.name
        theirs = outcome.readings.get(name, [])
        if not theirs or name in outcome.missing:
            print(f"{title}: {name} not available: {outcome.missing.get(name)}", file=sys.stderr)
            cells: dict[str, Content] = {"what": title, "own": spread(own, THROUGHPUT)}
            yield Line(key_of(title, name), cells | {"peer": name, "theirs": "not available"})
            continue
        for quantity in peer.quantities:
            yield line(title, peer, quantity, own, theirs)


def key_of(title: str, peer: str, quantity: Quantity = THROUGHPUT) -> str:
    """Return the key of a line: `d-direct-4-kib-io-uring-depth-1-cpu-fio-tuned`."""
    what = "-cpu" if quantity is CPU_COST else ""
    whose = "bare" if peer.startswith("bare") else "fio-tuned" if len(peer.split()) > 2 else "fio"
    return f"{slug(title)}{what}-{whose}"


def line(
    title: str, peer: Peer, quantity: Quantity, own: Sequence[Reading], theirs: Sequence[Reading]
) -> Line:
    """Return one comparison."""
    goal = next((goal for goal in peer.goals if goal.quantity is quantity), None)
    ratios = ratios_of(quantity, own, theirs)
    name = peer.contender.name
    return Line(
        key_of(title, name, quantity),
        {
            "what": title,
            "own": spread(own, quantity, goal if goal and goal.absolute else None),
            "peer": name,
            "theirs": spread(theirs, quantity),
            "ratio": middle_of(ratios, goal if goal and not goal.absolute else None),
        },
    )


def ratios_of(quantity: Quantity, own: Sequence[Reading], theirs: Sequence[Reading]) -> list[float]:
    """Return Leadline's value over the peer's, round by round."""
    pairs = zip(own, theirs, strict=True)
    return [quantity.of(mine) / quantity.of(peers) for mine, peers in pairs]


def spread(readings: Sequence[Reading], quantity: Quantity, goal: Goal | None = None) -> Cell:
    """Return the median with the smallest and the largest."""
    return middle_of([quantity.of(reading) for reading in readings], goal, quantity.unit)


def middle_of(values: Sequence[float], goal: Goal | None, unit: str = "") -> Cell:
    """Return the median of some values, with their ends and its goal."""
    found = Cell(statistics.median(values), min(values), max(values), len(values), unit=unit)
    return found.aiming(goal.ends) if goal else found


def host_line(setting: Setting) -> str:
    """Describe the machine in one line."""
    info = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    model = next((s.split(":")[1].strip() for s in info if s.startswith("model name")), "?")
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30
    mounts = [s.split() for s in Path("/proc/mounts").read_text(encoding="utf-8").splitlines()]
    folder = setting.directory.resolve()
    mount = max((m for m in mounts if folder.is_relative_to(m[1])), key=lambda m: len(m[1]))
    hugepages = Path("/sys/kernel/mm/transparent_hugepage/enabled")
    huge = hugepages.read_text(encoding="ascii").split("[")[1].split("]")[0]
    return (
        f"{platform.system()} {platform.release()}, {model}, {os.cpu_count()} CPUs, "
        f"{memory:.1f} GiB, {mount[2]} on {mount[0]}, transparent huge pages {huge}, "
        f"file {setting.file_bytes >> 20} MiB"
    )


def foreign_line(readings: Sequence[Reading]) -> str:
    """Say how busy the machine was with other things."""
    seen = [reading.foreign_cpu for reading in readings]
    disturbed = sum(value > BUSY_CPU for value in seen)
    return (
        f"Foreign CPU: median {statistics.median(seen):.3f}, most {max(seen):.3f}; above "
        f"{BUSY_CPU} in {disturbed} of {len(seen)} runs"
    )


def document(setting: Setting, outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """Return every number, for --json."""
    return {
        "host": host_line(setting),
        "seconds": setting.seconds,
        "cpus": setting.cpus,
        "rows": [
            {
                "row": outcome.row.letter,
                "what": outcome.row.what,
                "missing": outcome.missing,
                "readings": {
                    name: [asdict(reading) for reading in readings]
                    for name, readings in outcome.readings.items()
                },
            }
            for outcome in outcomes
        ],
    }


def print_table(rows: Sequence[Row], setting: Setting, cpus: list[int], pairs: int) -> Any:
    """Measure and print; returns every number, the table's lines, and what is said below them."""
    outcomes = []
    for row in rows:
        if row.processors > len(cpus):
            reason = f"needs {row.processors} processors, {len(cpus)} are allowed"
            outcomes.append(Outcome(row, missing={row.own.name: reason}))
            continue
        chosen = tuple(cpus[: row.processors])
        on = Setting(setting.directory, setting.file_bytes, chosen, setting.seconds)
        outcomes.append(measure_row(row, on, pairs))
    table = [line for outcome in outcomes for line in lines_of(outcome)]
    print("\n".join(markdown(COLUMNS, table)))
    readings = [r for outcome in outcomes for some in outcome.readings.values() for r in some]
    print(f"\n{pairs} rounds of {setting.seconds:g} s. {host_line(setting)}.")
    said = f"{foreign_line(readings)}." if readings else ""
    print(said)
    return document(setting, outcomes), table, said


def parsed() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pairs", type=int, default=10, help="rounds that count (10)")
    parser.add_argument("--seconds", type=float, default=1.0, help="per run (1)")
    parser.add_argument("--rows", default="a,b,c,d,e,f,g", help="which rows, by letter")
    parser.add_argument("--cpu", type=int, default=None, help="default: the last one allowed")
    parser.add_argument("--directory", type=Path, default=Path(), help="where to put the file")
    parser.add_argument("--json", type=Path, default=None, help="write every number here")
    parser.add_argument("--repeat", type=int, default=0, help="repetitions instead of the table")
    add_save_option(parser, "engine")
    return parser.parse_args()


def main() -> None:
    """Print the table, or the repetitions."""
    asked = parsed()
    for program, package in (("fio", "fio"), ("taskset", "util-linux")):
        if shutil.which(program) is None:
            sys.exit(f"{program} is missing: apt-get install {package}, then run this again")
    allowed = sorted(os.sched_getaffinity(0))
    first = allowed[-1] if asked.cpu is None else asked.cpu
    cpus = [first, *(cpu for cpu in allowed[::-1] if cpu != first)]
    with tempfile.TemporaryDirectory(dir=asked.directory, prefix="leadline-bench-") as folder:
        setting = Setting(Path(folder).resolve(), FILE_BYTES, (first,), asked.seconds)
        loops = [compiled(name, setting.directory) for name in ("bare_pread", "bare_uring")]
        short = Setting(setting.directory, FILE_BYTES, (first,), 0.05)
        leadline("pread", 4096).run(short)  # lays out the file
        if asked.repeat:
            asked.save = "engine_repeat" if asked.save == "engine" else asked.save
            numbers, table = engine_repeat.repeat_points(setting, asked.repeat)
            columns: tuple[Column, ...] = engine_repeat.COLUMNS
            about: dict[str, Any] = {"rounds": asked.repeat}
        else:
            chosen = [row for row in table_rows(*loops) if row.letter in asked.rows.split(",")]
            numbers, table, said = print_table(chosen, setting, cpus, asked.pairs)
            columns = COLUMNS
            about = {"rounds": asked.pairs, "interval": ENDS, "note": said}
        if asked.json:
            asked.json.write_text(json.dumps(numbers, indent=1), encoding="utf-8")
        save(asked, columns, table, directory=setting.directory, **about)


if __name__ == "__main__":
    main()
