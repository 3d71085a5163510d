"""Measure workloads on several systems now, turn by turn, so that ratios come from pairs.

Systems are read in passes: A B C, then C B A, and so on. A pass's readings of two systems make one
pair. What drifts while they run changes sign from pass to pass, and both sides of a pair have the
same seed, so the same addresses. Every reading is stored before the next one starts.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial

from leadline.engine import Engine, Limits, TargetRefused, bounded, require_fit, until_completed
from leadline.record import EngineResult, Measurement, Status, Workload, point_id
from leadline.record.finding import Finding, Severity, within
from leadline.record.measurement import MEASUREMENT, MeasurementStart
from leadline.record.study import Took
from leadline.store import Keeper

PASSES = 6
"""Five degrees of freedom: t is 2.6, where three passes would have 4.3."""
STAGE = "compare"


@dataclass(frozen=True)
class Opened:
    """A system that can be measured now."""

    name: str
    target: str
    engine: Engine


@dataclass(frozen=True)
class Asked:
    """How to measure."""

    passes: int
    limits: Limits
    seed_of: Callable[[int], int]
    """The seed of a reading by its number; systems of one pass share it."""


@dataclass(frozen=True)
class Readings:
    """One workload measured on several systems."""

    workload: Workload
    mb_s: dict[str, tuple[float, ...]]
    """Of each system, in the order of the passes."""
    findings: tuple[Finding, ...]
    """Why a system cannot take the workload and has no readings, or why they decide nothing."""


def measure_in_turns(
    systems: Sequence[Opened],
    workloads: Sequence[Workload],
    asked: Asked,
    store: Keeper,
    *,
    on_reading: Callable[[str, Workload, int], None] = lambda *_: None,
) -> tuple[Readings, ...]:
    """Measure every workload on every system that can take it, `asked.passes` times each.

    A workload that fewer than two systems can take is measured nowhere.

    Args:
        systems: opened targets, each its own.
        workloads: what to run on all of them.
        asked: passes, limits of one reading, seeds.
        store: where the readings go, those of each system as a study.
        on_reading: told the system, the workload and the pass before each reading.

    Raises:
        PointFailed: a reading met an I/O error. What was measured is stored.
        EngineFault: an engine died, hung or spoke nonsense. What was measured is stored.

    """
    for system in systems:
        system.engine.prepare()
    found, diary = [], _Diary(store)
    with diary:
        for number, work in enumerate(workloads):
            refused = [found for system in systems for found in _refusal(system, work)]
            unable = {each.where for each in refused}
            able = [system for system in systems if system.name not in unable]
            results: dict[str, list[EngineResult]] = {system.name: [] for system in able}
            for turn in range(asked.passes if len(able) > 1 else 0):
                seed = asked.seed_of(number * asked.passes + turn)
                for system in able if turn % 2 == 0 else reversed(able):
                    on_reading(system.name, work, turn)
                    result = diary.read(system, work, seed, asked.limits)
                    results[system.name].append(result)
            found.append(_readings(work, results, refused))
    return tuple(found)


def _refusal(system: Opened, work: Workload) -> tuple[Finding, ...]:
    engine = system.engine
    try:
        require_fit(work, capacity_bytes=engine.capacity_bytes, backend=engine.access.backend)
    except TargetRefused as refusal:
        return within(system.name, [Finding.of("not_comparable", why=str(refusal))])
    return ()


class _Diary:
    """Keeps the readings of each system as a study, from its first reading on."""

    def __init__(self, store: Keeper) -> None:
        self._store = store
        self._points: dict[str, list[Measurement]] = {}
        """Of each study by its id."""
        self._studies: dict[str, str] = {}
        """Its id by the system's name."""

    def __enter__(self) -> None:
        """Nothing is kept yet."""

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """End every study that was begun."""
        status = Status.DONE if kind is None else Status.STOPPED
        for study, points in self._points.items():
            wall_s = sum(point.result.total_s for point in points)
            self._store.end(study, Took(wall_s=wall_s), status)

    def read(self, system: Opened, work: Workload, seed: int, limits: Limits) -> EngineResult:
        """Measure, and keep it before anything else is done."""
        engine, study = system.engine, self._study(system)
        order = len(self._points[study])
        started_at, clock_s = datetime.now(UTC).isoformat(), engine.clock_s
        bound = bounded(limits, layout_bytes=0 if engine.virtual else work.unique_bytes)
        end_s = clock_s + bound.total_s_max
        result = until_completed(
            partial(engine.run, work, seed=seed), bound, lambda: end_s - engine.clock_s
        )
        point = Measurement(
            point_id=point_id(study, order),
            order=order,
            stage=STAGE,
            started_at=started_at,
            clock_s=clock_s,
            seed=seed,
            workload=work,
            **engine.access.stored_in(Measurement),
            facts=engine.facts,
            result=result,
        )
        self._store.add(study, point)
        self._points[study].append(point)
        return result

    def _study(self, system: Opened) -> str:
        if system.name not in self._studies:
            engine = system.engine
            start = MeasurementStart(
                study_id=uuid.uuid4().hex,
                system=system.name,
                started_at=datetime.now(UTC).isoformat(),
                target=system.target,
                **engine.access.stored_in(MeasurementStart),
            )
            self._store.begin(MEASUREMENT, start)
            self._points[start.study_id] = []
            self._studies[system.name] = start.study_id
        return self._studies[system.name]


def _readings(
    work: Workload, results: dict[str, list[EngineResult]], refused: Sequence[Finding]
) -> Readings:
    invalid = {
        each: None
        for name, mine in results.items()
        for result in mine
        for each in within(name, result.findings)
        if each.severity is Severity.INVALID
    }
    rates = {
        name: tuple(result.throughput_mb_s.value for result in mine)
        for name, mine in results.items()
    }
    return Readings(work, rates, (*refused, *invalid))
