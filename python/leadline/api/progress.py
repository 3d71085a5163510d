"""How far a study is, where Leadline runs in a notebook: one line that changes, and no more."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from leadline.engine import Progress
from leadline.record.finding import Finding
from leadline.record.wording import format_time
from leadline.studies.conduct import OnProgress, Watcher
from leadline.units import format_rate

_CELLS = 30


class Listener(Watcher):
    """Says what a person should know to a function of theirs, and shows a line in a notebook."""

    def __init__(self, say: Callable[[str], None], shown: bool | None) -> None:
        """Take who is told; `shown` as `progress_line` has it."""
        self._say, self._shown = say, shown

    def say(self, text: str) -> None:
        """Say what Leadline chose."""
        self._say(text)

    def found(self, findings: Sequence[Finding]) -> None:
        """Say what may disturb the study."""
        for finding in findings:
            self._say(str(finding))

    def progress(
        self, planned: int, *, what: str = "points", simulated: bool = False
    ) -> AbstractContextManager[OnProgress]:
        """Show a line that changes."""
        return progress_line(self._shown, simulated=simulated)


@contextmanager
def progress_line(
    wanted: bool | None, *, simulated: bool = False
) -> Iterator[Callable[[Progress], None]]:
    """Show a line below the cell while the body runs.

    Args:
        wanted: None where it runs in a notebook; a script says what it likes itself.
        simulated: whether the time that is left is a simulated system's.

    Yields:
        What is to be told before each point.

    """
    show = None if wanted is False else _display()
    if show is None:
        yield lambda _: None
        return
    line = show("begins")

    def on_progress(at: Progress) -> None:
        last = "" if at.throughput_mb_s is None else f", last {format_rate(at.throughput_mb_s)}"
        left = format_time(at.left_s, simulated=simulated)
        line.update(_plain(_text(at.done, at.planned, f"{left} left{last} ({at.stage})")), raw=True)

    done = "stopped"
    try:
        yield on_progress
        done = "done"
    finally:
        line.update(_plain(done), raw=True)


def _text(done: int, planned: int, said: str) -> str:
    full = _CELLS * done // max(planned, 1)
    bar = "\N{FULL BLOCK}" * full + "\N{LIGHT SHADE}" * (_CELLS - full)
    return f"{bar} {done} of {planned}: {said}"


def _plain(text: str) -> dict[str, str]:
    return {"text/plain": text}


def _display() -> Callable[[str], Any] | None:
    """Return what shows a line that can be changed; None where no notebook listens.

    A notebook has loaded IPython already; nothing is loaded for it here.
    """
    shell = sys.modules.get("IPython")
    here = getattr(shell, "get_ipython", lambda: None)()
    if shell is None or not hasattr(here, "kernel"):
        return None
    display = sys.modules["IPython.display"].display
    return lambda text: display(_plain(text), raw=True, display_id=True)
