"""The fastest a run could be on these capacities: no phase ends before its busiest resource."""

from __future__ import annotations

from collections.abc import Sequence

from leadline.record import Interval
from leadline.record.balance import Bound, PhaseBound, Resource
from leadline.record.streaming import (
    Capacities,
    PhaseResult,
    StreamOptions,
    StreamResult,
    StreamRun,
)
from leadline.stats.arithmetic import inverse, largest, scaled, sum_alike
from leadline.studies.streaming.use import busy

_MB = 1e6


def bound(
    result: StreamResult, options: StreamOptions, capacities: Capacities, disks: int
) -> Bound | None:
    """Return the bound of a run: every phase by disks, memory, processors and network.

    Everything is at its capacity of the same machine; the processors' cost is the run's own. The
    program could not have been faster without other parts, or less work for the processors.
    None for a run that moved nothing.
    """
    run = StreamRun(options=options, disks=disks, repetition=0, started_at="", result=result)
    phases = [
        found
        for phase in result.phases
        if (found := phase_bound(run, phase, capacities)) is not None
    ]
    if not phases:
        return None
    seconds = sum_alike([phase.seconds for phase in phases])
    moved_mb = sum(phase.bytes_moved for phase in phases) / _MB
    return Bound(
        mb_s=scaled(inverse(seconds), moved_mb),
        seconds=seconds,
        resource=_longest(phases),
        by_resource=_by_resource(phases, moved_mb),
        phases=tuple(phases),
    )


def phase_bound(run: StreamRun, phase: PhaseResult, capacities: Capacities) -> PhaseBound | None:
    """Return the bound of one phase."""
    used = busy(run, phase, capacities, inherent=True)
    # A path that was not seen to give out would only repeat the disks with other noise.
    limits = {
        name: seconds
        for name, seconds in used.seconds.items()
        if name != "io_path" or used.path_is_short
    }
    if not limits or not phase.bytes_moved:
        return None
    moved_mb = phase.bytes_moved / _MB
    seconds = largest(list(limits.values()))
    return PhaseBound(
        phase=phase.name,
        bytes_moved=phase.bytes_moved,
        mb_s=scaled(inverse(seconds), moved_mb),
        seconds=seconds,
        resource=max(limits, key=lambda name: limits[name].value),
        by_resource={name: scaled(inverse(each), moved_mb) for name, each in limits.items()},
    )


def _longest(phases: Sequence[PhaseBound]) -> Resource:
    spent: dict[Resource, float] = {}
    for phase in phases:
        spent[phase.resource] = spent.get(phase.resource, 0.0) + phase.seconds.value
    return max(spent, key=lambda name: spent[name])


def _by_resource(phases: Sequence[PhaseBound], moved_mb: float) -> dict[str, Interval]:
    """Return the rate by each resource alone; a phase that does not use it takes no time."""
    found = {}
    for name in dict.fromkeys(name for phase in phases for name in phase.by_resource):
        seconds = [
            scaled(inverse(phase.by_resource[name]), phase.bytes_moved / _MB)
            for phase in phases
            if name in phase.by_resource
        ]
        found[name] = scaled(inverse(sum_alike(seconds)), moved_mb)
    return found
