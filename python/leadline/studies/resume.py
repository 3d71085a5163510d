"""Which stored study `--resume` means."""

from __future__ import annotations

from leadline.engine import TargetRefused
from leadline.record import Status
from leadline.record.study import A_co, Records, S_co
from leadline.store import Store, Stored


def find_unfinished(
    store: Store, records: Records[S_co, A_co], system: str, target: str
) -> Stored[S_co, A_co]:
    """Return the newest study of this kind that a system has unfinished.

    Args:
        store: where it is kept.
        records: the kind.
        system: the name by which it is found again.
        target: what is to be measured now; the study must be of the same.

    Raises:
        TargetRefused: there is none, or it is of something else.

    """
    for summary in store.list(records):
        if summary.system == system and summary.status is not Status.DONE:
            if summary.target != target:
                raise TargetRefused(
                    f"the unfinished {records.said} of {system!r} is of {summary.target}, not of "
                    f"{target}; give that target, or start a new one without --resume"
                )
            return store.find(summary.study_id, records)
    raise TargetRefused(
        f"no unfinished {records.said} of {system!r} is stored; leave out --resume to start one"
    )


def say_kept(kept: int, planned: int, study_id: str, *, what: str = "points") -> str:
    """Say what a study that stopped has, and how it goes on."""
    return (
        f"{kept} of {planned} {what} are kept as {study_id[:8]}; the same command with --resume "
        "goes on"
    )
