"""Verdicts of `leadline compare` from surveys, held against what the systems really do.

    .venv/bin/python bench/verdicts.py parts [--first 3000] [--pairs 40] [--save]
    .venv/bin/python bench/verdicts.py disks [--folder DIR] [--save]

`parts` surveys pairs of machines made of parts (`proving.machines`) for 60 and 300 virtual seconds,
asks for random workloads that all four surveys cover, and runs each as long as a reading of the
survey may be, several times: the mean of these runs is the truth. A pair of which one is too slow
for a survey of 60 s (Leadline refuses to go on) is compared by the longer surveys alone.

`disks` surveys ext4, XFS and Btrfs on loop devices, each as it is and behind a throttle of its
reads, for 1 and 5 minutes, and measures ten pairs of them interleaved: that interval is the truth.
Needs root, as `bench/six_systems.py`.

A verdict is wrong in sign where the truth lies on the other side of 1.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import multiprocessing
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from figures import Cell, Column, Content, Row, add_save_option, markdown, save
from figures.origin import commit_now
from leadline.engine.pace import BudgetSpent
from leadline.models.predictor import Predictor
from leadline.record import Measurement, Survey
from leadline.studies.comparison.contenders import Named
from leadline.studies.comparison.document import Terms, compare_systems
from machine_prediction import survey_of, truths_of
from proving.comparison import random_questions
from proving.machines import draw_machine
from six_systems import (
    DATA_BYTES,
    SYSTEMS,
    THROTTLES,
    WORKLOADS,
    System,
    in_own_namespace,
    leadline,
    mounted,
    run,
)

MEASURES = (
    "python/leadline/studies/comparison",
    "python/leadline/studies/survey",
    "python/leadline/models",
    "python/leadline/stats",
    "crates/sim/src",
    "crates/stats/src",
)
SHARE, WHOLE = ("{value:.1f} [{low:.1f}, {high:.1f}]",), ("{value:.0f}",)
COLUMNS = (
    Column("what", "surveys of"),
    Column("pairs", "pairs", ("{value:.0f} of {n}",)),
    Column("asked", "ratios", WHOLE),
    Column("verdicts", "verdicts", WHOLE),
    Column("wrong", "wrong in sign", WHOLE),
    Column("wrong_share", "wrong in sign %", ("{value:.1f}",)),
    Column("told", "told where the truth is beyond 15%, %", ("{value:.0f}",)),
    Column("holds", "95% CI holds the truth, %", ("{value:.0f}",)),
)
WRONG_MOST = 5.0
CLEAR = math.log(1.15)
BUDGETS_S = (60.0, 300.0)
QUESTIONS = 5
KEPT = Path(__file__).parent.parent / "build" / "verdicts"
SLOW_MB_S = 120
PAIRS = (
    *(("ext4", "xfs"), ("ext4", "btrfs"), ("xfs", "btrfs")),
    *(("ext4", "ext4-slow"), ("xfs", "xfs-slow"), ("btrfs", "btrfs-slow")),
    *(("ext4", "xfs-slow"), ("xfs", "btrfs-slow"), ("btrfs", "ext4-slow")),
    ("ext4-slow", "xfs-slow"),
)


class Held(msgspec.Struct, frozen=True):
    """One compared workload and the truth behind it."""

    pair: str
    budget_s: float
    workload: str
    verdict: str
    low: float
    high: float
    true_low: float
    true_high: float
    """Equal to `true_low` where the truth is a number."""

    @property
    def wrong(self) -> bool:
        """Whether the slower system is called the faster."""
        return (self.verdict == "a" and self.true_high < 1) or (
            self.verdict == "b" and self.true_low > 1
        )

    @property
    def clear(self) -> bool:
        """Whether the true ratio is so large that it should be told."""
        return math.log(self.true_low) > CLEAR or math.log(self.true_high) < -CLEAR

    @property
    def covered(self) -> bool:
        """Whether the two intervals meet."""
        return self.low <= self.true_high and self.true_low <= self.high


Ends = tuple[float | None, float | None]


def held(
    of: tuple[str, float, str], verdict: str, said: Ends | None, true: Ends | None
) -> Iterator[Held]:
    """Yield one ratio (pair, budget, workload) beside its truth; nothing where either lacks."""
    ends = [end for each in (said, true) if each is not None for end in each if end is not None]
    if len(ends) == 4:
        yield Held(*of, verdict, *ends)


def rows_of(found: Sequence[Held], pairs: int) -> Iterator[Row]:
    """Yield a row for each length of survey."""
    for budget_s in sorted({each.budget_s for each in found}):
        some = [each for each in found if each.budget_s == budget_s]
        told = [each for each in some if each.verdict != "inconclusive"]
        wrong = sum(each.wrong for each in told)
        clear = [each.verdict != "inconclusive" for each in some if each.clear]
        cells: dict[str, Content] = {
            "what": f"{budget_s / 60:g} min",
            "pairs": Cell(len({each.pair for each in some}), n=pairs),
            "asked": len(some),
            "verdicts": len(told),
            "wrong": wrong,
            "wrong_share": Cell(100 * wrong / max(1, len(told)), most=WRONG_MOST),
            "told": 100 * statistics.fmean(clear) if clear else None,
            "holds": 100 * statistics.fmean(each.covered for each in some),
        }
        yield Row(f"{budget_s:g}", cells)


def of_parts(number: int, first: int) -> list[Held]:
    """Hold one pair of drawn machines; once for all."""
    path = KEPT / f"parts-{commit_now(MEASURES)}-{first + 2 * number}.json"
    if path.is_file():
        return msgspec.json.decode(path.read_bytes(), type=list[Held])
    seeds = (first + 2 * number, first + 2 * number + 1)
    machines = [draw_machine(seed) for seed in seeds]
    surveys = dict[float, list[tuple[Survey, tuple[Measurement, ...]]]]()
    for budget_s in BUDGETS_S:
        with contextlib.suppress(BudgetSpent):
            pairs = zip(machines, seeds, strict=True)
            surveys[budget_s] = [survey_of(*each, budget_s) for each in pairs]
    predictors = {b: [Predictor(*each) for each in pair] for b, pair in surveys.items()}
    every = [each for pair in predictors.values() for each in pair]
    questions = random_questions(every, QUESTIONS, number) if every and _overlap(every) else ()
    asked_of = [each.workload for each in questions]
    longest = surveys[max(surveys)] if questions else []
    truths = [
        [math.exp(each.ln_mb_s) for each in truths_of(machine, seed, points, asked_of)]
        for machine, seed, (_, points) in zip(machines, seeds, longest, strict=bool(questions))
    ]
    name, found = "-".join(map(str, seeds)), list[Held]()
    for budget_s, pair in predictors.items() if questions else ():
        systems = [Named(str(s), each) for s, each in zip(seeds, pair, strict=True)]
        document = compare_systems(systems, Terms(questions=questions))
        for asked, a, b in zip(document.pairs, *truths, strict=True):
            said = None if asked.ratio is None else (asked.ratio.low, asked.ratio.high)
            found += held(
                (name, budget_s, str(asked.workload)), asked.verdict, said, (a / b, a / b)
            )
    KEPT.mkdir(parents=True, exist_ok=True)
    path.write_bytes(msgspec.json.encode(found))
    return found


def _overlap(predictors: Sequence[Predictor]) -> bool:
    names = ("unique_bytes", "size_mean", "process_num")
    spans = [[getattr(each.ranges, name) for each in predictors] for name in names]
    return all(max(s.low for s in some) <= min(s.high for s in some) for some in spans)


def of_disks(folder: Path, budgets_s: Sequence[float]) -> list[Held]:
    """Survey six mounted systems, measure ten pairs of them, and hold their verdicts."""
    plain = [each for each in SYSTEMS if each.make]
    slow = [replace(each, name=f"{each.name}-slow") for each in plain]
    store, found, truths = folder / "verdicts.sqlite", list[Held](), dict[str, list[Ends | None]]()
    with contextlib.ExitStack() as stack:
        systems = [*plain, *slow]
        points = {each.name: stack.enter_context(mounted(each, folder)) for each in systems}
        stack.enter_context(throttled([points[each.name] for each in slow]))
        for budget_s in budgets_s:
            for each in systems:
                survey(store, each, points[each.name], budget_s)
            for a, b in PAIRS:
                names = [f"{name}-{budget_s:g}" for name in (a, b)]
                if (pair := f"{a} {b}") not in truths:
                    measured = compare(store, names, "--measure", "--passes", "4")
                    truths[pair] = [ends(row) for row in measured]
                for told, true in zip(compare(store, names), truths[pair], strict=True):
                    of = (pair, budget_s, str(told["workload"]))
                    found += held(of, str(told["verdict"]), ends(told), true)
                print(f"# {budget_s:g} s, {pair}: {len(found)} ratios", flush=True)
                (KEPT / "disks.json").write_bytes(msgspec.json.encode(found))
    return found


def survey(store: Path, system: System, point: Path, budget_s: float) -> None:
    """Survey one mounted system."""
    name = f"{system.name}-{budget_s:g}"
    asked = ["survey", str(point), "--name", name, "--budget", f"{budget_s}s"]
    cap = ["--max-bytes", str(DATA_BYTES), "--cache-limit", f"{system.cache_mib}MiB"]
    done = subprocess.run([*leadline(store), *asked, *cap], check=False)
    if done.returncode not in (0, 3):
        sys.exit(f"the survey of {name} ended with {done.returncode}")


def compare(store: Path, names: Sequence[str], *more: str) -> list[dict[str, Any]]:
    """Return the compared workloads of a pair."""
    words = [word for workload in WORKLOADS for word in ("--workload", workload)]
    command = [*leadline(store), "compare", *names, *words, *more, "--json"]
    done = subprocess.run(command, check=False, stdout=subprocess.PIPE)
    return list(json.loads(done.stdout)["pairs"])


def ends(compared: dict[str, Any]) -> Ends | None:
    """Return the interval of a ratio; None where there is none."""
    ratio = compared["ratio"]
    return None if ratio is None else (ratio["low"], ratio["high"])


@contextlib.contextmanager
def throttled(points: Sequence[Path], mb_s: float = SLOW_MB_S) -> Iterator[None]:
    """Slow down what this process and its children read from these folders' devices."""
    group = THROTTLES / f"leadline-six-{os.getpid()}"
    group.mkdir()
    try:
        for point in points:
            device = run("findmnt", "-no", "SOURCE", "-T", str(point)).strip()
            number = Path(device).stat().st_rdev
            limit = f"{os.major(number)}:{os.minor(number)} {round(mb_s * 1e6)}"
            (group / "blkio.throttle.read_bps_device").write_text(limit)
        (group / "cgroup.procs").write_text(str(os.getpid()))
        yield
    finally:
        (THROTTLES / "cgroup.procs").write_text(str(os.getpid()))
        group.rmdir()


def main() -> None:
    """Survey, compare, print and store."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("of", choices=("parts", "disks"))
    parser.add_argument("--first", type=int, default=3000, help="seed of the first machine")
    parser.add_argument("--pairs", type=int, default=40)
    parser.add_argument("--budgets", type=float, nargs="+", default=BUDGETS_S, help="of disks")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--folder", type=Path, default=Path(), help="on the disk to use")
    add_save_option(parser, "verdicts")
    asked = parser.parse_args()
    KEPT.mkdir(parents=True, exist_ok=True)
    if asked.of == "disks":
        in_own_namespace()
        with tempfile.TemporaryDirectory(prefix="verdicts-", dir=asked.folder) as folder:
            found = of_disks(Path(folder).resolve(), asked.budgets)
        where = {"directory": asked.folder}
    else:
        with multiprocessing.Pool(asked.processes) as pool:
            work = partial(of_parts, first=asked.first)
            some = pool.imap(work, range(asked.pairs))
            found = [held for each in some for held in each]
        where = {"seeds": f"seeds {asked.first} to {asked.first + 2 * asked.pairs - 1}"}
    for each in found:
        if each.wrong:
            print(f"WRONG: {each}")
    rows = tuple(rows_of(found, len(PAIRS) if asked.of == "disks" else asked.pairs))
    print("\n".join(markdown(COLUMNS, rows)))
    save(asked, COLUMNS, rows, part=asked.of, **where)


if __name__ == "__main__":
    main()
