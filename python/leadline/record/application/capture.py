"""How a running program was seen: by which way, and what speaks for and against it."""

from __future__ import annotations

from typing import Literal

import msgspec

BYTES_OFF_MAX = 0.01
"""Of the bytes that the kernel counted: more are missing, or too many, and nothing rests on it."""
LOST_MAX = 0.001
"""Of the calls."""


class CapturedFile(msgspec.Struct, frozen=True, kw_only=True):
    """What was done with a file."""

    name: str
    """Its path where that was asked for, or else a hash that is another in each capture."""
    requests: int
    read_bytes: int
    written_bytes: int


class CommandEnded(msgspec.Struct, frozen=True, kw_only=True):
    """How the command ended: by a code or by a signal."""

    code: int | None
    signal: int | None


class Perturbation(msgspec.Struct, frozen=True, kw_only=True):
    """How much longer the command takes when it is watched, run in turns."""

    pairs: int
    ratio: float
    """Watched over not watched; geometric mean of the pairs."""
    low: float | None
    """95% interval; None of fewer than three pairs."""
    high: float | None


class Capture(msgspec.Struct, frozen=True, kw_only=True):
    """How a running program was seen."""

    way: Literal["bpf", "ptrace"]
    no_bpf: str | None
    """Why not by BPF, if not."""
    not_kept: str | None = None
    """Why its trace is not in a file, where it was to be."""
    wall_s: float
    calls: int
    lost: int
    """Calls that found no room on the way."""
    read_bytes: tuple[int, int, int]
    """Of files, of all else, and by the kernel to start programs."""
    written_bytes: tuple[int, int]
    """To files, and to all else."""
    uncounted_bytes: int
    """Of these, bytes that the kernel does not count (splice)."""
    counted_bytes: tuple[int, int] | None
    """Read and written, by /proc/PID/io; None where it could not be asked at the end."""
    edge_bytes: int = 0
    """Counted while watching a process began or ended: seen or not, nobody can say."""
    mapped_bytes: int | None
    """Of files used by mappings, programs left out; None where that cannot be seen."""
    mapped_files: int
    calls_of_32_bits: int
    rights_lost: int = 0
    """Programs that would have got other rights (setuid, capabilities), and did not."""
    threads_missed: int
    left_running: int
    """Processes that went on after the end."""
    ended: CommandEnded | None
    """None of what was not started for it."""
    stopped: int | None
    """The signal that stopped it."""
    files: tuple[CapturedFile, ...]
    """Those with most bytes."""
    perturbation: Perturbation | None = None

    @property
    def bytes_off(self) -> float | None:
        """Bytes that are missing or too many, over those that the kernel counted.

        Those at the edges are neither: a busy process reads on while it begins to be watched.
        """
        if self.counted_bytes is None:
            return None
        counted = sum(self.counted_bytes)
        seen = sum(self.read_bytes) + sum(self.written_bytes) - self.uncounted_bytes
        return max(0, abs(seen - counted) - self.edge_bytes) / max(1, counted)

    @property
    def lost_share(self) -> float:
        """Calls that were lost, of all."""
        return self.lost / max(1, self.lost + self.calls)

    @property
    def whole(self) -> bool:
        """Whether enough was seen for a prediction to rest on it."""
        return self.lost_share <= LOST_MAX and (self.bytes_off or 0.0) <= BYTES_OFF_MAX
