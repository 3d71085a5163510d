"""How much may be written on a target in all: a limit of its wear, kept over all runs of a study.

What a run will write is not known before it: its layout is, what its requests write depends on how
fast they are. So a run does not begin that would go past the limit if it wrote as much as the one
that wrote most; and on a directory the kernel's count for the engine's process is looked at while
it runs, so that the first run, or one that is faster than all before it, is ended there. What such
a run wrote counts, and no point is made of it.
"""

from __future__ import annotations

from leadline.engine.pace import BudgetSpent
from leadline.errors import TargetRefused
from leadline.machine.process_io import written_bytes
from leadline.record import EngineResult, Workload
from leadline.units import format_bytes

OPTION = "--max-written"


class WrittenSpent(BudgetSpent):
    """All that may be written is written, or the next run would go past it."""


class Wear:
    """Bytes written on a target, and how many may be."""

    def __init__(self, bytes_max: int | None = None, written_bytes: int = 0) -> None:
        """Begin to count.

        Args:
            bytes_max: most bytes to write in all; None without a limit.
            written_bytes: what earlier sittings wrote.

        """
        self.bytes_max = bytes_max
        self.written_bytes = written_bytes
        self._laid_out_bytes = 0
        self._most_bytes = 0
        """Written by the requests of one run, of those so far."""
        self._pid: int | None = None
        self._before_bytes = 0
        """What the kernel had counted of that process when its run began."""
        self._looked_bytes = 0
        """What it had written at the last look."""

    def again(self) -> Wear:
        """Return the same count for a target that is opened again, and laid out again."""
        self._laid_out_bytes = 0
        return self

    def require_layout(self, layout_bytes: int, precondition_bytes: int = 0) -> None:
        """Refuse what could not even be laid out.

        Raises:
            TargetRefused: how much that is, and how much is left.

        """
        needed = layout_bytes + precondition_bytes
        if self.bytes_max is None or needed <= self.bytes_max - self.written_bytes:
            return
        and_first = (
            f" and {format_bytes(precondition_bytes)} to precondition" if precondition_bytes else ""
        )
        before = f", {format_bytes(self.written_bytes)} of it spent" if self.written_bytes else ""
        raise TargetRefused(
            f"{OPTION} is {format_bytes(self.bytes_max)}{before}, and laying out the data alone "
            f"writes {format_bytes(layout_bytes)}{and_first}: give {OPTION} "
            f"{format_bytes(2 * (self.written_bytes + needed)).replace(' ', '')}, or a smaller "
            "--max-bytes"
        )

    def begin(
        self, workload: Workload, precondition_bytes: int = 0, *, lays_out: bool = True
    ) -> None:
        """Look before a run whether it may begin.

        Args:
            workload: of the run.
            precondition_bytes: most that is written before it.
            lays_out: whether data are written for it; a simulated system has none.

        Raises:
            WrittenSpent: it would go past the limit.

        """
        requests = 0 if workload.read_frac == 1.0 else self._most_bytes
        layout = self._layout(workload) if lays_out else 0
        needed = layout + precondition_bytes + requests
        if self.bytes_max is not None and self.written_bytes + needed > self.bytes_max:
            raise WrittenSpent(
                f"{OPTION} {format_bytes(self.bytes_max)}: {format_bytes(self.written_bytes)} are "
                f"written, and the next run may write {format_bytes(needed)} more"
            )

    def watch(self, pid: int | None) -> None:
        """Count from now what the process writes that runs, or will be started to."""
        self._looked_bytes = 0
        self._pid = pid
        self._before_bytes = 0 if pid is None else written_bytes(pid) or 0

    def look(self, pid: int | None) -> None:
        """Look after the process that runs.

        Raises:
            WrittenSpent: it has come to the limit, or will before the next look.

        """
        running = self._running(pid)
        ahead = 2 * running - self._looked_bytes
        self._looked_bytes = running
        if self.bytes_max is None or self.written_bytes + ahead < self.bytes_max:
            return
        self.written_bytes += running
        raise WrittenSpent(
            f"{OPTION} {format_bytes(self.bytes_max)}: {format_bytes(self.written_bytes)} are "
            "written; the run that came to the limit was ended, and is no part of the answer"
        )

    def _running(self, pid: int | None) -> int:
        """Bytes that the process wrote since it is watched; another one's are all its own."""
        count = 0 if pid is None else written_bytes(pid) or 0
        return count - self._before_bytes if pid == self._pid else count

    def add(self, workload: Workload, result: EngineResult) -> None:
        """Count what a run wrote."""
        self._laid_out_bytes = max(self._laid_out_bytes, workload.unique_bytes)
        self.written_bytes += bytes_written(result) - requested_bytes(result)
        self.add_requests(result)

    def add_requests(self, result: EngineResult) -> None:
        """Count what a run's requests wrote, without its layout."""
        self._most_bytes = max(self._most_bytes, requested_bytes(result))
        self.written_bytes += requested_bytes(result)

    def add_failed(self, workload: Workload, pid: int | None) -> None:
        """Count a run that told nothing: what the kernel counted of it, and its layout at least."""
        self.written_bytes += max(self._running(pid), self._layout(workload))
        self._laid_out_bytes = max(self._laid_out_bytes, workload.unique_bytes)

    def _layout(self, workload: Workload) -> int:
        return max(0, workload.unique_bytes - self._laid_out_bytes)


def bytes_written(result: EngineResult) -> int:
    """Return what a run wrote in all: layout, preconditioning, and requests with the warm-up."""
    wear = result.written_bytes
    return wear.layout + wear.precondition + requested_bytes(result)


def requested_bytes(result: EngineResult) -> int:
    """Return what a run's requests wrote; of a simulated system those of its window."""
    return result.written_bytes.workload or result.workload_bytes.write
