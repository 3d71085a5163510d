"""What the kernel says that a process wrote."""

from __future__ import annotations

from leadline.machine.kernel_files import PROC, text


def written_bytes(pid: int) -> int | None:
    """Bytes that a process handed to write calls, or dirtied, or sent to devices; None if unknown.

    `wchar` counts calls and misses io_uring and mapped files; `write_bytes` counts pages as they
    become dirty and what uses direct I/O, and misses what is written over before it is
    written back. The larger is the nearest to what was asked.
    """
    found = text(PROC / str(pid) / "io")
    if found is None:
        return None
    counts = dict(line.split(": ", 1) for line in found.splitlines() if ": " in line)
    try:
        return max(int(counts["wchar"]), int(counts["write_bytes"]))
    except (KeyError, ValueError):
        return None
