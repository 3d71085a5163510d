"""The examples of workloads/ as tests and `make check-machine` run them."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from leadline.record.workbench import Sample, Trial, TrialOrder, TrialRequest
from leadline.servers import release_server, run_trial
from leadline.studies.workbench.experiments.read import load_experiment

FOLDER = Path(__file__).parents[2] / "workloads"
SHORT = {"run_length": "3s", "accuracy": 0.7, "deadline": "90s", "rate_start": 50, "rate_max": 900}
"""Of an experiment: trials of 3 s and ± 30%."""


@dataclass(frozen=True)
class Example:
    """A server and its generator, at one sample."""

    name: str
    sample: Sample
    programs: tuple[str, ...]
    limit_per_s: float
    """What it cannot do more than, however fast the machine is."""


EXAMPLES = (
    Example("pgbench", {"branches": 2, "commit": "off"}, ("pgbench",), 400.0),
    Example("http", {"threads": 2, "work_ms": 10}, ("granian", "h2load"), 200.0),
)


def own_path() -> str:
    """Return PATH with the programs of this environment first, as whoever activated it has it."""
    return f"{Path(sys.executable).parent}:{os.environ['PATH']}"


def why_no(example: Example) -> str | None:
    """Say why an example cannot run here; None when it can."""
    absent = [each for each in example.programs if shutil.which(each, path=own_path()) is None]
    if absent:
        return f"not installed: {' '.join(absent)} (tests/packages, pip install -e .[dev])"
    if "pgbench" in example.programs and not any(Path("/usr/lib/postgresql").glob("*/bin/initdb")):
        return "PostgreSQL is not installed here (tests/packages)"
    return None


@contextmanager
def released(example: Example) -> Iterator[None]:
    """Have this environment's programs found; afterwards remove what the example prepared."""
    before = os.environ["PATH"]
    os.environ["PATH"] = own_path()
    try:
        yield
    finally:
        release_server(
            load_experiment(FOLDER / example.name / "experiment.toml").server, [example.sample]
        )
        os.environ["PATH"] = before


def example_trial(
    example: Example, rate_per_s: float, seconds: float = 4.0, abort_above_ms: float | None = None
) -> Trial:
    """Offer a load to an example."""
    experiment = load_experiment(FOLDER / example.name / "experiment.toml")
    request = TrialRequest(rate_per_s=rate_per_s, seconds=seconds, abort_above_ms=abort_above_ms)
    return run_trial(
        TrialOrder(
            server=experiment.server,
            sample=example.sample,
            threshold=experiment.goal.threshold,
            request=request,
            order=0,
            seed=3,
        )
    )


def short_form(example: Example) -> str:
    """Return an example's experiment file with short trials."""
    text = (FOLDER / example.name / "experiment.toml").read_text()
    for key, value in SHORT.items():
        lines = [
            f"{key} = {value!r}".replace("'", '"') if line.startswith(f"{key} =") else line
            for line in text.splitlines()
        ]
        text = "\n".join(lines)
    return text.replace(
        'kind = "command"', f'kind = "command"\ndirectory = "{FOLDER / example.name}"'
    )


def at_words(example: Example) -> list[str]:
    """Return an example's sample as `leadline peak` takes it."""
    return [
        word for factor, level in example.sample.items() for word in ("--at", f"{factor}={level}")
    ]
