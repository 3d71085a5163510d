"""`leadline compare S1 S2 …`: which is faster, for what, by how much, and is it sure?"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from leadline.errors import UsageRefused
from leadline.outputs import write_whole
from leadline.record.comparison import SystemsComparison
from leadline.record.files import FILES
from leadline.record.measurement import MEASUREMENT
from leadline.store import Store
from leadline.studies.comparison.document import ComparisonRefused
from leadline.studies.comparison.ratio import GateRefused
from leadline.studies.comparison.run import (
    PASSES,
    ComparisonAsked,
    compare_stored,
    named_systems,
    require_sense,
    studies_of,
)
from leadline.studies.comparison.stored import compare_measured, kind_of
from leadline.studies.comparison.text import format_rules, junit_xml, markdown, render_comparison
from leadline.studies.measurement.command import read_workload
from leadline.terminal.bundles import imported
from leadline.terminal.context import Context
from leadline.terminal.options import (
    Force,
    Json,
    Seed,
    new_file,
    positive_seconds,
    reader,
    study_argument,
    with_group,
)
from leadline.terminal.talk import put_json, show, talk
from leadline.terminal.tell import require_directory
from leadline.terminal.watch import Teller

EXIT_GATE = 4
"""The gate of --fail-if failed: the new system is slower, beyond doubt."""

_Surveys = Annotated[
    list[str],
    study_argument(
        "S1 S2 …",
        "Surveys' ids or the first letters of them, or systems; of one system several, with commas "
        "between: what differs from one to the next is in the interval then.",
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
    bool, typer.Option("--measure", help="Measure now, interleaved; every target must be here.")
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
    list[str] | None,
    typer.Option(
        metavar="slower=5%",
        help="End with exit code 4 when the second system is shown to be slower by more. Measured, "
        "also p99=5% (latency) and cpu_per_io=5%; may be given several times.",
    ),
]


_UndecidedExit = Annotated[
    int,
    typer.Option(
        metavar="CODE",
        min=0,
        max=255,
        help="With --fail-if: exit code where a slowdown would not have shown; `git bisect run` "
        "skips at 125.",
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
    undecided_exit: _UndecidedExit = 0,
    files: Files,
    seed: Seed = 1,
    json: Json = False,
) -> None:
    """Compare surveyed systems: ratios with intervals, and verdicts.

    Example: leadline compare old new --fail-if slower=5%
    """
    surveys = [_imported(context.obj, each) for each in surveys]
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
    asked = ComparisonAsked(
        workloads=[read_workload(text) for text in workload or ()],
        named=named,
        prices=price or (),
        fail_if=fail_if or (),
        measure=measure,
        passes=passes,
        seconds=seconds,
        seed=seed,
    )
    if files.output is not None:
        from leadline.studies.comparison.page import require_format  # noqa: PLC0415 - it loads Altair

        require_format(files.output)
    if files.junit is not None and not fail_if:
        raise GateRefused("--junit tells of a gate: add --fail-if slower=5%, or leave it out")
    require_sense(asked, len(surveys))
    own: Context = context.obj
    store = own.open_store() if measure else own.read_store()
    kind = kind_of(store, studies_of(surveys[0])[0])
    if kind in (MEASUREMENT, FILES):
        _require_alone(workload, price, named=named, measure=measure)
        document = compare_measured(store, surveys, kind, fail_if or ())
        _answer(document, files, undecided_exit, json=json)
        return
    systems = named_systems(store, surveys, model=model, extrapolate=extrapolate)
    document = compare_stored(store, systems, asked, Teller(lambda *_: None))
    _answer(document, files, undecided_exit, json=json)


def _imported(own: Context, side: str) -> str:
    """Import what of a side is a bundle; a bundle's name may have commas in it."""
    if Path(side).is_file():
        return imported(own, side)
    refs = studies_of(side)
    if not refs:
        raise ComparisonRefused(f"{side!r} names no survey; leadline systems lists them")
    return ",".join(imported(own, each) for each in refs)


def _require_alone(*others: object, named: bool, measure: bool) -> None:
    """Refuse what a comparison by an application, or of measurements, has no use for."""
    if named or measure or any(others):
        raise typer.BadParameter(
            "an application is compared by predicted times, measurements by what they are: leave "
            "out --workload, --named, --measure, --price; with --application --fail-if and -o too"
        )


def _by_application(
    store: Store, refs: Sequence[str], ref: str, *, model: str | None, extrapolate: bool, json: bool
) -> None:
    from leadline.studies.application.characterize import load_application  # noqa: PLC0415
    from leadline.studies.comparison.document import compare_application  # noqa: PLC0415 - only here
    from leadline.studies.comparison.text import render_application_comparison  # noqa: PLC0415

    described = load_application(store, ref)
    systems = named_systems(store, refs, model=model, extrapolate=extrapolate)
    if any(system.more for system in systems):
        raise ComparisonRefused("an application is compared by one survey of each system: name one")
    document = compare_application(systems, described)
    if json:
        put_json(document)
    else:
        show(render_application_comparison(document))


def _answer(document: SystemsComparison, files: Files, undecided_exit: int, *, json: bool) -> None:
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
        talk(f"{format_rules(document.gate.rules)}: exit code {EXIT_GATE}")
        raise typer.Exit(EXIT_GATE)
    if document.gate is not None and document.gate.undecided:
        raise typer.Exit(undecided_exit)


def _write(path: Path, data: bytes) -> None:
    try:
        write_whole(path, data)
    except OSError as error:
        raise UsageRefused(f"{path} cannot be written: {error.strerror}") from error
    talk(f"wrote {path}")
