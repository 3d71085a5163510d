"""`leadline validate S`: how good are the predictions of this survey?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Annotated, Any

import typer
from rich.console import Group
from rich.table import Table
from rich.text import Text

from leadline.cli.context import Context
from leadline.cli.load import surveyed_target
from leadline.cli.options import Duration, Json, Ref, Seed
from leadline.cli.progress import progress_bar
from leadline.cli.talk import put_json, show, talk, tell_findings
from leadline.engine import Engine, Stopped, open_engine, preflight
from leadline.errors import LeadlineError
from leadline.predict import DEFAULT_MODEL, MODELS
from leadline.record import (
    Interval,
    Measurement,
    ModelScore,
    Status,
    Survey,
    Validation,
    ValidationStart,
)
from leadline.record.validation import VALIDATION
from leadline.record.wording import say_number, say_percent, say_share
from leadline.store import Store
from leadline.studies.survey.stored import load_survey
from leadline.studies.validation import (
    Asked,
    ValidationRefused,
    begin_validation,
    explain_validation,
    measure_validation,
    require_as_surveyed,
)
from leadline.units import format_bytes, format_seconds


def command(
    context: typer.Context,
    *,
    survey: Ref,
    count: Annotated[
        int, typer.Option(min=1, max=10_000, help="Random workloads; each is measured twice.")
    ] = 100,
    seed: Seed = 1,
    seconds: Duration = None,
    budget: Duration = None,
    rivals: Annotated[
        bool | None,
        typer.Option(
            "--rivals/--no-rivals",
            help="Measure an orthogonal sample of the survey's cost and of twice that as well; "
            "the default on a simulated system.",
            show_default=False,
        ),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with this survey's unfinished validation.")
    ] = False,
    model: Annotated[
        str | None,
        typer.Option(metavar="M", help=f"The model of the headline (default: {DEFAULT_MODEL})."),
    ] = None,
    json: Json = False,
) -> None:
    """Measure random workloads and hold them against what the survey's models predict."""
    if model is not None and model not in MODELS:
        raise typer.BadParameter(f"--model is one of {', '.join(MODELS)}, not {model!r}")
    own: Context = context.obj
    store = own.open_store()
    found, survey_points = load_survey(store, survey)
    _require_finished(found)
    target = surveyed_target(found)
    earlier = _unfinished(store, found) if resume else None
    virtual = target.kind == "simulated"
    asked = Asked(count, seed, seconds, budget, rivals=virtual if rivals is None else rivals)
    start = found.start
    with open_engine(
        target,
        backend=start.backend,
        direct=start.direct,
        sync=start.sync,
        cache_limit_bytes=start.cache_limit_bytes,
        max_bytes=start.plan.unique_bytes_max,
        run_seed=earlier.seed if earlier else seed,
    ) as engine:
        warnings = tell_findings(preflight(target, engine.facts))
        if earlier:
            require_as_surveyed(engine, found, earlier.ranges)
            _tell_kept_options(earlier, asked, context)
        begun = earlier or begin_validation(engine, found, survey_points, asked, warnings=warnings)
        explained = partial(explain_validation, begun, found, survey_points, model=model)
        points = store.items(begun.study_id)
        if earlier is None:
            store.begin(VALIDATION, begun)
        _tell_plan(begun, points)
        try:
            measured = _run(engine, store, begun, points, budget_s=budget if earlier else None)
        except (Stopped, LeadlineError, KeyboardInterrupt):
            _tell_kept(store, begun, explained)
            raise
    validation = explained(measured)
    store.end(begun.study_id, validation, validation.status)
    tell_validation(validation, json=json)


def _require_finished(survey: Survey) -> None:
    if survey.status is not Status.DONE:
        raise ValidationRefused(
            f"survey {survey.start.study_id[:8]} is not finished, and what it predicts would "
            f"change: leadline survey {survey.start.target} --name {survey.start.system} --resume"
        )


def _unfinished(store: Store, survey: Survey) -> ValidationStart:
    for summary in store.list(VALIDATION, survey.start.study_id):
        if summary.status is not Status.DONE:
            return store.find(summary.study_id, VALIDATION).start
    raise ValidationRefused(
        f"no unfinished validation of survey {survey.start.study_id[:8]} is stored; leave out "
        "--resume to start one"
    )


def _tell_kept_options(earlier: ValidationStart, asked: Asked, context: typer.Context) -> None:
    """Say which options were given in vain: a resumed validation keeps those it began with."""
    rivals = bool(earlier.plan.grids)
    own = {
        "count": (asked.count == earlier.count, str(earlier.count)),
        "seed": (asked.seed == earlier.seed, str(earlier.seed)),
        "seconds": (asked.seconds == earlier.plan.point_s, format_seconds(earlier.plan.point_s)),
        "rivals": (asked.rivals == rivals, "with them" if rivals else "without them"),
    }
    for name, (alike, began) in own.items():
        source = context.get_parameter_source(name)
        if not alike and source is not None and source.name == "COMMANDLINE":
            talk(f"note: --{name} is not used: with --resume it goes on as it began ({began})")


def _tell_plan(start: ValidationStart, points: Sequence[Measurement]) -> None:
    plan = start.plan
    talk(
        f"validation {start.study_id[:8]} of survey {start.parent[:8]} "
        f"({start.system}, {start.target}), seed {start.seed}"
        + (f", {len(points)} points kept" if points else "")
    )
    if start.cache_limit_bytes:
        talk(f"memory capped at {format_bytes(start.cache_limit_bytes)} by a cgroup")
    talk(
        f"plan: {plan.points} points, {format_seconds(plan.point_s)} each at most; ends within "
        f"{format_seconds(plan.budget_s)}"
        + (f"; writes {format_bytes(plan.layout_bytes)} of data first" if plan.layout_bytes else "")
    )
    for stage in plan.stages:
        talk(f"  {stage.name:<15}{stage.points:>4} points  {stage.purpose}")


def _run(
    engine: Engine,
    store: Store,
    start: ValidationStart,
    points: Sequence[Measurement],
    *,
    budget_s: float | None,
) -> tuple[Measurement, ...]:
    with progress_bar(start.plan.points) as on_progress:
        return measure_validation(
            engine, store, start, points, budget_s=budget_s, on_progress=on_progress
        )


def _tell_kept(
    store: Store, start: ValidationStart, explained: Callable[[Sequence[Measurement]], Validation]
) -> None:
    """Say what is kept and how to go on, then what it tells so far.

    Whatever goes wrong here, why the validation stopped is what the caller must hear.
    """
    with suppress(Exception):
        kept = store.items(start.study_id)
        talk(
            f"{len(kept)} of {start.plan.points} points are kept as {start.study_id[:8]}; "
            f"leadline validate {start.parent[:8]} --resume goes on"
        )
        talk("\n".join(explained(kept).sentences))


def tell_validation(validation: Validation, *, json: bool) -> None:
    """Put a validation on stdout: its JSON document, or a table with sentences and warnings."""
    if json:
        put_json(validation_document(validation))
        return
    parts: list[Any] = [_table(validation), Text()]
    parts += [Text(text) for text in validation.sentences]
    parts += [Text(f"warning: {text}") for text in validation.warnings]
    show(Group(*parts))
    talk(f"\nleadline report {validation.start.parent[:8]} -o survey.html draws it")


def _table(validation: Validation) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("model or rival", no_wrap=True)
    heads = ("points", "median error (95 %)", "75 %", "90 %", "enhanced", "A", "50/90/95 %")
    for head in heads:
        table.add_column(head, justify="right", no_wrap=True)
    for score in validation.scores:
        table.add_row(*_cells(score))
    table.caption = (
        "enhanced: median without region borders. A: median error over inherent error. "
        "50/90/95 %: share of the measured values in the intervals of that confidence."
    )
    table.caption_justify = "left"
    return table


def _cells(score: ModelScore) -> tuple[str, ...]:
    enhanced, times = score.enhanced_median_error, score.amplification
    return (
        score.model,
        str(score.readings),
        say_share(score.median_error),
        say_percent(score.p75_error.value),
        say_percent(score.p90_error.value),
        "-" if enhanced is None else say_percent(enhanced.value),
        "-" if times is None else say_number(times.value),
        "/".join(f"{100 * item.share.value:.0f}" for item in score.coverage) or "-",
    )


def validation_document(validation: Validation) -> dict[str, Any]:
    """The keys DESIGN.md promises for `validate --json`, and more beside them.

    The promised numbers are plain, and of the headline's model; `intervals` has each of them with
    its 95 % interval and n.
    """
    start, score = validation.start, validation.score(validation.model)
    intervals = _intervals(score) if score else {}
    return {
        "validation": start.study_id,
        "survey": start.parent,
        "system": start.system,
        "status": validation.status,
        "seed": start.seed,
        "wall_s": validation.wall_s,
        "points": validation.points,
        "planned_points": start.plan.points,
        "n": validation.n,
        "model": validation.model,
        **{name: _value(intervals.get(name)) for name in _PROMISED},
        "inherent_error": _value(validation.inherent_error),
        "coverage": _coverage(score),
        "intervals": intervals | {"inherent_error": validation.inherent_error},
        "models": {
            item.model: {
                **{name: _value(getattr(item, name)) for name in _PROMISED},
                "coverage": _coverage(item),
                "intervals": _intervals(item),
                "kind": item.kind,
                "readings": item.readings,
                "by_parameter": item.by_parameter,
                "by_place": item.by_place,
            }
            for item in validation.scores
        },
        "workloads": validation.workloads,
        "drift_frac": validation.drift_frac,
        "drift": validation.drift,
        "drift_within_frac": validation.drift_within_frac,
        "plan": start.plan,
        "facts": start.facts,
        "sentences": validation.sentences,
        "warnings": validation.warnings,
    }


_PROMISED = (
    "median_error",
    "p75_error",
    "p90_error",
    "enhanced_median_error",
    "amplification",
    "bias_frac",
)


def _intervals(score: ModelScore) -> dict[str, Any]:
    found: dict[str, Any] = {name: getattr(score, name) for name in _PROMISED}
    found["coverage"] = {f"{100 * item.confidence:.0f}": item.share for item in score.coverage}
    return found


def _coverage(score: ModelScore | None) -> dict[str, float] | None:
    if score is None or not score.coverage:
        return None
    return {f"{100 * item.confidence:.0f}": item.share.value for item in score.coverage}


def _value(number: Interval | None) -> float | None:
    return None if number is None else number.value
