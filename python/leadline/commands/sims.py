"""`leadline sims`: the simulated systems that can be measured without a disk."""

from __future__ import annotations

import typer
from rich.table import Table
from rich.text import Text

from leadline.engine import profile_titles
from leadline.studies.streaming.published import published_titles
from leadline.terminal.options import Json
from leadline.terminal.talk import put_json, show, talk


def command(context: typer.Context, json: Json = False) -> None:
    """List the simulated systems.

    Example: leadline sims; leadline survey sim:hp-730
    """
    del context
    laws, machines = profile_titles(), profile_titles(machines=True)
    streaming = published_titles()
    if json:
        put_json({"obey_a_law": laws, "made_of_parts": machines, "for_balance": streaming})
        return
    for head, found in (
        ("systems that obey a law", laws),
        ("machines made of parts", machines),
        ("platforms for `leadline balance` alone", streaming),
    ):
        table = Table(box=None, pad_edge=False)
        table.add_column("target", no_wrap=True)
        table.add_column(head)
        for name, title in found.items():
            table.add_row(f"sim:{name}", Text(title))
        show(table)
        show("")
    talk("a system of your own: sim:FILE.toml (docs/concepts/simulated-systems.md)")
