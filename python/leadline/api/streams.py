"""Streaming kernels over the user's data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from leadline.api.frames import bytes_of, chosen, frame, maybe, seconds_of, table
from leadline.record.balance import Bound
from leadline.record.streaming import STREAM, KernelName, StreamResult, StreamStudy
from leadline.store import open_store
from leadline.studies.conduct import Watcher, conduct
from leadline.studies.registry import KINDS
from leadline.studies.streaming.measured import phase_rows
from leadline.studies.streaming.plan import BUDGET_S, Wanted, plan_run
from leadline.studies.streaming.run import bound_of
from leadline.studies.streaming.study import KernelRuns
from leadline.units import format_rate


def stream(
    kernel: KernelName,
    source: str | Path,
    destination: str | Path,
    *,
    memory: str | int | None = None,
    threads: int = 1,
    io: str = "uring",
    stripes: Sequence[str | Path] = (),
    temporary: Sequence[str | Path] = (),
    buffered: bool = False,
    depth: int = 8,
    replace: bool = False,
    runs: int = 1,
    match: float = 0.5,
    rows: int | None = None,
    columns: int | None = None,
    bound: bool | None = None,
    name: str | None = None,
    seed: int = 1,
    budget: str | float = BUDGET_S,
    resume: bool = False,
    store: str | None = None,
) -> StreamedData:
    """Stream data through a kernel, verify and store what came of it, return the measures.

    Args:
        kernel: `scan`, `sort` or `transpose`.
        source: the data set to read, 100-byte records or 4 KiB blocks; it is only ever read.
        destination: the data set to make; it gets its name when it is whole and verified.
        memory: of the kernel, in bytes or as `"1GiB"`; half of what is free without it.
        threads: that compute, each on its own part.
        io: `uring` or `mmap`, how the source is read.
        stripes: directories to stripe the destination over, one for each disk.
        temporary: directories for the runs of a sort in two passes.
        buffered: through the page cache.
        depth: reads, and writes, outstanding on each disk.
        replace: a destination that exists is replaced when the new one is whole.
        runs: of the same; two or more give an interval, each replaces the destination.
        match: share of the records that a scan selects.
        rows: of a transpose's source, in blocks.
        columns: of it; square without either.
        bound: None measures memory and disks once a day, True again, False not at all.
        name: of the system, to find it again.
        seed: of everything drawn.
        budget: a hard cap, in seconds or as `"5min"`.
        resume: go on with the unfinished study of several runs.
        store: a file or URL.

    Raises:
        LeadlineError: it was refused or failed; the message says what to do.

    """
    plain: Any = {"buffered": buffered, "depth": depth, "replace": replace, "runs": runs}
    more: Any = {"rows": rows, "columns": columns, "capacities": bound is not False, "name": name}
    wanted = Wanted(
        seed=seed,
        source=str(source),
        destination=str(destination),
        memory_bytes=maybe(bytes_of, memory),
        threads=threads,
        read=io,
        stripes=tuple(map(str, stripes)),
        temporary=tuple(map(str, temporary)),
        budget_s=seconds_of(budget),
        **plain,
    )
    study = KernelRuns(plan_run(kernel, wanted, match_frac=match, **more), anew=bound is True)
    with open_store(store) as kept:
        return StreamedData(conduct(study, kept, Watcher(), resume=resume))


@dataclass(frozen=True, repr=False)
class StreamedData:
    """What a kernel did to the user's data, and what it cost."""

    study: StreamStudy

    @property
    def result(self) -> StreamResult:
        """What the engine answered."""
        return self.study.runs[-1].result

    @property
    def bound(self) -> Bound | None:
        """The fastest the run could have been on this machine; None when that is not known."""
        return bound_of(self.study)

    def to_frame(self) -> Any:
        """Return the phases as a pandas frame, one row each."""
        return frame(phase_rows(self.study))

    def plot(self, name: str | None = None) -> Any:
        """Return a chart of its page for a notebook, an Altair chart: the first, or by name.

        Raises:
            ChartsMissing: Altair is not installed.
            NoChart: none of this name, or nothing to draw.

        """
        return chosen(lambda: KINDS[STREAM.kind].drawn.charts_of(self.study), name)

    def __repr__(self) -> str:
        return "\n".join([f"Stream of {self.study.start.system}", *self.study.sentences])

    def _repr_html_(self) -> str:
        sentences = "".join(f"<p>{escape(sentence)}</p>" for sentence in self.study.sentences)
        heads = ("phase", "disk bandwidth", "processor, user and kernel")
        rows = [
            (
                phase.name,
                format_rate(phase.mb_s),
                f"{phase.cpu_user_s:.3g} s + {phase.cpu_system_s:.3g} s",
            )
            for phase in self.result.phases
        ]
        return f"<h4>{escape(self.study.start.system)}</h4>{sentences}{table(heads, rows)}"
