"""`leadline balance S [S2 …]`: which resource gives out first, and what would have to be bought?"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from leadline.engine import TargetRefused
from leadline.record.balance import StreamBalance
from leadline.record.streaming import STREAM
from leadline.studies.streaming.answer import balance_of, compared
from leadline.studies.streaming.balance import WhatIfRefused, parse_changes, say_changes
from leadline.studies.streaming.run import load_stream
from leadline.terminal.context import Context
from leadline.terminal.options import Json, reader, with_output
from leadline.terminal.talk import put_json, show, talk
from leadline.terminal.tell import require_directory, say_study


def _changes(text: str) -> dict[str, float]:
    try:
        return parse_changes(text)
    except WhatIfRefused as error:
        raise ValueError(str(error)) from error


_Studies = Annotated[
    list[str],
    typer.Argument(metavar="S…", help="Stream studies or their systems; several are compared."),
]
_WhatIf = Annotated[
    Any,
    typer.Option(
        "--what-if",
        parser=reader(_changes),
        metavar="PART=FACTOR,…",
        help="Another machine: cores=2,disks=2,memory=1.5,network=10.  [default: twice the disks, "
        "and twice the cores]",
    ),
]


@with_output("Also draw it: .html")
def command(
    context: typer.Context,
    *,
    studies: _Studies,
    what_if: _WhatIf = None,
    output: Path | None = None,
    json: Json = False,
) -> None:
    """Say which resource gives out first as disks are added, and what more of it would bring.

    Example: leadline balance data --what-if disks=2
    """
    _require_output(output)
    own: Context = context.obj
    store = own.read_store()
    loaded = [load_stream(store, ref) for ref in studies]
    systems = [balance_of(each, what_if) for each in loaded]
    if json:
        put_json(balance_document(systems))
    else:
        from leadline.studies.streaming.balance_text import render_balance  # noqa: PLC0415

        of = [say_study(STREAM.said, each.start) for each in loaded]
        show("balance of " + "\n  and of ".join(of) + "\n")
        show(render_balance(systems))
    if what_if is not None and not any(one.what_if for one in systems):
        talk(f"nothing can be said of {say_changes(what_if)}: no capacity was measured")
    if output is not None:
        from leadline.studies.streaming.page import save_balance  # noqa: PLC0415 - it loads Altair

        save_balance(systems, output)
        talk(f"wrote {output}")


def balance_document(systems: Sequence[StreamBalance]) -> dict[str, Any]:
    """Return everything that is said of every system."""
    return {
        "systems": [msgspec.structs.asdict(one) for one in systems],
        "compared": compared(systems),
    }


def _require_output(output: Path | None) -> None:
    if output is None:
        return
    require_directory(output)
    if output.suffix.lower() != ".html":
        raise TargetRefused(f"{output}: a balance is drawn as a page; end the name in .html")
