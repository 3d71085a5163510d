"""`leadline report S`: one page to look at, or to send; of a survey, a study or an experiment."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from leadline.cli.cache import load_study
from leadline.cli.context import Context
from leadline.cli.experiment_run import require_output, write_experiment
from leadline.cli.files import write_files
from leadline.cli.load import load_survey, load_validation
from leadline.cli.options import Ref
from leadline.cli.stream_run import write_stream
from leadline.cli.talk import talk
from leadline.engine import TargetRefused
from leadline.store import Store, StoreError
from leadline.workbench.mapping import experiment_of


def command(
    context: typer.Context,
    survey: Ref,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="FILE", help=".html, .pdf, .svg or .png"),
    ] = None,
    beside: Annotated[
        list[str] | None,
        typer.Option("--with", metavar="S2", help="Another survey for the summary chart."),
    ] = None,
    charts: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Also save every chart as SVG in this directory."),
    ] = None,
) -> None:
    """Draw a stored survey: one self-contained page that opens without a network."""
    own: Context = context.obj
    store = own.open_store()
    try:
        found, points = load_survey(store, survey)
    except StoreError as not_a_survey:
        _report_study(store, survey, beside or (), output, not_a_survey)
        return
    others = [load_survey(store, ref)[0] for ref in beside or ()]
    path = output or Path(f"leadline-{found.start.system.replace('/', '_')}.html")
    _require_directory(path)
    from leadline.report import save_all_charts, save_report  # noqa: PLC0415 - they load Altair

    validation = load_validation(store, found.start.survey_id)
    save_report(found, points, path, others, validation)
    talk(f"wrote {path}")
    if charts is not None:
        save_all_charts(found, charts, "svg", validation)
        talk(f"wrote the charts to {charts}")


def _require_directory(path: Path) -> None:
    if not path.absolute().parent.is_dir():
        raise TargetRefused(f"the directory of {path} does not exist; create it first")


def _report_study(
    store: Store,
    ref: str,
    beside: Sequence[str],
    output: Path | None,
    not_a_survey: StoreError,
) -> None:
    """Draw a study of a file cache: one chart; or a table of plain files."""
    try:
        study = load_study(store, ref)
    except StoreError:
        _report_files(store, ref, beside, output, not_a_survey)
        return
    path = output or Path(f"leadline-{study.start.system.replace('/', '_')}-cache.svg")
    _require_directory(path)
    from leadline.report import save_cache_chart  # noqa: PLC0415 - it loads Altair

    save_cache_chart(study, path)
    talk(f"wrote {path}")


def _report_files(
    store: Store,
    ref: str,
    beside: Sequence[str],
    output: Path | None,
    not_a_survey: StoreError,
) -> None:
    try:
        study = store.files_study(ref)
    except StoreError:
        _report_stream(store, ref, beside, output, not_a_survey)
        return
    others = [store.files_study(name) for name in beside]
    path = output or Path(f"leadline-{study.start.system.replace('/', '_')}-files.html")
    _require_directory(path)
    write_files(study, path, others)


def _report_stream(
    store: Store,
    ref: str,
    beside: Sequence[str],
    output: Path | None,
    not_a_survey: StoreError,
) -> None:
    try:
        study = store.stream_study(ref)
    except StoreError:
        _report_experiment(store, ref, beside, output, not_a_survey)
        return
    others = [store.stream_study(name) for name in beside]
    path = output or Path(f"leadline-{study.start.system.replace('/', '_')}-stream.html")
    _require_directory(path)
    write_stream(study, path, others)


def _report_experiment(
    store: Store,
    ref: str,
    beside: Sequence[str],
    output: Path | None,
    not_a_survey: StoreError,
) -> None:
    """Draw a search or a surface; `beside` are compared with it: in time, and in cost."""
    try:
        experiment = experiment_of(store, ref)
    except StoreError:
        raise not_a_survey from None
    path = output or Path(f"leadline-{experiment.start.name.replace('/', '_')}.html")
    require_output(path)
    write_experiment(experiment, path, [experiment_of(store, name) for name in beside])
