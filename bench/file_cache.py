"""Studies of page caches against the truth: simulated systems, and a disk in memory cgroups.

    .venv/bin/python bench/file_cache.py [--seeds 5] [--only PROFILE]
    .venv/bin/python bench/file_cache.py --target DIR [--caps 128,256,512] [--budget 120]

The truth of a profile is what it states of its nearest level. The truth of a cgroup is the file
cache that the kernel held in it: the most that was charged to it at the end of any point.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Sequence
from pathlib import Path

from figures import Cell, Column, Content, Row, add_save_option, save, slug
from leadline.engine import Target, open_engine, profile_names, stop_on_signals
from leadline.record import NO_SYNC, Access, CacheSize, CacheStudy
from leadline.record.file_cache import CACHE
from leadline.store import open_store
from leadline.studies.cache.study import CacheOptions, begin_study, run_study
from proving.simulation import SimulatedCacheStudy, simulate_cache_study

MEASURES = (
    "python/leadline/studies/cache",
    "python/leadline/studies/hit_ratio.py",
    "python/leadline/stats",
    "crates/engine/src/evidence",
    "crates/engine/src/target",
    "crates/stats/src",
)
SIZE = ("{value:.0f} {unit} [{low:.0f}, {high:.0f}]", "{value:.0f} {unit}")
COLUMNS = (
    Column("cap", "cap"),
    Column("room", "room", ("{value:.0f} {unit}",), "MiB"),
    Column("reads", "reads", SIZE, "MiB"),
    Column("reads_off", "off", ("{value:+.1f} {unit}",), "%"),
    Column("writes", "writes", SIZE, "MiB"),
    Column("writes_off", "off", ("{value:+.1f} {unit}",), "%"),
)
MIB = 2**20
BOUND = 0.10
"""The issue's: sizes within ten percent on every profile."""


def main() -> None:
    """Print one of the two tables; that of a disk can be stored."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--only", metavar="PROFILE")
    parser.add_argument("--target", metavar="DIR")
    parser.add_argument("--caps", default="128,256,512", help="MiB")
    parser.add_argument("--budget", type=float, default=120.0, help="seconds a study")
    parser.add_argument("--sync", default=NO_SYNC)
    add_save_option(parser, "file_cache")
    asked = parser.parse_args()
    if asked.target:
        caps = [int(cap) for cap in asked.caps.split(",")]
        rows = against_cgroups(asked.target, caps, asked.budget, asked.sync)
        save(asked, COLUMNS, rows, directory=Path(asked.target))
    else:
        against_profiles([asked.only] if asked.only else list(profile_names()), asked.seeds)


def against_profiles(profiles: Sequence[str], seeds: int) -> None:
    """Print, for every profile, the errors over seeds and whether the policy was right."""
    print("| profile | reads: worst error | writes: worst error | in 95% | policy right |")
    print("|---|---|---|---|---|")
    good = True
    covered: list[bool] = []
    for profile in profiles:
        runs = [simulate_cache_study(profile, seed) for seed in range(1, seeds + 1)]
        errors = [[error_frac(*pair) for pair in pairs_of(run)] for run in runs]
        own = [s.bytes.covers(t) for run in runs for s, t in pairs_of(run) if s.bytes and t]
        right = sum(run.study.cache.policy is run.true_policy for run in runs)
        reads, writes = (max(column) for column in zip(*errors, strict=True))
        good &= max(reads, writes) <= BOUND and right == len(runs)
        covered += own
        cells = (f"{reads:.1%}", f"{writes:.1%}", f"{sum(own)} of {len(own)}")
        print(f"| {profile} | {' | '.join(cells)} | {right} of {len(runs)} |", flush=True)
    share = statistics.fmean(covered) if covered else 0.0
    print(f"\nin the 95% intervals: {share:.1%} of {len(covered)}")
    print(f"every size within {BOUND:.0%} and every policy right: {'yes' if good else 'NO'}")


def pairs_of(run: SimulatedCacheStudy) -> tuple[tuple[CacheSize, float | None], ...]:
    """Return found and true size, of reads and of writes."""
    found = run.study.cache
    return (found.reads, run.true_read_bytes), (found.writes, run.true_write_bytes)


def error_frac(size: CacheSize, truth: float | None) -> float:
    """Relative error; none and none agree, one alone is infinitely wrong."""
    if size.bytes is None or truth is None:
        return 0.0 if (size.bytes is None) == (truth is None) else float("inf")
    return abs(size.bytes.value / truth - 1)


def against_cgroups(
    directory: str, caps_mib: Sequence[int], budget_s: float, sync: str
) -> list[Row]:
    """Print, for every cap, the sizes found against the cgroup's room; return them."""
    rows = []
    print("| cap | room | reads | error | writes | error | policy |")
    print("|---|---|---|---|---|---|---|")
    for cap in caps_mib:
        study, room = study_in_cgroup(directory, cap, budget_s, sync)
        found = study.cache
        cells = [f"{cap} MiB", f"{room / MIB:.0f} MiB"]
        for size in (found.reads, found.writes):
            cells += (
                [say(size), f"{size.bytes.value / room - 1:+.1%}"]
                if size.bytes
                else [size.reason, ""]
            )
        print(f"| {' | '.join([*cells, found.policy.value])} |", flush=True)
        for warning in study.findings:
            print(f"<!-- {cap} MiB: {warning} -->")
        own: dict[str, Content] = {"cap": f"{cap} MiB", "room": room / MIB}
        rows.append(Row(slug(f"{cap} MiB"), own | cells_of(found.reads, "reads", room)))
        rows[-1].cells.update(cells_of(found.writes, "writes", room))
    return rows


def cells_of(size: CacheSize, name: str, room: int) -> dict[str, Content]:
    """Return what is stored of a size: in MiB, and how far off the room it is."""
    found = size.bytes
    if found is None:
        return {name: size.reason}
    low, high = (end / MIB if end else None for end in (found.low, found.high))
    most = 100 * BOUND
    off = Cell(100 * (found.value / room - 1), least=-most, most=most)
    return {name: Cell(found.value / MIB, low, high), f"{name}_off": off}


def say(size: CacheSize) -> str:
    """Write a size with its interval in MiB."""
    assert size.bytes is not None
    low, high = ((end or size.bytes.value) / MIB for end in (size.bytes.low, size.bytes.high))
    return f"{size.bytes.value / MIB:.0f} MiB [{low:.0f}, {high:.0f}]"


def study_in_cgroup(
    directory: str, cap_mib: int, budget_s: float, sync: str
) -> tuple[CacheStudy, int]:
    """Study a directory in a memory cgroup; return the study and the room in bytes."""
    target, store = Target.parse(directory), open_store("sqlite://")
    asked = CacheOptions(f"cap-{cap_mib}", budget_s, seed=1, write_costs=False)
    with (
        stop_on_signals(),
        open_engine(target, Access(sync=sync, cache_limit_bytes=cap_mib * MIB)) as engine,
    ):
        start = begin_study(engine, target, asked)
        store.begin(CACHE, start)
        study = run_study(engine, target, store, start)
    points = store.items(start.study_id)
    return study, max(point.result.cache_resident_bytes or 0 for point in points)


if __name__ == "__main__":
    main()
