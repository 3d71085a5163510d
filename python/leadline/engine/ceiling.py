"""How many requests a second this host's generator can make: the same loop on the null backend."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from leadline.record import EngineResult, Workload
from leadline.record.job import Limits

DEEP_QUEUE = 32
LIMITS = Limits(
    warm_up_s_max=0.05, measure_s_min=0.1, measure_s_max=0.1, accuracy=0.01, total_s_max=10.0
)
"""The null backend makes two million requests in a tenth of a second. A run twice as long spreads
little less (beside other work, twelve of each: 0.82 to 1.18 of the median, and 0.87 to 1.09), for
a number that storage is far from; and every command that measures waits for it."""

Measure = Callable[[Workload], EngineResult]


class Ceiling(msgspec.Struct, frozen=True):
    """Requests per second against the null backend, by queue depth: one worker, one each CPU."""

    cpu_count: int
    one_iops: float
    all_iops: float
    deep_one_iops: float | None = None
    """With a deep queue; None when the backend has none."""
    deep_all_iops: float | None = None

    def iops(self, process_num: int, queue_depth: int = 1) -> float:
        """Return what this many workers reach; more workers than processors reach no more.

        Between one worker and one per processor the ceiling is taken on the straight line.
        """
        one, every = self.one_iops, self.all_iops
        if queue_depth > 1 and self.deep_one_iops is not None and self.deep_all_iops is not None:
            one, every = self.deep_one_iops, self.deep_all_iops
        if self.cpu_count <= 1:
            return one
        workers = min(process_num, self.cpu_count)
        return one + (every - one) * (workers - 1) / (self.cpu_count - 1)

    def facts(self) -> dict[str, Any]:
        """Return the ceiling at queue depth 1 as facts."""
        return {
            "generator_ceiling_iops_one_issuer": round(self.one_iops),
            "generator_ceiling_iops_all_processors": round(self.all_iops),
        }


def measure_ceiling(measure: Measure, *, cpu_count: int, deep: bool) -> Ceiling:
    """Measure the ceiling with jobs on the null target; `deep` adds the deep queue."""

    def reached(process_num: int, queue_depth: int) -> float:
        workload = Workload(
            unique_bytes=2**30,
            size_mean=4096,
            size_dist="fixed",
            read_frac=1.0,
            seq_frac=0.0,
            process_num=process_num,
            queue_depth=queue_depth,
        )
        return measure(workload).iops.value

    def both(queue_depth: int) -> tuple[float, float]:
        one = reached(1, queue_depth)
        return one, reached(cpu_count, queue_depth) if cpu_count > 1 else one

    shallow = both(1)
    return Ceiling(cpu_count, *shallow, *(both(DEEP_QUEUE) if deep else (None, None)))
