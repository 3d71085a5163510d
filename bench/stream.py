"""Leadline's sort and scan against GNU sort, DuckDB, Polars, a bare read, and their own bound.

Rounds alternate: in each, every program runs once, on the same file of printable records, with the
same threads, the same temporary disk and the same memory, held by a memory cgroup that has a
quarter, or 256 MiB, more for code and page cache. Input is not in the page cache when a run
begins, but where the task says so; output is on the disk when it ends. Leadline's verification is
counted in whole commands alone. The first output of every other program is checked as well.
Capacities are measured in every round. A first sort that nothing counts has the host lend the
memory to a virtual machine; a first command stores the capacities for those after it.

    pip install duckdb polars        # without them their lines are left out
    .venv/bin/python bench/stream.py [--bytes 4GiB] [--memory 1GiB] [--threads 2] [--rounds 5]
        [--directory DIR] [--without polars …]

Needs three times --bytes of free space, cargo for the bare read, and half as much memory again as
--bytes for the sort in one pass.
"""

from __future__ import annotations

import argparse
import importlib.util
import re
import statistics
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from figures import Cell, Column, Row, add_save_option, save, slug
from figures.rendered import say
from leadline.engine import Streams, TargetRefused, open_streams, stop_on_signals
from leadline.engine.streams.jobs import scan_of_share
from leadline.record.job import Capacity, Check, Generate, Kernel, Output, Scan, Sort, StreamJob
from leadline.record.streaming import CapacityResult, KernelName, StreamOptions, StreamResult, Way
from leadline.stats import pooled_noise, reading_interval
from leadline.studies.streaming.measured import bound
from leadline.studies.streaming.plan import capacities_of
from leadline.units import parse_bytes
from stream_rivals import Task, Timed, duckdb, forget, gnu_sort, leadline, polars

MEASURES = (
    "crates/kernels/src",
    "python/leadline/engine/streams",
    "python/leadline/studies/streaming",
)
RATIO = ("{value:.2f} × [{low:.2f}, {high:.2f}]", "{value:.2f} ×")
COLUMNS = (
    Column("task", "task"),
    Column("program", "program"),
    Column("seconds", "median s", ("{value:.2f}",)),
    Column("mb_s", "MB/s of input", ("{value:.0f}",)),
    Column("ratio", "Leadline is faster by", RATIO),
)
BOUNDS = (
    Column("kernel", "kernel"),
    Column(
        "share",
        "of its bound in the same round",
        ("{value:.2f} [{low:.2f}, {high:.2f}]", "{value:.2f}"),
    ),
    Column("by", "bound by"),
)
GOAL = {"least": 3.0}
"""Of a whole command beside GNU sort."""
ROOT = Path(__file__).parent.parent
GROUP_SHARE, GROUP_SPARE_BYTES = 1.25, 2**28
"""What every program's cgroup allows: so much of the memory given, or so much more of it."""
ONE_PASS_SHARE = 1.5
"""Of the data: memory that surely holds it with its entries and buffers."""
SHARE = 0.5
"""Of the records match the filter."""
LARGEST_KEY = "ff" * 10
"""Nothing printable is as large: a scan that only reads."""
WAY = Way()
TASKS: dict[str, str] = {
    "one pass": "sort, one pass",
    "sort": "sort, two passes",
    "scan": "filter, half matches",
    "read": "read, nothing matches",
    "command": "sort, whole command",
    "cached": "sort, whole command, input cached",
}


@dataclass
class Rounds:
    """Everything measured."""

    number: int = 0
    """Of the present round."""
    seconds: dict[tuple[str, str], dict[int, float]] = field(default_factory=dict)
    """By task and program, and by round."""
    why: dict[tuple[str, str], str] = field(default_factory=dict)
    results: dict[str, list[StreamResult]] = field(default_factory=dict)
    capacities: list[CapacityResult] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def take(self, task: str, program: str, timed: Timed) -> None:
        """Keep one run of a program, and say so: a round takes minutes."""
        said = timed.why if timed.seconds is None else f"{timed.seconds:.2f} s"
        print(f"<!-- {self.number + 1}: {task}, {program}: {said} -->", flush=True)
        if timed.seconds is None:
            self.why[task, program] = timed.why
        else:
            self.seconds.setdefault((task, program), {})[self.number] = timed.seconds


class Bench:
    """One file, and everything that is done with it."""

    def __init__(self, asked: argparse.Namespace, folder: Path) -> None:
        self.folder, self.threads = folder, int(asked.threads)
        self.bytes = parse_bytes(asked.bytes) // 100 * 100
        self.memory_bytes = parse_bytes(asked.memory)
        self.input = folder / "records"
        self.scan = scan_of_share(SHARE, "ascii")
        self.programs: dict[str, Callable[[Task], Timed]] = {"GNU sort": gnu_sort}
        for name, run in {"duckdb": duckdb, "polars": polars}.items():
            if name not in asked.without and importlib.util.find_spec(name):
                self.programs[name] = run
        self.rounds = Rounds()
        self.checksum = ""
        self.checked: set[tuple[str, str]] = set()

    @property
    def group_bytes(self) -> int:
        """The limit of every program's memory cgroup."""
        memory = self.memory_bytes
        return int(max(memory * GROUP_SHARE, memory + GROUP_SPARE_BYTES))

    def job(self, kernel: Kernel, *, memory_bytes: int | None = None) -> StreamJob:
        """Return a job on the file, with an output where the kernel makes one."""
        reads = not isinstance(kernel, Generate | Capacity)
        writes = isinstance(kernel, Sort | Scan | Generate)
        path = self.input if isinstance(kernel, Generate) else self.folder / "output"
        return StreamJob(
            kernel=kernel,
            memory_bytes=memory_bytes or self.memory_bytes,
            input=str(self.input) if reads else None,
            output=Output(path=str(path), replace=True) if writes else None,
            threads=self.threads,
            io=WAY,
            seed=0,
            total_s_max=3600.0,
        )

    def make(self, streams: Streams) -> None:
        """Make the records that everything reads."""
        made = streams.run(self.job(Generate(records=self.bytes // 100, format="ascii")))
        assert made.check is not None
        self.checksum = made.check.checksum

    def measure_capacities(self, streams: Streams) -> None:
        """Measure what disks and memory can do."""
        kernel = Capacity(directories=(str(self.folder),), bytes=min(self.bytes, 2**29))
        found = streams.run(self.job(kernel)).capacity
        assert found is not None
        self.rounds.capacities.append(found)

    def own(self, streams: Streams, task: str, job: StreamJob) -> None:
        """Run one of our kernels."""
        result = streams.run(job)
        self.clear()
        self.rounds.take(task, "leadline", Timed(result.seconds))
        self.rounds.results.setdefault(task, []).append(result)

    def asked(self, task: str) -> Task:
        """Return what another program is told."""
        return Task(
            input=self.input,
            folder=self.folder,
            memory_bytes=self.memory_bytes,
            group_bytes=self.group_bytes,
            threads=self.threads,
            below=bytes.fromhex(self.scan.high or "").decode() if task == "scan" else "",
            cached=task == "cached",
        )

    def commands(self, streams: Streams) -> None:
        """Sort by whole commands; the other programs' cold runs are those of this round."""
        for task in ("command", "cached"):
            self.rounds.take(task, "leadline", leadline(self.asked(task)))
            self.clear()
        for program in self.programs:
            seconds = self.rounds.seconds.get(("sort", program), {}).get(self.rounds.number)
            if seconds is not None:
                self.rounds.take("command", program, Timed(seconds))
                self.other(streams, "cached", program)

    def other(self, streams: Streams, task: str, program: str) -> None:
        """Run another program, and look at the first output it makes."""
        asked = self.asked(task)
        timed = self.programs[program](asked)
        self.rounds.take(task, program, timed)
        if timed.seconds is not None and (task, program) not in self.checked:
            self.checked.add((task, program))
            self.look_at(streams, task, program, asked.output)
        self.clear()

    def clear(self) -> None:
        """Free the room of an output, which may have a layout and several parts."""
        for file in self.folder.glob("output*"):
            file.unlink()

    def look_at(self, streams: Streams, task: str, program: str, output: Path) -> None:
        """Note when an output is not the records asked for."""
        job = StreamJob(
            kernel=Check(),
            memory_bytes=self.memory_bytes,
            input=str(output),
            threads=self.threads,
            io=WAY,
        )
        ours = self.rounds.results["scan" if task == "scan" else "sort"][0].check
        try:
            found = streams.run(job).check
        except TargetRefused:
            found = None
        assert ours is not None
        same = found is not None and found.checksum == ours.checksum
        if found is None or not same or (task != "scan" and found.unordered):
            self.rounds.notes.append(f"{program}'s output of `{task}` is not the one asked for")

    def warm(self, roomy: Streams) -> None:
        """Sort once in as much memory as anything takes, and forget it.

        A virtual machine gets its memory from the host when it is first touched (2.8 s a GiB seen
        here, 0.13 s from then on): otherwise whoever runs first pays for all.
        """
        roomy.run(self.one_pass())
        self.clear()
        leadline(self.asked("command"))
        self.clear()

    def one_pass(self) -> StreamJob:
        """Return a sort that has memory for everything."""
        return self.job(Sort(), memory_bytes=int(self.bytes * ONE_PASS_SHARE))

    def bare(self) -> None:
        """Read the file by io_uring alone."""
        forget(self.input)
        program = ROOT / "target/release/examples/lane_rate"
        said = subprocess.run(
            [program, "bare", self.input, "0", str(WAY.depth), "direct"],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        rate = re.match(r"(\d+) MB/s", said)
        assert rate is not None, said
        self.rounds.take("read", "bare read", Timed(self.bytes / 1e6 / float(rate[1])))

    def round(self, streams: Streams, roomy: Streams) -> None:
        """Let everything run once."""
        self.measure_capacities(streams)
        self.own(roomy, "one pass", self.one_pass())
        self.own(streams, "sort", self.job(Sort()))
        for program in self.programs:
            self.other(streams, "sort", program)
        self.commands(streams)
        self.own(streams, "scan", self.job(self.scan))
        for program in self.programs.keys() - {"GNU sort"}:
            self.other(streams, "scan", program)
        self.bare()
        self.own(streams, "read", self.job(Scan(low=LARGEST_KEY)))


def table(rounds: Rounds, data_bytes: int) -> list[Row]:
    """Print every program's median, and how many times ours is as fast, in the same round."""
    rows = []
    print("| task | program | median s | MB/s of input | Leadline is faster by (95% CI) | n |")
    print("|---|---|---|---|---|---|")
    for (task, program), seconds in sorted(rounds.seconds.items()):
        middle = statistics.median(seconds.values())
        ours = rounds.seconds.get((task, "leadline"), {})
        times = [other / ours[number] for number, other in seconds.items() if number in ours]
        ratio = "" if program == "leadline" else interval(times)
        cells = (TASKS[task], program, f"{middle:.2f}", f"{data_bytes / 1e6 / middle:.0f}", ratio)
        print(f"| {' | '.join(cells)} | {len(seconds)} |")
        row = Row(slug(f"{task} {program}"), {"task": TASKS[task], "program": program})
        row.cells.update(seconds=middle, mb_s=data_bytes / 1e6 / middle)
        rows.append(row)
        if program != "leadline" and (found := cell(times)) is not None:
            aims = program == "GNU sort" and task in ("command", "cached")
            row.cells["ratio"] = found.aiming(GOAL) if aims else found
    for (task, program), why in rounds.why.items():
        print(f"| {TASKS[task]} | {program} | {why} | | | |")
    return rows


def cell(values: Sequence[float]) -> Cell | None:
    """Return the middle of some ratios with its interval, where there are two or more."""
    if len(values) < 2:
        return Cell(values[0], n=1) if values else None
    found = reading_interval(values, None, pooled_noise([values]))
    return Cell(found.value, found.low, found.high, len(values))


def interval(values: Sequence[float]) -> str:
    """Write the middle of some ratios with its interval."""
    found = cell(values)
    return say(found, RATIO, "") if found else ""


def bounds_table(bench: Bench) -> list[Row]:
    """Print how near every kernel came to the least time that its resources allowed that round."""
    rows = []
    print("\n| kernel | passes | MB/s moved | of its bound (95% CI) | bound by | verified | n |")
    print("|---|---|---|---|---|---|---|")
    for name, results in bench.rounds.results.items():
        kernel: KernelName = "sort" if name in ("sort", "one pass") else "scan"
        options = StreamOptions(
            kernel=kernel,
            memory_bytes=bench.memory_bytes,
            threads=bench.threads,
            match_frac={"read": 0.0, "scan": SHARE}.get(name, 1.0),
        )
        shares, moved, limits = [], [], set()
        for result, readings in zip(results, bench.rounds.capacities, strict=True):
            capacities = capacities_of(readings, [str(bench.folder)])
            least = bound(result, options, capacities, 1)
            assert least is not None
            shares.append(least.seconds.value / result.seconds)
            moved.append(least.mb_s.value * shares[-1])
            limits.add(least.resource)
        verified = all(result.verified for result in results)
        cells = (
            TASKS[name],
            str(results[0].passes),
            f"{statistics.median(moved):.0f}",
            interval(shares),
            ", ".join(sorted(limits)),
            "yes" if verified else "NO",
        )
        print(f"| {' | '.join(cells)} | {len(shares)} |")
        by = ", ".join(sorted(limits))
        rows.append(Row(slug(name), {"kernel": TASKS[name], "share": cell(shares), "by": by}))
    for name in ("read", "write", "both"):
        each = [getattr(readings, f"all_{name}_bytes_s") for readings in bench.rounds.capacities]
        rates = [rate / 1e6 for readings in each for rate in readings]
        print(f"disk, {name}: {statistics.median(rates):.0f} MB/s ({len(rates)} readings)")
    return rows


def main() -> None:
    """Run the rounds and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bytes", default="4GiB")
    parser.add_argument("--memory", default="1GiB")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--directory", default=".")
    parser.add_argument("--without", nargs="*", default=[], metavar="PROGRAM")
    add_save_option(parser, "stream")
    asked = parser.parse_args()
    build = ["cargo", "build", "-q", "--release", "-p", "leadline-kernels", "--example"]
    subprocess.run([*build, "lane_rate"], cwd=ROOT, check=True)
    with (
        stop_on_signals(),
        tempfile.TemporaryDirectory(prefix="bench-stream-", dir=asked.directory) as folder,
    ):
        bench = Bench(asked, Path(folder).resolve())
        limited = partial(open_streams, cache_limit_bytes=bench.group_bytes)
        with limited() as streams, open_streams() as roomy:
            bench.make(streams)
            bench.warm(roomy)
            for bench.rounds.number in range(asked.rounds):
                bench.round(streams, roomy)
                print(f"<!-- round {bench.rounds.number + 1} of {asked.rounds} -->", flush=True)
        about = {"directory": bench.folder, "rounds": asked.rounds}
        save(asked, COLUMNS, table(bench.rounds, bench.bytes), **about)
        save(asked, BOUNDS, bounds_table(bench), part="bounds", **about)
        for note in bench.rounds.notes:
            print(note)


if __name__ == "__main__":
    main()
