"""What crosses the I/O bus and the memory bus for every byte of disk traffic (AD98 Fig. 2).

`FIG_2` is the paper's table as code and is meant to be read beside it; `own_model` says the same
of Leadline's kernels from parts of the same kind; `corrections` are §5.3's reasons why the inherent
traffic is not all. See docs/concepts/streaming-models.md.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from leadline.record.balance import Bus, Term
from leadline.record.streaming import KEY_BYTES, RECORD_BYTES, KernelName, Platform

Direction = Literal["read", "write"]
SYMBOL: dict[Direction, str] = {"read": "D_r", "write": "D_w"}


@dataclass(frozen=True)
class Symbols:
    """The letters of Fig. 2."""

    parties: int = 8
    """P: processors of the cluster; the paper's had eight."""
    match_frac: float = 0.5
    """match/total: the share of the records that a scan selects."""
    key_bytes: int = KEY_BYTES
    record_bytes: int = RECORD_BYTES
    bucket_bytes: int = 8
    """Of a <partial key, pointer> pair; Leadline's own entries are longer."""

    @property
    def key_by_record(self) -> float:
        """key/rec."""
        return self.key_bytes / self.record_bytes

    @property
    def bucket_by_record(self) -> float:
        """bucket/rec."""
        return self.bucket_bytes / self.record_bytes

    @property
    def remote(self) -> float:
        """(P-1)/P: the share that belongs to another processor."""
        return (self.parties - 1) / self.parties


@dataclass(frozen=True)
class Part:
    """A summand before its letters have values."""

    name: str
    symbol: str
    """With `D` for the phase's disk traffic."""
    factor: Callable[[Symbols], float]
    direction: Direction
    source: str
    copied_by: Literal["program", "kernel", "MPI"] | None = None
    """Who copies; each byte crosses the bus twice, as a read and as a write. None: no copy."""

    def term(self, symbols: Symbols, share: float = 1.0) -> Term:
        """Give the letters their values; `share` is this direction's part of the phase's bytes."""
        return Term(
            name=self.name,
            symbol=self.symbol.replace("D", SYMBOL[self.direction]),
            coefficient=self.factor(symbols) * share,
            source=self.source,
        )


def disk(direction: Direction, source: str) -> Part:
    """The disk's own bytes, once."""
    name = "from the disks" if direction == "read" else "to the disks"
    return Part(name, "D", lambda _: 1.0, direction, source)


def copy(
    what: str,
    direction: Direction,
    source: str,
    times: int = 1,
    by: Literal["program", "kernel"] = "program",
) -> Part:
    """Every byte read and written once for each copy."""
    factor = 2.0 * times
    return Part(what, f"{factor:g} D", lambda _: factor, direction, source, by)


def examine_keys(source: str) -> Part:
    """Every key once into the processor's cache."""
    return Part("keys examined", "(key/rec) D", lambda s: s.key_by_record, "read", source)


def buckets(what: str, direction: Direction, source: str, times: int = 1) -> Part:
    """Every <partial key, pointer> pair so many times."""
    symbol = "(bucket/rec) D" if times == 1 else f"(bucket/rec) ({times} D)"
    return Part(what, symbol, lambda s: times * s.bucket_by_record, direction, source)


def matches(source: str) -> Part:
    """What a scan selects, read and written once."""
    return Part(
        "matches copied",
        "(match/total) (2 D)",
        lambda s: 2 * s.match_frac,
        "read",
        source,
        "program",
    )


def exchange(what: str, source: str, by: Literal["MPI"] | None = None) -> Part:
    """What belongs to others, out; and as much of theirs, in."""
    return Part(what, "2 ((P-1)/P) D", lambda s: 2 * s.remote, "read", source, by)


@dataclass(frozen=True)
class Cells:
    """A row of Fig. 2: four cells."""

    io_read: tuple[Part, ...]
    io_write: tuple[Part, ...]
    memory_read: tuple[Part, ...]
    memory_write: tuple[Part, ...]

    def cell(self, bus: Bus, phase: Direction) -> tuple[Part, ...]:
        """Return one of the four."""
        cells: dict[tuple[str, str], tuple[Part, ...]] = {
            ("io", "read"): self.io_read,
            ("io", "write"): self.io_write,
            ("memory", "read"): self.memory_read,
            ("memory", "write"): self.memory_write,
        }
        return cells[bus, phase]


_SCAN, _SORT, _TRANSPOSE = "AD98 §4.1", "AD98 §4.2", "AD98 §4.3"

_SCAN_CELLS = Cells(
    io_read=(disk("read", _SCAN),),
    io_write=(disk("write", _SCAN),),
    memory_read=(disk("read", _SCAN), examine_keys(_SCAN), matches(_SCAN)),
    memory_write=(disk("write", _SCAN),),
)
_SORT_MEMORY_WRITE = (
    disk("write", _SORT),
    buckets("buckets scanned", "write", _SORT),
    copy("gathered into the write buffer", "write", _SORT),
)
_TRANSPOSE_ALONE = Cells(
    io_read=(disk("read", _TRANSPOSE),),
    io_write=(disk("write", _TRANSPOSE),),
    memory_read=(disk("read", _TRANSPOSE), copy("into column order", "read", _TRANSPOSE)),
    memory_write=(disk("write", _TRANSPOSE),),
)

FIG_2: dict[tuple[KernelName, Platform], Cells] = {
    ("scan", "process"): _SCAN_CELLS,
    ("scan", "cluster"): _SCAN_CELLS,
    ("scan", "threads"): _SCAN_CELLS,
    ("sort", "process"): Cells(
        io_read=(disk("read", _SORT),),
        io_write=(disk("write", _SORT),),
        memory_read=(
            disk("read", _SORT),
            copy("into the input buffer", "read", _SORT),
            examine_keys(_SORT),
            buckets("into buckets", "read", _SORT),
        ),
        memory_write=_SORT_MEMORY_WRITE,
    ),
    ("sort", "cluster"): Cells(
        io_read=(exchange("sent and received", _SORT), disk("read", _SORT)),
        io_write=(disk("write", _SORT),),
        memory_read=(
            exchange("sent and received", _SORT),
            disk("read", _SORT),
            copy("into send buffers, and into the record buffer", "read", _SORT, 2),
            examine_keys(_SORT),
            buckets("into buckets", "read", _SORT),
        ),
        memory_write=_SORT_MEMORY_WRITE,
    ),
    ("sort", "threads"): Cells(
        io_read=(disk("read", _SORT),),
        io_write=(disk("write", _SORT),),
        memory_read=(
            disk("read", _SORT),
            copy("into own buffers, and into the common array", "read", _SORT, 2),
            examine_keys(_SORT),
            buckets("into own buckets, and into the common ones", "read", _SORT, 3),
        ),
        memory_write=_SORT_MEMORY_WRITE,
    ),
    ("transpose", "process"): _TRANSPOSE_ALONE,
    ("transpose", "cluster"): Cells(
        io_read=(exchange("sent and received", _TRANSPOSE), disk("read", _TRANSPOSE)),
        io_write=(disk("write", _TRANSPOSE),),
        memory_read=(
            disk("read", _TRANSPOSE),
            exchange("sent and received", _TRANSPOSE),
            copy("into column order", "read", _TRANSPOSE),
        ),
        memory_write=(disk("write", _TRANSPOSE),),
    ),
    ("transpose", "threads"): _TRANSPOSE_ALONE,
}
"""AD98 Fig. 2, row by row; its SMP is `threads` here and its workstation `process`.

The cluster sort's 5 D_r of the memory bus is D_r and two copies."""


def paper_model(
    kernel: KernelName, platform: Platform, phase: Direction, bus: Bus, symbols: Symbols
) -> tuple[Term, ...]:
    """Return a cell of Fig. 2 with its letters' values."""
    return tuple(part.term(symbols) for part in FIG_2[kernel, platform].cell(bus, phase))


def total(terms: Sequence[Term]) -> float:
    """Bytes over the bus for every byte of disk traffic."""
    return sum(term.coefficient for term in terms)


_LINE = "AD98 §5.3.1: a key or an entry brings its whole cache line"
_LINE_BY_RECORD = 64 / 100
"""Lines of 64 bytes, of which a key in a record of 100 bytes touches one as a rule."""
_OS = "AD98 §5.3.1: measured, the disk's own D_r taken off"


def paper_corrections(
    kernel: KernelName, platform: Platform, phase: Direction, symbols: Symbols
) -> tuple[Term, ...]:
    """Return what §5.3.1 adds to a cell of the memory bus; while writing an SMP's extra alone.

    The operating system's "total traffic" of 2.5 D_r (sort, transpose) and 1.5 D_r (scan) is read
    as including the D_r that the disks bring: half a D_r of zeroed pages for half the records, and
    the sort's sum then is 6.4 D_r where Fig. 6 has about 7. On the SMP sort and transpose zero
    their buffers before the phase (footnote 2).
    """
    contended = Part(
        "contention for the file system's buffers",
        "1 D",
        lambda _: 1.0,
        phase,
        "AD98 §5.3.1, SMP memory bus: at least",
    )
    found = [*_read_corrections(kernel, platform)] if phase == "read" else []
    found += [contended] if platform == "threads" else []
    return tuple(part.term(symbols) for part in found)


def _read_corrections(kernel: KernelName, platform: Platform) -> tuple[Part, ...]:
    zeroed = Part(
        "pages zeroed and copied by the operating system", "1.5 D", lambda _: 1.5, "read", _OS
    )
    pinned = Part(
        "copied into memory that the network card may read",
        "2 ((P-1)/P) D",
        lambda s: 2 * s.remote,
        "read",
        "AD98 §5.3.1, cluster memory bus",
    )
    if kernel == "scan":
        half = Part("pages zeroed by the operating system", "0.5 D", lambda _: 0.5, "read", _OS)
        return key_line(), copied_lines(), half
    found = [key_line(), entry_lines()] if kernel == "sort" else []
    found += [zeroed] if platform != "threads" else []
    found += [pinned] if platform == "cluster" else []
    return tuple(found)


def key_line() -> Part:
    """A key is ten bytes of a line of 64."""
    return Part(
        "the whole cache line of a key",
        "(64/100 - key/rec) D",
        lambda s: _LINE_BY_RECORD - s.key_by_record,
        "read",
        _LINE,
    )


def entry_lines() -> Part:
    """An entry put into some bucket reads and writes a line."""
    return Part(
        "the whole cache line of an entry, read and written",
        "(2 (64/100) - bucket/rec) D",
        lambda s: 2 * _LINE_BY_RECORD - s.bucket_by_record,
        "read",
        _LINE,
    )


def copied_lines() -> Part:
    """Records of 100 bytes lie on two or three lines, of which neighbours share some."""
    return Part(
        "the whole cache lines of copied records",
        "(touched - match/total) (2 D)",
        lambda s: 2 * (touched_apart(s.match_frac) - s.match_frac),
        "read",
        "AD98 §5.3.1: touched is 4/5 where every other record matches",
    )


_APART_BYTES = 160
"""Of whole lines that hold a record: records begin at any multiple of four bytes of a line, two
apart at any of eight, and touch 2.5 lines of 64 on average."""


def touched_apart(match_frac: float) -> float:
    """Share of a set's cache lines that hold some byte of a match, in the paper's worst case.

    Matches, or beyond one half the records between them, lie apart: no two touch the same line.
    """
    if match_frac <= 0.5:
        return match_frac * _APART_BYTES / RECORD_BYTES
    untouched_bytes = 2 * RECORD_BYTES - _APART_BYTES
    return 1 - (1 - match_frac) * untouched_bytes / RECORD_BYTES
