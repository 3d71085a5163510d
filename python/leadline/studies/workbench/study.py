"""Experiments as they are asked for: begun, gone on with, varied, held against another."""

from __future__ import annotations

import itertools
import math
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import msgspec

from leadline.record import Status
from leadline.record.finding import Finding
from leadline.record.wording import format_count, join_words
from leadline.record.workbench import (
    EXPERIMENT,
    Experiment,
    ExperimentStart,
    MeasuredGrid,
    RunLengths,
    Sample,
    SurfaceCell,
)
from leadline.record.workload import parse_share
from leadline.store import Store
from leadline.studies.conduct import Begun, Study, Watcher
from leadline.studies.workbench.answer import stored_experiment
from leadline.studies.workbench.conversation import ExperimentRefused
from leadline.studies.workbench.experiments.read import ExperimentFile, begin_peak, begin_surface
from leadline.studies.workbench.policies import POLICIES
from leadline.studies.workbench.pool import Pool, open_pool
from leadline.studies.workbench.search import TrialWatcher, run_experiment

# Which stored experiment `--resume` means, and whether it is the one that the file describes.

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


# A peak search or a surface as requested.


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
            compare: compare a single peak with the other policies; takes seconds.

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


# One experiment with several goals or policies: what accuracy, confidence and width cost.
#
# SH08 Figs. 8, 9 and 10. Each combination is an experiment of its own, stored like any other.

EXPERIMENTS_MAX = 64
Variation = dict[str, float | str]
"""What of a start one experiment has otherwise: values by `VARIED`'s names."""


def _share_between(low: float, high: float) -> Callable[[str], float]:
    def read(text: str) -> float:
        value = parse_share(text)
        if not low <= value <= high:
            raise ValueError(f"{text!r} is not between {100 * low:g}% and {100 * high:g}%")
        return value

    return read


def _policy(text: str) -> str:
    if text not in POLICIES:
        raise ValueError(f"there is no policy {text!r}; there are {', '.join(POLICIES)}")
    return text


VARIED: dict[str, Callable[[str], Any]] = {
    "accuracy": _share_between(0.5, 0.999),
    "confidence": _share_between(0.5, 0.999),
    "width": _share_between(0.001, 0.9),
    "policy": _policy,
}
"""What can be varied, and how a value of it is read."""


def read_variations(texts: Sequence[str]) -> tuple[Variation, ...]:
    """Return all combinations of `accuracy=70%,90%` and the like, the last varying fastest.

    Raises:
        ExperimentRefused: a name that is none or is there twice, a value that makes no sense, or
            too many combinations.

    """
    asked: dict[str, list[Any]] = {}
    for text in texts:
        name, equals, values = text.partition("=")
        name = name.strip()
        if not equals or name not in VARIED:
            raise ExperimentRefused(
                f"--vary {text!r} is none of {', '.join(VARIED)} with its values, for example "
                "accuracy=70%,80%,90%"
            )
        if name in asked:
            raise ExperimentRefused(f"--vary says {name} twice; give all its values at once")
        try:
            asked[name] = [VARIED[name](each.strip()) for each in values.split(",")]
        except ValueError as error:
            raise ExperimentRefused(f"--vary {name}: {error}") from error
        if len(set(asked[name])) < len(asked[name]):
            raise ExperimentRefused(f"--vary {name}: a value is there twice")
    if math.prod(map(len, asked.values())) > EXPERIMENTS_MAX:
        raise ExperimentRefused(f"--vary makes more than {EXPERIMENTS_MAX} experiments")
    return tuple(dict(zip(asked, each, strict=True)) for each in itertools.product(*asked.values()))


def varied_start(start: ExperimentStart, variation: Variation) -> ExperimentStart:
    """Return the start of an experiment of its own, with another goal or policy."""
    goal = start.goal
    given = {name: variation[name] for name in ("accuracy", "confidence") if name in variation}
    threshold = goal.threshold
    if "width" in variation:
        threshold = msgspec.structs.replace(threshold, width_frac=float(variation["width"]))
    return msgspec.structs.replace(
        start,
        study_id=uuid.uuid4().hex,
        goal=msgspec.structs.replace(goal, threshold=threshold, **given),
        policy=str(variation.get("policy", start.policy)),
    )


def spent_s(experiment: Experiment) -> float:
    """Return the test time of all its trials."""
    return sum(trial.cost_s for own in experiment.peaks for trial in own.trials)


def format_variation(variation: Variation) -> str:
    """Write `accuracy 90%, confidence 95%`."""
    return ", ".join(f"{name} {format_value(value)}" for name, value in variation.items())


def format_value(value: float | str) -> str:
    """Write one of the values as it is typed."""
    return value if isinstance(value, str) else f"{100 * value:.4g}%"


def varied_sentences(variations: Sequence[Variation], found: Sequence[Experiment]) -> list[str]:
    """Say which combination took the least test time and which the most."""
    costs = [spent_s(each) for each in found]
    least, most = min(costs), max(costs)
    if least <= 0 or len(costs) < 2:
        return []
    dear = format_variation(variations[costs.index(most)])
    cheap = format_variation(variations[costs.index(least)])
    said = (
        f"Of {format_count(len(found), 'experiment')} {cheap} took the least test time, and {dear} "
        f"the most: {most / least:.3g} times as much."
    )
    return [said]
