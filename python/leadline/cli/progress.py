"""The bar of a running survey or validation, on stderr."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
from rich.progress import Progress as Bar

from leadline.cli.talk import console
from leadline.engine import Progress
from leadline.units import format_rate, format_seconds


@contextmanager
def progress_bar(planned: int) -> Iterator[Callable[[Progress], None]]:
    """Show a bar while the body runs; yields what is to be told before each point."""
    bar = Bar(
        TextColumn("{task.fields[stage]:<15}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[left]} left  last {task.fields[rate]}"),
        console=console(),
        transient=True,
    )
    with bar:
        task = bar.add_task("", total=planned, stage="", left="", rate="")

        def on_progress(at: Progress) -> None:
            rate = "-" if at.throughput_mb_s is None else format_rate(at.throughput_mb_s)
            bar.update(
                task, completed=at.done, stage=at.stage, left=format_seconds(at.left_s), rate=rate
            )

        yield on_progress
