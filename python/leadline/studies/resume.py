"""Which stored study `--resume` means."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TypeVar

from leadline.engine import BudgetSpent, WrittenSpent
from leadline.errors import UsageRefused
from leadline.record import Access, Measurement, Status
from leadline.record.access import ACCESS_OPTIONS
from leadline.record.study import Answer, Records, StudyStart
from leadline.store import Keeper, Store, Stored

S = TypeVar("S", bound=StudyStart)
A = TypeVar("A", bound=Answer)


def find_unfinished(
    store: Store,
    records: Records[S, A],
    system: str,
    target: str,
    *,
    parent: str | None = None,
    meant: Callable[[S], bool] = lambda _: True,
) -> Stored[S, A]:
    """Return the newest study of this kind that a system has unfinished.

    Args:
        store: where it is kept.
        records: the kind.
        system: the name by which it is found again.
        target: what is to be measured now; the study must be of the same.
        parent: the survey whose study it is, where it belongs to one.
        meant: whether a start is one that this command makes, where several make one kind.

    Raises:
        TargetRefused: there is none, or it is of something else.

    """
    for summary in store.list(records, parent):
        if summary.system == system and summary.status is not Status.DONE:
            found = store.find(summary.study_id, records)
            if not meant(found.start):
                continue
            if summary.target != target:
                raise UsageRefused(
                    f"the unfinished {records.said} of {system!r} is of {summary.target}, not of "
                    f"{target}; give that target, or start a new one without --resume"
                )
            return found
    whose = repr(system) if parent is None else f"survey {parent[:8]}"
    raise UsageRefused(
        f"no unfinished {records.said} of {whose} is stored; leave out --resume to start one"
    )


def require_same_access(
    system: str, begun: Access, asked: Access, given: frozenset[str] | None, what: str
) -> None:
    """Refuse to go on with something unfinished, called `what`, in another way than it began.

    Args:
        system: the name by which it is found again.
        begun: how it reaches its storage.
        asked: what is asked for now.
        given: names of the options that the user chose; None: those that are not as usual.
        what: it is.

    Raises:
        TargetRefused: another way was chosen: that would be another system.

    """
    for name in ACCESS_OPTIONS:
        then, now = getattr(begun, name), getattr(asked, name)
        chosen = now != getattr(Access(), name) if given is None else name in given
        if chosen and now != then:
            raise UsageRefused(
                f"the unfinished {what} of {system!r} has --{name} {then}, not {now}: "
                f"leave --{name} out, or start a new {what} without --resume"
            )


@contextmanager
def kept_when_stopped(store: Keeper, study_id: str, answer: Callable[[], Answer]) -> Iterator[None]:
    """Record that a study stopped, with what it found so far, when the block ends in an exception.

    Args:
        store: where it was begun.
        study_id: which.
        answer: makes what is recorded; is asked only then.

    """
    try:
        yield
    except BaseException:
        # Whatever goes wrong here, why it stopped is what the caller must hear.
        with suppress(Exception):
            store.end(study_id, answer(), Status.STOPPED)
        raise


def clock_after(points: Sequence[Measurement]) -> float:
    """Virtual time at which a simulated system was left; without meaning for a real one."""
    simulated = points[-1].result.simulated if points else None
    return simulated.clock_s if simulated else 0.0


RESUME = "--resume"
RESUME_LONGER = "--resume and a larger --budget"
"""What goes on with a study whose budget is spent: --resume alone would end at once."""
RESUME_WRITING = "--resume and a larger --max-written"


def resume_options(error: BaseException) -> str:
    """Return what goes on with a study that ended so."""
    if isinstance(error, WrittenSpent):
        return RESUME_WRITING
    return RESUME_LONGER if isinstance(error, BudgetSpent) else RESUME


def format_kept(
    kept: int, planned: int, study_id: str, *, what: str = "points", options: str = RESUME
) -> str:
    """Say what a study that stopped has, and how it goes on."""
    return (
        f"{kept} of {planned} {what} are kept as {study_id[:8]}; the same command with {options} "
        "goes on"
    )
