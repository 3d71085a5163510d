"""Claims about the engine's own timing: Little's law, an open loop's rate, writes that wait."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from check_claims import MIB, CannotTellError, Claim, Found
from leadline.engine import Limits, Target, open_engine
from leadline.record import Arrivals, EngineResult, Workload

WINDOW = Limits(
    warm_up_s_max=0.3, measure_s_min=1.0, measure_s_max=1.0, accuracy=0.0, total_s_max=60.0
)
SMALL = Workload(unique_bytes=4 * MIB, size_mean=4096, size_dist="fixed", read_frac=0.5)
CLOSED = Arrivals()
THINK_S = 0.002
RATE_PER_S = 500.0
LAW_OFF_MAX = 0.05


def run_of(
    folder: Path, workload: Workload, arrivals: Arrivals = CLOSED, **engine: Any
) -> EngineResult:
    """Measure a directory for a second."""
    with open_engine(Target.parse(str(folder)), **engine) as opened:
        return opened.run(workload, seed=1, limits=WINDOW, arrivals=arrivals)


def data(**more: Any) -> Workload:
    """Return a small workload of 4 KiB requests, half of them reads."""
    return msgspec.structs.replace(SMALL, **more)


def law_off(result: EngineResult) -> float:
    """Return how far a result is off Little's law."""
    return result.littles_law_error_frac


def thinking(folder: Path) -> Found:
    """Let two workers think, one request each and four."""
    said, holds = [], True
    for backend, depth in (("pread", 1), ("uring", 4)):
        work = data(process_num=2, queue_depth=depth, think_time_s=THINK_S)
        found = run_of(folder, work, backend=backend)
        each = found.iops.value / (2 * depth)
        holds &= 250 < each < 1.002 / THINK_S and law_off(found) < LAW_OFF_MAX
        holds &= found.io_share < 0.9
        said.append(f"{backend} {each:.0f}/s a slot, off by {law_off(found):.1%}")
    return Found(holds, "; ".join(said))


def open_loops(folder: Path) -> Found:
    """Offer a constant rate through every backend."""
    said, holds = [], True
    for backend in ("pread", "uring", "mmap"):
        found = run_of(folder, data(), Arrivals("constant", RATE_PER_S), backend=backend)
        holds &= abs(found.iops.value / RATE_PER_S - 1) < 0.05 and law_off(found) < LAW_OFF_MAX
        said.append(f"{backend} {found.iops.value:.0f}/s, off by {law_off(found):.1%}")
    return Found(holds, "; ".join(said))


def write_p(result: EngineResult, name: str) -> float:
    """Return a percentile of writes in microseconds."""
    if result.write.latency_us is None:
        raise CannotTellError("nothing was written")
    return float(getattr(result.write.latency_us, name))


def waiting_write(folder: Path) -> Found:
    """Write with O_DSYNC and without, beside reads."""
    buffered, waiting = (run_of(folder, data(), sync=sync) for sync in ("none", "dsync"))
    if waiting.read.latency_us is None:
        raise CannotTellError("nothing was read")
    one, other = write_p(buffered, "p50"), write_p(waiting, "p50")
    read = float(waiting.read.latency_us.p50)
    return Found(
        other > 3 * one and other > 3 * read,
        f"{other:.0f} us; buffered {one:.0f} us, a read beside it {read:.0f} us",
    )


def each_fourth(folder: Path) -> Found:
    """Write with an fsync after each fourth, through every backend."""
    base = write_p(run_of(folder, data(read_frac=0.0)), "p50")
    said, holds = [], True
    for backend in ("pread", "uring", "mmap"):
        found = run_of(folder, data(read_frac=0.0), backend=backend, sync="fsync=4")
        half, most = write_p(found, "p50"), write_p(found, "p90")
        holds &= most > 5 * max(base, half)
        said.append(f"{backend} {half:.1f} us and {most:.0f} us")
    return Found(holds, "; ".join(said))


CLAIMS = (
    Claim("thinking workers keep Little's law", "250 to 501/s a slot, within 5%", thinking),
    Claim("an open loop keeps its rate on every backend", "500/s within 5%", open_loops),
    Claim("a write that waits takes longer, a read does not wait", "3 times", waiting_write),
    Claim("each fourth write waits for the fsync", "p90 over 5 times p50", each_fourth),
)
