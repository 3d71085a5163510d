"""Hold comparisons of simulated systems against the truth: ratios, verdicts, CP94 Fig. 17.

Prints Fig. 17 for every pair of the paper's five machines, then how often the stated 95% intervals
of predicted and of measured ratios covered the truth, and how often two surveys of one system gave
"inconclusive".

    .venv/bin/python bench/comparison.py [--repetitions 200] [--processes 2] [--model NAME …]
        [--learn 0.4]
"""

from __future__ import annotations

import argparse
import math
import multiprocessing
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations

import msgspec
import numpy as np

from figures import Cell, Column, Content, Row, add_save_option, save
from leadline.engine import Limits, Target, open_engine
from leadline.models.predictor import DEFAULT_MODEL, Predictor
from leadline.record import Measurement, Workload, derive_seed
from leadline.store import open_store
from leadline.studies.comparison.document import named_questions
from leadline.studies.comparison.ratio import paired_ratio
from leadline.studies.comparison.run import MeasureOptions, measure_in_turns
from leadline.studies.diary import Opened
from leadline.studies.survey.study import LEARN_FRAC
from proving.comparison import (
    PAPER_MACHINES,
    HeldRatio,
    held_comparison,
    random_questions,
    surveyed,
    true_mb_s,
)
from proving.simulation import SimulatedSurvey, simulate_survey

MEASURES = (
    "python/leadline/studies/comparison",
    "python/leadline/models",
    "python/leadline/studies/survey",
    "python/leadline/stats",
    "python/leadline/profiles",
    "crates/sim/src/law",
    "crates/stats/src",
)
FORMS = ("{count:.0f} of {n}", "{value:.1f} {unit} of {n}", "{value:.1f} {unit}")
SAID = {
    "predicted-holds": "interval of the predicted ratio holds the truth",
    "predicted-error": "median error of the predicted ratio",
    "wrong-verdicts": "verdicts that name the slower system",
    "told-beyond-15": "true ratio beyond 15%: told, asked alone",
    "twice-alone": "one system twice: `inconclusive`, each alone",
    "twice-together": "one system twice: `inconclusive` on all five together",
    "measured-holds": "interval of the measured ratio holds the truth",
    "measured-twice": "one system measured twice: `inconclusive`",
    "fig17-winner": "Fig. 17: right winner where truth differs by more than 15%",
}
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


Run = tuple[str, int, float]
"""A survey by profile and seed."""
_RUNS: dict[Run, SimulatedSurvey] = {}
"""Filled before the second pool forks, so that every process has all surveys."""


def survey_of(run: Run) -> SimulatedSurvey:
    """Survey one profile with one seed; without histograms and slices, which no model reads."""
    profile, seed, learn_frac = run
    found = simulate_survey(profile, seed, learn_frac=learn_frac)
    return replace(found, points=tuple(_light(point) for point in found.points))


def _light(point: Measurement) -> Measurement:
    result = point.result
    change = msgspec.structs.replace
    light = change(
        result,
        read=change(result.read, histogram=()),
        write=change(result.write, histogram=()),
        warm_up=change(result.warm_up, intervals=()),
        intervals=(),
    )
    return change(point, result=light)


def runs_of(number: int, seeds: int, learn_frac: float) -> tuple[Run, Run, Run]:
    """Return the surveys of one repetition: a random pair, and the first system once more."""
    rng = np.random.default_rng(number)
    a, b = (str(name) for name in rng.choice(PAPER_MACHINES, size=2, replace=False))
    seed = number % seeds
    return (a, seed, learn_frac), (b, seed, learn_frac), (a, (number + 1) % seeds, learn_frac)


def repeat(
    number: int, seeds: int, model: str | None, *, learn_frac: float, measure: bool
) -> Repetition:
    """Hold one pair's ratios against the truth, and one system's against itself."""
    runs = runs_of(number, seeds, learn_frac)
    a, b = runs[0][0], runs[1][0]
    first, second, again = (
        Predictor(_RUNS[run].survey, _RUNS[run].points, model=model) for run in runs
    )
    questions = random_questions((first, second), WORKLOADS, number)
    _, different = held_comparison((a, b), (first, second), questions)
    own = random_questions((first, again), WORKLOADS, number)
    _, same = held_comparison((a, a), (first, again), own)
    few = [each.workload for each in questions[: 2 * measure]]
    few_own = [each.workload for each in own[: 2 * measure]]
    return Repetition(
        different=different,
        same=same,
        measured_covered=measured((a, b), few, number),
        measured_alone=measured((a, a), few_own, number),
    )


def measured(
    profiles: tuple[str, str], workloads: Sequence[Workload], number: int
) -> tuple[bool, ...]:
    """Measure in turns and tell for each workload whether the interval holds the true ratio."""
    limits = Limits(
        warm_up_s_max=30.0,
        measure_s_min=30.0,
        measure_s_max=60.0,
        accuracy=0.005,
        total_s_max=3600.0,
    )
    asked = MeasureOptions(6, limits, partial(derive_seed, number))
    targets = [Target.parse(f"sim:{profile}") for profile in profiles]
    with (
        open_engine(targets[0], run_seed=2 * number) as one,
        open_engine(targets[1], run_seed=2 * number + 1) as other,
    ):
        systems = [Opened("a", targets[0].text, one), Opened("b", targets[1].text, other)]
        found = measure_in_turns(systems, workloads, asked, open_store("sqlite://"))
    covered = []
    for readings in found:
        ratio = paired_ratio(list(zip(readings.mb_s["a"], readings.mb_s["b"], strict=True)))
        assert ratio is not None
        truths = [true_mb_s(profile, readings.workload) for profile in profiles]
        covered.append(ratio.interval().covers(truths[0] / truths[1]))
    return tuple(covered)


def print_fig_17(model: str | None, seed: int, learn_frac: float) -> Cell:
    """Print the true and the predicted ratio of every pair on every named workload.

    Returns how often the winner was right, where there is one.
    """
    print(f"{'pair':<44}{'workload':<18}{'true':>8}{'ratio':>9}{'95%':>18}  winner  verdict")
    wrong = clear = false = 0
    for a, b in combinations(PAPER_MACHINES, 2):
        one, other = (
            surveyed(name, seed, model=model, extrapolate=True, learn_frac=learn_frac)
            for name in (a, b)
        )
        for held in held_comparison((a, b), (one, other), named_questions())[1]:
            sure = max(held.true_ratio, 1 / held.true_ratio) > 1 + CLEAR
            clear += sure
            wrong += sure and not held.right_winner
            false += held.wrong_verdict
            said = "right" if held.right_winner else "WRONG" if sure else "close"
            span = f"{held.low:.3g} to {held.high:.3g}"
            print(
                f"{f'{a} / {b}':<44}{held.title or '':<18}{held.true_ratio:>8.3g}"
                f"{held.ratio:>9.3g}{span:>18}  {said:<8}{held.verdict}"
            )
    print(
        f"{clear} ratios differ by more than {CLEAR:.0%}; {wrong} name the wrong winner; "
        f"{false} verdicts are wrong\n"
    )
    return counted(clear - wrong, clear)


def counted(count: int, of: int) -> Cell:
    """Return a count of so many."""
    return Cell(100 * count / max(of, 1), n=of, also={"count": count})


def shared(values: Sequence[bool], **goal: float) -> Cell | None:
    """Return a share with its count; None of nothing."""
    if not values:
        return None
    return Cell(100 * statistics.fmean(values), n=len(values)).aiming(goal)


def share(values: list[bool]) -> str:
    """Format a share with its count."""
    return f"{100 * statistics.fmean(values):.1f}% of {len(values)}"


def print_coverage(model: str | None, rows: list[Repetition]) -> None:
    """Print how often what was stated was so."""
    different = [held for row in rows for held in row.different]
    same = [held for row in rows for held in row.same]
    errors = [abs(held.ratio / held.true_ratio - 1) for held in different]
    unsure = [all(held.verdict == "inconclusive" for held in row.same) for row in rows]
    lines = [
        ("predicted ratio covers the truth", share([held.covered for held in different])),
        ("  median error of the ratio", f"{100 * statistics.median(errors):.1f}%"),
        ("  verdict for the slower system", share([held.wrong_verdict for held in different])),
        ("  true ratio beyond 15%, told", _told(different)),
        (
            "same system: cannot tell, each alone",
            share([held.verdict_alone == "inconclusive" for held in same]),
        ),
        ("same system: cannot tell on all five", share(unsure)),
    ]
    for title, name in (
        ("measured ratio covers the truth", "measured_covered"),
        ("same system measured: cannot tell", "measured_alone"),
    ):
        found = [covered for row in rows for covered in getattr(row, name)]
        lines += [(title, share(found))] if found else []
    print(f"model {model or DEFAULT_MODEL}, {len(rows)} repetitions")
    for title, text in lines:
        print(f"  {title:<40}{text}")
    print(flush=True)


def _told(different: list[HeldRatio]) -> str:
    return share(_are_told(different))


def _are_told(different: list[HeldRatio]) -> list[bool]:
    clear = [h for h in different if abs(math.log(h.true_ratio)) > math.log(1 + CLEAR)]
    return [held.verdict_alone != "inconclusive" for held in clear]


def cells_of(rows: list[Repetition], winners: Cell) -> dict[str, Content]:
    """Return what is stored of a model, by the keys of `SAID`."""
    different = [held for row in rows for held in row.different]
    wrong = sum(held.wrong_verdict for held in different)
    together = [all(held.verdict == "inconclusive" for held in row.same) for row in rows]
    alone = [held.verdict_alone == "inconclusive" for row in rows for held in row.same]
    errors = [abs(held.ratio / held.true_ratio - 1) for held in different]
    return {
        "predicted-holds": shared([held.covered for held in different], least=92, most=98),
        "predicted-error": 100 * statistics.median(errors),
        "wrong-verdicts": counted(wrong, len(different)).aiming({"most": 5}),
        "told-beyond-15": shared(_are_told(different)),
        "twice-alone": shared(alone, least=95),
        "twice-together": shared(together, least=95),
        "measured-holds": shared([c for r in rows for c in r.measured_covered], least=92, most=98),
        "measured-twice": shared([c for r in rows for c in r.measured_alone], least=95),
        "fig17-winner": winners,
    }


def main() -> None:
    """Print Fig. 17 and the coverage."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=200)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--model", nargs="*", default=[DEFAULT_MODEL])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--learn", type=float, default=LEARN_FRAC, help="as the survey's --learn")
    add_save_option(parser, "comparison")
    asked = parser.parse_args()
    winners = {model: print_fig_17(model, asked.seed, asked.learn) for model in asked.model}
    found: dict[str, dict[str, Content]] = {}
    numbers = range(asked.seed, asked.seed + asked.repetitions)
    seeds = max(2, round(asked.repetitions / len(PAPER_MACHINES)))
    needed = sorted({run for number in numbers for run in runs_of(number, seeds, asked.learn)})
    with multiprocessing.Pool(asked.processes) as pool:
        _RUNS.update(zip(needed, pool.map(survey_of, needed, chunksize=1), strict=True))
    for position, model in enumerate(asked.model):
        work = partial(
            repeat, seeds=seeds, model=model, learn_frac=asked.learn, measure=position == 0
        )
        with multiprocessing.get_context("fork").Pool(asked.processes) as pool:
            repetitions = pool.map(work, numbers, chunksize=1)
            print_coverage(model, repetitions)
            found[model] = cells_of(repetitions, winners[model])
    columns = [Column("what", ""), *(Column(model, model, FORMS, "%") for model in found)]
    rows = [
        Row(key, {"what": said, **{model: cells[key] for model, cells in found.items()}})
        for key, said in SAID.items()
    ]
    save(asked, columns, rows, seeds=f"seeds {numbers[0]} to {numbers[-1]}")


if __name__ == "__main__":
    main()
