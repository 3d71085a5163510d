"""Programs with known requests, as strace would show them: one process, one request at a time."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from planted_traces import Requests

Floats = NDArray[np.float64]


def write_strace(
    requests: Requests,
    path: Path,
    *,
    took_s: float | Floats = 1e-4,
    think_s: float = 2e-4,
    sync_every: int | None = None,
    sync_s: float = 1e-3,
    stats: int = 0,
) -> Path:
    """Write a trace as `strace -f -y -ttt -T` does.

    Args:
        requests: what the program reads and writes of one file; their times are not used.
        path: of the trace.
        took_s: each request, or one of them each, (requests,); the first one's each `fstat`.
        think_s: after each call.
        sync_every: writes from one `fdatasync` to the next; None without any.
        sync_s: each of them.
        stats: calls of `fstat` at the beginning.

    """
    at_s, lines, writes = 1_700_000_000.0, list[str](), 0
    took = np.broadcast_to(took_s, requests.sizes.shape)

    def call(text: str, seconds: float) -> None:
        nonlocal at_s
        lines.append(f"100 {at_s:.6f} {text} <{seconds:.6f}>")
        at_s += seconds + think_s

    for _ in range(stats):
        call("fstat(4</d/file>, {st_mode=S_IFREG|0644, st_size=4096, ...}) = 0", took[0])
    rows = zip(requests.reads, requests.offsets, requests.sizes, took, strict=True)
    for read, offset, size, seconds in rows:
        name = "pread64" if read else "pwrite64"
        call(f'{name}(4</d/file>, "..."..., {size}, {offset}) = {size}', seconds)
        writes += not read
        if sync_every and not read and writes % sync_every == 0:
            call("fdatasync(4</d/file>) = 0", sync_s)
    path.write_text("\n".join(lines) + "\n", encoding="ascii")
    return path


def lru_misses(requests: Requests, cache_bytes: int) -> NDArray[np.bool_]:
    """Say which requests miss an LRU cache that begins empty; each must be one block of its own."""
    held: OrderedDict[int, int] = OrderedDict()
    left, missed = cache_bytes, np.zeros(requests.sizes.size, bool)
    for at, (offset, size) in enumerate(zip(requests.offsets, requests.sizes, strict=True)):
        if offset in held:
            held.move_to_end(offset)
            continue
        missed[at] = True
        held[offset] = size
        left -= size
        while left < 0:
            left += held.popitem(last=False)[1]
    return missed


def each_s(
    requests: Requests, missed: NDArray[np.bool_], costs: Sequence[tuple[float, float]]
) -> Floats:
    """Return what each takes, (requests,): `costs` of reads and of writes, found and missed."""
    (read_hit, read_miss), (write_hit, write_miss) = costs
    reads = np.where(missed, read_miss, read_hit)
    return np.where(requests.reads, reads, np.where(missed, write_miss, write_hit))


def seconds_of(
    requests: Requests, missed: NDArray[np.bool_], costs: Sequence[tuple[float, float]]
) -> float:
    """Add them up."""
    return float(each_s(requests, missed, costs).sum())
