"""A streaming job from its parts (protocol/stream-job.schema.json)."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from leadline.engine.jobs import WIRE_VERSION
from leadline.record.streaming import RECORD_BYTES

MEMORY_BYTES_MIN = 32 * 2**20
"""What a kernel's buffers of every kind need at least."""
KEY_SPAN = 256**10
_PRINTABLE, _PRINTABLE_FIRST = 95, 0x20

RecordFormat = Literal["binary", "ascii"]


class Scan(msgspec.Struct, frozen=True, kw_only=True, tag_field="name", tag="scan"):
    """Writes the records with `low <= key < high`; keys are 20 hexadecimal digits."""

    low: str
    high: str | None = None


class Sort(msgspec.Struct, frozen=True, kw_only=True, tag_field="name", tag="sort"):
    """Orders the records by their keys."""


class Transpose(msgspec.Struct, frozen=True, kw_only=True, tag_field="name", tag="transpose"):
    """Blocks of 4 KiB from row-major into column-major order."""

    rows: int
    columns: int


class Generate(msgspec.Struct, frozen=True, kw_only=True, tag_field="name", tag="generate"):
    """Makes the sort benchmark's records."""

    records: int
    format: RecordFormat = "binary"
    skew: float = 0.0


class Check(msgspec.Struct, frozen=True, kw_only=True, tag_field="name", tag="check"):
    """Counts the records, sums their checksums and says whether they are in order."""


class Capacity(msgspec.Struct, frozen=True, kw_only=True, tag_field="name", tag="capacity"):
    """What memory and disks can do by themselves."""

    directories: tuple[str, ...]
    bytes: int
    """Laid out on each."""


Kernel = Scan | Sort | Transpose | Generate | Check | Capacity


class Output(msgspec.Struct, frozen=True, kw_only=True):
    """Where a data set goes. It gets its name when it is whole and verified, never before."""

    path: str
    stripes: tuple[str, ...] = ()
    """Directories of its stripes, one for each disk; none: a plain file."""
    stripe_bytes: int = 65536
    replace: bool = False


class Way(msgspec.Struct, frozen=True, kw_only=True):
    """How bytes are moved."""

    read: Literal["mmap", "uring"] = "uring"
    read_direct: bool = True
    write_direct: bool = True
    depth: int = 8
    """Reads, and writes, outstanding on each disk."""


class StreamJob(msgspec.Struct, frozen=True, kw_only=True):
    """One kernel over one input."""

    kernel: Kernel
    memory_bytes: int
    input: str | None = None
    output: Output | None = None
    temporary: tuple[str, ...] = ()
    """Directories for the runs of a sort in two passes; none: the output's own."""
    threads: int = 1
    io: Way = Way()
    seed: int = 1
    total_s_max: float = 3600.0

    @property
    def name(self) -> str:
        """The kernel's name."""
        return str(self.kernel.__struct_config__.tag)

    def document(self, job_id: str) -> dict[str, Any]:
        """Return the job as the wire has it."""
        fields: dict[str, Any] = msgspec.to_builtins(self)
        return {"version": WIRE_VERSION, "kind": "stream", "job_id": job_id} | fields


def scan_of_share(match_frac: float, record_format: RecordFormat) -> Scan:
    """Return the scan that selects this share of uniformly distributed keys, the lowest ones.

    Binary keys are ten bytes of any value, printable ones ten characters from space to tilde. Of
    skewed keys a scan selects another share; its result says which.
    """
    if match_frac >= 1:
        return Scan(low="00" * 10)
    if record_format == "binary":
        return Scan(low="00" * 10, high=f"{round(match_frac * KEY_SPAN):020x}")
    rest = round(match_frac * _PRINTABLE**10)
    digits = []
    for _ in range(10):
        rest, digit = divmod(rest, _PRINTABLE)
        digits.append(_PRINTABLE_FIRST + digit)
    return Scan(low="00" * 10, high=bytes(reversed(digits)).hex())


def record_format_of(first: bytes) -> RecordFormat:
    """Return the form of the sort benchmark's records by their first one."""
    printable = all(0x20 <= byte < 0x7F for byte in first[: RECORD_BYTES - 2])
    ended = first[RECORD_BYTES - 2 : RECORD_BYTES] == b"\r\n"
    return "ascii" if printable and ended else "binary"
