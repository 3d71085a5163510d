"""`leadline rm ID…`: remove a study from the store."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer

from leadline.errors import UsageRefused
from leadline.record import Summary
from leadline.record.kinds import KINDS
from leadline.record.wording import format_count
from leadline.store import Store, Stored
from leadline.terminal.context import Context
from leadline.terminal.options import study_argument
from leadline.terminal.talk import talk


def command(
    context: typer.Context,
    *,
    refs: Annotated[
        list[str], study_argument("ID…", "Studies' ids, or the first letters of them.")
    ],
    yes: Annotated[
        bool, typer.Option("--yes", "-y", help="Do not ask; needed where nobody can answer.")
    ] = False,
) -> None:
    """Remove studies from the store, with their points.

    Example: leadline rm 3f2a5b58 --yes
    """
    own: Context = context.obj
    # Only looked into at first: what is unknown makes no store.
    asked = list(dict.fromkeys(_study(own.read_store(), ref) for ref in refs))
    store = own.open_store()
    gone = {study.study_id: study for each in asked for study in _with_children(store, each)}
    for study in gone.values():
        measured = format_count(study.items, "item")
        when = study.started_at[:16].replace("T", " ")
        talk(f"{study.kind} {study.study_id[:8]} of {study.system}, {when} UTC, {measured}")
    if not yes and not _agreed(len(gone)):
        talk("nothing was removed")
        return
    for study in reversed(gone.values()):  # those about a survey before it
        store.remove(study.study_id)
    talk(f"removed {format_count(len(gone), 'record')} from the store")


def _study(store: Store, ref: str) -> str:
    """Return the id of a study; a name means the newest of its studies, which is no safe order."""
    found: Stored[Any, Any] = store.find(ref)
    own: str = found.start.study_id
    if not own.startswith(ref):
        raise UsageRefused(
            f"{ref!r} is a system's name, and it may have several studies; give the id of one: "
            f"the newest is {own[:8]} (`leadline systems` lists all)"
        )
    return own


def _with_children(store: Store, study_id: str) -> list[Summary]:
    """Return a study and all that are about it."""
    lists = [store.list(kind) for kind in KINDS]
    by_id = {item.study_id: item for found in lists for item in found}
    chosen, waiting = dict[str, Summary](), [study_id]
    while waiting:
        own = waiting.pop()
        chosen[own] = by_id[own]
        waiting += [
            each for each, item in by_id.items() if item.parent == own and each not in chosen
        ]
    return list(chosen.values())


def _agreed(count: int) -> bool:
    if not sys.stdin.isatty():
        raise UsageRefused("nobody can be asked here; add --yes to remove them")
    return typer.confirm(f"Remove {'it' if count == 1 else f'these {count}'} for good?", err=True)
