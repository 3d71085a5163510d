"""Storage under load as it is typed or written: the server of an experiment, and its usual goal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from leadline.engine import Target
from leadline.fio.words import USUAL, Typed, read_words
from leadline.machine.resources import why_no_io_uring
from leadline.record import Access, WorkloadError
from leadline.record.job import CLOSED
from leadline.record.workbench import Factor, Goal, Level, StorageServer, Threshold
from leadline.record.workload import QUANTITIES

RUN_LENGTH_S = 20.0
"""A disk's queue is there in a second, not in a minute as a server's."""
RATE_START_PER_S = 500.0
SLOTS = 128
"""Requests that may be under way where nobody said: more than a disk serves at once, so that a
queue stands at the disk and not before it."""


def storage_goal(threshold: Threshold, asked: Mapping[str, Any]) -> Goal:
    """Return the goal of a search on storage; what was not asked is as usual there."""
    usual = {"run_length_s": RUN_LENGTH_S, "rate_start_per_s": RATE_START_PER_S}
    return Goal(threshold=threshold, **(usual | dict(asked)))


def storage_server(
    target: str, words: str, access: Access, *, at_once: Mapping[str, Any] | None = None
) -> StorageServer:
    """Return the server.

    Args:
        target: as `leadline measure` takes it.
        words: the workload, in Leadline's words or fio's.
        access: how storage is reached, as far as it was said; it goes over fio's words.
        at_once: further fields of the server.

    Raises:
        WorkloadError: the words make no workload, or say what a search decides itself.
        TargetRefused: the target cannot be used.

    """
    looked_at = Target.parse(target)
    typed = read_words([words], USUAL)
    if typed.arrivals != CLOSED:
        raise WorkloadError(f"{words!r} says a rate, which is what is searched for; leave it out")
    if typed.seconds is not None:
        raise WorkloadError(
            f"{words!r} says how long; the length of a trial is the goal's run length"
        )
    files = looked_at.has_files
    named = access.backend or (typed.backend or "" if files else "")
    workload = typed.workload
    if _says_nothing_of_slots(typed, words):
        workload, named = _with_slots(workload, looked_at, named)
    return StorageServer(
        target=looked_at.text,
        workload=workload,
        backend=named,
        direct=access.direct or (files and typed.direct),
        sync=access.sync if access.waits else typed.sync,
        cache_limit_bytes=access.cache_limit_bytes,
        **(at_once or {}),
    )


def storage_factor(factor: Factor) -> Factor:
    """Return a factor with its levels as numbers, where its parameter is one: 4096 for "4KiB".

    Raises:
        ValueError: it is no parameter of a workload, or a level cannot be read.

    """
    levels = tuple(storage_sample({factor.name: level})[factor.name] for level in factor.levels)
    if len(set(levels)) < len(levels):
        raise ValueError("a level is there twice")
    return msgspec.structs.replace(factor, levels=levels)


def storage_sample(sample: Mapping[str, Level]) -> dict[str, Level]:
    """Return a sample with its levels as numbers likewise; raises as `storage_factor`."""
    found: dict[str, Level] = {}
    for name, level in sample.items():
        if name not in QUANTITIES:
            raise ValueError(
                f"a workload has no parameter {name!r}; there are: {', '.join(QUANTITIES)}"
            )
        kind, quantity = QUANTITIES[name]
        value = quantity.read(level) if isinstance(level, str) else level
        found[name] = kind(value) if kind in (int, float) else value
    return found


def _says_nothing_of_slots(typed: Typed, words: str) -> bool:
    return "process_num" in typed.usual and not any(
        word.strip().partition("=")[0].strip() in ("queue_depth", "iodepth")
        for word in words.split(",")
    )


def _with_slots(workload: Any, target: Target, backend: str) -> tuple[Any, str]:
    """Let so many requests be under way as no storage serves at once.

    A simulated system that is stated as a law serves each slot at the pace it would have if all
    were busy: there one slot, and a queue before it, is what is simulated.
    """
    if target.virtual_time:
        parts = "machine" in (target.profile or {})
        slots = SLOTS if parts else 1
        return msgspec.structs.replace(workload, queue_depth=slots), backend
    if backend in ("pread", "mmap"):
        return msgspec.structs.replace(workload, process_num=SLOTS // 2), backend
    if target.has_files and not backend:
        if why_no_io_uring() is not None:
            return msgspec.structs.replace(workload, process_num=SLOTS // 2), "pread"
        backend = "uring"
    return msgspec.structs.replace(workload, queue_depth=SLOTS), backend
