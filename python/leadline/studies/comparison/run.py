"""Stored surveys compared, and measured now, interleaved, where that is asked for."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

import msgspec

from leadline.engine import Engine, Limits, TargetRefused, open_engine, preflight, require_fit
from leadline.models.predictor import Predictor
from leadline.record import EngineResult, Workload, derive_seed
from leadline.record.comparison import SystemsComparison
from leadline.record.finding import Finding, Severity, within
from leadline.record.wording import format_workload
from leadline.store import Keeper, Store
from leadline.studies.comparison.contenders import Named, disturbance_of, joined
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
from leadline.studies.comparison.ratio import (
    COSTS,
    NOT_TWO,
    GateRefused,
    cost_of,
    parse_prices,
    parse_rules,
    require_throughput,
)
from leadline.studies.conduct import Watcher
from leadline.studies.diary import Diary, Opened
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
    found, diary = [], Diary(store, STAGE)
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
    costs = {
        metric: {
            name: tuple(cost_of(run, metric) for run in mine) for name, mine in results.items()
        }
        for metric in COSTS
    }
    return WorkloadReadings(work, rates, (*refused, *invalid), costs)


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
    fail_if: Sequence[str] = ()
    """The gate: `slower=5%`, `p99=5%`, `cpu_per_io=5%`."""
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

    Args:
        store: where they are.
        refs: of each system one survey, or several with commas between.
        model: which predicts; the survey's own where it is not said.
        extrapolate: whether to answer beyond what was surveyed, marked.

    Raises:
        StoreError: there is no such survey.

    """
    loaded = [[load_survey(store, ref) for ref in studies_of(side)] for side in refs]
    names = name_systems([[survey.start for survey, _ in side] for side in loaded])
    found = []
    for name, side in zip(names, loaded, strict=True):
        first, *more = (
            Predictor(survey, points, model=model, extrapolate=extrapolate)
            for survey, points in side
        )
        disturbed = joined([disturbance_of(survey, points) for survey, points in side])
        found.append(Named(name, first, known_cache(store, *side[0]), disturbed, tuple(more)))
    return tuple(found)


def studies_of(side: str) -> tuple[str, ...]:
    """Return the references of one side: `old1,old2,old3`."""
    return tuple(part.strip() for part in side.split(",") if part.strip())


def require_sense(asked: ComparisonAsked, systems: int) -> None:
    """Refuse a gate of other than two systems.

    Raises:
        GateRefused: it has more or fewer, or its rules cannot be read.

    """
    if parse_rules(asked.fail_if) and systems != 2:
        raise GateRefused(NOT_TWO)


def compare_stored(
    store: Store, systems: Sequence[Named], asked: ComparisonAsked, watcher: Watcher
) -> SystemsComparison:
    """Compare systems, by their surveys or by readings of now, once `require_sense` has passed.

    Raises:
        ComparisonRefused: they cannot be compared, or one is not the system that was surveyed.
        LeadlineError: a target was refused or failed; what was read is kept.

    """
    rules = parse_rules(asked.fail_if)
    if not asked.measure:
        require_throughput(rules, "surveys predict throughput alone: measure it now (--measure)")
    elif any(system.more for system in systems):
        raise ComparisonRefused(
            "--measure measures each system now: give one survey of each, or leave it out"
        )
    own = [Question(None, workload) for workload in asked.workloads]
    questions = questions_on(systems, own, named=asked.named)
    names = [system.name for system in systems]
    terms = Terms(
        questions=questions,
        prices=parse_prices(asked.prices, names) if asked.prices else {},
        rules=rules,
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
