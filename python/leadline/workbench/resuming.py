"""Which stored experiment `--resume` means, and whether it is the one that the file describes."""

from __future__ import annotations

from typing import Protocol

from leadline.record.survey import SurveyStatus
from leadline.record.wording import join_words
from leadline.record.workbench import Experiment, ExperimentStart
from leadline.store import ExperimentSummary
from leadline.workbench.errors import ExperimentRefused

_DECIDES = (
    "server",
    "goal",
    "policy",
    "factors",
    "samples",
    "design",
    "surface_error_frac",
    "deadline_s",
    "seed",
)
"""What of a start decides which trials are asked for, and when the asking ends."""


class Stored(Protocol):
    """Where experiments are kept."""

    def experiments(self) -> tuple[ExperimentSummary, ...]:
        """Return a summary of every experiment, the newest first."""

    def experiment(self, ref: str) -> Experiment:
        """Return one of them."""


def find_unfinished(store: Stored, name: str, *, surface: bool) -> Experiment:
    """Return the newest unfinished experiment of this name, a surface or a peak search.

    Raises:
        ExperimentRefused: there is none.

    """
    for item in store.experiments():
        if item.name != name or item.status is SurveyStatus.DONE:
            continue
        found = store.experiment(item.experiment_id)
        if (found.start.design is not None) == surface:
            return found
    what = "surface" if surface else "peak search"
    raise ExperimentRefused(
        f"no unfinished {what} of {name!r} is stored; leave out --resume to start one"
    )


def require_same(found: Experiment, start: ExperimentStart) -> None:
    """Refuse to go on with an experiment that was begun otherwise than this start.

    Raises:
        ExperimentRefused: what differs.

    """
    other = [name for name in _DECIDES if getattr(found.start, name) != getattr(start, name)]
    if not other:
        return
    differ = join_words([name.removesuffix("_s").replace("_", " ") for name in other])
    raise ExperimentRefused(
        f"experiment {found.start.experiment_id[:8]} of {start.name!r} was begun with another "
        f"{differ}; give the same file and options, or start anew without --resume"
    )
