"""The plan of a study of points and the bar while it runs, on stderr."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
from rich.progress import Progress as Bar

from leadline.engine import Progress
from leadline.record import Measurement
from leadline.record.wording import format_time
from leadline.studies.loop import PointsStart
from leadline.terminal.talk import console, talk
from leadline.units import format_bytes, format_rate


def print_plan(
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
    within = format_time(plan.budget_s, simulated=start.simulated)
    talk(
        f"plan: {plan.points} points{planned}; ends within {within}"
        + (f"; writes {format_bytes(plan.layout_bytes)} of data first" if plan.layout_bytes else "")
    )
    if note:
        talk(note)
    for stage in plan.stages:
        talk(f"  {stage.name:<{widths[0]}}{stage.points:>{widths[1]}} points  {stage.purpose}")


LINES = 10
"""How often a long study is told of where nobody watches a bar, at most."""


@contextmanager
def progress_bar(
    planned: int, *, what: str = "points", simulated: bool = False
) -> Iterator[Callable[[Progress], None]]:
    """Show a bar while the body runs, or lines where there is no terminal.

    Args:
        planned: points, or runs.
        what: they are.
        simulated: whether the time that is left is a simulated system's.

    Yields:
        What is to be told before each of them.

    """
    screen = console()
    if not screen.is_terminal:
        yield _lines(planned, what, simulated=simulated)
        return
    bar = Bar(
        TextColumn("{task.fields[stage]:<15}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[left]} left  last {task.fields[rate]}", markup=False),
        console=screen,
        transient=True,
    )
    with bar:
        task = bar.add_task("", total=planned, stage="", left="", rate="")

        def on_progress(at: Progress) -> None:
            left = format_time(at.left_s, simulated=simulated)
            bar.update(task, completed=at.done, stage=at.stage, left=left, rate=_rate(at))

        yield on_progress


def _rate(at: Progress) -> str:
    return "-" if at.throughput_mb_s is None else format_rate(at.throughput_mb_s)


def _lines(planned: int, what: str, *, simulated: bool) -> Callable[[Progress], None]:
    """Return what tells of every tenth of a study in a line of its own."""
    told = -1

    def on_progress(at: Progress) -> None:
        nonlocal told
        tenth = LINES * at.done // max(planned, 1)
        if tenth == told or at.done == 0:
            return
        told = tenth
        left = format_time(at.left_s, simulated=simulated)
        talk(f"  {at.done} of {planned} {what}, {left} left; last {_rate(at)} ({at.stage})")

    return on_progress
