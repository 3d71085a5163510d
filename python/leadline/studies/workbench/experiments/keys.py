"""Every key of an experiment file: how it is written, which field of a record it becomes.

`docs/reference/experiment.md` is held against these tables by a test.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from leadline.engine import Target
from leadline.fio.words import USUAL, Typed, read_words
from leadline.record import Access, WorkloadError
from leadline.record.job import CLOSED
from leadline.record.workbench import (
    LIMITS_MAX,
    CommandServer,
    Factor,
    Goal,
    Level,
    NfsServer,
    SimulatedServer,
    StorageServer,
    Threshold,
    Within,
)
from leadline.record.workload import QUANTITIES
from leadline.studies.workbench.experiments.quantities import (
    COMMAND,
    COMPRESS,
    COUNT,
    DURATION_S,
    INTEGER,
    LEVELS,
    LEVELS_BY_NAME,
    RATE,
    RESPONSE_MS,
    SCALE,
    SHARE,
    SHARES,
    SIZE_BYTES,
    SWITCH,
    SYNC,
    TABLE,
    TEXT,
    TEXTS_BY_NAME,
    TRIALS,
    ValueType,
    one_of,
)


class Key(msgspec.Struct, frozen=True):
    """One key of a table."""

    name: str
    """As it is written."""
    field: str
    """Of the record it goes to."""
    kind: ValueType
    words: str
    """What it means, for the reference."""
    default: str = ""
    """In words; empty when leaving it out means: none."""
    required: bool = False


TOP = (
    Key("name", "name", TEXT, "The experiment's name, to find it again.", "the file's name"),
    Key("policy", "policy", TEXT, "How loads are picked.", "curve"),
    Key("seed", "seed", INTEGER, "Decides everything that is drawn.", "1"),
    Key("deadline", "deadline_s", DURATION_S, "Most that the whole experiment may cost."),
)

THRESHOLD = (
    Key("mean", "mean_ms", RESPONSE_MS, "R_sat: saturated when the mean response is above it."),
    Key(
        "percentile",
        "percentile",
        SHARE,
        "P_sat: saturated when fewer than this share of the responses is within `limit`.",
    ),
    Key("limit", "limit_ms", RESPONSE_MS, "L_sat."),
    *(
        Key(name, name, RESPONSE_MS, f"Shorter: saturated when the {words} is above it.")
        for name, words in (
            ("p50", "median response"),
            ("p95", "95th percentile"),
            ("p99", "99th percentile"),
        )
    ),
    Key("also", "also", SHARES, "Further shares, each with its limit; saturated by any."),
    Key(
        "width",
        "width_frac",
        SHARE,
        "s: the peak-rate region of the paper's policies is R_sat ± s R_sat.",
        "10%",
    ),
)

GOAL = (
    Key(
        "accuracy",
        "accuracy",
        SHARE,
        "a: half the rate's interval is at most 1 − a of the rate.",
        "0.9",
    ),
    Key("confidence", "confidence", SHARE, "c: of every interval.", "0.95"),
    Key(
        "run_length",
        "run_length_s",
        DURATION_S,
        "r: length of the trials that define the peak; shorter ones read it differently.",
        "3m; of storage 20s",
    ),
    Key(
        "rate_start",
        "rate_start_per_s",
        RATE,
        "First load of a search that knows nothing.",
        "50; of storage 500",
    ),
    Key("rate_max", "rate_max_per_s", RATE, "The load generator offers no more."),
    Key("deadline", "deadline_s", DURATION_S, "Most that the trials of one peak may cost."),
    Key(
        "increment",
        "increment_per_s",
        RATE,
        "Of `strawman` and `linear`: by how much the load rises.",
        "rate_start",
    ),
    Key(
        "trial_length",
        "trial_length_s",
        DURATION_S,
        "Of these two: r, the length of each trial.",
        "5m of `strawman`, run_length of `linear`",
    ),
    Key(
        "trials",
        "trials",
        TRIALS,
        "Of these two: t, how many trials at a load; `linear` takes it as the fewest.",
        "10 of `strawman`, 2 of `linear`",
    ),
)

SURFACE = (
    Key("design", "design", TEXT, "How the samples are chosen.", "sequential"),
    Key("error", "surface_error_frac", SHARE, "Stop when the surface's mean error is below it."),
)

POOL = (
    Key("scheduler", "scheduler", TEXT, "Address of a dask.distributed scheduler."),
    Key("at_once", "at_once", COUNT, "Most samples measured at the same time.", "as machines"),
)

FACTOR = (
    Key("levels", "levels", LEVELS, "Its levels, least first.", required=True),
    Key(
        "role",
        "role",
        one_of("workload", "resource", "configuration"),
        "W, R or C of SH08 Table 1.",
        "configuration",
    ),
    Key(
        "scale",
        "scale",
        one_of("linear", "log", "category"),
        "How a model is to see it.",
        "log; linear when a level is 0 or less; category when they are text",
    ),
)

SIMULATED = (
    Key("system", "system", TABLE, "The simulated server, see below.", required=True),
    Key("wall_scale", "wall_scale", SCALE, "Seconds of real time for each of a trial.", "0"),
    Key("dies_above", "dies_above_per_s", RATE, "Under more load than this it dies."),
    Key("generator_max", "generator_max_per_s", RATE, "The generator sends no more than this."),
)

NFS = (
    Key("directory", "directory", TEXT, "Where its data lies.", required=True),
    Key(
        "workload",
        "workload",
        one_of("specsfs97", "web_server", "db_tp", "mail"),
        "Of SH08 Table 3.",
        required=True,
    ),
    Key("data", "data_bytes", SIZE_BYTES, "Size of its data set.", required=True),
    Key("settings", "settings", LEVELS_BY_NAME, "Settings that are the same in all samples."),
    Key("warm_up", "warm_up_s", DURATION_S, "Load before the measured window.", "5s"),
)

COMMANDS = (
    Key("load", "load", COMMAND, "The load generator; prints one JSON document.", required=True),
    Key("set_up", "set_up", COMMAND, "Starts the server, before each trial."),
    Key("tear_down", "tear_down", COMMAND, "Stops it, after each trial."),
    Key("prepare", "prepare", COMMAND, "Once per sample, before its first trial."),
    Key("time_out", "time_out_s", DURATION_S, "Beyond the run length; then it failed.", "60s"),
    Key("check", "check", COMMAND, "Succeeds while the server lives; asked when `load` failed."),
    Key("environment", "environment", TEXTS_BY_NAME, "Variables of all these commands."),
    Key("directory", "directory", TEXT, "Where these commands run.", "the file's folder"),
)

STORAGE = (
    Key("target", "target", TEXT, "As `leadline measure` takes it.", required=True),
    Key("workload", "workload", TEXT, "In Leadline's words or fio's.", required=True),
    Key("backend", "backend", one_of("pread", "uring", "mmap"), "How requests are made."),
    Key("direct", "direct", SWITCH, "Bypass the page cache.", "as the words say"),
    Key("sync", "sync", SYNC, "Which writes wait for the device.", "as the words say"),
    Key("compress", "compress", COMPRESS, "Ratio to which data compress.", "as the words say"),
    Key("dedup", "dedup", SHARE, "Share of the data that are copies.", "as the words say"),
    Key("cache_limit", "cache_limit_bytes", SIZE_BYTES, "Memory of the engine and its cache."),
    Key("max_bytes", "max_bytes", SIZE_BYTES, "Most data to write on the target."),
    Key("warm_up", "warm_up_s", DURATION_S, "Load before the measured window.", "1s"),
)

ServerType = type[SimulatedServer | NfsServer | CommandServer | StorageServer]
SERVERS: dict[str, tuple[ServerType, tuple[Key, ...]]] = {
    "simulated": (SimulatedServer, SIMULATED),
    "nfs": (NfsServer, NFS),
    "command": (CommandServer, COMMANDS),
    "storage": (StorageServer, STORAGE),
}
"""The kinds of servers, what each becomes, and its keys."""

TABLE_NAMES = ("server", "threshold", "goal", "factors", "sample", "surface", "pool")


# Several latency targets as one threshold of saturation.


def threshold_of(
    mean_ms: float | None, shares: Iterable[Within], *, width_frac: float = 0.1
) -> Threshold:
    """Return the threshold that every one of these keeps; the highest share leads.

    It is what tables and charts show first: it is most often the one that saturates.

    Raises:
        ValueError: there is none at all, there are more than can be counted, or two contradict
            each other.

    """
    ordered = sorted(shares, key=lambda within: (-within.percentile, within.limit_ms))
    if mean_ms is None and not ordered:
        raise ValueError("there is no target; name one")
    if len(ordered) > LIMITS_MAX:
        raise ValueError(
            f"{len(ordered)} shares are to be within a time; at most {LIMITS_MAX} are counted"
        )
    for higher, lower in itertools.pairwise(ordered):
        if higher.percentile == lower.percentile:
            raise ValueError(f"{higher.percentile:.6g} of the responses has two limits; name one")
        if higher.limit_ms < lower.limit_ms:
            raise ValueError(
                f"{higher.percentile:.6g} of the responses within {higher.limit_ms:g} ms makes "
                f"{lower.percentile:.6g} within {lower.limit_ms:g} ms needless; leave that out"
            )
    first = ordered[0] if ordered else None
    return Threshold(
        mean_ms=mean_ms,
        percentile=None if first is None else first.percentile,
        limit_ms=None if first is None else first.limit_ms,
        width_frac=width_frac,
        also=tuple(ordered[1:]),
    )


# Storage under load as it is typed or written: the server of an experiment, and its usual goal.

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
    reached = access.over(typed.access if files else Access(sync=typed.access.sync))
    workload = typed.workload
    if _says_nothing_of_slots(typed, words):
        workload, named = _with_slots(workload, looked_at, reached.backend)
        reached = msgspec.structs.replace(reached, backend=named)
    return StorageServer(
        target=looked_at.text,
        workload=workload,
        **reached.stored_in(StorageServer),
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
        backend = "uring"
    return msgspec.structs.replace(workload, queue_depth=SLOTS), backend
