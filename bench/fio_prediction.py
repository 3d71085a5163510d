"""Does a person's fio job run as fast as Leadline predicts? Survey, predict, then ask fio.

A directory is surveyed under a memory cap (or a stored survey is taken with --survey). Then the two
jobs of workloads/ and nine variants of each, all within what they say of themselves, are read,
predicted, and run by fio itself on the same file system under the same cap. Prints each prediction
beside what fio measured, and in how many of the cases the stated 95% interval of a single run
holds it.

    .venv/bin/python bench/fio_prediction.py [--budget 6m] [--cache 512MiB] [--bytes 1.5GiB]
        [--survey S] [--seconds 6] [--only N] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from figures import Cell, Column, Content, Row, add_save_option, save, slug
from leadline.engine import Limits, Target, open_engine
from leadline.engine.fio import FioEngine
from leadline.fio import read_job
from leadline.models.model import PredictionRefused
from leadline.models.predictor import Predictor
from leadline.record import Access, Interval, Workload
from leadline.store import open_store
from leadline.studies.survey.study import load_survey
from leadline.units import parse_bytes

MEASURES = (
    "python/leadline/fio",
    "python/leadline/models",
    "python/leadline/studies/survey",
    "python/leadline/stats",
    "crates/stats/src",
)
COLUMNS = (
    Column("job", "job"),
    Column("changed", "changed"),
    Column("fio", "fio MB/s"),
    Column(
        "predicted", "predicted, one run", ("{value:.4g} [{low:.4g}, {high:.4g}], {off:+.0f}%",)
    ),
    Column("held", "held", ("{value:.0f} of {n}",)),
)
HELD_LEAST = 0.9
"""Of the cases, by intervals of 95%."""
ROOT = Path(__file__).parent.parent
Changes = dict[str, str | int]

DATABASE: tuple[Changes, ...] = (
    {},
    {"rwmixread": 50},
    {"rwmixread": 95},
    {"bs": "8k"},
    {"bs": "32k"},
    {"numjobs": 1},
    {"numjobs": 4},
    {"size": "256m"},
    {"size": "700m", "numjobs": 16},
    {"bs": "8k", "rwmixread": 90, "percentage_random": 100},
)
STREAMING: tuple[Changes, ...] = (
    {},
    {"bs": "64k"},
    {"bs": "1m"},
    {"numjobs": 1},
    {"numjobs": 4},
    {"percentage_random": 10},
    {"size": "256m"},
    {"size": "700m", "numjobs": 8},
    {"rw": "randrw", "rwmixread": 90},
    {"bs": "128k", "percentage_random": 5, "size": "400m"},
)


@dataclass
class Outcome:
    """One case: predicted and measured, in MB/s."""

    name: str
    changed: str
    measured_mb_s: float
    predicted: tuple[float, float, float] | None
    refused: str | None = None

    @property
    def is_held(self) -> bool:
        """Whether the predicted interval (value, low, high) holds what fio measured."""
        return self.predicted is not None and (
            self.predicted[1] <= self.measured_mb_s <= self.predicted[2]
        )


def variants() -> Iterator[tuple[str, str, str]]:
    """Yield name, what was changed, and the text of each job, the two kinds in turn."""
    texts = {
        name: (ROOT / "workloads" / f"{name}.fio").read_text(encoding="utf-8")
        for name in ("database", "streaming")
    }
    for pair in zip(DATABASE, STREAMING, strict=True):
        for name, changes in zip(texts, pair, strict=True):
            changed = [f"{key}={value}" for key, value in changes.items()]
            yield name, " ".join(changed), "\n".join([texts[name], *changed])


def scaled(text: str, scale: float) -> str:
    """Return the job with its data shrunk or grown, for a trial of the bench itself."""
    if scale == 1.0:
        return text
    (job,) = read_job(text)
    return f"{text}\nsize={round(job.workload.unique_bytes * scale)}\n"


def predicted(predictor: Predictor, workload: Workload) -> tuple[float, float, float] | None:
    """Return value, low and high of a single run."""
    try:
        found: Interval = predictor.predict(workload).run_throughput_mb_s
    except PredictionRefused as reason:
        print(f"refused: {reason}", file=sys.stderr)
        return None
    return found.value, found.low or 0.0, found.high or float("inf")


def run(asked: argparse.Namespace, directory: str) -> list[Outcome]:
    """Survey when needed, then every case."""
    store_url = asked.store  # a stored survey lies in the default store when none is named
    ref = asked.survey
    if ref is None:
        store_url = store_url or f"{directory}/store.sqlite"
        target = Path(directory) / "target"
        target.mkdir()
        survey(asked, str(target), store_url)
        ref = "bench-fio"
    else:
        target = Path(directory)
    store = open_store(store_url)
    found, points = load_survey(store, ref)
    predictor = Predictor(found, points, model=asked.model)
    limits = Limits(
        warm_up_s_max=asked.warm_up,
        measure_s_min=asked.seconds,
        measure_s_max=asked.seconds,
        accuracy=0.0,
        total_s_max=600.0,
    )
    outcomes = []
    with open_engine(
        Target.parse(str(target)), Access(cache_limit_bytes=parse_bytes(asked.cache)), engine="fio"
    ) as engine:
        assert isinstance(engine, FioEngine)
        for number, (name, changed, whole) in enumerate(list(variants())[: asked.only]):
            text = scaled(whole, asked.scale)
            (job,) = read_job(text)
            # Predicted before fio is asked, so that nothing of the answer can leak.
            expected = predicted(predictor, job.workload)
            result = engine.run_text(text, job.workload, seed=number, limits=limits)
            outcomes.append(Outcome(name, changed, result.throughput_mb_s.value, expected))
            print(line(outcomes[-1]), file=sys.stderr)
    return outcomes


def survey(asked: argparse.Namespace, target: str, store_url: str) -> None:
    """Survey the target with the command itself, as a person would."""
    leadline = Path(sys.executable).with_name("leadline")
    subprocess.run(
        [
            leadline,
            "survey",
            target,
            "--name",
            "bench-fio",
            "--budget",
            asked.budget,
            "--cache-limit",
            asked.cache,
            "--max-bytes",
            asked.bytes,
        ],
        check=True,
        env=os.environ | {"LEADLINE_STORE": store_url},
        stdout=subprocess.DEVNULL,
    )


def line(outcome: Outcome) -> str:
    """Return one row of the table."""
    cells = [outcome.name, outcome.changed or "as it is", f"{outcome.measured_mb_s:.4g}"]
    if outcome.predicted is None:
        return f"| {' | '.join(cells)} | refused |"
    value, low, high = outcome.predicted
    verdict = "yes" if outcome.is_held else "**no**"
    error = value / outcome.measured_mb_s - 1
    cells.append(f"{value:.4g} [{low:.4g}, {high:.4g}] {error:+.0%} {verdict}")
    return f"| {' | '.join(cells)} |"


def rows_of(outcomes: list[Outcome]) -> Iterator[Row]:
    """Yield what is stored: a row for each case, and one for all."""
    for outcome in outcomes:
        changed = outcome.changed or "as it is"
        cells: dict[str, Content] = {"job": outcome.name, "changed": changed}
        cells["fio"] = outcome.measured_mb_s
        if outcome.predicted is None:
            cells["predicted"] = "refused"
        else:
            off = 100 * (outcome.predicted[0] / outcome.measured_mb_s - 1)
            cells["predicted"] = Cell(*outcome.predicted, also={"off": off})
            cells["held"] = "yes" if outcome.is_held else "**no**"
        yield Row(slug(f"{outcome.name} {changed}"), cells)
    held = sum(outcome.is_held for outcome in outcomes)
    yield Row(
        "all", {"job": "all", "held": Cell(held, n=len(outcomes), least=HELD_LEAST * len(outcomes))}
    )


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--survey", default=None, help="a stored survey instead of a new one")
    parser.add_argument(
        "--store", default=None, help="its store; with --survey the default one, else a new one"
    )
    parser.add_argument("--model", default=None, help="default: the predictor's own")
    parser.add_argument("--budget", default="6m")
    parser.add_argument("--cache", default="512MiB", help="memory cap of survey and runs")
    parser.add_argument("--bytes", default="1536MiB", help="largest unique_bytes surveyed")
    parser.add_argument("--seconds", type=float, default=6.0, help="of each run of fio")
    parser.add_argument("--warm-up", type=float, default=4.0, help="at most, before each")
    parser.add_argument("--scale", type=float, default=1.0, help="of the jobs' sizes")
    parser.add_argument("--only", type=int, default=None, help="the first N cases")
    parser.add_argument("--directory", type=Path, default=Path(), help="where to put the files")
    parser.add_argument("--json", type=Path, default=None, help="write every number here")
    add_save_option(parser, "fio_prediction")
    asked = parser.parse_args()
    began_s = time.monotonic()
    with tempfile.TemporaryDirectory(dir=asked.directory, prefix="leadline-bench-") as folder:
        outcomes = run(asked, str(Path(folder).resolve()))
    print("| job | changed | fio MB/s | predicted [one run] |\n|---|---|---|---|")
    print("\n".join(line(outcome) for outcome in outcomes))
    held = sum(outcome.is_held for outcome in outcomes)
    print(
        f"\nwithin the interval: {held} of {len(outcomes)}; "
        f"{time.monotonic() - began_s:.0f} s in all"
    )
    save(asked, COLUMNS, rows_of(outcomes), directory=asked.directory)
    if asked.json:
        asked.json.write_text(
            json.dumps([asdict(outcome) for outcome in outcomes], indent=1), encoding="utf-8"
        )


if __name__ == "__main__":
    main()
