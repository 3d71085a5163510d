"""`leadline systems`: what has been measured."""

from __future__ import annotations

import heapq
from typing import Any

import msgspec
import typer
from rich.table import Table

from leadline.cli.context import Context
from leadline.cli.options import Json
from leadline.cli.talk import put_json, show, talk
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
        table.add_row(item["id"][:8], item["system"], item.get("target", _TARGET.get(item["kind"])),
                      item["started_at"][:19], str(item.get("points", "")),
                      item["status"].value)  # fmt: skip
    show(table)


def _listed(store: Store) -> list[dict[str, Any]]:
    """Everything with its kind and its id; each kind in the order in which it was stored."""
    kinds = (
        ("survey", store.surveys(), "survey_id"),
        ("files", store.files_studies(), "study_id"),
        ("stream", store.stream_studies(), "study_id"),
        ("experiment", store.experiments(), "experiment_id"),
    )
    lists = [[_item(kind, item, key) for item in items] for kind, items, key in kinds]
    # Clocks of several machines do not order studies of one kind: the store does.
    return list(heapq.merge(*lists, key=lambda item: str(item["started_at"]), reverse=True))


def _item(kind: str, item: Any, key: str) -> dict[str, Any]:
    listed = {"kind": kind, "id": getattr(item, key)} | msgspec.structs.asdict(item)
    if kind == "experiment":
        listed |= {"system": item.name, "points": item.trials}
    return listed
