"""A survey as rows and words: tables, the terminal, JSON."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Any, NamedTuple

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from leadline.charts.curve_lines import level_lines
from leadline.charts.terminal import Terminal, on_terminal
from leadline.record import PARAMETERS, CurvePoint, Measurement, Status, Summary, Survey
from leadline.record.access import ACCESS_OPTIONS
from leadline.record.survey import SURVEY, SurveyStart
from leadline.record.validation import VALIDATION
from leadline.record.wording import (
    format_boundary,
    format_bytes_ci,
    format_count,
    format_half_width,
    format_rate_ci,
    format_value,
    format_workload,
)
from leadline.sanitize import cell
from leadline.store import Store
from leadline.studies.cache.explain import find_in_survey
from leadline.studies.measurement.text import (
    CLOCKS,
    format_precondition,
    format_written,
    marks,
    slice_outliers,
)
from leadline.studies.registry import Kind, first, stored_points
from leadline.studies.survey.explain import (
    PointLatency,
    curve_heads,
    curve_rows,
    every_curve,
    format_curve,
    latencies,
    latency_at,
)
from leadline.studies.survey.study import load_survey
from leadline.units import format_bytes, format_percent, format_seconds

# The report's tables as plain rows of text: levels, points, plan against what ran, facts.

POINT_HEADS = (
    "#",
    "Stage",
    "Working set",
    "Request size",
    "Reads",
    "Sequential",
    "Processes",
    "Throughput (95% within the run)",
    "p50 (µs)",
    "p99 (µs)",
    "From cache",
    "Found",
    "Admissible",
)


def level_rows(survey: Survey) -> list[dict[str, Any]]:
    """One row per level: where it ends, how fast its focal point is, how far readings scatter."""
    rows = []
    fastest = max((region.throughput_mb_s.value for region in survey.regions), default=0.0)
    for region in survey.regions:
        boundary = (
            survey.boundaries[region.index] if region.index < len(survey.boundaries) else None
        )
        noise = survey.noise_frac.get(region.name)
        share = region.cached_share
        rows.append(
            {
                "name": region.name,
                "capacity": format_bytes_ci(boundary.bytes) if boundary else "everything beyond",
                "holds": format_boundary(boundary) if boundary else "everything beyond",
                "rate": format_rate_ci(region.throughput_mb_s),
                "bar": 100 * region.throughput_mb_s.value / fastest if fastest > 0 else 0.0,
                "noise": format_percent(noise) if noise is not None else "not measured",
                "cached": format_percent(share) if share is not None else "not measured",
                "focal": format_workload(region.focal),
            }
        )
    return rows


def tile_rows(survey: Survey) -> list[tuple[str, str]]:
    """Return the figures beside the title: number and what it is."""
    budget = format_seconds(survey.start.plan.budget_s)
    tiles = [
        (str(len(survey.regions)) if survey.regions else "none yet", "levels found"),
        (f"{survey.points} of {survey.start.plan.points}", "points measured of planned"),
        (format_seconds(survey.wall_s), f"taken of a budget of {budget}"),
    ]
    if survey.accuracy_frac is not None:
        tiles.append(
            (f"±{format_percent(survey.accuracy_frac)}", "median half-width of the 95% intervals")
        )
    return tiles


def sure_rows(survey: Survey, points: Sequence[Measurement], drift: str) -> list[tuple[str, str]]:
    """Say how sure the survey is, each doubt in one line."""
    early = survey.start.accuracy
    aimed = f"; ±{format_percent(early)} was aimed at within a run" if early else ""
    bought = survey.accuracy_frac
    rows = [
        (
            "Median half-width",
            f"{format_half_width(bought)} at the median point{aimed}"
            if bought is not None
            else "inconclusive: too few readings",
        ),
        ("Drift", drift),
    ]
    noise = [f"{name} {format_percent(frac)}" for name, frac in survey.noise_frac.items()]
    rows.append(("Run-to-run CV", ", ".join(noise) or "not measured"))
    bad = [point for point in points if not point.result.admissible]
    reasons = Counter(reason for point in bad for reason in point.result.reasons)
    why = "; ".join(f"{reason} ({count})" for reason, count in reasons.most_common())
    why += ". They stay in the table" if why else ""
    rows.append(("Points not valid", f"{len(bad)} of {len(points)}{f': {why}' if why else ''}"))
    restless = sum(point.result.warm_up.steady is False for point in points)
    rows.append(("Points without steady state", f"{restless} of {len(points)}"))
    rows += _honesty_rows(points, float(survey.start.facts.get("cpu_count") or 1))
    rows.append(("Outliers", _outlier_text(points)))
    if not survey.settled:
        rows.append(("Focal points", "still moved when the step limit was reached"))
    return rows


def _honesty_rows(points: Sequence[Measurement], processors: float) -> list[tuple[str, str]]:
    """Say for the whole survey what each point says for itself."""
    results = [point.result for point in points]
    judged = [result.generator for result in results if result.generator is not None]
    rests = Counter(result.provenance.cached_share_from for result in results)
    bound = f"{sum(each.bound for each in judged)} of {len(judged)}"
    stalls = [stall.seconds for result in results for stall in result.stalls]
    longest = f", the longest {format_seconds(max(stalls))}" if stalls else ""
    stalled = sum(bool(result.stalls) for result in results)
    shifted = sum(len(result.levels) > 1 for result in results)
    unchecked = sorted({text for result in results for text in result.provenance.unchecked})
    rows = [
        ("Points bound by Leadline itself", bound if judged else "not judged"),
        ("Points with more than one rate", f"{shifted} of {len(points)}"),
        ("Points with a stall", f"{stalled} of {len(points)}{longest}"),
        ("Share from cache by looking into the cache", f"{rests['residency']} of {len(points)}"),
        ("Share from cache by the device's counters", f"{rests['device']} of {len(points)}"),
    ]
    if unchecked:
        rows.append(("Not checked", "; ".join(unchecked)))
    judged_calm = [calm for r in results if (calm := r.is_calm(processors)) is not None]
    if judged_calm:
        most = format_percent(max(result.foreign_cpu or 0.0 for result in results))
        stolen = format_percent(max(result.other_load.steal_cpu or 0.0 for result in results))
        said = f"during {sum(judged_calm)} of {len(judged_calm)} points"
        most = f"other processes used at most {most} of a processor, other guests {stolen}"
        rows.append(("Machine calm", f"{said}; {most}"))
    return rows


def _outlier_text(points: Sequence[Measurement]) -> str:
    found = slice_outliers(points)
    if not found.slices:
        return "not classified: the runs have too few slices"
    text = (
        f"of {found.slices} slices within runs {found.mild} lie outside Tukey's inner fences "
        f"(mild) and {found.severe} outside the outer ones (severe); none was dropped"
    )
    if found.unclassified_points:
        text += f"; {found.unclassified_points} runs have too few slices to classify"
    return text


def plan_rows(survey: Survey, points: Sequence[Measurement]) -> list[tuple[str, str, str, str]]:
    """Stage by stage: what was planned and what ran."""
    ran = Counter(point.stage for point in points)
    stages = survey.start.plan.stages
    rows = [
        (stage.name, stage.purpose, str(stage.points), str(ran.pop(stage.name, 0)))
        for stage in stages
    ]
    rows += [(name, "not in the plan", "0", str(count)) for name, count in ran.items()]
    rows.append(("All", "", str(survey.start.plan.points), str(len(points))))
    return rows


def run_rows(survey: Survey, points: Sequence[Measurement]) -> list[tuple[str, str]]:
    """Return how the survey was run."""
    start, plan = survey.start, survey.start.plan
    cap = start.cache_limit_bytes
    rows = [
        ("Survey", start.study_id),
        ("Target", start.target),
        ("Started", start.started_at.replace("T", " ").replace("Z", " UTC")),
        ("Backend", f"{start.backend}, {start.access.discipline}"),
        ("Page cache cap", format_bytes(cap) if cap else "none"),
        ("Focal points", start.focal_mode),
        ("Seed", str(start.seed)),
        ("Budget", format_seconds(plan.budget_s)),
        ("Expected, taken", f"{format_seconds(plan.expected_s)}, {format_seconds(survey.wall_s)}"),
        ("Data laid out", format_bytes(plan.layout_bytes)),
        (
            "Working set, range",
            f"{format_bytes(plan.unique_bytes_min)} to {format_bytes(plan.unique_bytes_max)}",
        ),
    ]
    rows += [("Preconditioned", text) for p in points if (text := format_precondition(p.result))]
    wear = [point.result.written_bytes for point in points]
    written = format_written(
        sum(each.layout for each in wear),
        sum(each.precondition for each in wear),
        sum(each.workload for each in wear),
    )
    if written is not None:
        rows.append(("Written (wear)", written))
    clocks = {point.result.clock for point in points if point.result.clock}
    if clocks:
        rows.append(("Response times by", ", ".join(sorted(CLOCKS[clock] for clock in clocks))))
    return rows


def point_rows(points: Sequence[Measurement]) -> list[tuple[str, ...]]:
    """All points in the order they ran."""
    rows = []
    for point in sorted(points, key=lambda point: point.order):
        result = point.result
        settings = [format_value(name, getattr(point.workload, name)) for name in PARAMETERS]
        share = result.cached_share
        rows.append(
            (
                str(point.order + 1),
                point.stage,
                *settings,
                format_rate_ci(result.throughput_mb_s),
                f"{result.latency_us.p50:,.4g}",
                f"{result.latency_us.p99:,.4g}",
                format_percent(share) if share is not None else "not known",
                marks(result),
                "yes" if result.admissible else f"no: {'; '.join(result.reasons)}",
            )
        )
    return rows


_CSV: dict[str, Callable[[Measurement], Any]] = {
    "point_id": lambda point: point.point_id,
    "order": lambda point: point.order,
    "stage": lambda point: point.stage,
    "started_at": lambda point: point.started_at,
    "clock_s": lambda point: point.clock_s,
    **{name: attrgetter(f"workload.{name}") for name in (*PARAMETERS, "size_dist")},
    "throughput_mb_s": lambda point: point.result.throughput_mb_s.value,
    "throughput_low_mb_s": lambda point: point.result.throughput_mb_s.low,
    "throughput_high_mb_s": lambda point: point.result.throughput_mb_s.high,
    "throughput_n": lambda point: point.result.throughput_mb_s.n,
    "iops": lambda point: point.result.iops.value,
    "latency_mean_us": lambda point: point.result.latency_us.mean,
    "latency_p50_us": lambda point: point.result.latency_us.p50,
    "latency_p99_us": lambda point: point.result.latency_us.p99,
    "cached_share": lambda point: point.result.cached_share,
    "found": lambda point: marks(point.result),
    "admissible": lambda point: point.result.admissible,
    "reasons": lambda point: "; ".join(point.result.reasons),
}


def points_csv(points: Sequence[Measurement]) -> str:
    """All points for a spreadsheet, units in the column names."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(_CSV)
    for point in sorted(points, key=lambda point: point.order):
        writer.writerow([cell(of(point)) for of in _CSV.values()])
    return out.getvalue()


# A finished survey on a terminal: the sentences, a small chart of the levels, and a table.


@on_terminal
def render_terminal(
    terminal: Terminal, survey: Survey, points: Sequence[Measurement] = ()
) -> Iterator[RenderableType]:
    """Tell the sentences, table and warnings; all of it: the chart, and the page cache."""
    yield from terminal.sentences(survey.sentences)
    if terminal.verbose:
        yield Text("")
        for line in chart_lines(survey, terminal.width, plain=terminal.plain):
            yield Text(line, no_wrap=True, overflow="crop")
    if survey.regions:
        yield _table(terminal, survey)
    if terminal.verbose and points and survey.regions:
        yield from map(terminal.text, find_in_survey(survey, points).sentences)
        yield Text("")
    yield from terminal.warnings(survey.findings)


def _table(terminal: Terminal, survey: Survey) -> Table:
    shown = ("name", "capacity", "rate", "noise", "cached")
    rows = [[row[key] for key in shown] for row in level_rows(survey)]
    heads = ("Level", "Capacity (95% CI)", "Throughput (95% CI)", "Run-to-run CV", "Cache hits")
    return terminal.table(heads, rows)


@on_terminal
def render_curves(
    terminal: Terminal, survey: Survey, points: Sequence[Measurement], *, iops: bool = False
) -> Iterator[RenderableType]:
    """Tell every curve as a table: throughput, or requests per second, with p50 and p99."""
    known = latencies(points)
    for curve in every_curve(survey):
        if curve.points:
            yield terminal.text(f"{format_curve(survey, curve)}:")
            yield terminal.table(curve_heads(curve, iops=iops), curve_rows(curve, known, iops=iops))


def chart_lines(survey: Survey, width: int, *, plain: bool = False) -> list[str]:
    """Draw throughput against the working set in `width` columns; empty when there is no room."""
    boundaries = [boundary.bytes.value for boundary in survey.boundaries]
    return level_lines(survey.unique_bytes_curve.points, boundaries, width, plain=plain)


# A survey as JSON.


def survey_document(survey: Survey, points: Sequence[Measurement]) -> dict[str, Any]:
    """The keys DESIGN.md promises for `survey --json`, and more beside them."""
    start = survey.start
    known = latencies(points)
    return {
        "system": start.system,
        "survey": start.study_id,
        "status": survey.status,
        "wall_s": survey.wall_s,
        "points": survey.points,
        "planned_points": start.plan.points,
        "seed": start.seed,
        "regions": [
            {
                "name": region.name,
                "low_bytes": region.low_bytes,
                "high_bytes": region.high_bytes,
                "focal": {name: getattr(region.focal, name) for name in PARAMETERS},
                "throughput_mb_s": region.throughput_mb_s,
                "cached_share": region.cached_share,
            }
            for region in survey.regions
        ],
        "boundaries_bytes": [boundary.bytes for boundary in survey.boundaries],
        "boundaries_from": [boundary.basis for boundary in survey.boundaries],
        "cache_bytes": survey.cache_bytes,
        "file_cache": find_in_survey(survey, points),
        "cross_check_bytes": survey.cross_check_bytes,
        "curves": [
            {
                "region": curve.region,
                "parameter": curve.parameter,
                "points": [_point(point, known) for point in curve.points],
                "good_low": curve.good_low,
                "good_high": curve.good_high,
            }
            for curve in every_curve(survey)
        ],
        "slope": survey.slope,
        "drift_frac": survey.drift_frac,
        "drift_step": survey.drift_step,
        "noise_frac": survey.noise_frac,
        "accuracy_frac": survey.accuracy_frac,
        "settled": survey.settled,
        "cache_limit_bytes": start.cache_limit_bytes,
        **{name: getattr(start, name) for name in ACCESS_OPTIONS if name != "backend"},
        "precondition_bytes_max": start.precondition_bytes_max,
        "facts": start.facts,
        "plan": start.plan,
        "sentences": survey.sentences,
        "findings": [each.document() for each in survey.findings],
    }


def _point(point: CurvePoint, known: Mapping[str, PointLatency]) -> dict[str, Any]:
    """Return a point of a curve, with the response times of its readings where they are known."""
    own = latency_at(point, known)
    return {
        "x": point.x,
        "throughput_mb_s": point.throughput_mb_s,
        "iops": None if own is None else own.iops,
        "latency_us": None
        if own is None
        else {"mean": own.mean_us, "p50": own.p50_us, "p99": own.p99_us},
    }


class StoredSurvey(NamedTuple):
    """A survey with what belongs to it."""

    survey: Survey
    points: tuple[Measurement, ...]
    validations: tuple[Summary, ...] = ()

    @property
    def start(self) -> SurveyStart:
        """What decides it."""
        return self.survey.start

    @property
    def status(self) -> Status:
        """How far it is."""
        return self.survey.status


def load_with_validations(store: Store, ref: str) -> StoredSurvey:
    """Return a survey and its points, with a line of each of its validations."""
    survey, points = load_survey(store, ref)
    return StoredSurvey(survey, points, store.list(VALIDATION, survey.start.study_id))


def _document(study: StoredSurvey) -> dict[str, Any]:
    listed = [
        {
            "validation_id": item.study_id,
            "survey_id": item.parent,
            "started_at": item.started_at,
            "status": item.status,
            "points": item.items,
        }
        for item in study.validations
    ]
    return survey_document(study.survey, study.points) | {"validations": listed}


def _render(study: StoredSurvey) -> RenderableType:
    shown = render_terminal(study.survey, study.points)
    return Group(shown, *map(_format_validation, study.validations))


def _format_validation(item: Summary) -> str:
    name, points = item.study_id[:8], format_count(item.items, "point")
    return f"validation {name}: {item.status.value}, {points}; leadline show {name}"


KIND = Kind(
    SURVEY,
    load=load_with_validations,
    document=_document,
    render=_render,
    rows=stored_points(SURVEY),
    page="leadline.studies.survey.page",
    ending=".html",
    headline=lambda study: first(study.survey.sentences),
)
