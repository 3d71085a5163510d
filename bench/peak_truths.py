"""Compute the true peak rates of the population and of the grids, and publish them in the package.

    .venv/bin/python bench/peak_truths.py [--family law|parts] [--servers 200] [--population 1]
        [--first 0] [--threshold mean|p95] [--se 0.0025] [--processes 2] [--publish]

Each truth is kept in build/truth as soon as it is found, so a run that was stopped goes on where it
was; one that is known well enough, there or in the package, is not computed again. `--publish`
writes all that are known into tests/proving/peak_truths.json, where `truth` finds them
first; those of the servers made of parts, of the seeds from `--first` on, and of other populations
are added to bench/results/server_truths.json.
"""

from __future__ import annotations

import argparse
import multiprocessing
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import msgspec

from leadline.record.workbench import Goal, Sample, SimulatedServer
from proving.grids import WORKLOADS, grid_samples
from proving.parts_servers import draw_servers
from proving.peak_truth import (
    PARTS_PUBLISHED,
    PUBLISHED,
    SE_FRAC,
    NoPeak,
    Truth,
    compute_truth,
    keep_truth,
    known_truth,
    published_parts,
    truth_key,
)
from proving.servers import GOAL, PERCENTILE_GOAL, population

Question = tuple[str, SimulatedServer, Goal, Sample]

ROUGH_SE_FRAC, AT_ONCE, ROUGHLY_AT_ONCE = 0.01, 96, 40
"""A truth that need not be exact is had from fewer trials at once."""

PERCENTILE_SERVERS = 40
"""Truths of the percentile threshold are published for the first of the population."""


GOALS = {"mean": GOAL, "p95": PERCENTILE_GOAL}


def questions_of_parts(first: int, count: int, threshold: str) -> Iterator[Question]:
    """Servers made of parts."""
    for item in draw_servers(first, count):
        yield f"{item.name} ({threshold})", item.server, GOALS[threshold], {}


def questions(servers: int, seed: int) -> Iterator[Question]:
    """Everything whose truth is published; of another population only its servers."""
    for item in population(servers, seed):
        yield item.name, item.server, GOAL, {}
    if seed != 1:
        return
    for item in population(min(servers, PERCENTILE_SERVERS)):
        yield f"{item.name} (P95)", item.server, PERCENTILE_GOAL, {}
    for workload, server in WORKLOADS.items():
        for sample in grid_samples():
            yield f"{workload} {sample['disks']} x {sample['workers']}", server, GOAL, sample


def find(question: Question, se_frac: float) -> tuple[str, str, Truth | None, float]:
    """Find one truth, where it is known well enough or by computing it."""
    name, server, goal, sample = question
    key = truth_key(server, goal, sample)
    begin = time.monotonic()
    found = known_truth(key)
    if found is None or found.se_frac > 1.001 * se_frac:
        try:
            at_once = AT_ONCE if se_frac < ROUGH_SE_FRAC else ROUGHLY_AT_ONCE
            found = compute_truth(dict(server.system) | dict(sample), goal, se_frac, at_once)
            keep_truth(key, found)
        except NoPeak as error:
            name = f"{name}: {error}"
    return name, key, found, time.monotonic() - begin


def main() -> None:
    """Find them all, and say what was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--family", choices=("law", "parts"), default="law")
    parser.add_argument("--servers", type=int, default=200)
    parser.add_argument("--first", type=int, default=0, help="seed of the first server of parts")
    parser.add_argument("--threshold", choices=list(GOALS), default="mean", help="of parts")
    parser.add_argument("--population", type=int, default=1, help="seed of the servers")
    parser.add_argument("--se", type=float, default=SE_FRAC)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--publish", action="store_true")
    asked = parser.parse_args()
    found: dict[str, Truth] = {}
    parts = asked.family == "parts"
    asks = questions_of_parts(asked.first, asked.servers, asked.threshold) if parts else None
    asks = asks or questions(asked.servers, asked.population)
    with multiprocessing.Pool(asked.processes) as pool:
        for name, key, item, seconds in pool.imap(partial(find, se_frac=asked.se), list(asks)):
            if item is None:
                print(f"{name}  ({seconds:.1f} s)", flush=True)
                continue
            found[key] = item
            print(
                f"{name:24}{item.rate_per_s:9.1f}/s ± {1.96 * item.se_frac:.2%}"
                f"  slope {item.slope:5.1f}  one trial ± {item.noise_frac:.1%}"
                f"  above {item.exceeding:.0%}  {item.trials} trials  {seconds:.1f} s",
                flush=True,
            )
    if asked.publish and (parts or asked.population != 1):
        publish(PARTS_PUBLISHED, published_parts() | found)
    elif asked.publish:
        publish(Path("tests/proving") / PUBLISHED, found)


def publish(path: Path, found: dict[str, Truth]) -> None:
    """Write a table: one line for each truth, in the order of their keys."""
    rows = (f'"{key}":{msgspec.json.encode(item).decode()}' for key, item in found.items())
    path.write_text("{\n" + ",\n".join(sorted(rows)) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
