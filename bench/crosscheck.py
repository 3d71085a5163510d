"""Leadline's engine and fio on the same workloads, file and cache, turn about, in one run.

Both go to one data file that Leadline's engine laid out, inside one memory cgroup. In every round
each workload is run by both, one right after the other; who goes first changes from round to
round. Prints, for each workload, the ratio of the throughputs (Leadline / fio) as the geometric
mean of the rounds with its 95% interval (Student's t on the logarithms; rounds minutes apart are
taken as independent), and the median of the ratios.

    .venv/bin/python bench/crosscheck.py [--rounds 4] [--seconds 1.5] [--only N] [--json FILE]

Twenty workloads: in and past the cache, both kinds of sizes, one to eight workers, every backend.
Those marked * mix reads with writes and are partly sequential: fio's reads and writes each continue
their own last request, Leadline's the last one of either kind, so the kernel reads ahead elsewhere.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from figures import Cell, Column, Row, add_save_option, save, slug
from leadline.engine import Limits, Target, open_engine
from leadline.engine.fio import FioEngine, fio_version
from leadline.record import Access, Workload
from leadline.stats import student_t

MEASURES = (
    "crates/engine/src/run",
    "crates/engine/src/access",
    "crates/engine/src/backend",
    ":!crates/engine/src/backend/nfs",
    "python/leadline/engine/fio.py",
    "python/leadline/fio",
)
COLUMNS = (
    Column("workload", "workload"),
    Column("how", "how"),
    Column("own", "Leadline MB/s"),
    Column("fio", "fio MB/s"),
    Column("ratio", "ratio", ("{value:.3f} [{low:.2f}, {high:.2f}]", "{value:.3f}")),
)
CACHE_BYTES = 128 << 20
IN_CACHE, PAST_CACHE = "48MiB", "384MiB"


@dataclass(frozen=True)
class Setup:
    """How requests are made."""

    backend: str = "pread"
    direct: bool = False


@dataclass
class Case:
    """One workload and its readings in MB/s, by round."""

    text: str
    setup: Setup
    own: list[float] = field(default_factory=list)
    fio: list[float] = field(default_factory=list)

    @property
    def ratios(self) -> list[float]:
        """Leadline's throughput over fio's, round by round."""
        return [a / b for a, b in zip(self.own, self.fio, strict=True)]

    @property
    def marked(self) -> bool:
        """Whether fio can only do something like it."""
        workload = Workload.parse(self.text)
        return 0 < workload.read_frac < 1 and workload.seq_frac > 0

    def interval(self) -> tuple[float, float | None, float | None]:
        """Geometric mean of the ratios with its 95% interval; None from one round."""
        return geometric_interval(self.ratios)


def geometric_interval(ratios: Sequence[float]) -> tuple[float, float | None, float | None]:
    """Geometric mean with its 95% interval (Student's t on the logarithms); None from one."""
    logs = [math.log(ratio) for ratio in ratios]
    mean = statistics.mean(logs)
    if len(logs) < 2:
        return math.exp(mean), None, None
    half = student_t(len(logs) - 1) * statistics.stdev(logs) / math.sqrt(len(logs))
    return math.exp(mean), math.exp(mean - half), math.exp(mean + half)


def cases() -> list[Case]:
    """Return the twenty workloads."""
    near, far = f"unique_bytes={IN_CACHE}", f"unique_bytes={PAST_CACHE}"
    buffered = [
        f"{near},size_mean=4KiB,size_dist=fixed,read_frac=1,seq_frac=0",
        f"{near},size_mean=32KiB,read_frac=0.8,seq_frac=0.1,process_num=4",
        f"{near},size_mean=256KiB,read_frac=1,seq_frac=0.5,process_num=2",
        f"{near},size_mean=8KiB,read_frac=0.5,seq_frac=0,process_num=8",
        f"{near},size_mean=64KiB,size_dist=fixed,read_frac=0,seq_frac=0.9",
        f"{far},size_mean=4KiB,size_dist=fixed,read_frac=1,seq_frac=0,process_num=4",
        f"{far},size_mean=16KiB,size_dist=fixed,read_frac=0.7,seq_frac=0,process_num=8",
        f"{far},size_mean=16KiB,read_frac=0.7,seq_frac=0.2,process_num=4",
        f"{far},size_mean=64KiB,read_frac=1,seq_frac=0",
        f"{far},size_mean=256KiB,size_dist=fixed,read_frac=1,seq_frac=0.99,process_num=2",
        f"{far},size_mean=128KiB,read_frac=0.5,seq_frac=0.5,process_num=2",
        f"{far},size_mean=1MiB,read_frac=0.9,seq_frac=0.5",
    ]
    others = [
        (
            Setup("pread", True),
            [
                f"{far},size_mean=4KiB,size_dist=fixed,read_frac=1,seq_frac=0",
                f"{far},size_mean=64KiB,read_frac=0.7,seq_frac=0.3,process_num=4",
                f"{far},size_mean=1MiB,size_dist=fixed,read_frac=1,seq_frac=1",
            ],
        ),
        (
            Setup("uring", True),
            [
                f"{far},size_mean=4KiB,size_dist=fixed,read_frac=1,seq_frac=0,queue_depth=32",
                f"{far},size_mean=32KiB,read_frac=0.5,seq_frac=0,queue_depth=8",
            ],
        ),
        (Setup("uring"), [f"{far},size_mean=16KiB,read_frac=1,seq_frac=0,queue_depth=8"]),
        (
            Setup("mmap"),
            [
                f"{near},size_mean=16KiB,read_frac=1,seq_frac=0",
                f"{near},size_mean=64KiB,read_frac=0.7,seq_frac=0.5,process_num=2",
            ],
        ),
    ]
    found = [Case(text, Setup()) for text in buffered]
    return found + [Case(text, setup) for setup, texts in others for text in texts]


def measure(chosen: Sequence[Case], directory: str, rounds: int, limits: Limits) -> None:
    """Fill in the readings: all rounds of one setup, then the next setup."""
    for setup in dict.fromkeys(case.setup for case in chosen):
        mine = [case for case in chosen if case.setup == setup]
        with open_engine(
            Target.parse(directory),
            Access(backend=setup.backend, direct=setup.direct, cache_limit_bytes=CACHE_BYTES),
            engine="fio",
        ) as engine:
            assert isinstance(engine, FioEngine)
            for number in range(rounds):
                for case in mine:
                    run_both(engine, case, number, limits)
                how = f"{setup.backend}{' direct' if setup.direct else ''}"
                print(f"{how}: round {number + 1} of {rounds}", file=sys.stderr)


def run_both(engine: FioEngine, case: Case, number: int, limits: Limits) -> None:
    """One reading of each engine; the first one changes with the round."""
    workload = Workload.parse(case.text)
    turns = [(engine.own.run, case.own), (engine.run, case.fio)]
    for run, readings in turns if number % 2 else turns[::-1]:
        result = run(workload, seed=number, limits=limits)
        readings.append(result.throughput_mb_s.value)
        engine.own.close()  # no memory of the one while the other runs


def lines(chosen: Iterable[Case]) -> Iterable[str]:
    """Yield the table."""
    yield "| workload | how | Leadline MB/s | fio MB/s | ratio |\n|---|---|---|---|---|"
    for case in chosen:
        value, low, high = case.interval()
        span = "" if low is None or high is None else f" [{low:.2f}, {high:.2f}]"
        how = case.setup.backend + (", direct" if case.setup.direct else "")
        yield (
            f"| {case.text}{' *' if case.marked else ''} | {how} "
            f"| {statistics.median(case.own):.4g} | {statistics.median(case.fio):.4g} "
            f"| {value:.3f}{span} |"
        )


def summary(chosen: Sequence[Case]) -> str:
    """Say the median, and in how many the interval holds 1; the same without the marked ones."""
    said = [tell("all", chosen)]
    plain = [case for case in chosen if not case.marked]
    if 0 < len(plain) < len(chosen):
        said.append(tell("without the marked", plain))
    return "\n".join(said)


def tell(which: str, chosen: Sequence[Case]) -> str:
    """Sum up some cases."""
    intervals = [case.interval() for case in chosen]
    held = sum(
        low is not None and high is not None and low <= 1 <= high for _, low, high in intervals
    )
    values = [value for value, _, _ in intervals]
    return (
        f"{which}: median ratio {statistics.median(values):.3f} ({min(values):.3f} to "
        f"{max(values):.3f}), {held} of {len(chosen)} intervals hold 1"
    )


def row_of(case: Case) -> Row:
    """Return what is stored of a case."""
    how = f"{case.setup.backend}{', direct' if case.setup.direct else ''}"
    return Row(
        slug(f"{case.text} {how}"),
        {
            "workload": case.text + (" *" if case.marked else ""),
            "how": how,
            "own": statistics.median(case.own),
            "fio": statistics.median(case.fio),
            "ratio": Cell(*case.interval(), n=len(case.ratios)),
        },
    )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=1.5, help="per run (1.5)")
    parser.add_argument("--warm-up", type=float, default=2.0, help="at most, per run (2)")
    parser.add_argument("--only", type=int, default=None, help="the first N workloads")
    parser.add_argument("--directory", type=Path, default=Path(), help="where to put the file")
    parser.add_argument("--json", type=Path, default=None, help="write every number here")
    add_save_option(parser, "crosscheck")
    asked = parser.parse_args()
    limits = Limits(
        warm_up_s_max=asked.warm_up,
        measure_s_min=asked.seconds,
        measure_s_max=asked.seconds,
        accuracy=0.0,
        total_s_max=600.0,
    )
    chosen = cases()[: asked.only]
    began_s = time.monotonic()
    with tempfile.TemporaryDirectory(dir=asked.directory, prefix="leadline-bench-") as folder:
        measure(chosen, str(Path(folder).resolve()), asked.rounds, limits)
    print("\n".join(lines(chosen)))
    print(
        f"\n{summary(chosen)}\n{fio_version()}, cache {CACHE_BYTES >> 20} MiB, {asked.rounds} "
        f"rounds of {asked.seconds:g} s, {time.monotonic() - began_s:.0f} s in all."
    )
    rows = [row_of(case) for case in chosen]
    save(asked, COLUMNS, rows, directory=asked.directory, rounds=asked.rounds, note=fio_version())
    if asked.json:
        found: list[dict[str, Any]] = [asdict(case) for case in chosen]
        asked.json.write_text(json.dumps(found, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
