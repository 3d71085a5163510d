"""How many requests a second of host time a machine made of parts serves, in whole jobs.

    .venv/bin/python bench/machine_speed.py [--rounds 5]

A page cache of 10^5 pages before a flash drive, under each replacement policy: requests that all
hit, requests of which three quarters miss, and half writes. The time of a job that
ends at once (its memories' warming) is taken off that of a long one.
"""

from __future__ import annotations

import argparse
import statistics
import time
from typing import Any

import msgspec

from leadline.engine import Limits, Simulated, open_engine
from leadline.record import Workload

PAGES = 100_000
PAGE_BYTES = 4096
POLICIES = ("lru", "clock", "two_lists", "two_queues", "arc")
HITS = Workload(
    unique_bytes=PAGES // 2 * PAGE_BYTES,
    size_mean=PAGE_BYTES,
    size_dist="fixed",
    read_frac=1.0,
    seq_frac=0.0,
    process_num=8,
)
CASES = {
    "hits": HITS,
    "misses": msgspec.structs.replace(HITS, unique_bytes=4 * PAGES * PAGE_BYTES),
    "half writes": msgspec.structs.replace(HITS, read_frac=0.5),
}
GOAL_PER_S = 1e6


def machine(policy: str) -> dict[str, Any]:
    """Return the profile: a cache of 10^5 pages under a policy."""
    capacity = PAGES * PAGE_BYTES
    return {
        "meta": {"name": "speed"},
        "survey": {"unique_bytes_max": 2**36},
        "machine": {
            "processors": {"count": 8, "read_overhead_us": 1.5, "copy_mb_s": 9000},
            "cache": {
                "capacity_bytes": capacity,
                "policy": policy,
                "dirty": {
                    "background_bytes": capacity // 10,
                    "limit_bytes": capacity // 5,
                    "interval_s": 5,
                    "expire_s": 30,
                },
            },
            "flash": {
                "capacity_bytes": 2**38,
                "channels": 4,
                "dies_per_channel": 4,
                "planes": 4,
                "page_bytes": 16_384,
                "read_us": 55,
                "program_us": 1000,
                "channel_mb_s": 1200,
                "interface_mb_s": 3400,
                "overhead_us": 12,
                "write_buffer_bytes": 2**25,
            },
        },
    }


def job(policy: str, workload: Workload, window_s: float) -> tuple[float, int]:
    """Run one job: seconds of the host's processor, and requests."""
    target = Simulated(text="sim:speed", profile=machine(policy))
    limits = Limits(
        warm_up_s_max=0.001,
        measure_s_min=window_s,
        measure_s_max=window_s,
        accuracy=0.0,
        total_s_max=1e6,
    )
    with open_engine(target) as engine:
        begin = time.process_time()
        result = engine.run(workload, seed=1, limits=limits)
        return time.process_time() - begin, result.read.operations + result.write.operations


def per_s(policy: str, workload: Workload) -> float:
    """Return requests a second beyond the job's fixed cost."""
    window_s = 0.3 if workload.unique_bytes < PAGES * PAGE_BYTES else 3.0
    short_s, few = job(policy, workload, window_s / 30)
    long_s, many = job(policy, workload, window_s)
    return (many - few) / max(long_s - short_s, 1e-9)


def main() -> None:
    """Try every policy on every case, in turns."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    asked = parser.parse_args()
    found: dict[tuple[str, str], list[float]] = {}
    for _ in range(asked.rounds):
        for policy in POLICIES:
            for case, workload in CASES.items():
                found.setdefault((policy, case), []).append(per_s(policy, workload))
    for (policy, case), rates in found.items():
        middle = statistics.median(rates)
        verdict = "holds" if middle >= GOAL_PER_S else "FAILS"
        print(
            f"{policy:11}{case:12}{middle * 1e-6:6.2f} million requests/s"
            f" ({min(rates) * 1e-6:.2f} to {max(rates) * 1e-6:.2f})  {verdict}"
        )


if __name__ == "__main__":
    main()
