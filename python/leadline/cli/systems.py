"""`leadline systems`: what has been surveyed."""

from __future__ import annotations

import typer
from rich.table import Table

from leadline.cli.context import Context
from leadline.cli.options import Json
from leadline.cli.talk import put_json, show, talk


def command(context: typer.Context, json: Json = False) -> None:
    """List the stored surveys, newest first."""
    own: Context = context.obj
    summaries = own.open_store().surveys()
    if json:
        put_json(summaries)
        return
    if not summaries:
        talk("no survey is stored yet; `leadline survey DIR` makes one")
        return
    table = Table("survey", "system", "target", "started", "points", "state", box=None)
    for item in summaries:
        table.add_row(item.survey_id[:8], item.system, item.target, item.started_at[:19],
                      str(item.points), item.status.value)  # fmt: skip
    show(table)
