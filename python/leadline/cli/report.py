"""`leadline report S`: one page to look at, or to send; of a survey, a study or an experiment."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated

import typer

from leadline.cli.cache import load_study
from leadline.cli.context import Context
from leadline.cli.files import write_files
from leadline.cli.load import find_study, load_validation
from leadline.cli.options import Ref
from leadline.cli.stream.run import write_stream
from leadline.cli.talk import talk
from leadline.cli.workbench.run import require_output, write_experiment
from leadline.engine import TargetRefused
from leadline.record.file_cache import CACHE
from leadline.record.files import FILES
from leadline.record.streaming import STREAM
from leadline.record.survey import SURVEY
from leadline.record.workbench import EXPERIMENT
from leadline.store import Store, StoreError
from leadline.studies.files.stored import load_files
from leadline.studies.streaming.stored import load_stream
from leadline.studies.survey.stored import load_survey
from leadline.studies.workbench.stored import experiment_of


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
    found = find_study(store, survey)
    study_id, others = found.start.study_id, beside or ()
    if found.kind == SURVEY.kind:
        _report_survey(store, study_id, others, output, charts)
        return
    drawn = _DRAWN.get(found.kind)
    if drawn is None:
        raise StoreError(f"{survey!r} is a {found.kind}, which has no page: leadline show tells it")
    ending, draw = drawn
    path = output or Path(f"leadline-{found.start.system.replace('/', '_')}{ending}")
    _require_directory(path)
    draw(store, study_id, others, path)


def _require_directory(path: Path) -> None:
    if not path.absolute().parent.is_dir():
        raise TargetRefused(f"the directory of {path} does not exist; create it first")


def _report_survey(
    store: Store, study_id: str, beside: Sequence[str], output: Path | None, charts: Path | None
) -> None:
    found, points = load_survey(store, study_id)
    others = [load_survey(store, ref)[0] for ref in beside]
    path = output or Path(f"leadline-{found.start.system.replace('/', '_')}.html")
    _require_directory(path)
    from leadline.report import save_all_charts, save_report  # noqa: PLC0415 - they load Altair

    validation = load_validation(store, study_id)
    save_report(found, points, path, others, validation)
    talk(f"wrote {path}")
    if charts is not None:
        save_all_charts(found, charts, "svg", validation)
        talk(f"wrote the charts to {charts}")


def _draw_cache(store: Store, study_id: str, beside: Sequence[str], path: Path) -> None:
    del beside  # a chart of one study
    from leadline.report import save_cache_chart  # noqa: PLC0415 - it loads Altair

    save_cache_chart(load_study(store, study_id), path)
    talk(f"wrote {path}")


def _draw_files(store: Store, study_id: str, beside: Sequence[str], path: Path) -> None:
    write_files(load_files(store, study_id), path, [load_files(store, name) for name in beside])


def _draw_stream(store: Store, study_id: str, beside: Sequence[str], path: Path) -> None:
    write_stream(load_stream(store, study_id), path, [load_stream(store, name) for name in beside])


def _draw_experiment(store: Store, study_id: str, beside: Sequence[str], path: Path) -> None:
    """Draw a search or a surface; `beside` are compared with it: in time, and in cost."""
    require_output(path)
    others = [experiment_of(store, name) for name in beside]
    write_experiment(experiment_of(store, study_id), path, others)


_DRAWN: dict[str, tuple[str, Callable[[Store, str, Sequence[str], Path], None]]] = {
    CACHE.kind: ("-cache.svg", _draw_cache),
    FILES.kind: ("-files.html", _draw_files),
    STREAM.kind: ("-stream.html", _draw_stream),
    EXPERIMENT.kind: (".html", _draw_experiment),
}
"""How a file's usual name ends, and who draws it."""
