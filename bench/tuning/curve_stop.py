"""When `curve` stops: its constants tried on development servers of either family.

    .venv/bin/python bench/tuning/curve_stop.py [--family parts|law] [--first 0] [--servers 16]
        [--kinds NAME ...] [--repeats 1] [--threshold mean|p95] [--set NAME=VALUE ...]

A constant of `leadline.studies.workbench.policies.curve` is given another value for the run; the
same seeds meet the same servers, so that two runs can be held against each other. Only servers
whose truth is known are searched (bench/peak_truths.py). Those that figures come from are refused.
"""

from __future__ import annotations

import argparse
import importlib
import statistics
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from leadline.record.workbench import Goal
from proving.parts_servers import SCORED_FROM, draw_servers
from proving.peak_truth import known_truth, truth_key
from proving.searches import simulate_search
from proving.servers import GOAL, PERCENTILE_GOAL, Member, population

CURVE = importlib.import_module("leadline.studies.workbench.policies.curve")
"""The module: its package gives the policy by the same name."""

GOALS = {"mean": GOAL, "p95": PERCENTILE_GOAL}


class Outcome(NamedTuple):
    """One search, held against the truth."""

    kind: str
    seed: int
    verdict: str
    holds: bool
    error_frac: float
    half_frac: float
    minutes: float


def members(asked: argparse.Namespace) -> Iterator[Member]:
    """Yield the development servers that were asked for."""
    end = asked.first + asked.servers
    if asked.family == "parts" and end > SCORED_FROM:
        raise SystemExit(f"figures come from servers from {SCORED_FROM} on: nothing is tuned there")
    drawn = (
        draw_servers(asked.first, asked.servers)
        if asked.family == "parts"
        else population(end)[asked.first :]
    )
    yield from (item for item in drawn if not asked.kinds or item.kind in asked.kinds)


def searched(item: Member, goal: Goal, seed: int) -> Outcome | None:
    """Search one server; None where its truth is not known or no rate was given."""
    true = known_truth(truth_key(item.server, goal))
    if true is None:
        return None
    peak, _, _ = simulate_search("curve", item.server, goal, 1000 * seed + item.index)
    rate = None if peak is None else peak.rate_per_s
    if peak is None or rate is None or rate.low is None or rate.high is None:
        return None
    return Outcome(
        kind=item.kind.value,
        seed=item.index,
        verdict=peak.verdict.value,
        holds=rate.low <= true.rate_per_s <= rate.high,
        error_frac=rate.value / true.rate_per_s - 1,
        half_frac=(rate.high - rate.low) / (2 * rate.value),
        minutes=peak.cost_s / 60,
    )


def row(name: str, found: Sequence[Outcome]) -> str:
    """Write one line of what came out."""
    minutes = sorted(item.minutes for item in found)
    late = minutes[int(0.9 * (len(minutes) - 1))]
    errors = [item.error_frac for item in found]
    missed = sorted({item.seed for item in found if not item.holds})
    return (
        f"{name:18} n {len(found):3}"
        f"  holds {statistics.mean(item.holds for item in found):6.1%}"
        f"  within 10% {statistics.mean(abs(error) <= 0.1 for error in errors):6.1%}"
        f"  bias {statistics.mean(errors):+.1%}"
        f"  half {statistics.median(item.half_frac for item in found):.1%}"
        f"  minutes {statistics.mean(minutes):.1f}, p90 {late:.1f}"
        f"  {dict(Counter(item.verdict for item in found))}  missed {missed}"
    )


def main() -> None:
    """Search all, and print a line for each class."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--family", choices=("parts", "law"), default="parts")
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--servers", type=int, default=16)
    parser.add_argument("--kinds", nargs="*", default=[])
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--threshold", choices=list(GOALS), default="mean")
    parser.add_argument("--set", nargs="*", default=[], help="NAME=VALUE of the policy's module")
    asked = parser.parse_args()
    for name, _, value in (given.partition("=") for given in asked.set):
        setattr(CURVE, name, type(getattr(CURVE, name))(float(value)))
    tries = [
        searched(item, GOALS[asked.threshold], seed)
        for item in members(asked)
        for seed in range(1, asked.repeats + 1)
    ]
    found = [outcome for outcome in tries if outcome is not None]
    for kind in dict.fromkeys(item.kind for item in found):
        print(row(kind, [item for item in found if item.kind == kind]))
    print(row("all", found))


if __name__ == "__main__":
    main()
