"""`leadline systems`: what has been measured."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence

import typer
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.measure import Measurement as Width
from rich.table import Table
from rich.text import Text

from leadline.record import Status, Summary
from leadline.record.kinds import KINDS
from leadline.record.measurement import MEASUREMENT
from leadline.record.wording import format_count
from leadline.store import Store
from leadline.terminal.context import Context
from leadline.terminal.options import Json
from leadline.terminal.talk import put_json, show, talk
from leadline.units import format_seconds

HEADS = ("id", "kind", "system", "target", "started (UTC)", "took", "measured", "state", "origin")


def command(context: typer.Context, json: Json = False) -> None:
    """List stored studies, newest first.

    Example: leadline systems
    """
    own: Context = context.obj
    found = _listed(own.read_store())
    if json:
        put_json(found)
        return
    if not found:
        talk("no survey is stored yet; `leadline survey DIR` makes one")
        return
    show(_List([_cells(item) for item in found]))


def _cells(item: Summary) -> tuple[str, ...]:
    return (
        item.study_id[:8],
        item.kind,
        item.system,
        item.target,
        item.started_at[:19].replace("T", " "),
        "" if item.wall_s is None else format_seconds(item.wall_s),
        _measured(item),
        item.status.value,
        item.origin,
    )


def _measured(item: Summary) -> str:
    """Write how much was measured; of a measurement that was stopped the runs that are kept."""
    unfinished = item.kind == MEASUREMENT.kind and item.status is not Status.DONE
    if not unfinished or not item.parts:
        return str(item.items)
    runs = format_count(item.parts, "run")
    return f"{item.items} and {runs}" if item.items else runs


class _List:
    """A table where it fits; else two lines for each study, so that no name is broken."""

    def __init__(self, rows: Sequence[tuple[str, ...]]) -> None:
        self._rows = rows

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        table = Table(box=None, pad_edge=False)
        for head in HEADS:
            table.add_column(head, no_wrap=True)
        for row in self._rows:
            table.add_row(*map(Text, row))
        wanted = Width.get(console, options.update(width=10_000), table).maximum
        if wanted <= options.max_width:
            yield table
        else:
            yield from self._lines()

    def _lines(self) -> Iterator[RenderableType]:
        for study, kind, system, target, started, took, measured, state, origin in self._rows:
            yield Text(f"{study}  {kind} of {system}", "bold", overflow="fold")
            lasted = took and f", took {took}"
            yield Text(f"          {target}", overflow="fold", no_wrap=True)
            yield Text(f"          {started} UTC{lasted}, {measured} measured, {state}")
            if origin:
                yield Text(f"          {origin}", overflow="fold", no_wrap=True)


def _listed(store: Store) -> list[Summary]:
    """Everything, newest first; each kind in the order in which it was stored."""
    lists = [store.list(kind) for kind in KINDS]
    # Clocks of several machines do not order studies of one kind: the store does.
    return list(heapq.merge(*lists, key=lambda item: item.started_at, reverse=True))
