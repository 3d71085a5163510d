"""Stored surveys compared, and measured now, interleaved, where that is asked for."""

from __future__ import annotations

import dataclasses
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial

import msgspec

from leadline.engine import (
    Engine,
    Limits,
    TargetRefused,
    bounded,
    open_engine,
    preflight,
    require_fit,
    until_completed,
)
from leadline.models.predictor import Predictor
from leadline.record import EngineResult, Measurement, Status, Workload, derive_seed, point_id
from leadline.record.comparison import SystemsComparison
from leadline.record.finding import Finding, Severity, within
from leadline.record.measurement import MEASUREMENT, MeasurementStart
from leadline.record.study import ElapsedAnswer
from leadline.record.wording import format_workload
from leadline.store import Keeper, Store
from leadline.studies.comparison.contenders import Named, disturbance_of
from leadline.studies.comparison.document import (
    ComparisonRefused,
    Question,
    Terms,
    WorkloadReadings,
    compare_systems,
    name_systems,
    questions_on,
)
from leadline.studies.comparison.facts import known_cache
from leadline.studies.comparison.ratio import NOT_TWO, GateRefused, parse_prices, parse_rule
from leadline.studies.conduct import Watcher
from leadline.studies.same_system import SYSTEM, changed_facts
from leadline.studies.survey.study import load_survey, surveyed_target

# Measure workloads on several systems now, interleaved, so that ratios come from pairs.
#
# Systems are read in passes: A B C, then C B A, and so on. A pass's readings of two systems make
# one pair. What drifts while they run changes sign from pass to pass, and both sides of a pair have
# the same seed, so the same addresses. Every reading is stored before the next one starts.

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
class MeasureOptions:
    """How to measure."""

    passes: int
    limits: Limits
    seed_of: Callable[[int], int]
    """The seed of a reading by its number; systems of one pass share it."""


def measure_in_turns(
    systems: Sequence[Opened],
    workloads: Sequence[Workload],
    asked: MeasureOptions,
    store: Keeper,
    *,
    on_reading: Callable[[str, Workload, int], None] = lambda *_: None,
) -> tuple[WorkloadReadings, ...]:
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
            self._store.end(study, ElapsedAnswer(wall_s=wall_s), status)

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
) -> WorkloadReadings:
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
    return WorkloadReadings(work, rates, (*refused, *invalid))


# Stored surveys compared, and measured now where that is asked for: one way for every caller.

SECONDS = 2.0
VIRTUAL_SECONDS = 60.0
"""A simulated disk of 1990 answers some twenty requests a second; its time is free."""


class ComparisonAsked(msgspec.Struct, frozen=True, kw_only=True):
    """What the user wants to know of stored surveys."""

    workloads: Sequence[Workload] = ()
    named: bool = False
    """Compare on CP94's five named workloads; without either also on each system's own."""
    prices: Sequence[str] = ()
    fail_if: str | None = None
    """The gate: `slower=5%`."""
    measure: bool = False
    """Measure now, interleaved; every target must be here."""
    passes: int = PASSES
    seconds: float | None = None
    """Of one reading, at most."""
    seed: int = 1


def named_systems(
    store: Store, refs: Sequence[str], *, model: str | None, extrapolate: bool
) -> tuple[Named, ...]:
    """Return stored surveys under the names by which they are told apart.

    Raises:
        StoreError: there is no such survey.

    """
    loaded = [load_survey(store, ref) for ref in refs]
    names = name_systems([survey.start for survey, _ in loaded])
    return tuple(
        Named(
            name,
            Predictor(survey, points, model=model, extrapolate=extrapolate),
            known_cache(store, survey, points),
            disturbance_of(survey, points),
        )
        for name, (survey, points) in zip(names, loaded, strict=True)
    )


def require_sense(asked: ComparisonAsked, systems: int) -> None:
    """Refuse a gate of other than two systems.

    Raises:
        GateRefused: it has more or fewer, or its rule cannot be read.

    """
    if asked.fail_if is not None:
        parse_rule(asked.fail_if)
        if systems != 2:
            raise GateRefused(NOT_TWO)


def compare_stored(
    store: Store, systems: Sequence[Named], asked: ComparisonAsked, watcher: Watcher
) -> SystemsComparison:
    """Compare systems, by their surveys or by readings of now, once `require_sense` has passed.

    Raises:
        ComparisonRefused: they cannot be compared, or one is not the system that was surveyed.
        LeadlineError: a target was refused or failed; what was read is kept.

    """
    own = [Question(None, workload) for workload in asked.workloads]
    questions = questions_on(systems, own, named=asked.named)
    names = [system.name for system in systems]
    terms = Terms(
        questions=questions,
        prices=parse_prices(asked.prices, names) if asked.prices else {},
        slower_frac=None if asked.fail_if is None else parse_rule(asked.fail_if),
    )
    if asked.measure:
        workloads = [item.workload for item in questions]
        measured = measure_now(store, systems, workloads, _turns(systems, asked), watcher)
        terms = dataclasses.replace(terms, measured=measured)
    return compare_systems(systems, terms)


def _turns(systems: Sequence[Named], asked: ComparisonAsked) -> MeasureOptions:
    virtual = all(system.predictor.survey.start.simulated for system in systems)
    seconds = asked.seconds or (VIRTUAL_SECONDS if virtual else SECONDS)
    limits = Limits(
        warm_up_s_max=max(2.0, seconds),
        measure_s_min=seconds / 2,
        measure_s_max=seconds,
        accuracy=0.005,
    )
    return MeasureOptions(asked.passes, limits, lambda number: derive_seed(asked.seed, number))


def measure_now(
    store: Store,
    systems: Sequence[Named],
    workloads: Sequence[Workload],
    asked: MeasureOptions,
    watcher: Watcher,
) -> Mapping[Workload, WorkloadReadings]:
    """Measure workloads on the very systems that were surveyed, interleaved."""
    targets = [surveyed_target(system.predictor.survey) for system in systems]
    paths = [target.path for target in targets if target.path is not None]
    for path in paths:
        if paths.count(path) > 1:
            raise ComparisonRefused(
                f"two of the surveys are of {path}: measured now, both would be the same system. "
                "Leave out --measure to compare what was surveyed"
            )
    with ExitStack() as stack:
        opened = []
        for number, (system, target) in enumerate(zip(systems, targets, strict=True)):
            start = system.predictor.survey.start
            engine = stack.enter_context(
                open_engine(
                    target,
                    start.access,
                    max_bytes=start.plan.unique_bytes_max,
                    run_seed=derive_seed(start.seed, -1 - number),
                )
            )
            watcher.found(preflight(target, engine.facts))
            require_same_system(system, engine, watcher)
            opened.append(Opened(system.name, target.text, engine))
        watcher.say(
            f"measuring {len(workloads)} workloads on {len(opened)} systems, {asked.passes} "
            f"passes of {asked.limits.measure_s_max:g} s at most each"
        )

        def on_reading(name: str, workload: Workload, turn: int) -> None:
            watcher.say(f"  pass {turn + 1}: {name}, {format_workload(workload)}")

        found = measure_in_turns(opened, workloads, asked, store, on_reading=on_reading)
    return {readings.workload: readings for readings in found}


def require_same_system(system: Named, engine: Engine, watcher: Watcher) -> None:
    """Refuse a system that changed since its survey; another engine build is only told.

    Raises:
        ComparisonRefused: which facts differ.

    """
    surveyed = system.predictor.survey.start.facts
    decisive = changed_facts(surveyed, engine.facts, SYSTEM)
    if decisive:
        raise ComparisonRefused(
            f"{system.name} is not the system that was surveyed: {'; '.join(decisive)}. What is "
            "measured now would stand beside the charts of another system: survey it again "
            "(`leadline survey`), set back what changed, or leave out --measure"
        )
    for fact in changed_facts(surveyed, engine.facts, ("engine_build",)):
        watcher.say(f"note: {system.name}: {fact}")
