"""How long a phase keeps each resource busy: its use by the resource's capacity.

The longest of them is the least time the phase can take (`bounds`); by the time it took they are
utilisations (`scaling`); by the bytes it moved they say when a resource gives out (`balance`).
"""

from __future__ import annotations

from dataclasses import dataclass

from leadline.record import Interval
from leadline.record.balance import Resource
from leadline.record.streaming import Capacities, PhaseResult, StreamOptions, StreamRun
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
from leadline.studies.streaming.models import total
from leadline.studies.streaming.own_model import choices_of_run, own_corrections, own_model

PATH_SHORT_FRAC = 0.95
"""All disks at once below this share of their sum: they share something that gives out."""
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
    """Whether `io_path` was seen to give out; otherwise its seconds are an upper limit."""
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
