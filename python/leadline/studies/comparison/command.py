"""`leadline compare S1 S2 …`: which is faster, for what, by how much, and is it sure?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from leadline.engine import Engine, Limits, TargetRefused, open_engine, preflight
from leadline.models import Predictor
from leadline.outputs import write_whole
from leadline.record import Workload
from leadline.record.comparison import SystemsComparison
from leadline.record.survey import SURVEY
from leadline.record.wording import say_workload
from leadline.store import Store
from leadline.studies.comparison import (
    NOT_TWO,
    PASSES,
    Asked,
    ComparisonRefused,
    GateRefused,
    Named,
    Opened,
    Question,
    Readings,
    Terms,
    compare_systems,
    disturbance_of,
    known_cache,
    measure_in_turns,
    name_systems,
    parse_prices,
    parse_rule,
    questions_on,
)
from leadline.studies.comparison.text import junit_xml, markdown, render_comparison
from leadline.studies.measurement.command import read_workload
from leadline.studies.same_system import SYSTEM, changed_facts
from leadline.studies.survey import derive_seed
from leadline.studies.survey.study import load_survey, surveyed_target
from leadline.terminal.context import Context
from leadline.terminal.options import (
    Force,
    Json,
    Seed,
    new_file,
    positive_seconds,
    reader,
    with_group,
)
from leadline.terminal.talk import put_json, show, talk, tell_findings
from leadline.terminal.tell import require_directory, say_study

EXIT_GATE = 4
"""The gate of --fail-if failed: the new system is slower, beyond doubt."""

SECONDS = 2.0
VIRTUAL_SECONDS = 60.0
"""A simulated disk of 1990 answers some twenty requests a second; its time is free."""

_Surveys = Annotated[
    list[str],
    typer.Argument(
        metavar="S1 S2 …", help="Surveys' ids or the first letters of them, or systems."
    ),
]
_Named = Annotated[
    bool, typer.Option("--named", help="On the five named workloads of CP94 Fig. 16.")
]
_Workloads = Annotated[
    list[str] | None,
    typer.Option(
        metavar="k=v,…",
        help="On this workload; may be given several times. Without --named and --workload: "
        "the five named ones and each system's focal points.",
    ),
]
_Application = Annotated[
    str | None,
    typer.Option(
        metavar="A",
        help="By how long this application would take, that `leadline characterize` described: "
        "its id or the first letters of it, or its name.",
    ),
]
_Measure = Annotated[
    bool, typer.Option("--measure", help="Measure now, turn by turn; every target must be here.")
]
_Passes = Annotated[
    int, typer.Option(min=2, max=1000, help="With --measure: readings of each system.")
]
_Seconds = Annotated[
    float | None,
    typer.Option(
        parser=reader(positive_seconds),
        metavar="TIME",
        help="With --measure: time of one reading, at most.  [default: 2s]",
    ),
]
_Model = Annotated[str | None, typer.Option(metavar="NAME", help="Which model predicts.")]
_Extrapolate = Annotated[
    bool, typer.Option("--extrapolate", help="Answer beyond the surveyed ranges, marked.")
]
_Prices = Annotated[
    list[str] | None,
    typer.Option(metavar="S=AMOUNT,…", help="Prices, for MB/s per money: A=1200 EUR,B=800 EUR"),
]


def _path(*names: str, said: str) -> Any:
    return Annotated[Path | None, typer.Option(*names, metavar="FILE", help=said)]


_FailIf = Annotated[
    str | None,
    typer.Option(
        metavar="slower=5%",
        help="End with exit code 4 when the second system is shown to be slower by more.",
    ),
]


class Files(NamedTuple):
    """What a comparison is written to."""

    output: Path | None
    junit: Path | None
    markdown: Path | None


def _files(
    *,
    output: Path | None = None,
    junit: Path | None = None,
    markdown: Path | None = None,
    force: bool = False,
) -> Files:
    found = Files(output, junit, markdown)
    for path in found:
        if path is not None:
            require_directory(path)
            new_file(path, force=force)
    return found


@with_group(
    "files",
    {
        "output": (_path("-o", "--output", said="Draw it: .html, .svg, .png or .pdf"), None),
        "junit": (_path("--junit", said="With --fail-if: the gate as JUnit's XML, for CI."), None),
        "markdown": (_path("--markdown", said="The table as Markdown, for a job's summary."), None),
        "force": (Force, False),
    },
    _files,
)
def command(
    context: typer.Context,
    *,
    surveys: _Surveys,
    named: _Named = False,
    workload: _Workloads = None,
    application: _Application = None,
    measure: _Measure = False,
    passes: _Passes = PASSES,
    seconds: _Seconds = None,
    model: _Model = None,
    extrapolate: _Extrapolate = False,
    price: _Prices = None,
    fail_if: _FailIf = None,
    files: Files,
    seed: Seed = 1,
    json: Json = False,
) -> None:
    """Compare surveyed systems: ratios with intervals, and a verdict where there is one.

    Example: leadline compare old new --fail-if slower=5%
    """
    if application is not None:
        _require_alone(workload, price, fail_if, *files, named=named, measure=measure)
        _by_application(
            context.obj.read_store(),
            surveys,
            application,
            model=model,
            extrapolate=extrapolate,
            json=json,
        )
        return
    slower_frac = parse_rule(fail_if) if fail_if is not None else None
    own_questions = [Question(None, read_workload(text)) for text in workload or ()]
    if files.output is not None:
        from leadline.studies.comparison.page import require_format  # noqa: PLC0415 - it loads Altair

        require_format(files.output)
    if files.junit is not None and slower_frac is None:
        raise GateRefused("--junit tells of a gate: add --fail-if slower=5%, or leave it out")
    if slower_frac is not None and len(surveys) != 2:
        raise GateRefused(NOT_TWO)
    own: Context = context.obj
    store = own.open_store() if measure else own.read_store()
    systems = _systems(store, surveys, model=model, extrapolate=extrapolate)
    names = [system.name for system in systems]
    questions = questions_on(systems, own_questions, named=named)
    prices = parse_prices(price, names) if price else {}
    measured = None
    if measure:
        asked = _asked(systems, passes, seconds, seed)
        measured = _measure(store, systems, [item.workload for item in questions], asked)
    document = compare_systems(
        systems,
        Terms(questions=questions, prices=prices, slower_frac=slower_frac, measured=measured),
    )
    if not json:
        compared = [say_study(SURVEY.said, each.predictor.survey.start) for each in systems]
        show("comparison of " + "\n  and of ".join(compared) + "\n")
    _answer(document, files, json=json)


def _require_alone(*others: object, named: bool, measure: bool) -> None:
    """Refuse what a comparison by an application has no use for."""
    if named or measure or any(others):
        raise typer.BadParameter(
            "a comparison by an application is one of predicted times: leave out --workload, "
            "--named, --measure, --price, --fail-if and -o, or --application"
        )


def _by_application(
    store: Store, refs: Sequence[str], ref: str, *, model: str | None, extrapolate: bool, json: bool
) -> None:
    from leadline.studies.application import load_application  # noqa: PLC0415
    from leadline.studies.comparison.document import compare_application  # noqa: PLC0415 - only here
    from leadline.studies.comparison.text import render_application_comparison  # noqa: PLC0415

    described = load_application(store, ref)
    systems = _systems(store, refs, model=model, extrapolate=extrapolate)
    document = compare_application(systems, described)
    if json:
        put_json(document)
    else:
        show(render_application_comparison(document))


def _systems(
    store: Store, refs: Sequence[str], *, model: str | None, extrapolate: bool
) -> tuple[Named, ...]:
    loaded = [load_survey(store, ref) for ref in refs]
    names = name_systems([survey for survey, _ in loaded])
    return tuple(
        Named(
            name,
            Predictor(survey, points, model=model, extrapolate=extrapolate),
            known_cache(store, survey, points),
            disturbance_of(survey, points),
        )
        for name, (survey, points) in zip(names, loaded, strict=True)
    )


def _asked(systems: Sequence[Named], passes: int, seconds: float | None, seed: int) -> Asked:
    virtual = all(s.predictor.survey.start.target.startswith("sim:") for s in systems)
    seconds = seconds or (VIRTUAL_SECONDS if virtual else SECONDS)
    limits = Limits(
        warm_up_s_max=max(2.0, seconds),
        measure_s_min=seconds / 2,
        measure_s_max=seconds,
        accuracy=0.005,
    )
    return Asked(passes, limits, lambda number: derive_seed(seed, number))


def _measure(
    store: Store, systems: Sequence[Named], workloads: Sequence[Workload], asked: Asked
) -> Mapping[Workload, Readings]:
    targets = [surveyed_target(system.predictor.survey) for system in systems]
    paths = [target.path for target in targets if target.path is not None]
    for path in paths:
        if paths.count(path) > 1:
            raise ComparisonRefused(
                f"two of the surveys are of {path}: measured now, both would be the same system. "
                "Leave out --measure to compare what was surveyed"
            )
    with ExitStack() as stack:
        opened = []
        for number, (system, target) in enumerate(zip(systems, targets, strict=True)):
            start = system.predictor.survey.start
            engine = stack.enter_context(
                open_engine(
                    target,
                    start.access,
                    max_bytes=start.plan.unique_bytes_max,
                    run_seed=derive_seed(start.seed, -1 - number),
                )
            )
            tell_findings(preflight(target, engine.facts))
            _require_same_system(system, engine)
            opened.append(Opened(system.name, target.text, engine))
        talk(
            f"measuring {len(workloads)} workloads on {len(opened)} systems, {asked.passes} "
            f"passes of {asked.limits.measure_s_max:g} s at most each"
        )
        found = measure_in_turns(opened, workloads, asked, store, on_reading=_tell_reading)
    return {readings.workload: readings for readings in found}


def _require_same_system(system: Named, engine: Engine) -> None:
    """Refuse a system that changed since its survey; another engine build is only told."""
    surveyed = system.predictor.survey.start.facts
    decisive = changed_facts(surveyed, engine.facts, SYSTEM)
    if decisive:
        raise ComparisonRefused(
            f"{system.name} is not the system that was surveyed: {'; '.join(decisive)}. What is "
            "measured now would stand beside the charts of another system: survey it again "
            "(`leadline survey`), set back what changed, or leave out --measure"
        )
    for fact in changed_facts(surveyed, engine.facts, ("engine_build",)):
        talk(f"note: {system.name}: {fact}")


def _tell_reading(name: str, workload: Workload, turn: int) -> None:
    talk(f"  pass {turn + 1}: {name}, {say_workload(workload)}")


def _answer(document: SystemsComparison, files: Files, *, json: bool) -> None:
    if json:
        put_json(document)
    else:
        show(render_comparison(document))
    if files.output is not None:
        from leadline.studies.comparison.page import save_comparison  # noqa: PLC0415 - it loads Altair

        save_comparison(document, files.output)
        talk(f"wrote {files.output}")
    if files.junit is not None:
        _write(files.junit, junit_xml(document))
    if files.markdown is not None:
        _write(files.markdown, markdown(document).encode())
    if document.gate is not None and document.gate.failed:
        talk(f"slower by more than {100 * document.gate.slower_frac:g} %: exit code {EXIT_GATE}")
        raise typer.Exit(EXIT_GATE)


def _write(path: Path, data: bytes) -> None:
    try:
        write_whole(path, data)
    except OSError as error:
        raise TargetRefused(f"{path} cannot be written: {error.strerror}") from error
    talk(f"wrote {path}")
