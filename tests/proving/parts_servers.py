"""Servers made of parts, drawn at random: what policies meet that nobody modelled.

A seed gives one server, the same in every process, and its class: `ORDER[seed % 8]`. Seeds below
`SCORED_FROM` are for development: whatever is tuned may be tuned on these and on no others; figures
come from seeds above. The ranges stand here and nowhere else; `docs/reference/server.md` says what
the fields mean.

Every server has processors, a cache before its storage, a speed that drifts a little, and, half of
them, a pool of connections. One of these saturates first; the others can do 1.2 to 3 times as much.
Unloaded they answer within 30 ms in the mean, so each has a peak for a threshold of 40 ms.
"""

from __future__ import annotations

import math
from enum import StrEnum
from typing import Any

from leadline.record.workbench import SimulatedServer
from proving.draws import Draw
from proving.servers import Member

Table = dict[str, Any]

SCORED_FROM = 1000
"""First seed of servers that figures may come from."""


class Mechanism(StrEnum):
    """Classes of servers, by what is pronounced in them."""

    POOL = "pool"
    """A pool of connections saturates first."""
    LOCK = "lock"
    """A lock held across writes saturates first."""
    COLLECTOR = "collector"
    """Garbage is collected, half of the time while all stands still."""
    SHARED = "shared processors"
    """Processors saturate first, and all who are on them share them."""
    RETRIES = "retries"
    """Clients give up an attempt and send the request again."""
    BATCH = "batch"
    """Batch jobs come and go."""
    DRIFT = "drift"
    """Speed wanders by 6 to 15% within a trial."""
    TWO_MODES = "two modes"
    """The cache stays cold, or the storage degraded, for whole trials."""


ORDER = tuple(Mechanism)

RANGES: dict[str, tuple[float, float]] = {
    "capacity_per_s": (60.0, 500.0),
    "slack": (1.2, 3.0),
    "workers_over_busy": (1.5, 6.0),
    "work_ms": (2.0, 8.0),
    "io_ms": (1.5, 8.0),
    "query_ms": (4.0, 12.0),
    "cv": (0.5, 2.5),
    "hit_frac": (0.5, 0.95),
    "drift_sd": (0.01, 0.03),
    "drift_memory_s": (5.0, 40.0),
    "between_trials_sd": (0.005, 0.02),
    "cold_frac": (0.0, 0.5),
    "cold_s": (1.0, 5.0),
    "by_lock.write_share": (0.2, 0.8),
    "by_lock.io_ms": (3.0, 10.0),
    "by_storage.hit_frac": (0.4, 0.95),
    "by_storage.io_ms": (5.0, 25.0),
    "collector.heap_mb": (256.0, 8192.0),
    "collector.live_frac": (0.2, 0.6),
    "collector.requests": (300.0, 5000.0),
    "collector.pause_ms": (20.0, 300.0),
    "collector.cycle_ms": (200.0, 3000.0),
    "collector.begin_frac": (0.6, 0.85),
    "collector.cores_frac": (0.15, 0.4),
    "collector.assist_frac": (0.0, 0.5),
    "retries.timeout_ms": (100.0, 1000.0),
    "retries.backoff_ms": (10.0, 300.0),
    "batch.mean_busy_s": (2.0, 30.0),
    "batch.mean_idle_s": (10.0, 120.0),
    "batch.cores_frac": (0.1, 0.5),
    "batch.storage_frac": (0.0, 0.4),
    "drift.drift_sd": (0.06, 0.15),
    "drift.drift_memory_s": (10.0, 60.0),
    "two_modes.slow_share": (0.25, 0.75),
    "two_modes.cold_hit_part": (0.4, 0.9),
    "two_modes.degraded_factor": (1.1, 2.0),
}
"""Least and most of what is drawn; see `_LOG` for those drawn uniformly in their logarithm.

`capacity_per_s` is what is aimed at: there are whole processors, channels, connections and locks
only. Of what begins with `by_` it is about servers whose lock or storage saturates first, and the
first of both is bounded, not drawn.
`slack` is what the other parts can do over that, `workers_over_busy` the worker threads over those
busy at capacity. A collection comes every so many `requests`; `cold_hit_part` is the part of its
hits that a cold cache has; `storage_frac` what a batch job takes of the storage.
"""

_LOG = {
    "capacity_per_s",
    "workers_over_busy",
    "work_ms",
    "io_ms",
    "by_lock.io_ms",
    "by_storage.io_ms",
    "query_ms",
    "drift_memory_s",
    "cold_s",
    "collector.heap_mb",
    "collector.requests",
    "collector.pause_ms",
    "collector.cycle_ms",
    "retries.timeout_ms",
    "retries.backoff_ms",
    "batch.mean_busy_s",
    "batch.mean_idle_s",
    "drift.drift_memory_s",
}

POOLED_SHARE = 0.5
"""Part of the servers with a pool where that is not the point."""
TURNS_SHARE = 0.25
"""Part of the servers whose processors are taken in turns, except where sharing is the point."""
STRIPED_SHARE = 1 / 3
"""Part of the servers with a lock that have two of them."""
STOPPING_SHARE = 0.5
"""Part of the collectors that stop all."""
RESENDS_MAX = 3
AT_ONCE_SHARE = 1 / 3
"""Part of the servers whose clients try again at once."""
COLD_SHARE = 0.5
"""Part of the servers with two modes whose cache stays cold; of the others the storage is slow."""

_LIMITS: dict[Mechanism, tuple[str, ...]] = {
    Mechanism.POOL: ("pool",),
    Mechanism.LOCK: ("lock",),
    Mechanism.COLLECTOR: ("cores",),
    Mechanism.SHARED: ("cores",),
    Mechanism.RETRIES: ("cores", "pool", "storage"),
    Mechanism.BATCH: ("cores", "storage"),
    Mechanism.DRIFT: ("cores", "pool", "storage", "lock"),
    Mechanism.TWO_MODES: ("storage",),
}
"""What may saturate first."""


def draw_server(seed: int) -> Member:
    """Return the server of a seed, which decides everything."""
    draw = Draw(f"server of parts {seed}")  # a text is hashed the same way in every process
    kind = ORDER[seed % len(ORDER)]
    server = _Drawn(draw, kind, draw.choice(_LIMITS[kind]))
    return Member(index=seed, kind=kind, server=SimulatedServer(system=server.system()))


def draw_servers(first: int, count: int) -> tuple[Member, ...]:
    """Return the servers of so many seeds."""
    return tuple(draw_server(seed) for seed in range(first, first + count))


class _Drawn:
    """One server, while it is drawn."""

    def __init__(self, draw: Draw, kind: Mechanism, limit: str) -> None:
        self._draw = draw
        self._kind = kind
        self._limit = limit
        self._stripes = 2 if draw.chance(STRIPED_SHARE) else 1
        locked = limit == "lock"
        self._per_s = self._of("capacity_per_s")
        self._work_ms = self._of("work_ms")
        by = f"by_{limit}." if limit in ("lock", "storage") else ""
        self._io_ms = self._of(f"{by}io_ms")
        self._query_ms = self._of("query_ms")
        self._write_share = self._writers() if locked else 0.0
        self._hit_frac = self._hits() if limit == "storage" else self._of("hit_frac")
        self._pooled = limit == "pool" or draw.chance(POOLED_SHARE)
        stored = self._write_share + (1 - self._write_share) * (1 - self._hit_frac)
        self._needs_ms = {
            "cores": self._work_ms,
            "storage": stored * self._io_ms,
            "lock": self._write_share * self._io_ms,
            "pool": self._query_ms if self._pooled else 0.0,
        }
        """Of each part, for one request."""
        limited_by = self._stripes if locked else self._count(limit, 1.0)
        self._per_s = 1e3 * limited_by / self._needs_ms[limit]

    def system(self) -> Table:
        """Return the fields that the engine reads."""
        drawn: Table = {"family": "parts", "workers": self._workers()}
        drawn["cores"] = {
            "count": self._count("cores"),
            "discipline": self._discipline(),
            "work_ms": self._work_ms,
            "work": self._law(),
        }
        drawn["cache"] = {"hit_frac": self._hit_frac}
        drawn["storage"] = {
            "channels": self._count("storage"),
            "io_ms": self._io_ms,
            "io": self._law(),
        }
        if self._limit == "lock":
            drawn["lock"] = {"write_share": self._write_share, "stripes": self._stripes}
        if self._pooled:
            drawn["pool"] = {
                "connections": self._count("pool"),
                "query_ms": self._query_ms,
                "query": self._law(),
            }
        names = ("drift_sd", "drift_memory_s", "between_trials_sd", "cold_frac", "cold_s")
        drawn["speed"] = {name: self._of(name) for name in names}
        self._add_mechanism(drawn)
        return drawn

    def _of(self, name: str) -> float:
        low, high = RANGES[name]
        return self._draw.log(low, high) if name in _LOG else self._draw.linear(low, high)

    def _writers(self) -> float:
        """Part of the requests that keeps the locks busy at capacity."""
        low, high = RANGES["by_lock.write_share"]
        share = 1e3 * self._stripes / (self._per_s * self._io_ms)
        return round(min(max(share, low), high), 4)

    def _hits(self) -> float:
        """Part of the reads that leaves whole channels busy at capacity."""
        low, high = RANGES["by_storage.hit_frac"]
        busy = self._per_s * self._io_ms / 1e3
        channels = max(1, round(busy * (1 - self._of("hit_frac"))))
        return round(min(max(1 - channels / busy, low), high), 4)

    def _law(self) -> Table:
        kind = self._draw.choice(("exponential", "lognormal"))
        return {"kind": kind} | ({"cv": self._of("cv")} if kind == "lognormal" else {})

    def _discipline(self) -> str:
        shares = self._kind is Mechanism.SHARED or not self._draw.chance(TURNS_SHARE)
        return "shared" if shares else "turns"

    def _count(self, part: str, slack: float | None = None) -> int:
        """How many of a part it takes: what it needs at capacity, and some more."""
        busy = self._per_s * self._needs_ms[part] / 1e3
        if slack is not None:
            return max(1, round(slack * busy))
        if part == self._limit:
            return max(1, round(busy))
        return math.ceil(self._of("slack") * busy)

    def _workers(self) -> int:
        busy = self._per_s * (sum(self._needs_ms.values()) - self._needs_ms["lock"]) / 1e3
        return max(4, math.ceil(busy * self._of("workers_over_busy")))

    def _add_mechanism(self, drawn: Table) -> None:
        match self._kind:
            case Mechanism.COLLECTOR:
                drawn["collector"] = self._collector()
            case Mechanism.RETRIES:
                at_once = self._draw.chance(AT_ONCE_SHARE)
                drawn["clients"] = {
                    "timeout_ms": self._of("retries.timeout_ms"),
                    "resends": self._draw.randint(1, RESENDS_MAX),
                    "backoff_ms": 0.0 if at_once else self._of("retries.backoff_ms"),
                }
            case Mechanism.BATCH:
                drawn["batch"] = self._batch(drawn["storage"])
            case Mechanism.DRIFT:
                names = ("drift_sd", "drift_memory_s")
                drawn["speed"] |= {name: self._of(f"drift.{name}") for name in names}
            case Mechanism.TWO_MODES:
                share = self._of("two_modes.slow_share")
                if self._draw.chance(COLD_SHARE):
                    cold = self._hit_frac * self._of("two_modes.cold_hit_part")
                    drawn["cache"] |= {"cold_share": share, "cold_hit_frac": round(cold, 4)}
                else:
                    factor = self._of("two_modes.degraded_factor")
                    drawn["storage"] |= {"degraded_share": share, "degraded_factor": factor}
            case _:
                pass

    def _collector(self) -> Table:
        heap_mb = self._of("collector.heap_mb")
        live_mb = round(heap_mb * self._of("collector.live_frac"), 1)
        stops = self._draw.chance(STOPPING_SHARE)
        lasts_ms = self._of("collector.pause_ms" if stops else "collector.cycle_ms")
        begin_frac = 1.0 if stops else self._of("collector.begin_frac")
        # Something is left to be filled, however much lives.
        free_mb = max(begin_frac * heap_mb - live_mb, 0.05 * heap_mb)
        table: Table = {
            "kind": "stopping" if stops else "concurrent",
            "heap_mb": heap_mb,
            "live_mb": live_mb,
            "allocates_mb": float(f"{free_mb / self._of('collector.requests'):.4g}"),
            "ms_per_live_mb": float(f"{lasts_ms / live_mb:.4g}"),
        }
        if not stops:
            table["begin_frac"] = begin_frac
            for name in ("cores_frac", "assist_frac"):
                table[name] = self._of(f"collector.{name}")
        return table

    def _batch(self, storage: Table) -> Table:
        names = ("mean_busy_s", "mean_idle_s", "cores_frac")
        table = {name: self._of(f"batch.{name}") for name in names}
        could_per_s = 1e3 * storage["channels"] / storage["io_ms"]
        table["ios_per_s"] = float(f"{self._of('batch.storage_frac') * could_per_s:.4g}")
        return table
