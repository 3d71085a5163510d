"""`leadline systems`: what has been measured."""

from __future__ import annotations

import heapq
from typing import Any

import typer
from rich.table import Table

from leadline.cli.context import Context
from leadline.cli.options import Json
from leadline.cli.talk import put_json, show, talk
from leadline.record import Summary
from leadline.record.files import FILES
from leadline.record.streaming import STREAM
from leadline.record.survey import SURVEY
from leadline.record.workbench import EXPERIMENT
from leadline.store import Store

_TARGET = {"files": "plain files", "stream": "streams", "experiment": "workbench"}


def command(context: typer.Context, json: Json = False) -> None:
    """List the stored surveys, studies and experiments, newest first."""
    own: Context = context.obj
    found = _listed(own.open_store())
    if json:
        put_json(found)
        return
    if not found:
        talk("no survey is stored yet; `leadline survey DIR` makes one")
        return
    table = Table("id", "system", "target", "started", "points", "state", box=None)
    for item in found:
        target = item.get("target", _TARGET.get(item["kind"]))
        table.add_row(
            item["id"][:8],
            item["system"],
            target,
            item["started_at"][:19],
            str(item.get("points", "")),
            item["status"].value,
        )
    show(table)


def _listed(store: Store) -> list[dict[str, Any]]:
    """Everything with its kind and its id; each kind in the order in which it was stored."""
    kinds = (SURVEY, FILES, STREAM, EXPERIMENT)
    lists = [[_item(item) for item in store.list(kind)] for kind in kinds]
    # Clocks of several machines do not order studies of one kind: the store does.
    return list(heapq.merge(*lists, key=lambda item: str(item["started_at"]), reverse=True))


def _item(item: Summary) -> dict[str, Any]:
    """The keys that each kind has had from its beginning."""
    own = {"kind": item.kind, "id": item.study_id}
    when = {"started_at": item.started_at, "status": item.status}
    if item.kind == SURVEY.kind:
        counted = {"points": item.items, "wall_s": item.wall_s}
        named = {"survey_id": item.study_id, "system": item.system, "target": item.target}
        return own | named | when | counted
    if item.kind == EXPERIMENT.kind:
        named = {"experiment_id": item.study_id, "name": item.system}
        return (
            own | named | when | {"trials": item.items, "system": item.system, "points": item.items}
        )
    return own | {"study_id": item.study_id, "system": item.system} | when
