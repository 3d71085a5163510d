"""SH08 Figs. 3 and 7: load factor against time, for every policy on one server whose peak is known.

    .venv/bin/python bench/peak_figures.py [--policies NAME ...] [--seeds 5] [--out FILE.md]
        [--csv FILE.csv]

The server is DB_TP with 4 disks and 32 threads of `proving.grids`; seeded policies begin
at the true peak rate of 4 disks and 16 threads, as in the paper. The table has the median over the
seeds; the CSV every trial of the first seed: policy, begin and end in minutes, load factor, state.
"""

from __future__ import annotations

import argparse
import csv
import statistics
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from figures import Column, Content, Row, add_save_option, save
from leadline.record.workbench import PeakRate, Prior, Sample, Trial, TrialOrder
from leadline.servers import run_trial
from leadline.studies.workbench.policies import POLICIES, open_policy
from load_factors import course, load_factors
from proving.grids import WORKLOADS
from proving.peak_truth import truth
from proving.servers import GOAL

MEASURES = (
    "python/leadline/studies/workbench/policies",
    "python/leadline/studies/workbench/belief.py",
    "crates/sim/src/server/law",
    "crates/stats/src/belief",
)
WHOLE = ("{value:.0f}",)
COLUMNS = (
    Column("policy", "policy"),
    Column("error", "error %", ("{value:.1f}",)),
    Column("minutes", "minutes", WHOLE),
    Column("trials", "trials", WHOLE),
    Column("near_after", "near 1 after, min", WHOLE),
    Column("near_share", "time near 1, %", WHOLE),
    Column("far", "trials far", WHOLE),
)
SERVER = WORKLOADS["db_tp"]
SAMPLE: Sample = {"disks": 4, "workers": 32}
NEAREST: Sample = {"disks": 4, "workers": 16}
HEAD = (
    "policy",
    "verdict",
    "error %",
    "minutes",
    "trials",
    "near 1 after",
    "time near 1%",
    "trials far",
)


def search(name: str, seed: int) -> tuple[PeakRate, list[Trial]]:
    """Run one policy to its end."""
    prior = Prior(rate_per_s=truth(SERVER, GOAL, NEAREST).rate_per_s)
    policy = open_policy(name, GOAL, seed, prior)
    trials: list[Trial] = []
    while not isinstance(asked := policy.ask(), PeakRate):
        order = TrialOrder(
            server=SERVER,
            sample=SAMPLE,
            threshold=GOAL.threshold,
            request=asked,
            order=len(trials),
            seed=1_000_003 * seed + len(trials),
        )
        trials.append(run_trial(order))
        policy.tell(trials[-1])
    return asked, trials


def row(name: str, found: Sequence[tuple[PeakRate, list[Trial]]], peak_per_s: float) -> list[str]:
    """Return a policy's columns: medians over its searches."""
    courses = [course(load_factors(trials, peak_per_s)) for _, trials in found]
    errors = [
        100 * abs(peak.rate_per_s.value / peak_per_s - 1)
        for peak, _ in found
        if peak.rate_per_s is not None
    ]
    reached = [one.near_after_s / 60 for one in courses if one.near_after_s is not None]
    return [
        name,
        ", ".join(sorted({peak.verdict.value for peak, _ in found})),
        f"{statistics.median(errors):.1f}" if errors else "-",
        f"{statistics.median(peak.cost_s / 60 for peak, _ in found):.0f}",
        f"{statistics.median(len(trials) for _, trials in found):.0f}",
        f"{statistics.median(reached):.0f}" if reached else "-",
        f"{100 * statistics.median(one.near_share for one in courses):.0f}",
        f"{statistics.median(one.trials_far for one in courses):.0f}",
    ]


def stored(cells: Sequence[str]) -> Row:
    """Return what is stored of a policy: what is printed, without its verdicts."""
    name, _, *told = cells
    numbers: list[Content] = [None if text == "-" else float(text) for text in told]
    keys = [column.key for column in COLUMNS[1:]]
    return Row(name, {"policy": f"`{name}`", **dict(zip(keys, numbers, strict=True))})


def as_points(name: str, trials: list[Trial], peak_per_s: float) -> Iterator[list[str]]:
    """Yield the lines of the CSV."""
    for one in load_factors(trials, peak_per_s):
        minutes = (one.begin_s / 60, one.end_s / 60)
        yield [name, *(f"{at:.3f}" for at in minutes), f"{one.factor:.4f}", one.state.value]


def main() -> None:
    """Run, print the table, write the files that were asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--policies", nargs="+", default=list(POLICIES))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--csv", type=Path)
    add_save_option(parser, "peak_course")
    options = parser.parse_args()
    peak_per_s = truth(SERVER, GOAL, SAMPLE).rate_per_s
    rows, points = [], [["policy", "begin_min", "end_min", "load_factor", "state"]]
    for name in options.policies:
        found = [search(name, seed) for seed in range(1, options.seeds + 1)]
        rows.append(row(name, found, peak_per_s))
        points += as_points(name, found[0][1], peak_per_s)
        print(f"{name}: done", file=sys.stderr)
    lines = [" | ".join(cells) for cells in (HEAD, ["---"] * len(HEAD), *rows)]
    text = "".join(f"| {line} |\n" for line in lines)
    print(f"DB_TP, 4 disks, 32 threads: true peak {peak_per_s:.0f} requests/s\n\n{text}")
    save(options, COLUMNS, map(stored, rows), seeds=f"seeds 1 to {options.seeds}")
    if options.out is not None:
        options.out.write_text(text, encoding="utf-8")
    if options.csv is not None:
        with options.csv.open("w", newline="", encoding="utf-8") as out:
            csv.writer(out).writerows(points)


if __name__ == "__main__":
    main()
