"""Open a target, check it, begin a study or go on with one, run it, keep it.

The command line and the Python API both ask for a study by `conduct`; they differ in who watches.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import Any, ClassVar, Generic, Protocol, TypeVar

import msgspec

from leadline.engine import (
    Engine,
    Progress,
    Stopped,
    Target,
    Wear,
    open_engine,
    preflight,
    room_findings,
)
from leadline.errors import LeadlineError
from leadline.record import Access, Measurement
from leadline.record.finding import Finding
from leadline.record.study import Records, StudyStart
from leadline.store import Store, Stored
from leadline.studies.loop import PointsStart
from leadline.studies.resume import find_unfinished, require_same_access

T = TypeVar("T")
S = TypeVar("S", bound=StudyStart)
S_co = TypeVar("S_co", bound=StudyStart, covariant=True)
B = TypeVar("B")
P = TypeVar("P", bound=PointsStart)

OnProgress = Callable[[Progress], None]


class Watcher:
    """Is told how a study goes; whoever wants to know overrides what it wants to know."""

    def say(self, text: str) -> None:
        """Hear a choice that Leadline made."""

    def found(self, findings: Sequence[Finding]) -> None:
        """Hear what may disturb the study, before it begins."""

    def begun(self, start: Any, kept: Any) -> None:
        """Hear what will run, and what earlier sittings kept of it."""

    def progress(
        self, planned: int, *, what: str = "points", simulated: bool = False
    ) -> AbstractContextManager[OnProgress]:
        """Show how far it is: what it yields is told before each of `planned`."""
        return nullcontext(lambda _: None)

    def ended(self, item: Any) -> None:
        """Hear of a part that ended and is kept, where the kind has parts that take their time."""

    def stopped(self, store: Store, start: Any, error: BaseException) -> None:
        """Hear that it ended early; what it has is kept."""


class Begun(Protocol[S_co]):
    """A stored study, to go on with."""

    @property
    def start(self) -> S_co:
        """What decides it."""


class Study(ABC, Generic[T, S, B]):
    """A study as requested: what its kind has to say for `conduct`."""

    records: ClassVar[Records[Any, Any]]
    mismatches: ClassVar[tuple[type[LeadlineError], ...]] = ()
    """Refusals of what is stored: nothing was measured, and there is nothing to tell of."""

    @abstractmethod
    def unfinished(self, store: Store) -> Begun[S]:
        """Return the stored study that is meant, to go on with.

        Raises:
            LeadlineError: there is none, or it was begun otherwise.

        """

    @abstractmethod
    def open(
        self, store: Store, earlier: Begun[S] | None, watcher: Watcher
    ) -> AbstractContextManager[T]:
        """Open what is measured, as the study has it that goes on."""

    def findings(self, opened: T) -> tuple[Finding, ...]:
        """Return what may disturb the study."""
        return ()

    @abstractmethod
    def begin(self, opened: T, findings: tuple[Finding, ...]) -> S:
        """Return what decides a new study; `findings` without the notes."""

    def go_on(self, opened: T, start: S) -> None:
        """Refuse what is not any more as it was when the study began."""

    @abstractmethod
    def kept(self, store: Store, start: S, earlier: Begun[S] | None) -> B:
        """Return what earlier sittings kept; keep a new start, unless `run` does that."""

    @abstractmethod
    def run(self, opened: T, store: Store, start: S, kept: B, watcher: Watcher) -> Any:
        """Measure what is missing, keep every item as it ends, and return the study."""


def conduct(study: Study[T, S, B], store: Store, watcher: Watcher, *, resume: bool = False) -> Any:
    """Conduct a study from its target to its answer.

    Args:
        study: what is asked for.
        store: where it is kept, item by item.
        watcher: is told how it goes.
        resume: go on with the one that is unfinished there.

    Returns:
        The study as `Study.run` explains it.

    Raises:
        LeadlineError: it was refused or failed; the message says what to do. What was measured is
            kept, and `resume` goes on with it.

    """
    earlier = study.unfinished(store) if resume else None
    with study.open(store, earlier, watcher) as opened:
        findings = study.findings(opened)
        watcher.found(findings)
        if earlier is None:
            start = study.begin(opened, tuple(each for each in findings if not each.is_note))
        else:
            start = earlier.start
            study.go_on(opened, start)
        kept = study.kept(store, start, earlier)
        watcher.begun(start, kept)
        try:
            return study.run(opened, store, start, kept, watcher)
        except study.mismatches:
            raise
        except (Stopped, LeadlineError, KeyboardInterrupt) as error:
            with suppress(Exception):  # why it stopped is what whoever asked must hear
                watcher.stopped(store, start, error)
            raise


class Reached(msgspec.Struct, frozen=True, kw_only=True):
    """How a target is to be reached."""

    target: Target
    access: Access = Access()
    given: frozenset[str] | None = None
    """Names of the options of access that the user chose, as `require_same_access` has it."""
    cache_limit_bytes: int | None = None
    """Cap on memory; 0 is none, None lets Leadline choose."""
    max_bytes: int | None = None
    """Most data that may lie there."""


class PointStudy(Study[Engine, P, tuple[Measurement, ...]]):
    """A study whose items are points, measured one after the other by one engine."""

    def __init__(self, reached: Reached, system: str, seed: int) -> None:
        """Take how the target is reached, and what a new study is called and drawn by."""
        self.reached, self.system, self.seed = reached, system, seed

    def unfinished(self, store: Store) -> Stored[P, Any]:
        """Return the newest one of this system that is not done, if it is of the same target."""
        return find_unfinished(store, self.records, self.system, self.reached.target.text)

    def cache_limit_bytes(self, say: Callable[[str], None]) -> int | None:
        """Return the cap on memory of a new study; `say` is told of one that Leadline chose."""
        return self.reached.cache_limit_bytes

    def wear(self, store: Store, earlier: Begun[P] | None) -> Wear:
        """Return what counts the bytes that are written."""
        return Wear()

    def open(
        self, store: Store, earlier: Begun[P] | None, watcher: Watcher
    ) -> AbstractContextManager[Engine]:
        """Open the target: what decided a study that goes on decides it still."""
        access = self.reached.access
        if earlier is None:
            limit = self.cache_limit_bytes(watcher.say)
            access = msgspec.structs.replace(access, cache_limit_bytes=limit or None)
        else:
            asked, access = access, earlier.start.access
            require_same_access(self.system, access, asked, self.reached.given, self.records.said)
        return open_engine(
            self.reached.target,
            access,
            max_bytes=self.reached.max_bytes,
            wear=self.wear(store, earlier),
            run_seed=self.seed if earlier is None else earlier.start.seed,
        )

    def findings(self, opened: Engine) -> tuple[Finding, ...]:
        """Look at the machine and the room on the target."""
        room = room_findings(opened, self.reached.max_bytes)
        return (*preflight(self.reached.target, opened.facts), *room)

    @abstractmethod
    def measure(
        self,
        opened: Engine,
        store: Store,
        start: P,
        points: Sequence[Measurement],
        on_progress: OnProgress,
    ) -> Any:
        """Measure the points that are missing, and return the study."""

    def kept(self, store: Store, start: P, earlier: Begun[P] | None) -> tuple[Measurement, ...]:
        """Return the points so far; a new study is kept from now on."""
        if earlier is None:
            store.begin(self.records, start)
        points: tuple[Measurement, ...] = store.items(start.study_id)
        return points

    def run(
        self,
        opened: Engine,
        store: Store,
        start: P,
        kept: tuple[Measurement, ...],
        watcher: Watcher,
    ) -> Any:
        """Measure the points that are missing, in sight of the watcher."""
        with watcher.progress(start.plan.points, simulated=start.simulated) as on_progress:
            return self.measure(opened, store, start, kept, on_progress)
