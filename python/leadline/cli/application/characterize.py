"""`leadline characterize --trace FILE`: what is this application's I/O like?"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from leadline.cli.context import Context
from leadline.cli.options import Json, Name, with_output
from leadline.cli.talk import console
from leadline.cli.tell import draw, require_output, tell
from leadline.record.application import APPLICATION
from leadline.report.kinds import KINDS
from leadline.studies.application import TraceStopped, characterize_trace
from leadline.units import format_bytes


@with_output(".html, .svg, .png or .pdf")
def command(
    context: typer.Context,
    *,
    trace: Annotated[
        str,
        typer.Option(
            metavar="FILE",
            help="A trace: fio's iolog, blktrace, blkparse, strace, Darshan DXT, or the CSV of MSR "
            "Cambridge, Alibaba or Tencent; - for standard input.",
        ),
    ],
    name: Name = None,
    output: Path | None = None,
    json: Json = False,
) -> None:
    """Describe an application by a trace of its I/O: five numbers, caches, streams, phases.

    Example: leadline characterize --trace io.log -o page.html
    """
    own: Context = context.obj
    kind = KINDS[APPLICATION.kind]
    require_output(output, kind)
    store = own.open_store()
    try:
        with _reading() as (on_bytes, on_read):
            study = characterize_trace(trace, store, name=name, on_bytes=on_bytes, on_read=on_read)
    except KeyboardInterrupt as stopped:
        raise TraceStopped(
            "stopped early; a description is kept only when it is whole: start it again"
        ) from stopped
    tell(study, kind, json=json, to_draw=output is None)
    if output is not None:
        draw(store, study, kind, output, ())


@contextmanager
def _reading() -> Iterator[tuple[Callable[[int], None], Callable[[], None]]]:
    """Show how much was read while the body runs."""
    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
    with Progress(*columns, console=console(), transient=True) as bar:
        task = bar.add_task("reading", total=None)

        def on_bytes(read: int) -> None:
            bar.update(task, description=f"reading, {format_bytes(read)}")

        def on_read() -> None:
            bar.update(task, description="describing")

        yield on_bytes, on_read
