"""Measurements of workloads that belong to no larger study."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from leadline.api.frames import bytes_of, maybe, seconds_of, workload_of
from leadline.api.progress import Listener
from leadline.api.studies import StoredStudy
from leadline.engine import Target
from leadline.record import Access, Arrivals, Workload
from leadline.record.job import CLOSED
from leadline.record.measurement import MEASUREMENT, MeasurementAsked
from leadline.store import open_store
from leadline.studies.conduct import conduct
from leadline.studies.measurement.plan import ACCURACY, MeasurementRefused, plan_workload
from leadline.studies.measurement.replay import plan_replay
from leadline.studies.measurement.run import Measuring


def measure(
    target: str,
    *workloads: Workload | str,
    replay: str | None = None,
    at_times: bool = False,
    access: Access = Access(),  # noqa: B008 - frozen
    seconds: str | float | None = None,
    runs: int | None = None,
    accuracy: float = ACCURACY,
    rate_per_s: float | None = None,
    arrivals: Literal["poisson", "constant"] = "poisson",
    precondition: str | int | None = None,
    max_bytes: str | int | None = None,
    max_written: str | int | None = None,
    engine: str = "leadline",
    seed: int = 1,
    resume: bool = False,
    store: str | None = None,
    say: Callable[[str], None] = lambda _: None,
    progress: bool | None = None,
) -> StoredStudy:
    """Measure workloads one after the other, store every run, and return the study.

    Args:
        target: a directory, a server's, `sim:NAME`, `sim:FILE.toml` or `null:`.
        workloads: each as such or as `k=v,…`; with `resume` none are those that it began with.
        replay: in their place a trace that is made again, of any format that `characterize` reads.
        at_times: of a replay: no request before its time in the trace.
        access: how the target is reached; the memory cap is part of it.
        seconds: of a workload at most, all runs together, as a number or `"30s"`; by default 5.
        runs: to spread them over; 5, 1 with a rate, 3 of a replay.
        accuracy: a run ends when ± this fraction is reached.
        rate_per_s: makes an open loop, in which so many requests become due.
        arrivals: of an open loop, at random moments or evenly.
        precondition: most to write before the first run of each, in bytes or as `"8GiB"`.
        max_bytes: most data to lay out, as well.
        max_written: most bytes to write in all, by layouts and requests.
        engine: who makes the requests: `leadline` or `fio`.
        seed: decides addresses and simulated noise.
        resume: go on with this target's unfinished measurements; of the rest `max_written` counts.
        store: a file or URL; by default the one the command line uses.
        say: is told what may disturb a measurement.
        progress: shows how far it is; None where it runs in a notebook.

    Raises:
        LeadlineError: the target was refused or failed; what was measured is kept.

    """
    chosen = Target.parse(target)
    due = CLOSED if rate_per_s is None else Arrivals(arrivals, rate_per_s)
    how: dict[str, Any] = {"seconds": maybe(seconds_of, seconds), "runs": runs}
    if workloads and replay is not None:
        raise MeasurementRefused("give workloads or a replay, not both")
    planned = [plan_workload(workload_of(it), access, arrivals=due, **how) for it in workloads]
    if replay is not None:
        planned = [plan_replay(replay, chosen, access, at_times=at_times, **how)]
    asked = MeasurementAsked(
        workloads=tuple(planned),
        seed=seed,
        accuracy=accuracy,
        precondition_bytes_max=maybe(bytes_of, precondition),
        max_bytes=maybe(bytes_of, max_bytes),
        written_bytes_max=maybe(bytes_of, max_written),
        engine=engine,
    )
    study = Measuring(chosen, asked, given=None)
    with open_store(store) as kept:
        found = conduct(study, kept, Listener(say, progress), resume=resume)
    return StoredStudy(MEASUREMENT.kind, found, store)
