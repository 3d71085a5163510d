"""`leadline systems`: what has been measured."""

from __future__ import annotations

import heapq

import typer
from rich.table import Table

from leadline.cli.context import Context
from leadline.cli.options import Json
from leadline.cli.talk import put_json, show, talk
from leadline.record import Summary
from leadline.record.kinds import KINDS
from leadline.store import Store

HEADS = ("id", "kind", "system", "target", "started", "measured", "state")


def command(context: typer.Context, json: Json = False) -> None:
    """List the stored surveys, studies and experiments, newest first."""
    own: Context = context.obj
    found = _listed(own.read_store())
    if json:
        put_json(found)
        return
    if not found:
        talk("no survey is stored yet; `leadline survey DIR` makes one")
        return
    table = Table(box=None, pad_edge=False)
    for head in HEADS:
        table.add_column(head, overflow="fold", no_wrap=head not in {"system", "target"})
    for item in found:
        table.add_row(
            item.study_id[:8],
            item.kind,
            item.system,
            item.target,
            item.started_at[:16].replace("T", " "),
            str(item.items),
            item.status.value,
        )
    show(table)


def _listed(store: Store) -> list[Summary]:
    """Everything, newest first; each kind in the order in which it was stored."""
    lists = [store.list(kind) for kind in KINDS]
    # Clocks of several machines do not order studies of one kind: the store does.
    return list(heapq.merge(*lists, key=lambda item: item.started_at, reverse=True))
