"""Hold comparisons of simulated systems against the truth: ratios, verdicts, CP94 Fig. 17.

Prints Fig. 17 for every pair of the paper's five machines, then how often the stated 95 % intervals
of predicted and of measured ratios covered the truth, and how often two surveys of one system gave
"cannot tell".

    .venv/bin/python bench/comparison.py [--repetitions 200] [--processes 2] [--model NAME]
"""

from __future__ import annotations

import argparse
import multiprocessing
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations

import numpy as np

from leadline.compare import Asked, Opened, measure_in_turns, named_questions, paired_ratio
from leadline.engine import Limits, Target, open_engine
from leadline.record import Workload
from leadline.store import open_store
from leadline.survey import derive_seed
from leadline.testing.comparison import (
    PAPER_MACHINES,
    HeldRatio,
    held_comparison,
    random_questions,
    surveyed,
    true_mb_s,
)

WORKLOADS = 5
"""Random workloads of one repetition."""
CLEAR = 0.15
"""Truth that differs by more than this must be seen."""


@dataclass(frozen=True)
class Repetition:
    """One repetition: two systems, and one system twice."""

    different: tuple[HeldRatio, ...]
    same: tuple[HeldRatio, ...]
    measured_covered: tuple[bool, ...]
    measured_alone: tuple[bool, ...]
    """Of one system measured against itself: whether its interval holds 1."""


def repeat(number: int, model: str | None) -> Repetition:
    """Survey a random pair afresh and hold its ratios against the truth."""
    rng = np.random.default_rng(number)
    a, b = (str(name) for name in rng.choice(PAPER_MACHINES, size=2, replace=False))
    first, second, again = (
        surveyed(profile, seed, model=model)
        for profile, seed in ((a, 3 * number), (b, 3 * number + 1), (a, 3 * number + 2))
    )
    questions = random_questions((first, second), WORKLOADS, number)
    _, different = held_comparison((a, b), (first, second), questions)
    own = random_questions((first, again), WORKLOADS, number)
    _, same = held_comparison((a, a), (first, again), own)
    return Repetition(
        different=different,
        same=same,
        measured_covered=measured((a, b), [each.workload for each in questions[:2]], number),
        measured_alone=measured((a, a), [each.workload for each in own[:2]], number),
    )


def measured(
    profiles: tuple[str, str], workloads: Sequence[Workload], number: int
) -> tuple[bool, ...]:
    """Measure in turns and tell for each workload whether the interval holds the true ratio."""
    limits = Limits(
        warm_up_s_max=30.0, measure_s_min=30.0, measure_s_max=60.0, accuracy=0.005,
        total_s_max=3600.0,
    )  # fmt: skip
    asked = Asked(6, limits, partial(derive_seed, number))
    targets = [Target.parse(f"sim:{profile}") for profile in profiles]
    with (
        open_engine(targets[0], run_seed=2 * number) as one,
        open_engine(targets[1], run_seed=2 * number + 1) as other,
    ):
        systems = [Opened("a", one), Opened("b", other)]
        found = measure_in_turns(systems, workloads, asked, open_store("sqlite://"))
    covered = []
    for readings in found:
        ratio = paired_ratio(list(zip(readings.mb_s["a"], readings.mb_s["b"], strict=True)))
        assert ratio is not None
        truths = [true_mb_s(profile, readings.workload) for profile in profiles]
        covered.append(ratio.interval().covers(truths[0] / truths[1]))
    return tuple(covered)


def print_fig_17(model: str | None, seed: int) -> None:
    """Print the true and the predicted ratio of every pair on every named workload."""
    print(f"{'pair':<44}{'workload':<18}{'true':>8}{'ratio':>9}{'95 %':>18}  winner  verdict")
    wrong = clear = false = 0
    for a, b in combinations(PAPER_MACHINES, 2):
        one, other = (surveyed(name, seed, model=model, extrapolate=True) for name in (a, b))
        for held in held_comparison((a, b), (one, other), named_questions())[1]:
            sure = max(held.true_ratio, 1 / held.true_ratio) > 1 + CLEAR
            clear += sure
            wrong += sure and not held.right_winner
            false += held.wrong_verdict
            said = "right" if held.right_winner else "WRONG" if sure else "close"
            span = f"{held.low:.3g} to {held.high:.3g}"
            print(f"{f'{a} / {b}':<44}{held.title or '':<18}{held.true_ratio:>8.3g}"
                  f"{held.ratio:>9.3g}{span:>18}  {said:<8}{held.verdict}")  # fmt: skip
    print(f"{clear} ratios differ by more than {CLEAR:.0%}; {wrong} name the wrong winner; "
          f"{false} verdicts are wrong\n")  # fmt: skip


def share(values: list[bool]) -> str:
    """Format a share with its count."""
    return f"{100 * statistics.fmean(values):.1f} % of {len(values)}"


def main() -> None:
    """Print Fig. 17 and the coverage."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=200)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--model", default=None)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    print_fig_17(asked.model, asked.seed)
    begin = time.monotonic()
    with multiprocessing.Pool(asked.processes) as pool:
        numbers = range(asked.seed, asked.seed + asked.repetitions)
        rows = pool.map(partial(repeat, model=asked.model), numbers, chunksize=1)
    different = [held for row in rows for held in row.different]
    same = [held for row in rows for held in row.same]
    errors = [abs(held.ratio / held.true_ratio - 1) for held in different]
    print(f"{asked.repetitions} repetitions, {time.monotonic() - begin:.0f} s")
    print(f"predicted ratio covers the truth     {share([h.covered for h in different])}")
    print(f"  median error of the ratio          {100 * statistics.median(errors):.1f} %")
    print(f"  verdict for the slower one         {share([h.wrong_verdict for h in different])}")
    print(f"same system: cannot tell, alone      "
          f"{share([h.verdict_alone == 'cannot tell' for h in same])}")  # fmt: skip
    print(f"same system: cannot tell, together   "
          f"{share([all(h.verdict == 'cannot tell' for h in row.same) for row in rows])}"
          " comparisons")  # fmt: skip
    print(f"measured ratio covers the truth      "
          f"{share([c for row in rows for c in row.measured_covered])}")  # fmt: skip
    print(f"same system measured: cannot tell    "
          f"{share([c for row in rows for c in row.measured_alone])}")  # fmt: skip


if __name__ == "__main__":
    main()
