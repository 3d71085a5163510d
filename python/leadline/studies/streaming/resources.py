"""What Leadline's own kernels move, and how long each resource must be busy for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from leadline.record import Interval
from leadline.record.balance import Bus, Resource, Term
from leadline.record.streaming import (
    RECORD_BYTES,
    Capacities,
    KernelName,
    PhaseResult,
    Platform,
    StreamOptions,
    StreamRun,
)
from leadline.stats.arithmetic import (
    exactly,
    inverse,
    largest,
    least,
    product,
    quotient,
    scaled,
    sum_of,
    surely_below,
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
    total,
)

# What Leadline's own kernels move: AD98's parts, by the choices that were made.
#
# Direct I/O moves by DMA only, a sort's records are read straight into their place, and threads
# write into their own buckets: each saves a copy of Fig. 2. A second pass adds a read and a write.
# What ranks exchange is copied into a send buffer and out of a receive buffer, and MPI copies it
# once more between the processes of one machine.

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
            copy("out of the page cache", "read", "AD98 §4: an extra copy of read(2)", by="kernel")
        )
    if not choices.write_direct:
        source = "AD98 §5.5.1: an extra copy of write(2)"
        parts.append(copy("into the page cache", "write", source, by="kernel"))
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

    Of 25 lines (1600 bytes, 16 records) fifteen hold a boundary of two records and ten lie in one.
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


# How long a phase keeps each resource busy: its use by the resource's capacity.
#
# The longest of them is the least time the phase can take (`bounds`); by the time it took they are
# utilisations (`scaling`); by the bytes it moved they say when a resource saturates (`balance`).

PATH_SHORT_FRAC = 0.95
"""All disks at once below this share of their sum: they share something that saturates."""
USE_MOST_FRAC = 1.1
"""More than this of a capacity that has no interval is more than the few percent by which two
measurements of one part differ."""
_MB = 1e6


@dataclass(frozen=True)
class DiskRates:
    """What disks can do, in MB/s, in either direction and in both at once."""

    read: Interval
    write: Interval
    both: Interval
    """Read and written together, half each."""

    def seconds(self, read_mb: float, written_mb: float) -> Interval:
        """Return the least time for this much of both.

        As much as possible both ways at once and the rest one way; or first one, then the other,
        where disks are slower when they do both.
        """
        apart = [
            scaled(inverse(rate), megabytes)
            for rate, megabytes in ((self.read, read_mb), (self.write, written_mb))
            if megabytes
        ]
        if len(apart) < 2:
            return sum_of(apart) if apart else exactly(0.0)
        mixed_mb = 2 * min(read_mb, written_mb)
        rest = self.read if read_mb > written_mb else self.write
        mixed = [scaled(inverse(self.both), mixed_mb)]
        if left_mb := abs(read_mb - written_mb):
            mixed.append(scaled(inverse(rest), left_mb))
        return largest([least([sum_of(mixed), sum_of(apart)]), *apart])


def striped(capacities: Capacities, disks: int) -> DiskRates:
    """What the first `disks` would give by themselves: the slowest decides where data is striped.

    How reading and writing at once goes is known of all together only, and taken from there.
    """
    used = capacities.disks[:disks]
    read = scaled(least([disk.read_mb_s for disk in used]), len(used))
    write = scaled(least([disk.write_mb_s for disk in used]), len(used))
    shared = _taking_turns(capacities.all_read_mb_s.value, capacities.all_write_mb_s.value)
    gain = scaled(capacities.all_both_mb_s, 1 / shared) if shared else exactly(1.0)
    return DiskRates(read, write, scaled(gain, _taking_turns(read.value, write.value)))


def together(capacities: Capacities) -> DiskRates:
    """What all disks give at once."""
    return DiskRates(capacities.all_read_mb_s, capacities.all_write_mb_s, capacities.all_both_mb_s)


def _taking_turns(read_mb_s: float, write_mb_s: float) -> float:
    if not read_mb_s or not write_mb_s:
        return 0.0
    return 2 / (1 / read_mb_s + 1 / write_mb_s)


def path_is_short(capacities: Capacities, read_mb: float, written_mb: float) -> bool:
    """Whether all disks at once take surely longer for this than they would by themselves."""
    alone = striped(capacities, len(capacities.disks)).seconds(read_mb, written_mb)
    at_once = together(capacities).seconds(read_mb, written_mb)
    if not alone.value or not at_once.value:
        return False
    return alone.value < PATH_SHORT_FRAC * at_once.value and surely_below(alone, at_once)


def memory_bus_mb_s(capacities: Capacities) -> Interval:
    """The most that was seen on the memory bus: a copied byte crosses it twice."""
    return largest([scaled(capacities.memory_copy_mb_s, 2), capacities.memory_read_mb_s])


def processors_of(options: StreamOptions, capacities: Capacities) -> float:
    """Processors that can compute for the kernel."""
    return min(capacities.processors, float(options.parties))


@dataclass(frozen=True)
class Busy:
    """Seconds for which a phase keeps resources busy, whatever else it waits for."""

    seconds: dict[Resource, Interval]
    """Resources that it does not use, or whose capacity is not known, are left out."""
    path_is_short: bool
    """Whether `io_path` was seen saturated; otherwise its seconds are an upper limit."""
    memory_counted: bool
    """Whether memory traffic was counted; otherwise it is the model's."""


def busy(
    run: StreamRun, phase: PhaseResult, capacities: Capacities, *, inherent: bool = False
) -> Busy:
    """Return what a phase that ran kept busy.

    `inherent` leaves the corrections of the memory model out: no run can need less.
    """
    read_mb, written_mb = phase.bytes_read / _MB, phase.bytes_written / _MB
    found: dict[Resource, Interval] = {}
    if capacities.disks and phase.bytes_moved:
        found["disks"] = striped(capacities, run.disks).seconds(read_mb, written_mb)
        found["io_path"] = together(capacities).seconds(read_mb, written_mb)
    found["cpu"] = exactly(cpu_seconds(run.options, phase, capacities))
    moved_mb = memory_bytes(run, phase, inherent=inherent) / _MB
    if memory_bus_mb_s(capacities).value:
        found["memory"] = quotient(exactly(moved_mb), memory_bus_mb_s(capacities))
    payload_mb = (phase.network_sent_bytes + phase.network_received_bytes) / _MB
    if payload_mb and capacities.network_mb_s is not None:
        rank_mb = payload_mb / run.options.ranks
        found["network"] = quotient(exactly(rank_mb), capacities.network_mb_s)
    return Busy(
        {name: seconds for name, seconds in found.items() if seconds.value > 0},
        path_is_short(capacities, read_mb, written_mb),
        phase.memory_bus_bytes is not None,
    )


def cpu_seconds(options: StreamOptions, phase: PhaseResult, capacities: Capacities) -> float:
    """Least time for the processor seconds that were measured.

    User time is the computing threads' own. The kernel's can be on any processor: lanes submit
    and wait in threads of their own.
    """
    user = phase.cpu_user_s / processors_of(options, capacities)
    return max(user, phase.cpu_s / capacities.processors)


def memory_bytes(run: StreamRun, phase: PhaseResult, *, inherent: bool = False) -> float:
    """Return the bytes over the memory bus: counted, or what the model says."""
    if phase.memory_bus_bytes is not None:
        return phase.memory_bus_bytes
    choices = choices_of_run(run, phase)
    ratio = total(own_model(choices, "memory"))
    if not inherent:
        ratio += total(own_corrections(choices))
    return ratio * phase.bytes_moved


def utilisation(seconds: Interval, took_s: float) -> Interval:
    """Return a use as a share of the time that the phase took."""
    return product(seconds, exactly(1 / took_s)) if took_s > 0 else exactly(0.0)


def more_than_all(use: Interval) -> bool:
    """Whether a use is more than there was when the capacity was measured, beyond its noise."""
    return use.value > USE_MOST_FRAC and (use.low is None or use.low > 1)
