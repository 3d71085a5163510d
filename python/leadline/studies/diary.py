"""Readings of opened systems, each stored before the next begins."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial

from leadline.engine import Engine, Limits, bounded, until_completed
from leadline.record import EngineResult, Measurement, Status, Workload, point_id
from leadline.record.measurement import MEASUREMENT, MeasurementStart
from leadline.record.study import ElapsedAnswer
from leadline.store import Keeper


@dataclass(frozen=True)
class Opened:
    """A system that can be measured now."""

    name: str
    target: str
    engine: Engine


class Diary:
    """Keeps the readings of each system as a study, from its first reading on."""

    def __init__(self, store: Keeper, stage: str) -> None:
        """Keep them in a store, as points of a stage."""
        self._store, self._stage = store, stage
        self._took_s: dict[str, list[float]] = {}
        """Of each study by its id: of each reading the time."""
        self._studies: dict[str, str] = {}
        """Its id by the system's name."""

    def __enter__(self) -> None:
        """Nothing is kept yet."""

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """End every study that was begun."""
        status = Status.DONE if kind is None else Status.STOPPED
        for study, took_s in self._took_s.items():
            self._store.end(study, ElapsedAnswer(wall_s=sum(took_s)), status)

    def read(self, system: Opened, work: Workload, seed: int, limits: Limits) -> EngineResult:
        """Measure, and keep it before anything else is done."""
        engine, study = system.engine, self._study(system)
        order = len(self._took_s[study])
        started_at, clock_s = datetime.now(UTC).isoformat(), engine.clock_s
        bound = bounded(limits, layout_bytes=0 if engine.virtual else work.unique_bytes)
        end_s = clock_s + bound.total_s_max
        result = until_completed(
            partial(engine.run, work, seed=seed), bound, lambda: end_s - engine.clock_s
        )
        point = Measurement(
            point_id=point_id(study, order),
            order=order,
            stage=self._stage,
            started_at=started_at,
            clock_s=clock_s,
            seed=seed,
            workload=work,
            **engine.access.stored_in(Measurement),
            facts=engine.facts,
            result=result,
        )
        self._store.add(study, point)
        self._took_s[study].append(result.total_s)
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
            self._took_s[start.study_id] = []
            self._studies[system.name] = start.study_id
        return self._studies[system.name]
