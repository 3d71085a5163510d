"""Servers under test: their peak rate, and surfaces of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from html import escape
from math import nan
from pathlib import Path
from typing import Any

from leadline.api.frames import chosen, columns, frame, maybe, seconds_of, table
from leadline.api.progress import Listener
from leadline.record import Interval
from leadline.record.workbench import EXPERIMENT, Experiment, Level, PeakRate, Surface
from leadline.store import open_store
from leadline.studies.conduct import conduct
from leadline.studies.registry import KINDS
from leadline.studies.workbench.experiments.read import load_experiment
from leadline.studies.workbench.study import ExperimentStudy, Where, peak_of, surface_of
from leadline.studies.workbench.tables import trial_rows


def peak(
    experiment: str | Path,
    *,
    sample: Mapping[str, Level] | None = None,
    policy: str | None = None,
    deadline: str | float | None = None,
    seed: int | None = None,
    resume: bool = False,
    scheduler: str | None = None,
    insecure_scheduler: bool = False,
    compare: bool = True,
    store: str | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> MeasuredServer:
    """Find the highest load that a server takes before it is too slow; store every trial.

    Args:
        experiment: its file (docs/reference/experiment.md).
        sample: levels of factors, in the place of the file's.
        policy: how loads are picked, in the place of the file's.
        deadline: most that it may cost, in seconds or as `"20m"`.
        seed: decides everything that is drawn.
        resume: go on with the unfinished search of this file.
        scheduler: address of a dask.distributed scheduler whose workers run the trials.
        insecure_scheduler: take one of another machine without TLS.
        compare: compare with the other policies; takes some seconds.
        store: a file or URL; by default the one the command line uses.
        say: is told what a person should know while it waits.

    Raises:
        LeadlineError: it was refused or failed; the message says what to do.

    """
    file = load_experiment(experiment)
    asked: dict[str, Any] = {
        "sample": dict(sample or {}),
        "policy": policy,
        "seed": seed,
        "deadline_s": maybe(seconds_of, deadline),
    }
    where = Where(scheduler=scheduler, insecure=insecure_scheduler)
    study = peak_of(file, where, asked, compare=compare)
    return _conducted(study, store, say, resume=resume)


def surface(
    experiment: str | Path,
    *,
    design: str | None = None,
    policy: str | None = None,
    deadline: str | float | None = None,
    seed: int | None = None,
    resume: bool = False,
    scheduler: str | None = None,
    insecure_scheduler: bool = False,
    at_once: int | None = None,
    store: str | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> MeasuredServer:
    """Find the peak rate over all configurations, measuring some; arguments as of `peak`.

    Args:
        experiment: its file.
        design: how samples are chosen, in the place of the file's.
        policy: how loads are picked.
        deadline: most that all of it may cost.
        seed: decides everything that is drawn.
        resume: go on with the unfinished surface of this file.
        scheduler: where trials run.
        insecure_scheduler: take one of another machine without TLS.
        at_once: most samples measured at the same time.
        store: a file or URL.
        say: is told what a person should know while it waits.

    Raises:
        LeadlineError: it was refused or failed; the message says what to do.

    """
    file = load_experiment(experiment)
    asked: dict[str, Any] = {
        "design": design,
        "policy": policy,
        "seed": seed,
        "deadline_s": maybe(seconds_of, deadline),
    }
    where = Where(scheduler=scheduler, insecure=insecure_scheduler, at_once=at_once)
    return _conducted(surface_of(file, where, asked), store, say, resume=resume)


def _conducted(
    study: ExperimentStudy, store: str | None, say: Callable[[str], None], *, resume: bool
) -> MeasuredServer:
    with open_store(store) as kept:
        return MeasuredServer(conduct(study, kept, Listener(say, shown=False), resume=resume))


@dataclass(frozen=True, repr=False)
class MeasuredServer:
    """A peak rate, or a surface of them, with every trial it rests on."""

    experiment: Experiment

    @property
    def peak(self) -> PeakRate | None:
        """The answer of a peak search; None of a surface, or while there is none."""
        single = self.experiment.start.design is None and self.experiment.peaks
        return self.experiment.peaks[0].peak if single else None

    @property
    def rate_per_s(self) -> Interval | None:
        """The peak rate; None when no number can be given."""
        return self.peak.rate_per_s if self.peak is not None else None

    @property
    def surface(self) -> Surface | None:
        """The surface; None of a single peak."""
        return self.experiment.surface

    def to_frame(self) -> Any:
        """Return a pandas frame: the cells of a surface, or the trials of a peak search."""
        if self.surface is None:
            return frame(trial_rows(self.experiment))
        return frame(
            [
                {f"factor_{name}": level for name, level in cell.sample.items()}
                | columns("rate_per_s", cell.rate_per_s or Interval(nan, None, None, 0))
                | {"measured": cell.measured}
                for cell in self.surface.cells
            ]
        )

    def plot(self, name: str | None = None) -> Any:
        """Return a chart of its page for a notebook, an Altair chart: the first, or by name.

        Raises:
            ChartsMissing: Altair is not installed.
            NoChart: none of this name, or nothing to draw.

        """
        return chosen(lambda: KINDS[EXPERIMENT.kind].drawn.charts_of(self.experiment), name)

    def __repr__(self) -> str:
        return "\n".join([*self.experiment.sentences, *map(str, self.experiment.findings)])

    def _repr_html_(self) -> str:
        said = "".join(f"<p>{escape(text)}</p>" for text in self.experiment.sentences)
        head = f"<h4>{escape(self.experiment.start.system)}</h4>{said}"
        if self.peak is None:
            return head
        rows = [
            (
                f"{load.rate_per_s:.4g}",
                str(load.trials),
                "" if load.response_ms is None else f"{load.response_ms.value:.3g}",
                {True: "yes", False: "no", None: "inconclusive"}[load.saturated],
            )
            for load in sorted(self.peak.loads, key=lambda load: load.rate_per_s)
        ]
        return head + table(("requests/s", "trials", "mean, ms", "saturated"), rows)
