"""Machines made of parts, drawn at random: systems that nobody modelled, and nothing is tuned on.

A seed gives one machine, the same in every process. Seeds below `SCORED_FROM` are for development:
whatever is tuned may be tuned on these and on no others; figures come from seeds above. The ranges
of all numbers stand here and nowhere else; `docs/reference/machine.md` says what they mean.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from proving.draws import Draw

Table = dict[str, Any]

SCORED_FROM = 1000
"""First seed of machines that figures may come from."""

KIB, MIB, GIB = 2**10, 2**20, 2**30
PAGE_BYTES = 4096

POLICIES = ("two_lists", "two_lists", "two_lists", "lru", "clock", "two_queues", "arc")
"""Half of them are Linux without MGLRU."""

TURNS_PER_MINUTE = (5400, 5900, 7200, 7200, 10_000, 15_000)


def draw_machine(seed: int, kind: str | None = None) -> dict[str, Any]:
    """Draw a profile with a `[machine]`.

    Args:
        seed: decides everything.
        kind: one of `KINDS`; by default the seed decides.

    Returns:
        The profile as `sim:FILE.toml` would be read; its name is `drawn-KIND-SEED`.

    """
    draw = Draw(f"machine {seed}")  # a text is hashed the same way in every process
    kind = kind or KIND_NAMES[seed % len(KIND_NAMES)]
    cache = _cache(draw, draw.whole(64 * MIB, GIB, MIB))
    machine: Table = {"processors": _processors(draw), "cache": cache} | KINDS[kind](draw, cache)
    size_mean_max = draw.power(MIB, 4 * MIB)
    factor = draw.power(8, 64)
    return {
        "meta": {
            "name": f"drawn-{kind}-{seed}",
            "title": f"Machine {seed}: {TITLES[kind]}",
            "source": "Drawn at random by proving.machines.",
            "assumed": ["Every number lies in the range that the generator states."],
            "facts": {"memory": f"{round(2 * cache['capacity_bytes'] / MIB)} MiB"},
        },
        "survey": {
            "unique_bytes_max": min(factor * cache["capacity_bytes"], 32 * GIB),
            "size_mean_max": size_mean_max,
            "process_num_max": draw.power(4, 32),
        },
        "machine": machine,
    }


def _processors(draw: Draw) -> Table:
    read_us = draw.log(1.0, 6.0)
    return {
        "count": draw.power(1, 16),
        "read_overhead_us": read_us,
        "write_overhead_us": float(f"{read_us * draw.linear(1.0, 2.0):.4g}"),
        "copy_mb_s": draw.log(2000, 12_000),
    }


def _cache(draw: Draw, capacity_bytes: int, page_bytes: int = PAGE_BYTES) -> Table:
    limit = int(capacity_bytes * draw.log(0.05, 0.4)) // page_bytes * page_bytes
    return {
        "page_bytes": page_bytes,
        "capacity_bytes": capacity_bytes // page_bytes * page_bytes,
        "policy": draw.choice(POLICIES),
        "request_max_bytes": draw.power(256 * KIB, MIB),
        "read_ahead": {"initial_bytes": 16 * KIB, "max_bytes": draw.power(128 * KIB, 2 * MIB)},
        "dirty": {
            "background_bytes": limit // 2,
            "limit_bytes": limit,
            "interval_s": 5,
            "expire_s": draw.linear(5, 30),
            "depth": draw.power(8, 64),
        },
    }


def _flash(draw: Draw, cache: Table, *, slc_share: float = 0.6) -> Table:
    program_us = draw.log(400, 4000)
    drive: Table = {
        "capacity_bytes": 64 * GIB * draw.power(1, 16),
        "channels": draw.power(2, 8),
        "dies_per_channel": draw.power(1, 8),
        "planes": draw.power(2, 4),
        "page_bytes": draw.power(8 * KIB, 16 * KIB),
        "read_us": draw.log(40, 120),
        "program_us": program_us,
        "channel_mb_s": draw.log(300, 1600),
        "interface_mb_s": draw.log(500, 6000),
        "overhead_us": draw.log(8, 60),
        "write_buffer_bytes": draw.power(128 * KIB, 64 * MIB),
        "power_safe": draw.chance(0.3),
        "spare_frac": draw.linear(0.07, 0.28),
        "aged_frac": 1.0 if draw.chance(0.3) else 0.0,
    }
    if draw.chance(slc_share):
        drive["slc"] = {
            "capacity_bytes": min(
                int(cache["capacity_bytes"] * draw.log(1, 20)), drive["capacity_bytes"] // 4
            ),
            "program_us": float(f"{program_us / draw.linear(3, 6):.4g}"),
            "fold_mb_s": draw.log(20, 500),
            "begin_frac": draw.linear(0, 1),
        }
    return drive


def _disk(draw: Draw) -> Table:
    outer_mb_s = draw.log(60, 260)
    track_ms = draw.log(0.3, 1.2)
    return {
        "capacity_bytes": 250 * 10**9 * draw.power(1, 32),
        "cylinders": draw.whole(50_000, 300_000),
        "rotation_ms": float(f"{60_000 / draw.choice(TURNS_PER_MINUTE):.4g}"),
        "seek_track_ms": track_ms,
        "seek_full_ms": float(f"{track_ms + draw.log(7, 22):.4g}"),
        "seek_linear_frac": draw.linear(0.1, 0.5),
        "outer_mb_s": outer_mb_s,
        "inner_mb_s": float(f"{outer_mb_s * draw.linear(0.45, 0.65):.4g}"),
        "overhead_us": draw.log(40, 300),
        "interface_mb_s": draw.log(280, 1100),
        "queue": draw.choice(("fifo", "elevator", "native", "native")),
        "depth": draw.power(4, 32),
        "read_buffer_bytes": draw.power(2 * MIB, 64 * MIB),
        "write_buffer_bytes": draw.choice((0, 8 * MIB, 64 * MIB)),
    }


def _medium(draw: Draw, cache: Table, disks: float = 0.5) -> Table:
    if draw.chance(disks):
        return {"disk": _disk(draw)}
    return {"flash": _flash(draw, cache)}


def _drive(draw: Draw, cache: Table) -> Table:
    return {"flash": _flash(draw, cache)}


def _one_disk(draw: Draw, cache: Table) -> Table:  # noqa: ARG001 - as all kinds are asked
    return {"disk": _disk(draw)}


def _array(draw: Draw, cache: Table) -> Table:
    kind = draw.choice(("stripe", "mirror", "parity", "double_parity"))
    members = draw.randint(2, 3) if kind == "mirror" else draw.randint(4, 12)
    chunk = draw.power(16 * KIB, MIB)
    array = {"kind": kind, "members": members, "chunk_bytes": chunk}
    return {"array": array} | _medium(draw, cache, 0.7)


def _volume(draw: Draw, cache: Table) -> Table:  # noqa: ARG001 - as all kinds are asked
    per_s, bytes_per_s = draw.log(200, 20_000), draw.log(20e6, 1e9)
    requests: Table = {"tokens": "requests", "unit_bytes": draw.power(16 * KIB, 256 * KIB)}
    buckets = [
        requests | {"per_s": per_s, "depth": max(per_s / 10, 1.0), "begin_frac": 0.0},
        {"tokens": "bytes", "per_s": bytes_per_s, "depth": bytes_per_s / 10, "begin_frac": 0.0},
    ]
    if draw.chance(0.3):
        base_per_s = float(f"{per_s / draw.linear(3, 10):.4g}")
        credit = {"per_s": base_per_s, "depth": base_per_s * 3600, "begin_frac": draw.log(1e-3, 1)}
        buckets.append(requests | credit)
    station = {
        "capacity_bytes": 500 * GIB,
        "servers": draw.power(16, 256),
        "read_us": draw.log(60, 300),
        "write_us": draw.log(60, 400),
        "mb_s": draw.log(500, 3000),
        "shape": "log_normal",
    }
    way = {"latency_us": draw.log(150, 1500), "latency_cv": draw.linear(0.1, 0.6)}
    return {"volume": way | {"buckets": buckets}, "station": station}


def _nfs(draw: Draw, cache: Table) -> Table:
    network = {
        "latency_us": draw.log(80, 8000),
        "mb_s": draw.log(12, 1200),
        "window": draw.power(8, 128),
        "loss_frac": draw.log(1e-5, 1e-3) if draw.chance(0.3) else 0.0,
    }
    page = draw.power(PAGE_BYTES, 16 * KIB)
    memory = _cache(draw, int(cache["capacity_bytes"] * draw.log(1.5, 8)) // MIB * MIB, page)
    server = {"threads": draw.power(4, 64), "overhead_us": draw.log(10, 80), "cache": memory}
    return {"network": network, "server": server} | _medium(draw, cache, 0.6)


def _tier(draw: Draw, cache: Table) -> Table:
    block = draw.power(16 * KIB, 128 * KIB)
    flash = _flash(draw, cache, slc_share=0.3) | {"aged_frac": 0.0}
    tier = {
        "block_bytes": block,
        "capacity_bytes": int(cache["capacity_bytes"] * draw.log(3, 12)) // block * block,
        "policy": draw.choice(("lru", "clock", "arc")),
        "writes": draw.choice(("back", "back", "through", "around")),
        "sequential_cutoff_bytes": draw.choice((0, 4 * MIB)),
        "dirty_max_frac": draw.linear(0.1, 0.5),
        "flash": flash,
    }
    return {"tier": tier, "disk": _disk(draw)}


def _shared(draw: Draw, cache: Table) -> Table:
    machine = _medium(draw, cache, 0.3)
    disk = "disk" in machine
    neighbour = {
        "mean_busy_s": draw.log(2, 60),
        "mean_idle_s": draw.log(2, 120),
        "requests_per_s": draw.log(20, 100) if disk else draw.log(2000, 40_000),
        "size_bytes": draw.power(4 * KIB, 64 * KIB),
        "read_frac": draw.linear(0.3, 1),
        "processor_frac": draw.linear(0, 0.6),
    }
    return machine | {"neighbour": neighbour}


KINDS: dict[str, Callable[[Draw, Table], Table]] = {
    "flash": _drive,
    "disk": _one_disk,
    "array": _array,
    "volume": _volume,
    "nfs": _nfs,
    "tier": _tier,
    "shared": _shared,
}
"""What lies below the page cache."""
KIND_NAMES = tuple(KINDS)
TITLES = {
    "flash": "a flash drive",
    "disk": "a disk",
    "array": "an array",
    "volume": "a provider's volume",
    "nfs": "a client of an NFS server",
    "tier": "flash before a disk",
    "shared": "a device shared with a neighbour",
}
