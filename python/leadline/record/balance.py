"""What a streaming study says (AD98): ratios, bounds, disk scaling, balance, what to buy.

Everything here is computed from a `StreamStudy` by `leadline.studies.streaming` and never stored;
the report draws it without computing. Rates are MB/s (10^6 bytes); an `Interval` without `low` and
`high` is a number that rests on too few runs, or on a given value, to have one.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from leadline.record.finding import Finding
from leadline.record.streaming import KernelName, Platform
from leadline.record.workload import Interval

Bus = Literal["io", "memory"]
"""The two columns of AD98 Fig. 2."""
Resource = Literal["disks", "io_path", "cpu", "memory", "network"]
"""What can be the bottleneck. `disks` are the disks by themselves, added up; `io_path` is what they
share: it is the limit where all disks at once give less than their sum."""
RESOURCES: tuple[Resource, ...] = ("disks", "io_path", "cpu", "memory", "network")
RESOURCE_WORDS: dict[str, str] = {
    "disks": "disks",
    "io_path": "I/O path",
    "cpu": "CPU",
    "memory": "memory",
    "network": "network",
}
"""How a resource is called in a chart or a sentence."""


class Term(msgspec.Struct, frozen=True, kw_only=True):
    """One summand of a model: so many bytes over the bus for every byte of disk traffic."""

    name: str
    """What moves, in words: `copy into the input buffer`."""
    symbol: str
    """As it stands in AD98 Fig. 2: `2 D_r`, `(key/rec) D_r`, `2 ((P-1)/P) D_r`."""
    coefficient: float
    """Its value here."""
    source: str
    """The section of the paper, or the reason where the term is our own."""


class Ratio(msgspec.Struct, frozen=True, kw_only=True):
    """Bytes over a bus for every byte read or written: modelled and measured (Figs. 4 and 6)."""

    kernel: KernelName
    phase: str
    platform: Platform
    disks: int
    bus: Bus
    modelled: float
    """The sum of the inherent terms: the black line of the figures."""
    corrected: float | None
    """With the corrections of §5.3 as well; None where there are none."""
    measured: Interval | None
    """None where nothing counts it on this machine."""
    tier: str
    """Where `measured` comes from: `block layer and network payload`, `imc`, `resctrl`; or
    `not measurable here: …` with the reason."""
    terms: tuple[Term, ...]
    """Summands of `modelled`."""
    corrections: tuple[Term, ...] = ()
    """What is added to reach `corrected`."""

    @property
    def error_frac(self) -> float | None:
        """How far the measured ratio lies above the modelled one, as a fraction of it."""
        if self.measured is None or self.modelled == 0:
            return None
        return self.measured.value / self.modelled - 1


class PhaseCost(msgspec.Struct, frozen=True, kw_only=True):
    """What a phase costs the processor at one number of disks (Figs. 7 and 8)."""

    kernel: KernelName
    phase: str
    platform: Platform
    disks: int
    cpu_user_ns_per_byte: Interval
    cpu_system_ns_per_byte: Interval
    cpu_utilisation: Interval
    """Of the processors it may use; 1 is all of them, busy."""
    instructions_per_byte: Interval | None
    """The same number as the paper's MIPS per MB/s; None where nothing counts instructions."""
    cycles_per_instruction: Interval | None


class Bound(msgspec.Struct, frozen=True, kw_only=True):
    """The fastest a run could be: for every phase the most any resource allows."""

    mb_s: Interval
    """Input and output bytes of the run (each pass counted) by the least time of all phases."""
    seconds: Interval
    resource: Resource
    """What holds most of that time."""
    by_resource: dict[str, Interval]
    """The same rate if that resource were the only limit."""
    phases: tuple[PhaseBound, ...]


class PhaseBound(msgspec.Struct, frozen=True, kw_only=True):
    """The fastest a phase could be."""

    phase: str
    bytes_moved: int
    mb_s: Interval
    seconds: Interval
    resource: Resource
    by_resource: dict[str, Interval]


class ScalingStep(msgspec.Struct, frozen=True, kw_only=True):
    """One number of disks in Fig. 3."""

    kernel: KernelName
    phase: str
    platform: Platform
    disks: int
    achieved_mb_s: Interval
    """Disk bandwidth of the phase, reading and writing together."""
    ideal_mb_s: Interval
    """What the disks by themselves would give, added up, for this phase's mix of directions."""
    gained_mb_s: Interval
    """Over the step before: the height of this bar."""
    ideal_gain_mb_s: float
    """What this disk would add by itself."""
    limited_by: Resource | None
    """What kept it from its ideal; None when it reached it."""
    evidence: tuple[str, ...]
    """Sentences: what was used, of how much."""
    utilisation: dict[str, Interval]
    """Use by capacity, of every resource that could be measured (Figs. 5 and 7)."""


class Scaling(msgspec.Struct, frozen=True, kw_only=True):
    """A phase over 1..n disks, and where adding disks stops paying."""

    kernel: KernelName
    phase: str
    platform: Platform
    steps: tuple[ScalingStep, ...]
    stops_at: int | None
    """First number of disks whose gain falls short; None when every disk paid."""
    limited_by: Resource | None
    """What stopped it, of the last step that fell short; `disks` when nothing else did."""
    sentence: str


class Saturation(msgspec.Struct, frozen=True, kw_only=True):
    """One bar of Fig. 9: the disk bandwidth per processor at which a resource is used up."""

    resource: Resource
    mb_s_per_processor: Interval | None
    """None when it cannot be said; then `why` says why."""
    why: str
    """What the number rests on, or why there is none."""
    use_at_most: Interval | None = None
    """Its highest utilisation that was measured; far below 1 is far extrapolation."""
    at_least: bool = False
    """The resource was never seen saturated: the value is a lower limit."""


class AmdahlCase(msgspec.Struct, frozen=True, kw_only=True):
    """A balanced system has 1 MB of memory and 1 Mbit/s of I/O for every MIPS (AD98 §1)."""

    mips: float
    """Of all processors, while the kernel ran."""
    mips_source: str
    """`instructions`, or what stands for them here and why."""
    memory_mb_per_mips: float
    io_mbit_s_per_mips: float
    sentence: str


class Balance(msgspec.Struct, frozen=True, kw_only=True):
    """Fig. 9 for one phase of one kernel."""

    system: str
    kernel: KernelName
    phase: str
    platform: Platform
    processors: float
    saturations: tuple[Saturation, ...]
    """In the order of `RESOURCES`."""
    order: tuple[Resource, ...]
    """The bottleneck, second, …; resources without a number are left out."""
    first: Resource | None
    disks_mb_s_per_processor: Interval | None
    """What the disks that are there give this phase: bars below it limit it now."""
    sentence: str
    amdahl: AmdahlCase | None


class WhatIf(msgspec.Struct, frozen=True, kw_only=True):
    """A machine with other parts: what it would do, and what would be the next bottleneck."""

    kernel: KernelName
    phase: str
    changes: dict[str, float]
    """Factors: cores, disks, memory, network."""
    before_mb_s: Interval
    after_mb_s: Interval
    limited_before: Resource
    limited_after: Resource
    gain_frac: Interval
    sentence: str


class StreamBalance(msgspec.Struct, frozen=True, kw_only=True):
    """`leadline balance S`: everything that is said about one study."""

    system: str
    study_id: str
    platform: Platform
    processors: float
    disks: int
    ratios: tuple[Ratio, ...]
    costs: tuple[PhaseCost, ...]
    scaling: tuple[Scaling, ...]
    balances: tuple[Balance, ...]
    what_if: tuple[WhatIf, ...] = ()
    sentences: tuple[str, ...] = ()
    """The answer, shortest first."""
    findings: tuple[Finding, ...] = ()
    not_measurable: dict[str, str] = {}
    """Why a counter is missing, by its field's name."""
