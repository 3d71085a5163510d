"""Which stored experiment `--resume` means, and whether it is the one that the file describes."""

from __future__ import annotations

from leadline.record import Status
from leadline.record.wording import join_words
from leadline.record.workbench import EXPERIMENT, Experiment, ExperimentStart, RunLengths, Sample
from leadline.store import Store
from leadline.studies.workbench.errors import ExperimentRefused
from leadline.studies.workbench.experiments.read import ExperimentFile, begin_peak, begin_surface
from leadline.studies.workbench.stored import stored_experiment

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
    "curve_points",
    "run_lengths",
)
"""What of a start decides which trials are asked for, and when the asking ends."""


def resume_peak(
    file: ExperimentFile,
    store: Store,
    *,
    sample: Sample | None = None,
    policy: str | None = None,
    seed: int | None = None,
    deadline_s: float | None = None,
    curve_points: int = 0,
    run_lengths: RunLengths | None = None,
) -> Experiment:
    """Return the unfinished peak search of this file.

    What decided it decides it still: what is not given again is as it was.

    Raises:
        ExperimentRefused: there is none, or it was begun otherwise: what differs.

    """
    found = _unfinished(store, file.name, surface=False)
    begun = found.start
    start = begin_peak(
        file,
        sample=begun.samples[0] | dict(sample or {}),
        policy=policy or begun.policy,
        seed=begun.seed if seed is None else seed,
        deadline_s=deadline_s or begun.deadline_s,
        curve_points=curve_points or begun.curve_points,
        run_lengths=run_lengths or begun.run_lengths,
    )
    _require_same(found, start)
    return found


def resume_surface(
    file: ExperimentFile,
    store: Store,
    *,
    design: str | None = None,
    policy: str | None = None,
    seed: int | None = None,
    deadline_s: float | None = None,
) -> Experiment:
    """Return the unfinished surface of this file; as `resume_peak`."""
    found = _unfinished(store, file.name, surface=True)
    begun = found.start
    start = begin_surface(
        file,
        design=design or begun.design,
        policy=policy or begun.policy,
        seed=begun.seed if seed is None else seed,
        deadline_s=deadline_s or begun.deadline_s,
    )
    _require_same(found, start)
    return found


def _unfinished(store: Store, name: str, *, surface: bool) -> Experiment:
    for item in store.list(EXPERIMENT):
        if item.system != name or item.status is Status.DONE:
            continue
        found = stored_experiment(store, item.study_id)
        if (found.start.design is not None) == surface:
            return found
    what = "surface" if surface else "peak search"
    raise ExperimentRefused(
        f"no unfinished {what} of {name!r} is stored; leave out --resume to start one"
    )


def _require_same(found: Experiment, start: ExperimentStart) -> None:
    other = [name for name in _DECIDES if getattr(found.start, name) != getattr(start, name)]
    if not other:
        return
    differ = join_words([name.removesuffix("_s").replace("_", " ") for name in other])
    raise ExperimentRefused(
        f"experiment {found.start.study_id[:8]} of {start.system!r} was begun with another "
        f"{differ}; give the same file and options, or start anew without --resume"
    )
