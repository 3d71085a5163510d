"""Which stored experiment `--resume` means, and whether it is the one that the file describes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import msgspec

from leadline.record import Status
from leadline.record.finding import Finding
from leadline.record.wording import join_words
from leadline.record.workbench import (
    EXPERIMENT,
    Experiment,
    ExperimentStart,
    MeasuredGrid,
    RunLengths,
    Sample,
    SurfaceCell,
)
from leadline.store import Store
from leadline.studies.conduct import Begun, Study, Watcher
from leadline.studies.workbench.experiments.read import ExperimentFile, begin_peak, begin_surface
from leadline.studies.workbench.policy import ExperimentRefused
from leadline.studies.workbench.pools.pool import Pool, open_pool
from leadline.studies.workbench.search import TrialWatcher, run_experiment
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


# The stored surface that another one is held against.


def measured_grid(store: Store, ref: str, start: ExperimentStart) -> MeasuredGrid:
    """Return the measured cells of a stored surface.

    Args:
        store: where it is kept.
        ref: its id, or its name; by name the one with most cells measured, the newest of them.
        start: of the surface that is to be held against it.

    Raises:
        ExperimentRefused: there is none, it has other factors or another threshold, or none of its
            cells has a measured rate.

    """
    found = [
        stored_experiment(store, item.study_id)
        for item in store.list(EXPERIMENT)
        if item.status is Status.DONE and (item.study_id.startswith(ref) or item.system == ref)
    ]
    surfaces = [each for each in found if each.start.design is not None]
    grid = max(surfaces, key=lambda each: len(_measured(each)), default=None)
    if grid is None or not _measured(grid):
        raise ExperimentRefused(
            f"--against {ref!r}: no finished surface of this id or name is stored; "
            "`leadline surface EXPERIMENT.toml --design full-grid` measures one"
        )
    alike = [(each.name, each.levels) for each in grid.start.factors]
    if alike != [(each.name, each.levels) for each in start.factors]:
        raise ExperimentRefused(
            f"--against {ref!r}: experiment {grid.start.study_id[:8]} varies other factors or "
            "levels, so the two have no cells in common"
        )
    if grid.start.goal.threshold != start.goal.threshold:
        raise ExperimentRefused(
            f"--against {ref!r}: experiment {grid.start.study_id[:8]} was saturated by another "
            "threshold, so its rates are rates of something else"
        )
    return MeasuredGrid(study_id=grid.start.study_id, cells=_measured(grid))


def _measured(experiment: Experiment) -> tuple[SurfaceCell, ...]:
    cells = () if experiment.surface is None else experiment.surface.cells
    return tuple(cell for cell in cells if cell.measured and cell.rate_per_s is not None)


# A peak search or a surface as somebody asks for it.


class Where(msgspec.Struct, frozen=True, kw_only=True):
    """Where trials run."""

    scheduler: str | None = None
    """Address of a Dask scheduler whose workers run them; None for this machine."""
    insecure: bool = False
    """Whether a scheduler of another machine is taken without TLS."""
    at_once: int | None = None
    """Most samples at a time; None: one on each machine."""


class ExperimentStudy(Study[Pool, ExperimentStart, Experiment | None]):
    """Trials on a server under test, begun or gone on with."""

    records = EXPERIMENT
    _new: ExperimentStart
    """What decides a new one, once it is opened."""

    def __init__(
        self,
        where: Where,
        begin: Callable[[Store], ExperimentStart],
        resume: Callable[[Store], Experiment] | None = None,
        *,
        compare: bool = True,
    ) -> None:
        """Take what was asked for.

        Args:
            where: trials run.
            begin: returns what decides a new one, or refuses it.
            resume: returns the unfinished one that is meant, or refuses it.
            compare: say of a single peak how the other policies would have fared; takes seconds.

        """
        self.where, self.decide, self._resume, self._compare = where, begin, resume, compare
        self.machines: tuple[str, ...] = ()
        """Those that run trials, once they are known."""

    def unfinished(self, store: Store) -> Experiment:
        """Return the one that is meant."""
        if self._resume is None:
            raise ExperimentRefused("several experiments are not gone on with: run them one by one")
        return self._resume(store)

    def open(
        self, store: Store, earlier: Begun[ExperimentStart] | None, watcher: Watcher
    ) -> AbstractContextManager[Pool]:
        """Open the pool; what makes no sense is refused before."""
        if earlier is None:
            self._new = self.decide(store)
        return self._pool(watcher)

    @contextmanager
    def _pool(self, watcher: Watcher) -> Iterator[Pool]:
        where = self.where
        with open_pool(where.scheduler, watcher.say, insecure=where.insecure) as pool:
            self.machines = pool.names
            yield pool

    def begin(self, opened: Pool, findings: tuple[Finding, ...]) -> ExperimentStart:
        """Say what decides it."""
        return self._new

    def kept(
        self, store: Store, start: ExperimentStart, earlier: Begun[ExperimentStart] | None
    ) -> Experiment | None:
        """Return what is stored; a new one is kept from now on."""
        if earlier is not None:
            return stored_experiment(store, start.study_id)
        store.begin(EXPERIMENT, start)
        return None

    def run(
        self,
        opened: Pool,
        store: Store,
        start: ExperimentStart,
        kept: Experiment | None,
        watcher: Watcher,
    ) -> Experiment:
        """Run every trial that is missing."""
        return run_experiment(
            start,
            store,
            opened,
            stored=kept,
            at_once=self.where.at_once,
            watcher=watcher if isinstance(watcher, TrialWatcher) else None,
            compare=self._compare,
        )


def peak_of(
    file: ExperimentFile, where: Where, decided: Mapping[str, Any], *, compare: bool
) -> ExperimentStudy:
    """Return the peak search of a file; `decided` as `begin_peak` takes it."""
    return ExperimentStudy(
        msgspec.structs.replace(where, scheduler=where.scheduler or file.scheduler, at_once=1),
        lambda _: begin_peak(file, **decided),
        lambda store: resume_peak(file, store, **decided),
        compare=compare,
    )


def surface_of(
    file: ExperimentFile, where: Where, decided: Mapping[str, Any], against: str | None = None
) -> ExperimentStudy:
    """Return the surface of a file; `against` is a stored one that it is held against."""

    def begin(store: Store) -> ExperimentStart:
        start = begin_surface(file, **decided)
        if against is None:
            return start
        return msgspec.structs.replace(start, against=measured_grid(store, against, start))

    where = Where(
        scheduler=where.scheduler or file.scheduler,
        insecure=where.insecure,
        at_once=where.at_once or file.at_once,
    )
    return ExperimentStudy(where, begin, lambda store: resume_surface(file, store, **decided))
