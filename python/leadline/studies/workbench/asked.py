"""A peak search or a surface as somebody asks for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import msgspec

from leadline.record.finding import Finding
from leadline.record.workbench import EXPERIMENT, Experiment, ExperimentStart
from leadline.store import Store
from leadline.studies.conduct import Begun, Study, Watcher
from leadline.studies.workbench.errors import ExperimentRefused
from leadline.studies.workbench.experiments.read import ExperimentFile, begin_peak, begin_surface
from leadline.studies.workbench.mapping import TrialWatcher, run_experiment
from leadline.studies.workbench.measured_grid import measured_grid
from leadline.studies.workbench.pools.pool import Pool, open_pool
from leadline.studies.workbench.resuming import resume_peak, resume_surface
from leadline.studies.workbench.stored import stored_experiment


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
