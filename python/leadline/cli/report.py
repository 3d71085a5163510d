"""`leadline report S`: one page to look at, or to send; of a study of any kind."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from leadline.cli.context import Context
from leadline.cli.options import Force, Ref, require_new
from leadline.cli.talk import talk
from leadline.cli.tell import draw, require_output, usual_output
from leadline.report.kinds import KINDS, StoredSurvey, find_study
from leadline.studies.validation.stored import load_validation


def command(
    context: typer.Context,
    *,
    survey: Ref,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="FILE", help=".html, .pdf, .svg or .png"),
    ] = None,
    force: Force = False,
    beside: Annotated[
        list[str] | None,
        typer.Option("--with", metavar="S2", help="Another survey for the summary chart."),
    ] = None,
    charts: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Also save every chart as SVG in this directory."),
    ] = None,
) -> None:
    """Draw a stored survey: one self-contained page that opens without a network.

    Example: leadline report data -o page.html
    """
    own: Context = context.obj
    store = own.read_store()
    found = find_study(store, survey)
    kind = KINDS[found.kind]
    study = kind.load(store, found.start.study_id)
    if charts is not None and not isinstance(study, StoredSurvey):
        raise typer.BadParameter(f"--charts is for surveys; {survey!r} is a {kind.records.said}")
    path = output or usual_output(study, kind)
    require_output(path, kind)
    check = (lambda _: None) if force else require_new
    check(path)
    if charts is not None:
        from leadline.report.survey.save import save_all_charts  # noqa: PLC0415 - it loads Altair

        validation = load_validation(store, study.start.study_id)
        save_all_charts(study.survey, charts, "svg", validation, check)
        talk(f"wrote the charts to {charts}")
    draw(store, study, kind, path, beside or ())
