"""A survey's models behind one face: as surveyed, named workloads, rates, predictions."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import msgspec

from leadline.models.joint import joint_of_survey
from leadline.models.model import Model, PredictionRefused
from leadline.models.operation_time import is_whole_pages
from leadline.models.product import ProductModel
from leadline.models.ranges import Outside, Ranges
from leadline.record import (
    PROCESSES_MAX,
    Interval,
    Measurement,
    Prediction,
    Region,
    Survey,
    Workload,
)
from leadline.record.finding import Finding
from leadline.record.workload import SIZES
from leadline.stats import student_t
from leadline.units import format_bytes

# The five workloads on which CP94 compares systems (Fig. 16).

MB = 2**20
KB = 2**10
"""The paper's MB and KB are powers of two: its "4 KB" is a page, its "100 KB" no multiple of it."""

NAMED: dict[str, Workload] = {
    "workstation": Workload(
        unique_bytes=1 * MB, size_mean=4 * KB, read_frac=0.8, seq_frac=0.8, process_num=1
    ),
    "large_utility": Workload(
        unique_bytes=10 * MB, size_mean=8 * KB, read_frac=0.6, seq_frac=0.9, process_num=1
    ),
    "scientific_write": Workload(
        unique_bytes=250 * MB, size_mean=100 * KB, read_frac=0.2, seq_frac=0.5, process_num=1
    ),
    "scientific_read": Workload(
        unique_bytes=250 * MB, size_mean=100 * KB, read_frac=0.8, seq_frac=0.5, process_num=1
    ),
    "database": Workload(
        unique_bytes=500 * MB, size_mean=4 * KB, read_frac=0.2, seq_frac=0.1, process_num=2
    ),
}
"""Compile and grep, sort, satellite data, image processing, TPC: the same on every system, as
in the paper, which scales none of them."""


# Requests per second and response time of a prediction: they follow from its throughput.


def iops_of(prediction: Prediction, *, run: bool = False) -> Interval:
    """Return requests per second: throughput / size_mean.

    Args:
        prediction: the prediction.
        run: of one more run instead of the mean of many.

    """
    rate = prediction.run_throughput_mb_s if run else prediction.throughput_mb_s
    scale = 1e6 / prediction.workload.size_mean
    return Interval(rate.value * scale, _times(rate.low, scale), _times(rate.high, scale), rate.n)


def response_us_of(prediction: Prediction) -> Interval:
    """Return the mean response time in microseconds, by Little's law.

    Every worker keeps queue_depth requests outstanding and never waits, so a request takes
    process_num x queue_depth / requests per second.
    """
    iops = iops_of(prediction)
    outstanding = prediction.workload.process_num * prediction.workload.queue_depth
    scale = 1e6 * outstanding
    low = scale / iops.high if iops.high else None
    high = scale / iops.low if iops.low else None
    return Interval(scale / iops.value, low, high, iops.n)


def _times(end: float | None, scale: float) -> float | None:
    return None if end is None else end * scale


# A workload in the words of a survey, which knows one request per process.


def as_surveyed(workload: Workload, *, knows_pages: bool) -> tuple[Workload, tuple[Finding, ...]]:
    """Spell a workload with what surveys measure, and say what that takes for granted.

    Args:
        workload: what is asked.
        knows_pages: whether the model tells requests of whole pages from those of scattered sizes.

    Raises:
        PredictionRefused: more requests at once than any survey has.

    """
    found = []
    dist = workload.size_dist
    told_apart = knows_pages and is_whole_pages(workload)
    if dist not in ("normal", "fixed"):
        found.append(Finding.of("not_surveyed", size_dist=str(dist)))
    elif dist == "fixed" and not told_apart:
        found.append(Finding.of("not_surveyed"))
    processes = _at_once(workload)
    if workload.queue_depth > 1:
        depth = {"queue_depth": workload.queue_depth, "processes": processes}
        found.append(Finding.of("not_surveyed", **depth))
    surveyed = msgspec.structs.replace(
        workload, process_num=processes, queue_depth=1, size_dist=dist if told_apart else "normal"
    )
    return surveyed, tuple(found)


def _at_once(workload: Workload) -> int:
    """Requests that are out at once."""
    processes = workload.process_num * workload.queue_depth
    if processes > PROCESSES_MAX:
        raise PredictionRefused(
            f"process_num={workload.process_num} with queue_depth={workload.queue_depth} is "
            f"{processes} requests at once, and a survey has at most {PROCESSES_MAX}: "
            "ask for a shallower queue or fewer processes"
        )
    return processes


# Predictions of one surveyed system: ranges guarded, region and findings attached.

MODELS: dict[str, Callable[[Survey, Sequence[Measurement]], Model]] = {
    "joint": joint_of_survey,
    "product": ProductModel,
}
"""Every model by the name it is chosen by."""

DEFAULT_MODEL = "joint"

EXTRAPOLATION_LN_SD = 0.5
"""Added for each e-fold beyond what was measured: an exponent of the throughput unknown by half,
where a pure power of the size would have one of 1 at most. For a fraction, of its whole range."""


class Predictor:
    """One system's predictions: ranges guarded, region and findings attached.

    Attributes:
        survey: what was measured.
        model: the fitted model.
        points: what the model is fitted to.
        ranges: where it may speak.
        extrapolate: whether it speaks beyond them, with a warning and a wider interval.

    """

    survey: Survey
    model: Model
    points: Sequence[Measurement]
    ranges: Ranges

    def __init__(
        self,
        survey: Survey,
        points: Sequence[Measurement],
        *,
        model: str | None = None,
        extrapolate: bool = False,
    ) -> None:
        """Fit a model to a survey.

        Args:
            survey: the explained survey.
            points: its measurements, extra ones included.
            model: one of MODELS; None is the default.
            extrapolate: answer beyond the surveyed ranges, marked and with a wider interval.

        Raises:
            PredictionRefused: no such model, or the survey has nothing to fit it to.

        """
        chosen = model or DEFAULT_MODEL
        if chosen not in MODELS:
            raise PredictionRefused(
                f"there is no model called {chosen!r}; the models are: {', '.join(MODELS)}"
            )
        self.survey = survey
        self.extrapolate = extrapolate
        self.points = points
        self.ranges = Ranges(survey, points)
        self.model = MODELS[chosen](survey, points)

    def predict(self, workload: Workload) -> Prediction:
        """Return the throughput expected of a workload, see `predict_all`."""
        return self.predict_all([workload])[0]

    def predict_all(self, workloads: Sequence[Workload]) -> tuple[Prediction, ...]:
        """Return the throughput expected of each workload, in their order.

        Raises:
            PredictionRefused: a value lies outside what was surveyed and `extrapolate` is false,
                or the workload is of a kind that no survey measures.

        """
        asked = [self._guarded(workload) for workload in workloads]
        expected = self.model.expect([guarded.surveyed for guarded in asked])
        return tuple(
            self._prediction(
                workload,
                guarded,
                float(expected.ln_mb_s[index]),
                float(expected.ln_sd[index]),
                float(expected.noise_ln_sd[index]),
            )
            for index, (workload, guarded) in enumerate(zip(workloads, asked, strict=True))
        )

    def _prediction(
        self, workload: Workload, guarded: _Guarded, ln_mb_s: float, ln_sd: float, noise: float
    ) -> Prediction:
        sd = math.hypot(ln_sd, guarded.extra_ln_sd)
        run_sd = math.hypot(sd, noise)
        half = student_t(self.model.df)
        return Prediction(
            workload=workload,
            throughput_mb_s=_interval(ln_mb_s, half * sd, self.model.n),
            run_throughput_mb_s=_interval(ln_mb_s, half * run_sd, self.model.n),
            ln_sd=sd,
            run_ln_sd=run_sd,
            df=self.model.df,
            region=guarded.region,
            model=self.model.name,
            extrapolated=guarded.extrapolated,
            findings=guarded.findings,
        )

    # ---- what may be asked ------------------------------------------------------------------

    def _guarded(self, workload: Workload) -> _Guarded:
        if workload.think_time_s > 0:
            raise PredictionRefused(
                "think_time: a survey's processes never wait between requests, so it says nothing "
                "of those that do; leave think_time out, or measure it: "
                f"leadline measure {self.survey.start.target} --workload …"
            )
        if workload.access is not msgspec.UNSET:
            raise PredictionRefused(
                f"access={workload.access}: a survey asks for every place alike, and what a cache "
                "holds of skewed places it does not say; leave access out, or measure it: "
                f"leadline measure {self.survey.start.target} --workload …"
            )
        surveyed, known = as_surveyed(workload, knows_pages=self.model.knows_pages)
        findings = list(known)
        for said in surveyed.beyond("size_dist"):
            raise PredictionRefused(f"{said}: no survey has it; leave it out, or measure it")
        region = self.ranges.nearest_region(surveyed.unique_bytes)
        if region is None:
            raise PredictionRefused(self._unfinished("has no region yet"))
        beyond = [_beyond(item) for item in self.ranges.outside(surveyed)]
        far = [item.ln_distance for item in self.ranges.outside(surveyed)]
        held = self.ranges.region_of(surveyed.unique_bytes)
        missing = self._without_curves(surveyed.unique_bytes, held or region)
        if missing:
            if not self.extrapolate:
                raise PredictionRefused(self._unfinished(missing))
            guessed = "a guess from what was measured elsewhere"
            beyond = [f"the survey {missing}; this is {guessed}", *beyond]
            far.append(1.0)
        elif beyond and not self.extrapolate:
            raise PredictionRefused(self._refusal(self.ranges.outside(surveyed)[0]))
        if beyond:
            findings.append(Finding.of("extrapolated", beyond="; ".join(beyond)))
        findings += self._at_boundary(surveyed.unique_bytes)
        return _Guarded(
            surveyed=surveyed,
            region=held.index if held and not missing else None,
            extrapolated=bool(beyond),
            extra_ln_sd=EXTRAPOLATION_LN_SD * math.hypot(*far),
            findings=tuple(findings),
        )

    def _without_curves(self, unique_bytes: int, region: Region) -> str | None:
        """What the survey lacks when no curves were measured around so many bytes, else None.

        Beyond all that was surveyed the region is the one next to them.
        """
        if not self.ranges.is_surveyed(region.index):
            return f"has no curves in the region {region.name!r}"
        surveyed = self.ranges.unique_bytes.holds(unique_bytes)
        if surveyed and self.ranges.region_of(unique_bytes) is None:
            return f"has no region with curves at unique_bytes={format_bytes(unique_bytes)}"
        return None

    def _at_boundary(self, unique_bytes: int) -> list[Finding]:
        zone = self.ranges.boundary_zone(unique_bytes)
        if zone is None:
            return []
        ends = {"low_bytes": zone[0], "high_bytes": zone[1]}
        return [Finding.of("region_boundary", unique_bytes=unique_bytes, **ends)]

    def _unfinished(self, what: str) -> str:
        return (
            f"the survey of {self.survey.start.system} {what}, so it cannot predict there; "
            f"finish it: leadline survey {self.survey.start.target} --resume"
        )

    def _refusal(self, item: Outside) -> str:
        remedy = "survey with a larger --max-bytes (or a larger --budget)"
        if item.parameter != "unique_bytes" or item.value < item.span.low:
            remedy = f"measure it: leadline measure {self.survey.start.target} --workload …"
        return (
            f"{_beyond(item)}; nothing was measured there. Stay inside, {remedy}, or take a guess "
            "with --extrapolate"
        )


class _Guarded(msgspec.Struct, frozen=True, kw_only=True):
    """A workload that may be predicted, as the survey would spell it."""

    surveyed: Workload
    region: int | None
    extrapolated: bool
    extra_ln_sd: float
    findings: tuple[Finding, ...]


def _interval(ln_mb_s: float, half: float, n: int) -> Interval:
    return Interval(math.exp(ln_mb_s), math.exp(ln_mb_s - half), math.exp(ln_mb_s + half), n)


def _beyond(item: Outside) -> str:
    shown = _shown(item.parameter, item.value)
    low, high = _shown(item.parameter, item.span.low), _shown(item.parameter, item.span.high)
    where = "" if item.parameter == "unique_bytes" else f" in the region {item.region!r}"
    return f"{item.parameter}={shown} lies outside the surveyed {low} to {high}{where}"


def _shown(parameter: str, value: float) -> str:
    if parameter in SIZES:
        return format_bytes(value)
    return f"{value:g}"
