"""The plan of a study of points and the bar while it runs, on stderr."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
from rich.progress import Progress as Bar

from leadline.cli.talk import console, talk
from leadline.engine import Progress
from leadline.record import Measurement
from leadline.studies.loop import PointsStart
from leadline.units import format_bytes, format_rate, format_seconds


def tell_plan(
    start: PointsStart,
    points: Sequence[Measurement],
    *,
    begun: str,
    planned: str,
    note: str = "",
    widths: tuple[int, int] = (13, 3),
) -> None:
    """Say what will run.

    Args:
        start: what decides it.
        points: what earlier sittings measured.
        begun: which study this is.
        planned: what its points are.
        note: what else comes before them.
        widths: of the stages' names and of their numbers of points.

    """
    plan = start.plan
    talk(f"{begun}, seed {start.seed}" + (f", {len(points)} points kept" if points else ""))
    if start.cache_limit_bytes:
        talk(f"memory capped at {format_bytes(start.cache_limit_bytes)} by a cgroup")
    talk(
        f"plan: {plan.points} points{planned}; ends within {format_seconds(plan.budget_s)}"
        + (f"; writes {format_bytes(plan.layout_bytes)} of data first" if plan.layout_bytes else "")
    )
    if note:
        talk(note)
    for stage in plan.stages:
        talk(f"  {stage.name:<{widths[0]}}{stage.points:>{widths[1]}} points  {stage.purpose}")


@contextmanager
def progress_bar(planned: int) -> Iterator[Callable[[Progress], None]]:
    """Show a bar while the body runs; yields what is to be told before each point."""
    bar = Bar(
        TextColumn("{task.fields[stage]:<15}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[left]} left  last {task.fields[rate]}", markup=False),
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
