"""Surveyed systems: survey one, open a stored one, predict."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any, overload

from leadline.api.frames import (
    bytes_of,
    chosen,
    columns,
    frame,
    maybe,
    seconds_of,
    table,
    workload_of,
)
from leadline.api.progress import Listener
from leadline.engine import Target
from leadline.models.application.predicted import predict_application
from leadline.models.predictor import Predictor, iops_of, response_us_of
from leadline.record import PARAMETERS, Access, Interval, Measurement, Prediction, Survey, Workload
from leadline.record.application.prediction import ApplicationPrediction
from leadline.record.survey import SURVEY
from leadline.record.wording import format_rate_ci, format_workload
from leadline.store import open_store
from leadline.studies.application.characterize import load_application
from leadline.studies.conduct import Reached, conduct
from leadline.studies.registry import KINDS
from leadline.studies.survey.study import (
    LEARN_FRAC,
    SurveyOptions,
    SurveyStudy,
    load_survey,
    usual_budget_s,
)
from leadline.studies.survey.text import level_rows


def survey(
    target: str,
    *,
    budget: str | float | None = None,
    name: str | None = None,
    cache_limit: str | int | None = None,
    max_bytes: str | int | None = None,
    max_written: str | int | None = None,
    access: Access = Access(),  # noqa: B008 - frozen
    seed: int = 1,
    accuracy: float | None = None,
    focal: str = "middle",
    learn: float = LEARN_FRAC,
    precondition: str | int | None = None,
    resume: bool = False,
    store: str | None = None,
    say: Callable[[str], None] = lambda _: None,
    progress: bool | None = None,
) -> SurveyedSystem:
    """Survey a storage system, store every point, and return what was found.

    Args:
        target: a directory, `sim:NAME`, `sim:FILE.toml` or `null:`.
        budget: a hard cap, in seconds or as `"5min"`; 10 minutes without one.
        name: of the system, to find it again; by default the target's own.
        cache_limit: memory cap, in bytes or as `"512MiB"`; 0 for none, None lets Leadline choose.
        max_bytes: most data to lay out, in bytes or as `"8GiB"`.
        max_written: most bytes to write in all, by layout and requests.
        access: how the target is reached, and what data it holds.
        seed: decides order, addresses and simulated noise.
        accuracy: a point ends as soon as ± this is reached; without one all windows are alike.
        focal: `middle` or `75%`.
        learn: share of the points put where predictions gain most.
        precondition: most to write before the first point, in bytes or as `"8GiB"`.
        resume: go on with this system's unfinished survey.
        store: a file or URL; by default the one the command line uses.
        say: is told what a person should know, one sentence at a time.
        progress: shows how far it is; None where it runs in a notebook.

    Raises:
        LeadlineError: the target was refused or failed; the message says what to do.
        BudgetSpent: the budget, or what may be written, ended early; the points are kept.

    """
    chosen = Target.parse(target)
    asked = SurveyOptions(
        name or chosen.name,
        usual_budget_s(chosen) if budget is None else seconds_of(budget),
        maybe(bytes_of, max_bytes),
        seed,
        accuracy or 0.0,
        focal,
        maybe(bytes_of, precondition),
        learn,
        maybe(bytes_of, max_written),
    )
    reached = Reached(
        target=chosen,
        access=access,
        cache_limit_bytes=maybe(bytes_of, cache_limit),
        max_bytes=asked.max_bytes,
    )
    study = SurveyStudy(reached, asked, maybe(seconds_of, budget))
    with open_store(store) as kept:
        found = conduct(study, kept, Listener(say, progress), resume=resume)
        return SurveyedSystem(found, kept.items(found.start.study_id))


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

    def predict_application(
        self,
        application: str,
        *,
        traced_on: SurveyedSystem | None = None,
        model: str | None = None,
        extrapolate: bool = False,
        store: str | None = None,
    ) -> ApplicationPrediction:
        """Return how long a described application would take here.

        Args:
            application: its id or the first letters of it, or its name.
            traced_on: where it was traced; what it took there over what is predicted there scales
                the answer.
            model: which model; None is the default.
            extrapolate: answer beyond the surveyed ranges.
            store: a file or URL; by default the one the command line uses.

        Raises:
            StoreError: there is no such application.
            PredictionRefused: the survey is not finished.

        """
        with open_store(store, reading=True) as kept:
            described = load_application(kept, application)
        here = self._predictor(model, extrapolate=extrapolate)
        there = None
        if traced_on is not None:
            there = traced_on._predictor(model, extrapolate=extrapolate)
        return predict_application(described, here, there)

    def predict_all(
        self,
        workloads: Sequence[Workload | str],
        *,
        model: str | None = None,
        extrapolate: bool = False,
    ) -> Predictions:
        """Return the throughput expected of each workload; see `predict`."""
        asked = [workload_of(item) for item in workloads]
        predictor = self._predictor(model, extrapolate=extrapolate)
        return Predictions(tuple(Predicted(item) for item in predictor.predict_all(asked)))

    def to_frame(self) -> Any:
        """Return the measured points as a pandas frame, one row each."""
        return frame(
            [
                {"order": point.order, "stage": point.stage}
                | {name: getattr(point.workload, name) for name in PARAMETERS}
                | columns("throughput_mb_s", point.result.throughput_mb_s)
                | {"admissible": point.result.admissible}
                for point in self.points
            ]
        )

    def plot(self, name: str | None = None) -> Any:
        """Return a chart of its page for a notebook, an Altair chart: the first, or by name.

        Raises:
            ChartsMissing: Altair is not installed.
            NoChart: none of this name, or nothing to draw.

        """
        return chosen(lambda: KINDS[SURVEY.kind].drawn.charts_of(self), name)

    def __repr__(self) -> str:
        return "\n".join([f"Survey of {self.survey.start.system}", *self.survey.sentences])

    def _repr_html_(self) -> str:
        sentences = "".join(f"<p>{escape(sentence)}</p>" for sentence in self.survey.sentences)
        heads = ("level", "holds", "throughput (95% CI)", "scatter between runs")
        rows = [
            (row["name"], row["holds"], row["rate"], row["noise"])
            for row in level_rows(self.survey)
        ]
        return f"<h4>{escape(self.survey.start.system)}</h4>{sentences}{table(heads, rows)}"


def predict(
    system: str,
    *workloads: Workload | str,
    model: str | None = None,
    extrapolate: bool = False,
    store: str | None = None,
) -> Predictions:
    """Predict workloads from a stored survey, without measuring anything.

    Args:
        system: a survey's id or the first letters of it, or a system's name.
        workloads: each as such or as `size_mean=4KiB,…`, fio's words too.
        model: which predicts; the best without it.
        extrapolate: answer beyond what was surveyed, marked.
        store: a file or URL; by default the one the command line uses.

    Raises:
        StoreError: there is no such survey.
        PredictionRefused: a workload lies outside what was surveyed.
        WorkloadError: a text is no workload.

    """
    with open_store(store, reading=True) as kept:
        found = SurveyedSystem(*load_survey(kept, system))
    return found.predict_all(workloads, model=model, extrapolate=extrapolate)


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
        return tuple(map(str, self.prediction.findings))

    def to_frame(self) -> Any:
        """Return a pandas frame of one row."""
        return Predictions((self,)).to_frame()

    def __repr__(self) -> str:
        said = [
            f"{format_workload(self.workload)}: {format_rate_ci(self.throughput_mb_s, level=True)}"
        ]
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
        return frame(
            [
                {name: getattr(item.workload, name) for name in PARAMETERS}
                | columns("throughput_mb_s", item.throughput_mb_s)
                | columns("iops", item.iops)
                | columns("response_us", item.response_us)
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
        heads = ("workload", "throughput (95% CI)", "requests/s", "response, ms", "warnings")
        rows = [
            (
                format_workload(item.workload),
                format_rate_ci(item.throughput_mb_s),
                f"{item.iops.value:,.0f}",
                f"{item.response_us.value / 1000:.3g}",
                "; ".join(item.warnings),
            )
            for item in self.items
        ]
        return table(heads, rows)
