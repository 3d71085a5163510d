"""SH08's grid of 4 x 8 samples (disks x threads) as simulated servers, for three workloads.

Not the paper's machines, whose figures are not published as numbers, but servers that are limited
as it describes (§2.1, §5.3): of DB_TP, which is random disk access, more disks help only where
there are threads to keep them busy; the Web server's rate is the highest by far and its limit moves
from the threads to the disks to the processor, so its ideal number of threads is another one; Mail
is limited by what every request must pass one after the other (its journal and its directories), so
its surface is the flattest. More threads cost a little, everywhere.
"""

from __future__ import annotations

from itertools import product
from typing import Any

from leadline.record.workbench import Factor, Goal, Sample, SimulatedServer
from proving.peak_truth import Truth, truth
from proving.servers import GOAL

DISKS = (1, 2, 3, 4)
THREADS = (1, 2, 4, 8, 16, 32, 64, 100)
FACTORS = (
    Factor(name="disks", role="resource", levels=DISKS, scale="log"),
    Factor(name="workers", role="configuration", levels=THREADS, scale="log"),
)

_NOISE: dict[str, Any] = {
    "drift_sd": 0.02,
    "drift_memory_s": 20.0,
    "between_trials_sd": 0.015,
    "cold_frac": 0.5,
    "cold_s": 2.0,
    "service": {"kind": "lognormal", "cv": 1.0},
}

WORKLOADS: dict[str, SimulatedServer] = {
    "db_tp": SimulatedServer(
        system=_NOISE
        | {
            "workers": 1,
            "disks": 1,
            "disk_share": 0.85,
            "disk_ms": 8.0,
            "cpu_ms": 0.3,
            "cpu_contention_frac": 0.002,
            "service_ms": 0.5,
        }
    ),
    "web_server": SimulatedServer(
        system=_NOISE
        | {
            "workers": 1,
            "disks": 1,
            "disk_share": 0.12,
            "disk_ms": 6.0,
            "cpu_ms": 0.35,
            "cpu_contention_frac": 0.002,
            "service_ms": 1.5,
        }
    ),
    "mail": SimulatedServer(
        system=_NOISE
        | {
            "workers": 1,
            "disks": 1,
            "disk_share": 0.3,
            "disk_ms": 6.0,
            "cpu_ms": 5.0,
            "cpu_contention_frac": 0.0005,
            "service_ms": 0.3,
        }
    ),
}
"""By SH08's name (Table 3). `workers` and `disks` are replaced by a sample's."""


def grid_samples() -> tuple[Sample, ...]:
    """All 32, threads fastest."""
    return tuple({"disks": disks, "workers": workers} for disks, workers in product(DISKS, THREADS))


def grid_truth(workload: str, goal: Goal = GOAL) -> tuple[tuple[Sample, Truth], ...]:
    """Return the true peak rate of every sample."""
    server = WORKLOADS[workload]
    return tuple((sample, truth(server, goal, sample)) for sample in grid_samples())
