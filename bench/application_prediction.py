"""Applications predicted on machines made of parts, held against their streams run on these.

    .venv/bin/python bench/application_prediction.py [--seeds 0 8] [--budget-s 600]
        [--requests 400000] [--memory-max-mib 200] [--processes 1]

Each seed draws a machine (`proving.machines`) and a program of two to four streams, whose
data are a multiple of the machine's memory. The program's requests are written as a trace, which is
described as any other; the machine is surveyed as shipped, the application predicted, and its
streams then run by the engine on the same parts: time in I/O per request is the truth. The trace
begins with an empty cache and the run with a full one, so that compulsory misses, few in so long a
trace, are left out of what is predicted. Seeds below 1000 are for development.

Prints a row for each machine, the median error, and how many 90% intervals hold the truth.
"""

from __future__ import annotations

import argparse
import math
import multiprocessing
import statistics
import tempfile
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from application_fixture import Kept
from leadline.engine import Engine, Limits, Simulated, Target, open_engine, until_completed
from leadline.models.application.predicted import predict_application
from leadline.models.predictor import Predictor
from leadline.record import EngineResult
from leadline.record.application import Application
from leadline.record.survey import SURVEY
from leadline.stats import student_t
from leadline.store import open_store
from leadline.studies.application.characterize import characterize_trace
from leadline.studies.application.synthetic import synthetic_of
from leadline.studies.survey.study import LEARN_FRAC, SurveyOptions, begin_survey, run_survey
from planted_traces import Planted, mixture
from proving.machines import draw_machine
from traced_programs import write_strace

RUNS = 3
RUN_S = 20.0
"""Virtual seconds of each, at most."""


@dataclass(frozen=True)
class Found:
    """One machine with one program."""

    kind: str
    seed: int
    predicted_us: float
    """Time in I/O, of one request."""
    true_us: float
    held: bool
    """By the 90% interval."""
    misses: tuple[float, float]
    """Of what is read: by LRU at the page cache that was found, and seen."""

    @property
    def ln_error(self) -> float:
        """Of the prediction, over the truth."""
        return math.log(self.predicted_us / self.true_us)


def program(seed: int, memory_bytes: int) -> tuple[Planted, ...]:
    """Draw a program whose data are half to three times the memory."""
    draw = np.random.default_rng([seed, 18])
    count = int(draw.integers(2, 5))
    weights = draw.uniform(0.15, 1.0, count)
    kinds = ["uniform", *draw.choice(["uniform", "loop"], count - 1)]
    streams = []
    for kind, weight in zip(kinds, weights / weights.sum(), strict=True):
        size = int(4096 * 2 ** draw.integers(3, 7))
        data = memory_bytes * draw.uniform(0.5, 3.0) / count
        read_frac = float(draw.choice([0.0, 0.5, 0.8, 1.0]))
        streams.append(Planted(kind, float(weight), round(data) // size * size, size, read_frac))
    return tuple(streams)


def steady(application: Application) -> Application:
    """Return it as if its data had been used before, without compulsory misses in its reuse."""
    reuse = application.found.reuse
    again = sum(each.reads + each.writes for each in reuse.distances)
    first = reuse.first_touches
    points = tuple(
        msgspec.structs.replace(
            point,
            lru=max(0.0, (point.lru - first) / (1 - first)),
            two_lists=None
            if point.two_lists is None
            else max(0.0, (point.two_lists - first) / (1 - first)),
        )
        for point in reuse.points
    )
    warm = msgspec.structs.replace(
        reuse, references=round(again), first_reads=0.0, first_writes=0.0, points=points
    )
    found = msgspec.structs.replace(application.found, reuse=warm)
    return msgspec.structs.replace(application, found=found)


def survey(target: Target, seed: int, budget_s: float) -> Predictor:
    """Survey a machine as shipped."""
    store = open_store("sqlite://")
    with open_engine(target, run_seed=seed) as engine:
        asked = SurveyOptions(target.name, budget_s, None, seed, learn_frac=LEARN_FRAC)
        start = begin_survey(engine, target, asked, study_id=f"{target.name}-{seed}")
        store.begin(SURVEY, start)
        found = run_survey(engine, store, start)
    return Predictor(found, store.items(start.study_id))


def run_streams(engine: Engine, application: Application, seed: int) -> EngineResult:
    """Run an application's only phase."""
    found = synthetic_of(application)
    limits = Limits(
        warm_up_s_max=RUN_S, measure_s_min=RUN_S / 2, measure_s_max=RUN_S, accuracy=0.01
    )
    workload = msgspec.structs.replace(found.workload, think_time_s=0.0)
    run = partial(engine.run, workload, seed=seed, streams=found.streams)
    return until_completed(run, limits)


def score(seed: int, asked: argparse.Namespace) -> Found:
    """Predict and run one program on one machine."""
    profile: dict[str, Any] = draw_machine(seed)
    memory = profile["machine"]["cache"]["capacity_bytes"]
    name = profile["meta"]["name"]
    target = Simulated(text=f"sim:{name}", profile=profile)
    with tempfile.TemporaryDirectory() as folder:
        requests = mixture(program(seed, memory), asked.requests, seed)
        trace = write_strace(requests, Path(folder) / "program.strace")
        application = steady(characterize_trace(str(trace), Kept()))
    survey_found = survey(target, seed, asked.budget_s)
    predicted = predict_application(application, survey_found)
    with open_engine(target, run_seed=(1 << 40) + seed) as engine:
        runs = [run_streams(engine, application, seed + again) for again in range(RUNS)]
    true_s = statistics.fmean(run.io_share / run.iops.value for run in runs)
    described_s = predicted.io_s.value / sum(stream.requests for stream in predicted.streams)
    half = student_t(predicted.df, 0.9) * predicted.ln_sd
    off = math.log(described_s / true_s)
    seen = [1 - run.cached_share for run in runs if run.cached_share is not None]
    cache = survey_found.survey.cache_bytes
    said = math.nan if cache is None else _read_misses(application, cache.value)
    misses = (said, statistics.fmean(seen) if seen else math.nan)
    kind = name.split("-")[1]
    return Found(kind, seed, 1e6 * described_s, 1e6 * true_s, abs(off) <= half, misses)


def _read_misses(application: Application, cache_bytes: float) -> float:
    reads, _ = application.found.reuse.lru_misses_apart(cache_bytes)
    return reads


def _drawn(asked: argparse.Namespace) -> list[int]:
    most = asked.memory_max_mib * 2**20
    seeds = range(*asked.seeds)
    return [s for s in seeds if draw_machine(s)["machine"]["cache"]["capacity_bytes"] <= most]


def main() -> None:
    """Predict, run and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seeds", type=int, nargs=2, default=(0, 8), metavar=("A", "B"))
    parser.add_argument("--budget-s", type=float, default=600.0)
    parser.add_argument("--requests", type=int, default=400_000)
    parser.add_argument("--memory-max-mib", type=float, default=200.0)
    parser.add_argument("--processes", type=int, default=1)
    asked = parser.parse_args()
    found = []
    with multiprocessing.Pool(asked.processes) as pool:
        for each in pool.imap(partial(score, asked=asked), _drawn(asked)):
            found.append(each)
            print(
                f"{each.kind:8} {each.seed:5} predicted {each.predicted_us:9.1f} us, true "
                f"{each.true_us:9.1f} us, {100 * math.expm1(each.ln_error):+6.1f}%, "
                f"{'held' if each.held else 'MISSED'}; misses {each.misses[0]:.2f} said, "
                f"{each.misses[1]:.2f} seen",
                flush=True,
            )
    errors = [abs(math.expm1(each.ln_error)) for each in found]
    held = statistics.fmean(each.held for each in found)
    print(
        f"{len(found)} machines: median error {100 * statistics.median(errors):.1f}%, worst "
        f"{100 * max(errors):.1f}%, 90% intervals hold {100 * held:.0f}%"
    )


if __name__ == "__main__":
    main()
