"""A trace that is made again: what of it is, and the steps that a description keeps."""

from __future__ import annotations

import msgspec


class Replay(msgspec.Struct, frozen=True, kw_only=True):
    """A trace that is made again, and what of it is (crates/trace/src/replay.rs)."""

    trace: str
    """The file, by its whole path; of an application its name."""
    application_id: str | None = None
    """Of the description that keeps the steps; None where the file does."""
    format: str
    at_times: bool = False
    """Whether requests wait for their times in the trace; else for nothing but the one before."""
    requests: tuple[int, int, int]
    """Reads, writes, and waits for the device."""
    bytes: tuple[int, int]
    """Read and written."""
    sequential: int
    """Requests that go on where the last of their file and lane ended."""
    files: int
    files_bytes: int
    """At the end."""
    initial_bytes: int
    """Before the first request."""
    lanes: int
    """Requests at a time at most."""
    times: bool
    """Whether the trace says when requests were made."""
    span_s: float | None
    """From the first request's beginning to the last one's end."""
    took_s: tuple[float | None, float | None, float | None]
    """Of its reads, writes and waits, added up; None where it does not say of all."""
    left_out: tuple[tuple[str, int], ...]
    """Calls that are not made again, and how often."""
    unplaced_bytes: int
    """Of which the trace does not say where they lie."""
    memory_bytes: int = 0
    """That its processes held of their own, in the mean; 0 where it does not say."""

    @property
    def in_io_s(self) -> float | None:
        """Time of all its requests, added up; None where it does not say."""
        known = [each for each in self.took_s if each is not None]
        return sum(known) if len(known) == len(self.took_s) else None


class KeptSteps(msgspec.Struct, frozen=True, kw_only=True):
    """All requests of an application, numbers alone: no name of a file or a process."""

    replay: Replay
    packed: bytes
    """The engine's steps (crates/base/src/replay.rs), packed by zlib."""
