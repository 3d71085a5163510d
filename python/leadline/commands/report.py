"""`leadline report S`: one page to look at, or to send; of a study of any kind, or of all."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from leadline.lazy_import import late
from leadline.record.wording import format_count
from leadline.store import Store
from leadline.studies.registry import KINDS, find_study
from leadline.studies.survey.text import StoredSurvey
from leadline.terminal.bundles import imported
from leadline.terminal.context import Context
from leadline.terminal.options import Force, require_new, study_argument
from leadline.terminal.talk import talk
from leadline.terminal.tell import draw, require_output, usual_output

save_site = late("leadline.studies.site:save_site")  # it loads Altair
START = "index.html"


def command(
    context: typer.Context,
    *,
    survey: Annotated[
        str | None,
        study_argument("S", "A study's id or the first letters of it, or a system's name."),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o", "--output", metavar="FILE", help=".html, .pdf, .svg or .png; with --all a folder."
        ),
    ] = None,
    every: Annotated[
        bool, typer.Option("--all", help="A page of every study, and a start page that lists them.")
    ] = False,
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
    """Draw what is stored as one self-contained page.

    Example: leadline report data -o page.html
    """
    own: Context = context.obj
    survey = survey and imported(own, survey)
    store = own.read_store()
    if every:
        if survey is not None or beside or charts is not None:
            raise typer.BadParameter("--all draws every study: leave out S, --with and --charts")
        _draw_all(store, output or Path("leadline-site"), force=force)
        return
    if survey is None:
        raise typer.BadParameter("give a study's id or a system's name, or --all")
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
        from leadline.studies.survey.page import save_all_charts  # noqa: PLC0415 - it loads Altair
        from leadline.studies.validation.charts import checked_in  # noqa: PLC0415 - the same

        checked = checked_in(store, study.start.study_id)
        save_all_charts(study.survey, charts, "svg", checked, check)
        talk(f"wrote the charts to {charts}")
    draw(store, study, kind, path, beside or ())


def _draw_all(store: Store, folder: Path, *, force: bool) -> None:
    """Write a folder of pages, and say how far it is: each takes a second or more."""
    if not force:
        require_new(folder / START)
    entries = save_site(store, folder, lambda done, of: talk(f"page {done} of {of}"))
    lost = sum(not each.page for each in entries)
    said = f"; {format_count(lost, 'page')} could not be drawn" if lost else ""
    talk(f"wrote {folder / START}{said}")
