"""What the command line says of a study while it is conducted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any

from leadline.record.finding import Finding
from leadline.store import Store
from leadline.studies.conduct import OnProgress, Watcher
from leadline.studies.resume import format_kept, resume_options
from leadline.terminal.progress import progress_bar
from leadline.terminal.talk import print_findings, talk


class Teller(Watcher):
    """Tells the person at the terminal."""

    def __init__(self, print_plan: Callable[[Any, Any], None]) -> None:
        """Take what tells of what will run, given the start and what is kept of it."""
        self._print_plan = print_plan

    def begun(self, start: Any, kept: Any) -> None:
        """Say what will run."""
        self._print_plan(start, kept)

    def say(self, text: str) -> None:
        """Say what Leadline chose."""
        talk(text)

    def found(self, findings: Sequence[Finding]) -> None:
        """Say what may disturb the study."""
        print_findings(findings)

    def progress(
        self, planned: int, *, what: str = "points", simulated: bool = False
    ) -> AbstractContextManager[OnProgress]:
        """Show a bar, or lines where there is no terminal."""
        return progress_bar(planned, what=what, simulated=simulated)


class PointsTeller(Teller):
    """Tells of a study of points."""

    def __init__(
        self,
        print_plan: Callable[[Any, Any], None],
        sentences: Callable[[Store, str], Sequence[str]],
    ) -> None:
        """Take what tells of the plan, and what says what a stored study found."""
        super().__init__(print_plan)
        self._sentences = sentences

    def stopped(self, store: Store, start: Any, error: BaseException) -> None:
        """Say what is kept, how it goes on, and what it says so far."""
        kept = len(store.items(start.study_id))
        talk(format_kept(kept, start.plan.points, start.study_id, options=resume_options(error)))
        if kept:
            for sentence in self._sentences(store, start.study_id):
                talk(sentence)
