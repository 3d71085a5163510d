"""What Leadline's own kernels move: AD98's parts, by the choices that were made.

Direct I/O moves by DMA only, a sort's records are read straight into their place, and threads
write into their own buckets: each saves a copy of Fig. 2. A second pass adds a read and a write.
What ranks exchange is copied into a send buffer and out of a receive buffer, and MPI copies it
once more between the processes of one machine.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from leadline.record.balance import Bus, Term
from leadline.record.streaming import (
    RECORD_BYTES,
    KernelName,
    PhaseResult,
    Platform,
    StreamOptions,
    StreamRun,
)
from leadline.studies.streaming.models import (
    Direction,
    Part,
    Symbols,
    copy,
    disk,
    examine_keys,
    exchange,
    matches,
)

ENTRY_BYTES = 16
"""Of a <partial key, index> pair in the sort's buckets (crates/kernels/src/sort)."""
_OWN = "Leadline's own"


@dataclass(frozen=True)
class Choices:
    """What decides a phase's traffic."""

    kernel: KernelName
    phase: str
    platform: Platform = "process"
    ranks: int = 1
    disks: int = 1
    match_frac: float = 0.5
    mapped: bool = False
    """Read by `mmap`."""
    read_direct: bool = True
    write_direct: bool = True
    read_share: float = 1.0
    """Of the phase's bytes, those that were read; the others were written."""
    entry_bytes: int = ENTRY_BYTES

    @property
    def symbols(self) -> Symbols:
        """The letters' values; `bucket` is our entry."""
        return Symbols(
            parties=self.ranks, match_frac=self.match_frac, bucket_bytes=self.entry_bytes
        )

    @property
    def exchanges(self) -> bool:
        """Whether records or blocks go to other ranks in this phase."""
        return self.ranks > 1 and self.kernel != "scan" and self.phase in ("read", "runs", "tiles")


def choices_of(options: StreamOptions, phase: str, read_share: float, disks: int) -> Choices:
    """Return what these options decide of a phase."""
    return Choices(
        kernel=options.kernel,
        phase=phase,
        platform=options.platform,
        ranks=options.ranks,
        disks=disks,
        match_frac=options.match_frac,
        mapped=options.read == "mmap",
        read_direct=options.read_direct,
        write_direct=options.write_direct,
        read_share=read_share,
    )


def choices_of_run(run: StreamRun, phase: PhaseResult) -> Choices:
    """Return what decided a phase that ran; a scan's share of matches is what it found."""
    moved = phase.bytes_moved
    read_share = phase.bytes_read / moved if moved else 0.0
    found = choices_of(run.options, phase.name, read_share, run.disks)
    if run.options.kernel != "scan" or not run.result.bytes_in:
        return found
    match_frac = run.result.bytes_out / run.result.bytes_in
    return Choices(**{**vars(found), "match_frac": match_frac})


def own_model(choices: Choices, bus: Bus) -> tuple[Term, ...]:
    """Return the summands per byte that the phase reads or writes."""
    return _terms(choices, _io(choices) if bus == "io" else _memory(choices))


def own_copies(choices: Choices) -> float:
    """Return the bytes that the program itself copies per byte that it reads or writes."""
    parts = [part for part in _memory(choices) if part.copied_by == "program"]
    return sum(term.coefficient for term in _terms(choices, parts)) / 2


def own_corrections(choices: Choices) -> tuple[Term, ...]:
    """Return what the processor's caches and the kernel add on the memory bus."""
    return _terms(choices, _memory_corrections(choices))


def _terms(choices: Choices, parts: list[Part]) -> tuple[Term, ...]:
    share = {"read": choices.read_share, "write": 1 - choices.read_share}
    found = [part.term(choices.symbols, share[part.direction]) for part in parts]
    return tuple(term for term in found if term.coefficient)


_DISKS = [disk("read", f"{_OWN}: by DMA"), disk("write", f"{_OWN}: by DMA")]
"""Both directions; the one that a phase lacks has a share of nothing."""


def _io(choices: Choices) -> list[Part]:
    parts = list(_DISKS)
    if choices.exchanges:
        parts.append(exchange("payload sent and received", "AD98 §4.2, §4.3"))
    return parts


def _memory(choices: Choices) -> list[Part]:
    return [*_DISKS, *_through_the_cache(choices), *_WORK[choices.kernel](choices)]


def _through_the_cache(choices: Choices) -> list[Part]:
    parts = []
    if choices.mapped:
        parts += _out_of_the_mapping(choices)
    elif not choices.read_direct:
        parts.append(
            copy("out of the file cache", "read", "AD98 §4: an extra copy of read(2)", by="kernel")
        )
    if not choices.write_direct:
        source = "AD98 §5.5.1: an extra copy of write(2)"
        parts.append(copy("into the file cache", "write", source, by="kernel"))
    return parts


def _out_of_the_mapping(choices: Choices) -> list[Part]:
    if choices.phase == "merge":
        return []  # runs have no names that could be mapped
    if choices.exchanges or choices.kernel == "sort":
        return [copy("out of the mapping, into its place", "read", "AD98 §4.2: as mapped")]
    if choices.disks > 1:
        return [copy("put together from mapped stripes", "read", f"{_OWN}: the striping layer")]
    return []


def _entries(what: str, direction: Direction, times: int = 1) -> Part:
    symbol = "(entry/rec) D" if times == 1 else f"(entry/rec) ({times} D)"
    return Part(
        what,
        symbol,
        lambda s: times * s.bucket_by_record,
        direction,
        f"AD98 §4.2, entries of {ENTRY_BYTES} bytes",
    )


def _scan_work(choices: Choices) -> list[Part]:
    source = "AD98 §4.1"
    return [examine_keys(source), matches(source)] if choices.phase == "read" else []


def _sort_work(choices: Choices) -> list[Part]:
    keys, source = examine_keys("AD98 §4.2"), "AD98 §4.2"
    gather = copy("gathered into the write buffer", "write", source)
    work: dict[str, list[Part]] = {
        "read": [keys, _entries("into buckets", "read")],
        "write": [_entries("buckets scanned", "write"), gather],
        "runs": [keys, _entries("into buckets, and scanned", "read", 2), gather],
        "merge": [keys, copy("merged into the write buffer", "write", f"{_OWN}: second pass")],
    }
    return work[choices.phase] + (_exchange_work() if choices.exchanges else [])


def _transpose_work(choices: Choices) -> list[Part]:
    if choices.exchanges:
        return _exchange_work()
    if choices.phase == "write":
        return []
    return [copy("into column order", "read", "AD98 §4.3")]


def _exchange_work() -> list[Part]:
    return [
        copy("into send buffers", "read", "AD98 §4.2"),
        exchange("copied between processes by MPI", f"{_OWN}: ranks share a machine", "MPI"),
        copy("out of receive buffers, into its place", "read", "AD98 §4.2, §4.3"),
    ]


_WORK: dict[KernelName, Callable[[Choices], list[Part]]] = {
    "scan": _scan_work,
    "sort": _sort_work,
    "transpose": _transpose_work,
}

_LINE_BYTES = 64
_LINES_OF_A_RECORD_BYTES = 160
"""A record of 100 bytes that begins at any multiple of four touches 2.5 lines on average."""


def _memory_corrections(choices: Choices) -> list[Part]:
    parts = [_allocated(part) for part in _memory(choices) if part.copied_by is not None]
    if choices.phase == "read":
        parts.append(_zeroed(choices))
    if choices.kernel == "scan" and choices.phase == "read":
        parts += [_key_line(), _lines_at_random()]
    if choices.kernel == "sort":
        parts += _sort_corrections(choices.phase)
    return parts


def _allocated(part: Part) -> Part:
    return Part(
        f"lines read before they are written: {part.name}",
        f"1/2 of {part.symbol}",
        lambda s: part.factor(s) / 2,
        part.direction,
        f"{_OWN}: write-allocating caches",
    )


def _zeroed(choices: Choices) -> Part:
    """A run's memory is new, and what is kept in one pass is written to it for the first time."""
    source = "AD98 §5.3.1; once, where the paper's system took another half"
    if choices.kernel == "scan":
        return Part(
            "pages zeroed by the operating system",
            "(match/total) D",
            lambda s: s.match_frac,
            "read",
            source,
        )
    return Part("pages zeroed by the operating system", "1 D", lambda _: 1.0, "read", source)


def _key_line() -> Part:
    return Part(
        "the whole cache line of a key",
        "(64/100 - key/rec) D",
        lambda s: _LINE_BYTES / RECORD_BYTES - s.key_by_record,
        "read",
        "AD98 §5.3.1",
    )


def _lines_at_random() -> Part:
    return Part(
        "the whole cache lines of copied records",
        "(touched - match/total) D",
        lambda s: touched_at_random(s.match_frac) - s.match_frac,
        "read",
        "AD98 §5.3.1, for keys in no order instead of every other record",
    )


def touched_at_random(match_frac: float) -> float:
    """Share of a set's cache lines that hold some byte of a match when keys are in no order.

    Of 25 lines (1600 bytes, 16 records) fifteen hold a border of two records and ten lie in one.
    """
    other = 1 - match_frac
    return 1 - (10 * other + 15 * other**2) / 25


def _sort_corrections(phase: str) -> list[Part]:
    gathered = Part(
        "the whole cache lines of gathered records",
        "(160/100 - 1) D",
        lambda _: _LINES_OF_A_RECORD_BYTES / RECORD_BYTES - 1,
        "write",
        "AD98 §5.3.1",
    )
    entries = Part(
        "an entry's line read before it is written",
        "(entry/rec) D",
        lambda s: s.bucket_by_record,
        "read",
        "AD98 §5.3.1: at the grain of lines; open buckets stay in the cache",
    )
    by_phase = {
        "read": [_key_line(), entries],
        "write": [gathered],
        "runs": [_key_line(), entries, gathered],
        "merge": [],
    }
    return by_phase[phase]
