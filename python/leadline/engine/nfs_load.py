"""Load of SH08 Table 3 on an NFS server: data sets made once, trials offered, data sets removed.

Everything is done by an engine child (crates/engine/src/load/nfs); this asks it. A data set lies
in `.leadline/data-WORKLOAD-BYTES-SEED` of the address, survives the trials, and is put right before
each. The claim of `.leadline/` is held only while a question is being answered.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from typing import TypeVar

import msgspec

from leadline.engine.child import ENGINE_COMMAND, Child, OnEvent
from leadline.engine.targets.nfs_address import NfsAddress
from leadline.errors import EngineFault
from leadline.record.job import Load, NfsLoadJob, Prepare, Remove
from leadline.record.jobs.nfs import (
    NfsData,
    NfsDataFacts,
    NfsGenerator,
    NfsLoadAnswer,
    NfsOperation,
)
from leadline.record.workbench import Measured, TrialRequest

PREPARE_S_MAX = 600.0
"""Longest making or removal of a data set."""
_OVERHEAD_S = 120.0
"""What a trial may take beside warm-up and window: looking the data set up, and the drain."""

_Part = TypeVar("_Part")


class NfsLoad(msgspec.Struct, frozen=True, kw_only=True):
    """What one trial found."""

    measured: Measured
    operations: tuple[NfsOperation, ...]
    generator: NfsGenerator
    data: NfsDataFacts


def prepare_data(
    address: NfsAddress, data: NfsData, command: Sequence[str] = ENGINE_COMMAND
) -> NfsDataFacts:
    """Make the data set, or find it whole; whatever was left half made is made anew.

    Raises:
        TargetRefused: the server cannot be reached or refuses, has too little room, or something
            in `.leadline/` is not Leadline's.
        ServerLost: it went away meanwhile.

    """
    return _require(_ask(address, data, Prepare(), PREPARE_S_MAX, command=command).data)


def run_nfs_load(
    address: NfsAddress,
    data: NfsData,
    request: TrialRequest,
    *,
    seed: int,
    warm_up_s: float = 5.0,
    limit_ms: float | None = None,
    stable: bool | None = None,
    connections: int = 4,
    on_event: OnEvent | None = None,
    command: Sequence[str] = ENGINE_COMMAND,
) -> NfsLoad:
    """Offer one load to a server whose data set was prepared.

    Args:
        address: the directory on the server.
        data: the data set, and with it the workload.
        request: rate, length of the window, and when to give up.
        seed: of arrivals and calls.
        warm_up_s: load before the window that is not counted.
        limit_ms: slower calls are counted per batch (`Batch.over`).
        stable: whether writes ask for stable storage; None leaves it to the workload.
        connections: to the server.
        on_event: gets phases and progress.
        command: the engine, begun where the server can be reached.

    Raises:
        TargetRefused: there is no such data set, or the server refuses.
        ServerLost: the server went away, began anew, or was silent for ten seconds.
        PointFailed: it answered nonsense.

    """
    order = Load(
        rate_per_s=request.rate_per_s,
        seconds=request.seconds,
        warm_up_s=warm_up_s,
        seed=seed,
        connections=connections,
        stable=stable,
        limit_ms=limit_ms,
        abort_above_ms=request.abort_above_ms,
    )
    seconds_max = warm_up_s + request.seconds + _OVERHEAD_S
    answer = _ask(address, data, order, seconds_max, command=command, on_event=on_event)
    return NfsLoad(
        measured=_require(answer.load),
        operations=answer.operations,
        generator=_require(answer.generator),
        data=_require(answer.data),
    )


def remove_data(
    address: NfsAddress, data: NfsData | None = None, command: Sequence[str] = ENGINE_COMMAND
) -> int:
    """Remove a data set, or all of them; return how many there were.

    Raises:
        TargetRefused: the server refuses, or something else lies among the files, which stays.
        ServerLost: it went away meanwhile.

    """
    return _ask(address, data, Remove(), PREPARE_S_MAX, command=command).removed


def _ask(
    address: NfsAddress,
    data: NfsData | None,
    action: Prepare | Load | Remove,
    seconds_max: float,
    *,
    command: Sequence[str],
    on_event: OnEvent | None = None,
) -> NfsLoadAnswer:
    job = NfsLoadJob(
        job_id=f"nfs-load-{action.__struct_config__.tag}",
        server=address,
        data=data,
        action=action,
        total_s_max=seconds_max,
    )
    with closing(Child(command)) as child:
        return child.run(job, on_event)


def _require(part: _Part | None) -> _Part:
    if part is None:
        raise EngineFault("the engine's answer lacks what was asked for")
    return part
