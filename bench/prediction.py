"""Predictions of simulated systems held against the truth: models and designs side by side.

For each profile and seed, every design measures the system once; every model is fitted to the very
same points; 100 random workloads nobody measured are predicted and held against the exact truth,
and against the mean of two runs of them for the amplification A (median error over the median
difference between the two runs). Prints one row per profile, design and model, medians over seeds,
and rows over the paper's five machines and over all.

    .venv/bin/python bench/prediction.py [--seeds 3] [--profile NAME …] [--design NAME …]
        [--workloads 100] [--processes 2]

`boosting` needs scikit-learn; its rows are left out, and said to be, where that is missing.
"""

from __future__ import annotations

import argparse
import importlib.util
import math
import multiprocessing
import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial

import msgspec
import numpy as np
from scipy.stats import t as student

from figures import Cell, Column, Content, Row, add_save_option, save, slug
from leadline.engine import Engine, Limits, Target, open_engine
from leadline.models.learning import Box, spread_out
from leadline.record import Measurement, Plan, PlanStage, Survey, Workload
from leadline.studies.survey.explain import explain_told
from leadline.studies.survey.strategy import Surveyor
from leadline.studies.survey.study import SurveyOptions, begin_survey
from prediction_rivals import MODELS, Fitted, Points, fit

MEASURES = (
    "python/leadline/models",
    "python/leadline/studies/survey",
    "python/leadline/stats",
    "python/leadline/profiles",
    "crates/sim/src/law",
    "crates/stats/src",
)
ERROR = ("{value:.1f}",)
COLUMNS = (
    Column("system", ""),
    Column("product_curves", "product, curves", ("{value:.1f} ({enhanced:.1f})", *ERROR)),
    Column("joint_curves", "joint, curves", ERROR),
    Column("joint_sobol", "joint, Sobol", ERROR),
    Column("joint_survey", "joint, survey", ERROR),
    Column("joint_40", "joint, survey ≤ 40", ERROR),
    Column("a", "A", ("{value:.2f}",)),
    Column("cover", "90% cover", ERROR),
)
CELLS = {
    "product_curves": ("product", "curves 84"),
    "joint_curves": ("joint", "curves 84"),
    "joint_sobol": ("joint", "sobol 84"),
    "joint_survey": ("joint", "mixed 84"),
    "joint_40": ("joint", "mixed 40"),
}
"""Which model and design a column is of; the last two columns are of `joint_survey`."""

PAPER = ("convex-c240", "decstation-5000-sprite", "hp-730", "solbourne-5e905", "sparcstation-1plus")
STEADY = (
    *PAPER,
    "four-level",
    "no-cache",
    "smooth-slope",
    "three-level",
    "two-level",
    "write-through",
)
"""Profiles with 2 to 5% of run-to-run noise and nothing that changes in time."""

DESIGNS: dict[str, dict[str, int]] = {
    "curves 84": {"scout": 18, "ends": 4, "unique_bytes": 18, "families": 42, "closing": 2},
    "sobol 84": {"scout": 12, "ends": 4, "unique_bytes": 11, "sobol": 55, "closing": 2},
    "mixed 84": {
        "scout": 12,
        "ends": 4,
        "unique_bytes": 11,
        "families": 21,
        "learning": 34,
        "closing": 2,
    },
    "mixed 40": {
        "scout": 8,
        "ends": 4,
        "unique_bytes": 7,
        "families": 13,
        "learning": 6,
        "closing": 2,
    },
}
LIMITS = Limits(
    warm_up_s_max=60, measure_s_min=60, measure_s_max=600, accuracy=0.02, total_s_max=2000
)
BOUNDARY_ZONE = (0.95, 1.33)
"""Factors of a true boundary between which a workload is at it (CP94 Fig. 24)."""


@dataclass(frozen=True)
class Score:
    """One model on one survey, errors as fractions of the truth."""

    profile: str
    design: str
    model: str
    points: int
    errors: tuple[float, ...]
    enhanced: tuple[float, ...]
    """Errors of the workloads away from boundaries."""
    covered: tuple[bool, ...]
    """Whether the 90% interval holds the truth; empty for a model without intervals."""
    amplification: float


@dataclass(frozen=True)
class Trial:
    """The workloads to predict, and what they truly do."""

    workloads: tuple[Workload, ...]
    truth: np.ndarray[tuple[int], np.dtype[np.float64]]
    readings: np.ndarray[tuple[int, int], np.dtype[np.float64]]
    at_boundary: np.ndarray[tuple[int], np.dtype[np.bool_]]


def run(task: tuple[str, int], designs: Sequence[str], workloads: int) -> list[Score]:
    """Measure one profile by every design and score every model."""
    profile, seed = task
    target = Target.parse(f"sim:{profile}")
    trial: Trial | None = None
    scores: list[Score] = []
    for design in designs:
        survey, points, box = measure(target, seed, DESIGNS[design])
        trial = trial or make_trial(target, seed, box, workloads)
        for model in MODELS:
            fitted = fit(model, Points(survey, points))
            if fitted is not None:
                where = (profile, design, model, len(points))
                scores.append(score(where, trial, fitted))
    return scores


def measure(
    target: Target, seed: int, counts: dict[str, int]
) -> tuple[Survey, list[Measurement], Box]:
    """Survey a system by a design; `sobol` points follow the survey's own."""
    with open_engine(target, run_seed=seed) as engine:
        asked = SurveyOptions(target.name, 14 * 3600.0, None, seed)
        start = begin_survey(engine, target, asked, study_id=f"{target.name}-{seed}")
        own = {name: count for name, count in counts.items() if name != "sobol"}
        stages = tuple(PlanStage(name, count, "") for name, count in own.items())
        plan = msgspec.structs.replace(start.plan, stages=stages)
        start = msgspec.structs.replace(start, plan=plan)
        surveyor = Surveyor(start)
        while (asked_for := surveyor.ask()) is not None:
            point = reading(engine, asked_for.workload, asked_for.seed, asked_for.order)
            surveyor.tell(msgspec.structs.replace(point, stage=asked_for.stage))
        points = list(surveyor.points)
        box = box_of(plan)
        for workload in spread_out(box, counts.get("sobol", 0), seed):
            points.append(reading(engine, workload, seed + len(points), len(points)))
        return explain_told(surveyor, wall_s=engine.clock_s), points, box


def reading(engine: Engine, workload: Workload, seed: int, order: int) -> Measurement:
    """Measure one workload."""
    clock_s = engine.clock_s
    result = engine.run(workload, seed=seed, limits=LIMITS)
    return Measurement(
        point_id=f"p{order}",
        order=order,
        stage="sobol",
        started_at="",
        clock_s=clock_s,
        seed=seed,
        workload=workload,
        backend="simulated",
        result=result,
    )


def box_of(plan: Plan) -> Box:
    """Return the surveyed ranges."""
    return Box(
        (plan.unique_bytes_min, plan.unique_bytes_max),
        (plan.size_mean_min, plan.size_mean_max),
        (1.0, float(plan.process_num_max)),
    )


def make_trial(target: Target, seed: int, box: Box, count: int) -> Trial:
    """Draw workloads at random and run each twice."""
    random = np.random.default_rng(seed)
    workloads = tuple(box.workload(tuple(place)) for place in random.random((count, 5)).tolist())
    with open_engine(target, run_seed=seed + 10**6) as engine:
        passes = [
            [
                reading(engine, w, seed * 7919 + index + 5000 * again, index).result
                for index, w in enumerate(workloads)
            ]
            for again in (1, 2)
        ]
    truth = [r.simulated.law_mb_s if r.simulated else math.nan for r in passes[0]]
    boundaries = (target.profile or {})["truth"]["boundaries_bytes"]
    at_boundary = [
        any(BOUNDARY_ZONE[0] * b <= w.unique_bytes <= BOUNDARY_ZONE[1] * b for b in boundaries)
        for w in workloads
    ]
    readings = [[result.throughput_mb_s.value for result in one] for one in passes]
    return Trial(workloads, np.array(truth), np.array(readings), np.array(at_boundary))


def score(where: tuple[str, str, str, int], trial: Trial, fitted: Fitted) -> Score:
    """Hold predictions against the truth, and against two runs."""
    ln_mb_s, ln_sd, df = fitted(trial.workloads)
    predicted = np.exp(ln_mb_s)
    errors = np.abs(predicted / trial.truth - 1)
    covered: tuple[bool, ...] = ()
    if ln_sd is not None:
        half = float(student.ppf(0.95, df)) * ln_sd
        covered = tuple((np.abs(np.log(trial.truth) - ln_mb_s) <= half).tolist())
    mean = trial.readings.mean(axis=0)
    inherent = np.median(np.abs(trial.readings[0] - trial.readings[1]) / mean)
    profile, design, model, points = where
    return Score(
        profile=profile,
        design=design,
        model=model,
        points=points,
        errors=tuple(errors.tolist()),
        enhanced=tuple(errors[~trial.at_boundary].tolist()),
        covered=covered,
        amplification=float(np.median(np.abs(predicted / mean - 1)) / inherent),
    )


def print_rows(label: str, scores: Sequence[Score]) -> None:
    """Print a row per design and model."""
    for design, model in dict.fromkeys((s.design, s.model) for s in scores):
        own = [s for s in scores if (s.design, s.model) == (design, model)]

        def typical(value: Callable[[Score], float], own: Sequence[Score] = own) -> float:
            return statistics.median(value(s) for s in own)

        covered = [c for s in own for c in s.covered]
        figures = (
            f"{100 * typical(lambda s: statistics.median(s.errors)):6.1f} "
            f"{100 * max(statistics.median(s.errors) for s in own):6.1f} "
            f"{100 * typical(lambda s: float(np.quantile(s.errors, 0.75))):6.1f} "
            f"{100 * typical(lambda s: float(np.quantile(s.errors, 0.9))):6.1f} "
            f"{100 * typical(lambda s: statistics.median(s.enhanced)):8.1f} "
            f"{typical(lambda s: s.amplification):5.2f} "
        )
        share = f"{100 * statistics.mean(covered):6.1f}" if covered else "     -"
        points = typical(lambda s: s.points)
        print(f"{label:24} {design:10} {model:9} {points:4.0f} {figures}{share}", flush=True)


def row_of(label: str, scores: Sequence[Score]) -> Row:
    """Return what is stored of a system, or of several."""
    cells: dict[str, Content] = {"system": label}
    for key, (model, design) in CELLS.items():
        own = [s for s in scores if (s.model, s.design) == (model, design)]
        if not own:
            continue
        errors = [100 * statistics.median(s.errors) for s in own]
        also = {"worst": max(errors)}
        if model == "product":
            also["enhanced"] = 100 * statistics.median(statistics.median(s.enhanced) for s in own)
        cells[key] = Cell(statistics.median(errors), n=len(own), also=also)
        if key == "joint_survey":
            cells["a"] = statistics.median(s.amplification for s in own)
            cells["cover"] = 100 * statistics.mean(held for s in own for held in s.covered)
    return Row(slug(label), cells)


def main() -> None:
    """Run every profile and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--workloads", type=int, default=100)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--profile", nargs="+", default=list(STEADY))
    parser.add_argument("--design", nargs="+", default=list(DESIGNS), choices=list(DESIGNS))
    add_save_option(parser, "prediction")
    args = parser.parse_args()
    if importlib.util.find_spec("sklearn") is None:
        print("boosting is left out: scikit-learn is not installed (pip install scikit-learn)")
    print(
        f"{'profile':24} {'design':10} {'model':9}  pts median  worst    p75    p90 enhanced"
        "     A  90%"
    )
    print("(errors in % of the truth; worst: the greatest median of any seed and profile)")
    judge = partial(run, designs=args.design, workloads=args.workloads)
    every: list[Score] = []
    with multiprocessing.Pool(args.processes) as pool:
        for profile in args.profile:
            seeds: Iterable[int] = range(1, args.seeds + 1)
            found = [s for one in pool.map(judge, [(profile, i) for i in seeds]) for s in one]
            print_rows(profile, found)
            every += found
    groups = {"the paper's five": [s for s in every if s.profile in PAPER], "all": every}
    for label, scores in groups.items():
        print_rows(label, scores)
    groups = {p: [s for s in every if s.profile == p] for p in args.profile} | groups
    rows = [row_of(label, scores) for label, scores in groups.items() if scores]
    save(args, COLUMNS, rows, seeds=f"seeds 1 to {args.seeds}")


if __name__ == "__main__":
    main()
