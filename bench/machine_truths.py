"""Compute true throughputs of the machines made of parts, and keep them.

    .venv/bin/python bench/machine_truths.py [--machine NAME ...] [--drawn 1000 1008]
        [--workloads 12] [--se 0.005] [--processes 2]

Of every machine that ships, and of machines drawn by the seeds from A to before B, the same drawn
workloads. What is known well enough in bench/results/machine_truths.json is not computed again;
each truth is written there as soon as it is found, so a run that was stopped goes on.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import time
from collections.abc import Iterator
from functools import partial
from typing import Any

import msgspec

from figures.origin import commit_now, today
from figures.stored import write_lines
from leadline.engine import load_profile, machine_names
from leadline.errors import LeadlineError
from leadline.record import Workload
from proving.machine_truth import (
    PUBLISHED,
    RUNS_MAX,
    SE_FRAC,
    MachineTruth,
    compute_truth,
    draw_workloads,
    truth_key,
)
from proving.machines import draw_machine

Question = tuple[dict[str, Any], Workload]
Row = dict[str, Any]

MEASURES = ("crates/sim/src", "python/leadline/profiles/machines", "tests/proving")
WORKLOADS_SEED = 1


def questions(asked: argparse.Namespace) -> Iterator[Question]:
    """Everything whose truth is kept."""
    named = [load_profile(name) for name in asked.machine or machine_names()]
    drawn = [draw_machine(seed) for seed in range(*asked.drawn)]
    for profile in named + drawn:
        for workload in draw_workloads(profile, WORKLOADS_SEED, asked.workloads):
            yield profile, workload


def find(question: Question, se_frac: float) -> tuple[Question, MachineTruth | str, float]:
    """Compute one truth; a text says why there is none."""
    begin = time.monotonic()
    try:
        return question, compute_truth(*question, se_frac=se_frac), time.monotonic() - begin
    except LeadlineError as error:
        return question, str(error), time.monotonic() - begin


def main() -> None:
    """Find them all, and say what was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--machine", action="append")
    parser.add_argument("--drawn", type=int, nargs=2, default=(0, 0), metavar=("A", "B"))
    parser.add_argument("--workloads", type=int, default=12)
    parser.add_argument("--se", type=float, default=SE_FRAC)
    parser.add_argument("--processes", type=int, default=2)
    asked = parser.parse_args()
    rows = kept()
    known = {key for key, row in rows.items() if is_enough(row, asked.se)}
    wanted = [question for question in questions(asked) if truth_key(*question) not in known]
    with multiprocessing.Pool(asked.processes) as pool:
        for question, found, seconds in pool.imap(partial(find, se_frac=asked.se), wanted):
            profile, workload = question
            told = f"{profile['meta']['name']:20}{said(workload)}"
            if isinstance(found, str):
                print(f"{told}: {found}  ({seconds:.1f} s)", flush=True)
                continue
            rows[truth_key(*question)] = row_of(question, found)
            keep(rows)
            print(
                f"{told}{found.throughput_mb_s:10.2f} MB/s ± {1.96 * found.se_frac:.1%}"
                f"  {found.runs} runs  {seconds:.1f} s",
                flush=True,
            )


def said(workload: Workload) -> str:
    """Tell a workload in a line."""
    return (
        f"{workload.unique_bytes / 2**20:9.1f} MiB {workload.size_mean / 2**10:7.1f} KiB"
        f"  read {workload.read_frac:.2f} seq {workload.seq_frac:.2f} x {workload.process_num:<3}"
    )


def is_enough(row: Row, se_frac: float) -> bool:
    """Whether nothing would be gained by computing it again."""
    truth = row["truth"]
    return bool(truth["se_frac"] <= se_frac or truth["runs"] >= RUNS_MAX)


def row_of(question: Question, truth: MachineTruth) -> Row:
    """Return what is kept of a truth."""
    profile, workload = question
    return {
        "key": truth_key(profile, workload),
        "machine": profile["meta"]["name"],
        "workload": msgspec.to_builtins(workload),
        "truth": msgspec.to_builtins(truth),
    }


def kept() -> dict[str, Row]:
    """Return the truths that are kept, by key."""
    if not PUBLISHED.is_file():
        return {}
    rows = json.loads(PUBLISHED.read_text(encoding="utf-8"))["truths"]
    return {row["key"]: row for row in rows}


def keep(rows: dict[str, Row]) -> None:
    """Write them all, one to a line, in the order of machines and keys."""
    made_by = "bench/machine_truths.py"
    head = {"made_by": made_by, "commit": commit_now(MEASURES), "date": today()}
    write_lines(PUBLISHED, head, "truths", sorted(rows.values(), key=by_machine))


def by_machine(row: Row) -> tuple[str, str]:
    """Return what truths are sorted by."""
    return row["machine"], row["key"]


if __name__ == "__main__":
    main()
