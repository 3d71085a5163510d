"""Real programs, characterised, then run as their streams and predicted: CP94 Figs. 1 and 3.

    .venv/bin/python bench/applications.py [--parts same,predicted] [--programs sort,pgbench …]
        [--pairs 10] [--seconds 4] [--budget 4m] [--folder DIR] [--save]

`same`: each program runs in a memory cgroup and is watched. Its first run does not count: it makes
files that later runs find, as those of a log. What each later one did is then run by `leadline
measure --application` in a cgroup of the same size, one pair after the other, each beginning with
nothing in the page cache. A description is held against the run that it is of: pgbench's tables
grow from run to run. Compared is the time that one request takes: reads, writes and syncs; metadata
calls are not run and not counted. Beside it stand the same run's trace made again, as fast as it
goes and at its own times (`leadline measure --replay`), over its own times: that is lost by the
capture; the streams of the description's phases, which every target but a directory gets; and
CP94's own way: one row of five parameters. Repeatability is the program's own: the standard
deviation of one run.

`predicted`: described once, at one memory; surveyed for all of them (`--for`) at that, at three
others and behind a throttle of its reads, without syncs and with them; predicted in the four, alone
and scaled by what it took where it was traced (`--traced-on`), and run there by itself, watched,
three times. Compulsory misses count as misses on both sides.

Root only (cgroups, BPF). A calm machine: what it says beside other work is no program's doing.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from figures import Cell, Column, Row, add_save_option, save, say
from leadline.machine.cgroup import memory_cgroup
from leadline.stats import student_t
from programs import PROGRAMS, Program, Unavailable
from verdicts import throttled

MEASURES = (
    "crates/capture/src",
    "crates/engine/src/access",
    "crates/trace/src",
    "python/leadline/models",
    "python/leadline/studies/application",
)


class System(NamedTuple):
    """The disk as a program has it."""

    cap_mib: int
    """Memory."""
    read_mb_s: float | None = None
    """Of the disk, at most."""

    @property
    def name(self) -> str:
        """For people."""
        least = "" if self.read_mb_s is None else f", reads at {self.read_mb_s:g} MB/s"
        return f"{self.cap_mib} MiB{least}"

    def survey(self, *, syncs: bool) -> str:
        """Of its surveys."""
        return f"{'synced' if syncs else 'plain'}{self.cap_mib}-{self.read_mb_s or 0:g}"

    @contextmanager
    def in_force(self, folder: Path) -> Iterator[None]:
        """Slow this process and its children down, where it is slow."""
        with nullcontext() if self.read_mb_s is None else throttled([folder], self.read_mb_s):
            yield


TRACED = System(96)
"""Where programs are traced."""
OTHERS = (System(64), System(128), System(192), System(96, 60.0))
LEADLINE = str(Path(sys.executable).with_name("leadline"))
IO_SHARE_LEAST = 0.05
"""Of a program's time, from which it is one of storage at all (issue 18, item 7)."""
PHASE_SHARE_LEAST = 0.02
"""Of the time in I/O, from which a phase is run."""
WITHIN = {"least": 0.85, "most": 1.15}
"""Of a program's own time, for its description, where it is one of storage."""
REPLAYED = {"least": 0.92, "most": 1.08}
ERROR_GOAL, HELD_GOAL = {"most": 12.0}, {"least": 85.0, "most": 95.0}
"""Of predictions with `--traced-on`: their median error and how many of their intervals hold, %."""
SYNC = "fsync=4"
"""Of the surveys for programs that sync."""
APP_RUNS = 3
"""Of a program where it is predicted."""
SAME_COLUMNS = (
    Column("what", "program"),
    Column("in_io", "time in I/O", ("{value:.0f}%",)),
    Column("us", "us a request", ("{value:.1f}",)),
    Column("times", "replay at its times over it", ("{value:.3f} [{low:.3f}, {high:.3f}]",)),
    Column("fast", "replay as fast as it goes over it", ("{value:.3f} [{low:.3f}, {high:.3f}]",)),
    Column("ratio", "its description over it", ("{value:.3f} [{low:.3f}, {high:.3f}]",)),
    Column("streams", "its streams over it", ("{value:.3f} [{low:.3f}, {high:.3f}]",)),
    Column("five", "five parameters over it", ("{value:.3f} [{low:.3f}, {high:.3f}]",)),
    Column("sd", "one run's spread", ("{value:.1f}%",)),
)
PREDICTED_COLUMNS = (
    Column("what", "program, memory"),
    Column("us", "us a request", ("{value:.1f}",)),
    Column("alone", "predicted over it", ("{value:.2f}",)),
    Column("alone_us", "predicted, 90%", ("{value:.1f} [{low:.1f}, {high:.1f}] us",)),
    Column("ratio", "scaled over it", ("{value:.2f}",)),
    Column("interval", "scaled, 90%", ("{value:.1f} [{low:.1f}, {high:.1f}] us",)),
    Column("held", "holds"),
)


def leadline(store: Path, *words: str) -> dict[str, Any]:
    """Run a command of Leadline and return what it says as JSON."""
    done = subprocess.run(
        [LEADLINE, *words, "--json"],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"LEADLINE_STORE": str(store)},
    )
    if done.returncode not in (0, 3):
        raise RuntimeError(f"{' '.join(words)}: {done.stderr[-2000:]}")
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@dataclass(frozen=True)
class Workplace:
    """Where a program's data lie, beside those of the runs of its streams."""

    program: Program
    folder: Path
    store: Path
    beside: Path

    @property
    def trace(self) -> Path:
        """What was seen of the program when it was watched last."""
        return self.folder / "trace"

    def watch(self, cap_mib: int, name: str) -> dict[str, Any]:
        """Run the program watched in so much memory; return its description."""
        data = self.folder / "data"
        self.program.ready(data)
        with memory_cgroup(cap_mib << 20) as group:
            script = f"echo $$ > {group.path}/cgroup.procs; cd {data} && {self.program.script}"
            kept = ["--keep-trace", str(self.trace), "--force"]
            words = ["characterize", "--name", name, *kept, "--", "sh", "-c", script]
            done = subprocess.run(
                [LEADLINE, words[0], "--json", *words[1:]],
                capture_output=True,
                text=True,
                check=False,
                env=os.environ | {"LEADLINE_STORE": str(self.store)},
            )
        if done.returncode not in (0, 3) or not done.stdout:
            raise RuntimeError(f"{self.program.name}: {done.stderr[-2000:]}")
        self.program.clean(data)
        found: dict[str, Any] = json.loads(done.stdout[done.stdout.index("{\n") :])
        return found

    def measure(self, cap_mib: int, *words: str) -> dict[str, Any]:
        """Measure streams, or a workload, in so much memory."""
        limits = ["--cache-limit", f"{cap_mib}MiB", "--runs", "1"]
        return leadline(self.store, "measure", str(self.beside), *limits, *words)


def io_s(phase: dict[str, Any]) -> float:
    """Return the time of a phase's requests and syncs, of all workers added up."""
    return float(phase["read_s"] + phase["write_s"] + phase["sync_s"])


def request_us(phases: Sequence[dict[str, Any]]) -> float:
    """Return the time that a request took in these phases with its share of the syncs."""
    return 1e6 * sum(map(io_s, phases)) / float(sum(each["requests"] for each in phases))


def phases_that_count(described: dict[str, Any]) -> list[dict[str, Any]]:
    """Return those that are run: with streams, and some of the time."""
    total = sum(map(io_s, described["phases"]))
    return [
        each
        for each in described["phases"]
        if each["streams"] and io_s(each) >= PHASE_SHARE_LEAST * total
    ]


def streams_us(place: Workplace, described: dict[str, Any], cap: int) -> float:
    """Run a description's phases; return the time of one of their requests."""
    total_s = requests = 0.0
    for phase in phases_that_count(described):
        words = ["--application", described["application"], "--phase", str(phase["order"] + 1)]
        found = place.measure(cap, *words)
        total_s += phase["requests"] * point_us(found) * 1e-6
        requests += phase["requests"]
    return 1e6 * total_s / requests


def five_us(place: Workplace, described: dict[str, Any], cap: int, seconds: float) -> float:
    """The same with CP94's five parameters of the whole trace."""
    five = described["workload"]
    size = max(512, round(five["size_mean"] / 512) * 512)
    words = [
        "--seconds",
        f"{seconds}s",
        f"unique_bytes={max(round(five['unique_bytes']), 4 * size)}",
        f"size_mean={size}",
        f"read_frac={five['read_frac']:.4f}",
        f"seq_frac={five['seq_frac']:.4f}",
        f"process_num={max(1, round(five['process_num'] or 1))}",
    ]
    return point_us(place.measure(cap, *words))


def point_us(point: dict[str, Any]) -> float:
    """Return the time in I/O of a request that was measured."""
    processes = point["workload"]["process_num"]
    return float(1e6 * processes * point["result"]["io_share"] / point["iops"]["value"])


@dataclass
class Pairs:
    """One program and its streams, in turns."""

    described: dict[str, Any] = field(default_factory=dict)
    """Its last run."""
    app_us: list[float] = field(default_factory=list)
    whole_us: list[float] = field(default_factory=list)
    """The same of all phases, those of little time too."""
    own_us: list[float] = field(default_factory=list)
    """Of a request when the description's own are made again."""
    streams_us: list[float] = field(default_factory=list)
    five_us: list[float] = field(default_factory=list)
    times: list[float] = field(default_factory=list)
    fast: list[float] = field(default_factory=list)


def own_us(place: Workplace, described: dict[str, Any], cap: int) -> float:
    """Make the description's own requests again; return the time of one of them."""
    found = place.measure(cap, "--application", described["application"])["replay"]
    reads, writes, _ = found["requests"]
    over = found["here_s"] / sum(found["took_s"])
    print(f"    x{over:.2f} of their time in its own trace:", flush=True)
    return float(1e6 * found["here_s"] / (reads + writes))


def replay_ratio(place: Workplace, cap: int, *pace: str) -> float:
    """Make the last trace again; return the time of its requests over that in the trace."""
    found = place.measure(cap, "--replay", str(place.trace), *pace)["replay"]
    return float(found["here_s"] / sum(found["took_s"]))


def ratio(over: Sequence[float], under: Sequence[float]) -> tuple[float, float, float]:
    """Return the geometric mean of pairs' ratios with its 95% interval."""
    logs = np.log(over) - np.log(under)
    middle = float(logs.mean())
    if logs.size < 2:
        return math.exp(middle), math.nan, math.nan
    half = student_t(logs.size - 1, 0.95) * float(logs.std(ddof=1)) / math.sqrt(logs.size)
    return math.exp(middle), math.exp(middle - half), math.exp(middle + half)


def alone(ratios: Sequence[float]) -> tuple[float, float, float]:
    """Return the geometric mean of ratios with its 95% interval."""
    return ratio(ratios, [1.0] * len(ratios))


def pairs_of(place: Workplace, asked: argparse.Namespace) -> Pairs:
    """Run a program and its streams in turns."""
    cap = TRACED.cap_mib
    place.watch(cap, "first")
    found = Pairs()
    for _ in range(asked.pairs):
        described = found.described = place.watch(cap, place.program.name)
        found.app_us.append(request_us(phases_that_count(described)))
        found.whole_us.append(request_us(described["phases"]))
        found.own_us.append(own_us(place, described, cap))
        found.streams_us.append(streams_us(place, described, cap))
        found.five_us.append(five_us(place, described, cap, asked.seconds))
        found.times.append(replay_ratio(place, cap, "--at-times"))
        found.fast.append(replay_ratio(place, cap))
        print(
            f"  {place.program.name}: {found.app_us[-1]:.1f} us, replays x{found.times[-1]:.2f} "
            f"and x{found.fast[-1]:.2f}, its description {found.own_us[-1]:.1f}, streams "
            f"{found.streams_us[-1]:.1f}, five parameters "
            f"{found.five_us[-1]:.1f}",
            flush=True,
        )
    return found


def same_row(program: Program, found: Pairs) -> Row:
    """Make a row of the first table."""
    is_of_storage = found.described["in_io"] >= IO_SHARE_LEAST

    def cell(of: tuple[float, float, float], goal: dict[str, float]) -> Cell:
        made = Cell(*of, len(found.app_us))
        return made.aiming(goal) if is_of_storage else made

    spread = statistics.stdev(np.log(found.app_us)) if len(found.app_us) > 1 else math.nan
    return Row(
        program.name,
        {
            "what": program.name,
            "in_io": Cell(100.0 * found.described["in_io"], unit=" %"),
            "us": Cell(float(np.exp(np.mean(np.log(found.app_us))))),
            "times": cell(alone(found.times), REPLAYED),
            "fast": Cell(*alone(found.fast), len(found.fast)),
            "ratio": cell(ratio(found.own_us, found.whole_us), WITHIN),
            "streams": Cell(*ratio(found.streams_us, found.app_us), len(found.app_us)),
            "five": Cell(*ratio(found.five_us, found.app_us), len(found.app_us)),
            "sd": Cell(100.0 * spread, unit=" %"),
        },
    )


def in_workplaces(asked: argparse.Namespace, store: Path | None = None) -> Iterable[Workplace]:
    """Prepare each program in turn; one that is missing is said and left out."""
    for name in asked.programs.split(","):
        with tempfile.TemporaryDirectory(prefix="leadline-programs-", dir=asked.folder) as folder:
            root = Path(folder)
            root.chmod(0o755)
            (root / "data").mkdir()
            (root / "beside").mkdir()
            try:
                PROGRAMS[name].prepare(root / "data")
            except Unavailable as missing:
                print(f"{name} left out: {missing}", flush=True)
                continue
            yield Workplace(PROGRAMS[name], root, store or root / "store.sqlite", root / "beside")


def same(asked: argparse.Namespace) -> None:
    """Programs and their descriptions on the same system."""
    rows, off = [], []
    for place in in_workplaces(asked):
        found = pairs_of(place, asked)
        rows.append(same_row(place.program, found))
        value, low, high = ratio(found.own_us, found.whole_us)
        shares = f"{100 * found.described['in_io']:.0f}% in I/O"
        print(f"{place.program.name}: {value:.3f} [{low:.3f}, {high:.3f}]; {shares}", flush=True)
        if found.described["in_io"] >= IO_SHARE_LEAST:
            off.append(abs(value - 1))
    middle = say(Cell(100 * statistics.median(off), most=8.0), ("{value:.1f}%",), " %")
    errors = (
        f"Of programs with at least 5% of their time in I/O the descriptions' median error is "
        f"{middle}, the worst {100 * max(off):.0f}%."
    )
    print(errors)
    note = f"{errors} Load average {os.getloadavg()[0]:.1f}."
    save(asked, SAME_COLUMNS, rows, directory=asked.folder, rounds=asked.pairs, note=note)


class Answer(NamedTuple):
    """A prediction of the time of a request, in us."""

    value: float
    low: float
    """Of the 90% interval."""
    high: float

    @classmethod
    def of(cls, found: dict[str, Any], requests: int) -> Answer:
        """Take it from `predict --json`, without metadata calls, which are not compared."""
        known = [each for each in found["terms"] if each["name"] != "metadata" and each["seconds"]]
        ends = [(each["seconds"]["value"], each["seconds"]["high"]) for each in known]
        seconds = sum(value for value, _ in ends)
        ln_half = sum(value * math.log(high / value) for value, high in ends if value > 0) / seconds
        half = math.exp(ln_half * student_t(found["df"], 0.9) / student_t(found["df"], 0.95))
        value = 1e6 * seconds / requests
        return cls(value, value / half, value * half)


@dataclass(frozen=True)
class Foretold:
    """A program predicted where it was not traced, and run there."""

    name: str
    system: System
    app_us: tuple[float, ...]
    alone: Answer
    scaled: Answer

    @property
    def mean_us(self) -> float:
        """Of the runs."""
        return float(np.exp(np.mean(np.log(self.app_us))))

    def error(self, answer: Answer) -> float:
        """Of a prediction, as a share of the runs."""
        return abs(answer.value / self.mean_us - 1)

    def holds(self, answer: Answer) -> bool:
        """Whether the interval holds the mean of the runs."""
        return answer.low <= self.mean_us <= answer.high

    def row(self) -> Row:
        """Make a row of the second table."""
        return Row(
            f"{self.name} {self.system.name}",
            {
                "what": f"{self.name}, {self.system.name}",
                "us": Cell(self.mean_us),
                "alone": Cell(self.alone.value / self.mean_us),
                "alone_us": Cell(*self.alone),
                "ratio": Cell(self.scaled.value / self.mean_us),
                "interval": Cell(*self.scaled),
                "held": "yes" if self.holds(self.scaled) else "NO",
            },
        )


def survey(
    store: Path, folder: Path, system: System, budget: str, described: Sequence[dict[str, Any]]
) -> None:
    """Survey the disk as it is there, for programs that sync and for those that do not."""
    for syncs in (False, True):
        own = [each["application"] for each in described if syncs_at_all(each) == syncs]
        if not own:
            continue
        words = ["--sync", SYNC if syncs else "none", "--budget", budget]
        words += [word for name in own for word in ("--for", name)]
        words += ["--cache-limit", f"{system.cap_mib}MiB", "--name", system.survey(syncs=syncs)]
        with system.in_force(folder):
            leadline(store, "survey", str(folder), *words)
        print(f"  surveyed in {system.name}, {words[1]}", flush=True)


def syncs_at_all(described: dict[str, Any]) -> bool:
    """Whether a program ever waits for the disk to have its writes."""
    return any(phase["syncs"] for phase in described["phases"])


def foretold(place: Workplace, described: dict[str, Any], system: System) -> Foretold:
    """Predict a program where it was not traced, and run it there."""
    syncs = syncs_at_all(described)
    words = ["predict", system.survey(syncs=syncs), "--application", described["application"]]
    requests = sum(phase["requests"] for phase in described["phases"])
    alone, scaled = (
        Answer.of(leadline(place.store, *words, *more), requests)
        for more in ((), ("--traced-on", TRACED.survey(syncs=syncs)))
    )
    with system.in_force(place.folder):
        watched = [place.watch(system.cap_mib, "there") for _ in range(APP_RUNS)]
    runs = tuple(request_us(each["phases"]) for each in watched)
    return Foretold(place.program.name, system, runs, alone, scaled)


def predicted(asked: argparse.Namespace) -> None:
    """Programs where they were not traced."""
    found = list[Foretold]()
    with tempfile.TemporaryDirectory(prefix="leadline-surveyed-", dir=asked.folder) as folder:
        store, target = asked.store or Path(folder) / "store.sqlite", Path(folder) / "target"
        target.mkdir()
        traced = dict[str, dict[str, Any]]()
        for place in in_workplaces(asked, store):
            place.watch(TRACED.cap_mib, "first")
            described = place.watch(TRACED.cap_mib, place.program.name)
            if described["in_io"] < IO_SHARE_LEAST:
                print(f"{place.program.name} left out: under 5% of its time is I/O", flush=True)
            else:
                traced[place.program.name] = described
        for system in (TRACED, *OTHERS):
            survey(store, target, system, asked.budget, list(traced.values()))
        asked.programs = ",".join(traced)
        for place in in_workplaces(asked, store):
            place.watch(TRACED.cap_mib, "first")
            for system in OTHERS:
                found.append(foretold(place, traced[place.program.name], system))
                print(f"  {found[-1]}", flush=True)
    said = [_said("alone", found, {}, {}), _said("scaled", found, ERROR_GOAL, HELD_GOAL)]
    print("; ".join(said))
    note = f"{'; '.join(said)}. Load average {os.getloadavg()[0]:.1f}."
    about = {"directory": asked.folder, "rounds": APP_RUNS, "interval": "90%", "note": note}
    save(asked, PREDICTED_COLUMNS, [each.row() for each in found], part="predicted", **about)


def _said(
    name: str, found: Sequence[Foretold], error: dict[str, float], held: dict[str, float]
) -> str:
    """Say how answers of a kind did, beside the goals of their errors and intervals."""
    answers = [(each, getattr(each, name)) for each in found]
    off = Cell(100 * statistics.median(each.error(answer) for each, answer in answers))
    right = 100 * statistics.fmean(each.holds(answer) for each, answer in answers)
    share = Cell(right, n=len(found)).aiming(held)
    return (
        f"{name}: median error {say(off.aiming(error), ('{value:.1f}%',), ' %')}, "
        f"90% intervals hold {say(share, ('{value:.0f}% of {n}',), ' %')}"
    )


def main() -> None:
    """Run what was asked for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--parts", default="same")
    parser.add_argument("--programs", default=",".join(PROGRAMS))
    parser.add_argument("--pairs", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=4.0)
    parser.add_argument("--budget", default="4m")
    parser.add_argument("--folder", type=Path, default=Path(__file__).parents[1] / "build")
    parser.add_argument("--store", type=Path, help="to keep surveys and descriptions in")
    add_save_option(parser, "applications")
    asked = parser.parse_args()
    if "same" in asked.parts.split(","):
        same(asked)
    if "predicted" in asked.parts.split(","):
        predicted(asked)


if __name__ == "__main__":
    main()
