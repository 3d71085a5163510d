"""Disks of a machine whose truth is known, in the place of an engine (see stream_fixture)."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from kept_documents import KeptDocuments
from leadline.engine import BudgetSpent
from leadline.engine.streams.disks import Effort
from leadline.record.streaming import CapacityResult, StreamOptions, StreamResult, StreamStudy
from leadline.studies.streaming.run import load_stream
from stream_fixture import ATLAS, Machine, run_of

MB = 1e6


@dataclass
class FakeDisks:
    """Answers at once, as `machine` would have; fails when told to."""

    machine: Machine = ATLAS
    count: int = 4
    runs_within_budget: int = 10_000
    calls: list[tuple[str, int]] = field(default_factory=list)

    @property
    def directories(self) -> tuple[str, ...]:
        return tuple(f"/disk{number + 1}" for number in range(self.count))

    def capacities(self, effort: Effort) -> CapacityResult:
        self.calls.append(("capacities", self.count))
        rng = np.random.default_rng(effort.seed)

        def read(mb_s: float) -> tuple[float, ...]:
            return tuple(MB * mb_s * np.exp(self.machine.noise_frac * rng.standard_normal(3)))

        r, w = self.machine.disk_read_mb_s, self.machine.disk_write_mb_s
        most = self.machine.shared_path_mb_s
        both = 2 / (1 / r + 1 / w)
        return CapacityResult(
            memory_copy_bytes_s=read(self.machine.memory_copy_mb_s),
            memory_read_bytes_s=read(1.6 * self.machine.memory_copy_mb_s),
            disk_read_bytes_s=tuple(read(r) for _ in range(self.count)),
            disk_write_bytes_s=tuple(read(w) for _ in range(self.count)),
            all_read_bytes_s=read(min(most, r * self.count)),
            all_write_bytes_s=read(min(most, w * self.count)),
            all_both_bytes_s=read(min(most, both * self.count)),
            disk_devices=tuple((f"nvme{number}n1",) for number in range(self.count)),
            processors=float(self.machine.processors),
        )

    def lay(self, disks: int, effort: Effort) -> None:
        assert effort.data_bytes > 0
        self.calls.append(("lay", disks))

    def run(
        self, options: StreamOptions, disks: int, *, seed: int, total_s_max: float
    ) -> StreamResult:
        assert total_s_max > 0
        laid = [count for what, count in self.calls if what == "lay"]
        assert laid[-1] == disks, "the data must lie on the disks of the run"
        done = sum(1 for what, _ in self.calls if what not in ("lay", "capacities"))
        if done >= self.runs_within_budget:
            raise BudgetSpent("the budget was spent")
        self.calls.append((options.kernel, disks))
        return run_of(self.machine, options, disks, repetition=seed % 1000).result


class Kept(KeptDocuments[StreamStudy]):
    """A store that remembers every document it held."""

    def __init__(self) -> None:
        super().__init__(load_stream)
