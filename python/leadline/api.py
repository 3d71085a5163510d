"""Leadline from Python: survey a system, open a stored one, predict.

    import leadline
    disk = leadline.studies.survey("/data", budget="5min")
    disk.predict(leadline.Workload(unique_bytes=2**31, size_mean=32768)).throughput_mb_s

What comes back shows itself in a notebook and turns into a pandas frame.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from math import nan
from pathlib import Path
from typing import Any, overload

from leadline.engine import Target, open_engine, open_streams
from leadline.engine.targets import preflight
from leadline.errors import LeadlineError
from leadline.predict import Predictor, iops_of, response_us_of
from leadline.record import (
    NO_SYNC,
    PARAMETERS,
    Interval,
    Measurement,
    Prediction,
    Survey,
    Workload,
    parse_sync,
)
from leadline.record.balance import Bound
from leadline.record.streaming import KernelName, StreamResult, StreamStudy
from leadline.record.survey import SURVEY
from leadline.record.wording import say_rate, say_workload
from leadline.record.workbench import EXPERIMENT, Experiment, Level, PeakRate, Surface
from leadline.report.survey.tables import level_rows
from leadline.store import open_store
from leadline.studies.streaming.phase_rows import phase_rows
from leadline.studies.streaming.plan import BUDGET_S, Wanted, plan_run
from leadline.studies.streaming.run import begin_stream, bound_of, run_stream
from leadline.studies.survey import (
    LEARN_FRAC,
    Asked,
    begin_survey,
    choose_cache_limit,
    run_survey,
    usual_budget_s,
)
from leadline.studies.survey.stored import load_survey
from leadline.studies.workbench.experiments.read import begin_peak, begin_surface, load_experiment
from leadline.studies.workbench.mapping import run_experiment
from leadline.studies.workbench.pools.pool import open_pool
from leadline.studies.workbench.resuming import resume_peak, resume_surface
from leadline.studies.workbench.stored import experiment_of
from leadline.studies.workbench.trial_rows import trial_rows
from leadline.units import format_rate, parse_bytes, parse_seconds


class FramesMissing(LeadlineError):
    """pandas is not installed."""


def survey(
    target: str,
    *,
    budget: str | float | None = None,
    name: str | None = None,
    cache_limit: str | int | None = None,
    max_bytes: str | int | None = None,
    backend: str | None = None,
    direct: bool = False,
    sync: str = NO_SYNC,
    seed: int = 1,
    accuracy: float = 0.02,
    focal: str = "middle",
    learn: float = LEARN_FRAC,
    store: str | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> SurveyedSystem:
    """Survey a storage system, store every point, and return what was found.

    Args:
        target: a directory, `sim:NAME`, `sim:FILE.toml` or `null:`.
        budget: a hard cap, in seconds or as `"5min"`; 10 minutes without one.
        name: of the system, to find it again; by default the target's own.
        cache_limit: memory cap, in bytes or as `"512MiB"`; 0 for none, None lets Leadline choose.
        max_bytes: most data to write, in bytes or as `"8GiB"`.
        backend: `pread`, `uring` or `mmap`.
        direct: bypass the file cache.
        sync: which writes wait for the device: `none`, `dsync`, `fsync` or `fsync=8`.
        seed: decides order, addresses and simulated noise.
        accuracy: a point ends when ± this fraction is reached.
        focal: `middle` or `75%`.
        learn: share of the points put where predictions gain most.
        store: a file or URL; by default the one the command line uses.
        say: is told what a person should know, one sentence at a time.

    Raises:
        LeadlineError: the target was refused or failed; the message says what to do.
        PlanRefused: no sensible survey fits the budget or the room.
        BudgetSpent: the budget ended early; what was measured is kept.

    """
    chosen = Target.parse(target)
    usual_s = usual_budget_s(chosen)
    budget_s = usual_s if budget is None else _seconds(budget)
    limit = None if cache_limit is None else _bytes(cache_limit)
    if chosen.path is not None:
        limit = choose_cache_limit(Path(chosen.path), limit, budget_s, say)
    most = None if max_bytes is None else _bytes(max_bytes)
    kept = open_store(store)
    with open_engine(
        chosen, backend=backend, direct=direct, sync=parse_sync(sync), max_bytes=most,
        cache_limit_bytes=limit or None, run_seed=seed,
    ) as engine:  # fmt: skip
        findings = preflight(chosen, engine.facts)
        for finding in findings:
            say(str(finding))
        asked = Asked(name or chosen.name, budget_s, most, seed, accuracy, focal, learn_frac=learn)
        warnings = tuple(str(finding) for finding in findings if not finding.note)
        start = begin_survey(engine, chosen, asked, warnings=warnings)
        kept.begin(SURVEY, start)
        found = run_survey(engine, kept, start)
    return SurveyedSystem(found, kept.items(start.study_id))


def stream(
    kernel: KernelName,
    source: str | Path,
    destination: str | Path,
    *,
    memory: str | int | None = None,
    threads: int = 1,
    io: str = "uring",
    stripes: Sequence[str | Path] = (),
    temporary: Sequence[str | Path] = (),
    buffered: bool = False,
    depth: int = 8,
    replace: bool = False,
    runs: int = 1,
    match: float = 0.5,
    rows: int | None = None,
    columns: int | None = None,
    bound: bool = True,
    name: str | None = None,
    seed: int = 1,
    budget: str | float = BUDGET_S,
    store: str | None = None,
) -> StreamedData:
    """Stream data through one kernel, verify and store what came of it, and return the measures.

    Args:
        kernel: `scan`, `sort` or `transpose`.
        source: the data set to read, 100-byte records or 4 KiB blocks; it is only ever read.
        destination: the data set to make; it gets its name when it is whole and verified.
        memory: most memory of the kernel, in bytes or as `"1GiB"`; half of what is free without it.
        threads: that compute, each on its own part.
        io: `uring` or `mmap`, how the source is read.
        stripes: directories to stripe the destination over, one for each disk.
        temporary: directories for the runs of a sort in two passes.
        buffered: through the file cache.
        depth: reads, and writes, outstanding on each disk.
        replace: a destination that exists is replaced when the new one is whole.
        runs: how often the same is run; two or more give an interval, and each after the first
            replaces the destination.
        match: share of the records that a scan selects.
        rows: of a transpose's source, in blocks; square without them.
        columns: the same.
        bound: measure memory and disks first, so that the run can be held against them.
        name: of the system, to find it again.
        seed: decides everything that is drawn.
        budget: a hard cap, in seconds or as `"5min"`.
        store: a file or URL; by default the one the command line uses.

    Raises:
        LeadlineError: it was refused or failed; the message says what to do.

    """
    wanted = Wanted(
        source=str(source), destination=str(destination),
        memory_bytes=None if memory is None else _bytes(memory), threads=threads, read=io,
        stripes=tuple(map(str, stripes)), temporary=tuple(map(str, temporary)),
        buffered=buffered, depth=depth, replace=replace, runs=runs, seed=seed,
        budget_s=_seconds(budget),
    )  # fmt: skip
    planned = plan_run(
        kernel, wanted, name=name, match_frac=match, rows=rows, columns=columns, capacities=bound
    )
    with open_store(store) as kept, open_streams() as streams:
        return StreamedData(run_stream(planned, begin_stream(planned), streams, kept))


def peak(
    experiment: str | Path,
    *,
    sample: Mapping[str, Level] | None = None,
    policy: str | None = None,
    deadline: str | float | None = None,
    seed: int | None = None,
    resume: bool = False,
    scheduler: str | None = None,
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
        compare: say how the other policies would have fared; takes some seconds.
        store: a file or URL; by default the one the command line uses.
        say: is told what a person should know while it waits.

    Raises:
        LeadlineError: it was refused or failed; the message says what to do.

    """
    file = load_experiment(experiment)
    asked: dict[str, Any] = {
        "sample": dict(sample or {}), "policy": policy, "seed": seed,
        "deadline_s": None if deadline is None else _seconds(deadline),
    }  # fmt: skip
    with open_store(store) as kept, open_pool(scheduler or file.scheduler, say) as pool:
        stored = resume_peak(file, kept, **asked) if resume else None
        start = begin_peak(file, **asked) if stored is None else stored.start
        if stored is None:
            kept.begin(EXPERIMENT, start)
        found = run_experiment(start, kept, pool, stored=stored, at_once=1, compare=compare)
    return MeasuredServer(found)


def surface(
    experiment: str | Path,
    *,
    design: str | None = None,
    policy: str | None = None,
    deadline: str | float | None = None,
    seed: int | None = None,
    resume: bool = False,
    scheduler: str | None = None,
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
        at_once: most samples measured at the same time.
        store: a file or URL.
        say: is told what a person should know while it waits.

    Raises:
        LeadlineError: it was refused or failed; the message says what to do.

    """
    file = load_experiment(experiment)
    asked: dict[str, Any] = {
        "design": design, "policy": policy, "seed": seed,
        "deadline_s": None if deadline is None else _seconds(deadline),
    }  # fmt: skip
    with open_store(store) as kept, open_pool(scheduler or file.scheduler, say) as pool:
        stored = resume_surface(file, kept, **asked) if resume else None
        start = begin_surface(file, **asked) if stored is None else stored.start
        if stored is None:
            kept.begin(EXPERIMENT, start)
        found = run_experiment(start, kept, pool, stored=stored, at_once=at_once or file.at_once)
    return MeasuredServer(found)


def open_experiment(ref: str, *, store: str | None = None) -> MeasuredServer:
    """Return a stored experiment, finished or not.

    Args:
        ref: its id or the first letters of it, or its name.
        store: a file or URL; by default the one the command line uses.

    Raises:
        StoreError: there is none.

    """
    with open_store(store) as kept:
        return MeasuredServer(experiment_of(kept, ref))


def open_system(ref: str, *, store: str | None = None) -> SurveyedSystem:
    """Return a stored survey, finished or not.

    Args:
        ref: a survey's id or the first letters of it, or a system's name.
        store: a file or URL; by default the one the command line uses.

    Raises:
        StoreError: there is none.

    """
    return SurveyedSystem(*load_survey(open_store(store), ref))


@dataclass(frozen=True, repr=False)
class SurveyedSystem:
    """A surveyed system, which predicts."""

    survey: Survey
    points: tuple[Measurement, ...]
    _fitted: dict[tuple[str | None, bool], Predictor] = field(
        default_factory=dict, init=False, compare=False
    )

    def _predictor(self, model: str | None, *, extrapolate: bool) -> Predictor:
        """Fit a model at its first question; it takes seconds."""
        asked = (model, extrapolate)
        if asked not in self._fitted:
            self._fitted[asked] = Predictor(
                self.survey, self.points, model=model, extrapolate=extrapolate
            )
        return self._fitted[asked]

    def predict(
        self, workload: Workload | str, *, model: str | None = None, extrapolate: bool = False
    ) -> Predicted:
        """Return the throughput expected of a workload, given as such or as `k=v,…`.

        Raises:
            PredictionRefused: it lies outside what was surveyed and `extrapolate` is false.
            WorkloadError: the text is no workload.

        """
        return self.predict_all([workload], model=model, extrapolate=extrapolate)[0]

    def predict_all(
        self,
        workloads: Sequence[Workload | str],
        *,
        model: str | None = None,
        extrapolate: bool = False,
    ) -> Predictions:
        """Return the throughput expected of each workload; see `predict`."""
        asked = [Workload.parse(item) if isinstance(item, str) else item for item in workloads]
        predictor = self._predictor(model, extrapolate=extrapolate)
        return Predictions(tuple(Predicted(item) for item in predictor.predict_all(asked)))

    def to_frame(self) -> Any:
        """Return the measured points as a pandas frame, one row each."""
        return _frame(
            [
                {"order": point.order, "stage": point.stage}
                | {name: getattr(point.workload, name) for name in PARAMETERS}
                | _columns("throughput_mb_s", point.result.throughput_mb_s)
                | {"admissible": point.result.admissible}
                for point in self.points
            ]
        )

    def __repr__(self) -> str:
        return "\n".join([f"Survey of {self.survey.start.system}", *self.survey.sentences])

    def _repr_html_(self) -> str:
        sentences = "".join(f"<p>{escape(sentence)}</p>" for sentence in self.survey.sentences)
        heads = ("level", "holds", "throughput (95 %)", "scatter between runs")
        rows = [(row["name"], row["holds"], row["rate"], row["noise"])
                for row in level_rows(self.survey)]  # fmt: skip
        return f"<h4>{escape(self.survey.start.system)}</h4>{sentences}{_table(heads, rows)}"


@dataclass(frozen=True, repr=False)
class Predicted:
    """A prediction and what follows from it."""

    prediction: Prediction

    @property
    def workload(self) -> Workload:
        """What was asked."""
        return self.prediction.workload

    @property
    def throughput_mb_s(self) -> Interval:
        """Of the mean of many runs."""
        return self.prediction.throughput_mb_s

    @property
    def run_throughput_mb_s(self) -> Interval:
        """Of one more run."""
        return self.prediction.run_throughput_mb_s

    @property
    def iops(self) -> Interval:
        """Requests per second."""
        return iops_of(self.prediction)

    @property
    def response_us(self) -> Interval:
        """Mean response time."""
        return response_us_of(self.prediction)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What to know before trusting it."""
        return self.prediction.warnings

    def to_frame(self) -> Any:
        """Return a pandas frame of one row."""
        return Predictions((self,)).to_frame()

    def __repr__(self) -> str:
        said = [f"{say_workload(self.workload)}: {say_rate(self.throughput_mb_s, level=True)}"]
        return "\n".join([*said, *self.warnings])

    def _repr_html_(self) -> str:
        return Predictions((self,))._repr_html_()


@dataclass(frozen=True, repr=False)
class Predictions(Sequence[Predicted]):
    """Several predictions, in the order they were asked for."""

    items: tuple[Predicted, ...]

    @overload
    def __getitem__(self, index: int) -> Predicted: ...
    @overload
    def __getitem__(self, index: slice) -> Predictions: ...
    def __getitem__(self, index: int | slice) -> Predicted | Predictions:
        found = self.items[index]
        return Predictions(found) if isinstance(found, tuple) else found

    def __len__(self) -> int:
        return len(self.items)

    def __iter__(self) -> Iterator[Predicted]:
        return iter(self.items)

    def to_frame(self) -> Any:
        """Return a pandas frame, one row each."""
        return _frame(
            [
                {name: getattr(item.workload, name) for name in PARAMETERS}
                | _columns("throughput_mb_s", item.throughput_mb_s)
                | _columns("iops", item.iops)
                | _columns("response_us", item.response_us)
                | {
                    "region": item.prediction.region,
                    "model": item.prediction.model,
                    "extrapolated": item.prediction.extrapolated,
                    "warnings": "; ".join(item.warnings),
                }
                for item in self.items
            ]
        )

    def __repr__(self) -> str:
        return "\n".join(repr(item) for item in self.items)

    def _repr_html_(self) -> str:
        heads = ("workload", "throughput (95 %)", "requests/s", "response, ms", "warnings")
        rows = [
            (
                say_workload(item.workload),
                say_rate(item.throughput_mb_s),
                f"{item.iops.value:,.0f}",
                f"{item.response_us.value / 1000:.3g}",
                "; ".join(item.warnings),
            )
            for item in self.items
        ]
        return _table(heads, rows)


@dataclass(frozen=True, repr=False)
class StreamedData:
    """What a kernel did to the user's data, and what it cost."""

    study: StreamStudy

    @property
    def result(self) -> StreamResult:
        """What the engine answered."""
        return self.study.runs[-1].result

    @property
    def bound(self) -> Bound | None:
        """The fastest the run could have been on this machine; None when that is not known."""
        return bound_of(self.study)

    def to_frame(self) -> Any:
        """Return the phases as a pandas frame, one row each."""
        return _frame(phase_rows(self.study))

    def __repr__(self) -> str:
        return "\n".join([f"Stream of {self.study.start.system}", *self.study.sentences])

    def _repr_html_(self) -> str:
        sentences = "".join(f"<p>{escape(sentence)}</p>" for sentence in self.study.sentences)
        heads = ("phase", "disk bandwidth", "processor, user and kernel")
        rows = [
            (phase.name, format_rate(phase.mb_s),
             f"{phase.cpu_user_s:.3g} s + {phase.cpu_system_s:.3g} s")
            for phase in self.result.phases
        ]  # fmt: skip
        return f"<h4>{escape(self.study.start.system)}</h4>{sentences}{_table(heads, rows)}"


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
            return _frame(trial_rows(self.experiment))
        return _frame(
            [
                {f"factor_{name}": level for name, level in cell.sample.items()}
                | _columns("rate_per_s", cell.rate_per_s or Interval(nan, None, None, 0))
                | {"measured": cell.measured}
                for cell in self.surface.cells
            ]
        )

    def __repr__(self) -> str:
        return "\n".join([*self.experiment.sentences, *self.experiment.warnings])

    def _repr_html_(self) -> str:
        said = "".join(f"<p>{escape(text)}</p>" for text in self.experiment.sentences)
        head = f"<h4>{escape(self.experiment.start.system)}</h4>{said}"
        if self.peak is None:
            return head
        rows = [
            (f"{load.rate_per_s:.4g}", str(load.trials),
             "" if load.response_ms is None else f"{load.response_ms.value:.3g}",
             {True: "yes", False: "no", None: "cannot tell"}[load.saturated])
            for load in sorted(self.peak.loads, key=lambda load: load.rate_per_s)
        ]  # fmt: skip
        return head + _table(("requests/s", "trials", "mean, ms", "saturated"), rows)


def _seconds(value: str | float) -> float:
    return parse_seconds(value) if isinstance(value, str) else float(value)


def _bytes(value: str | int) -> int:
    return parse_bytes(value) if isinstance(value, str) else value


def _columns(name: str, interval: Interval) -> dict[str, float | None]:
    return {name: interval.value, f"{name}_low": interval.low, f"{name}_high": interval.high}


def _frame(rows: list[dict[str, Any]]) -> Any:
    try:
        import pandas as pd  # noqa: PLC0415 - optional
    except ImportError:
        raise FramesMissing(
            "a frame needs pandas, which is not installed: pip install pandas"
        ) from None
    return pd.DataFrame(rows)


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    top = "".join(f"<th>{escape(head)}</th>" for head in heads)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows
    )
    return f"<table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>"
