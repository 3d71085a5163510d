"""`leadline import FILE...`: studies of another machine, from bundles or whole stores."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from leadline.terminal.bundles import import_file
from leadline.terminal.context import Context


def command(
    context: typer.Context,
    files: Annotated[
        list[Path],
        typer.Argument(metavar="FILE...", help="Bundles, logs with one in them, or whole stores."),
    ],
) -> None:
    """Import studies from bundles or other stores.

    A study that is stored already is left as it is.

    Example: leadline import atlas.leadline boreas.leadline
    """
    own: Context = context.obj
    with own.open_store() as store:
        for path in files:
            import_file(path, store)
