"""The three platforms of AD98 as its own figures describe them: their balance, without a run.

A profile has what the paper states of a machine: its disks, the capacities of its buses and
network, and the instructions for every MB (Fig. 8). What crosses each bus is Fig. 2 with the
corrections of section 5.3.1. From both follow Figs. 3 to 7 and 9: use as disks are added, where
that stops, and the disk bandwidth per processor at which each resource is used up.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from importlib import resources

import msgspec

from leadline.errors import UsageRefused
from leadline.inputs import parse_toml
from leadline.record.balance import (
    Balance,
    Bus,
    PhaseCost,
    Ratio,
    Resource,
    Saturation,
    Scaling,
    ScalingStep,
    StreamBalance,
)
from leadline.record.streaming import KERNELS, KernelName, Platform
from leadline.stats.arithmetic import exactly
from leadline.studies.streaming.answer import TWICE, sentences_about
from leadline.studies.streaming.balance import Which, balance_from, scaling_from, what_ifs
from leadline.studies.streaming.measured import NOT_HERE
from leadline.studies.streaming.models import (
    Direction,
    Symbols,
    paper_corrections,
    paper_model,
    total,
)

PREFIX = "sim:"


class _Machine(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    platform: Platform
    processors: int
    clock_mhz: float
    disks_per_processor: int
    disk_read_mb_s: float
    disk_write_mb_s: float


class _Path(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A processor's share of a bus or a network."""

    peak_mb_s: float
    usable_mb_s: float


class _Instructions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Of a phase: millions for every MB."""

    system: float
    user: float
    cpi: float = 2.0


class _Kernel(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    read: _Instructions
    write: _Instructions


class _Meta(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    title: str
    source: str
    assumed: tuple[str, ...]


class Profile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A platform as its file has it; all rates in MB/s."""

    meta: _Meta
    machine: _Machine
    io_bus: _Path
    memory_bus: _Path
    scan: _Kernel
    sort: _Kernel
    transpose: _Kernel
    network: _Path | None = None


def published_titles() -> dict[str, str]:
    """Return what each platform is, by name."""
    folder = resources.files("leadline") / "profiles" / "streaming"
    names = sorted(entry.name.removesuffix(".toml") for entry in folder.iterdir())
    return {name: _load(name).meta.title for name in names}


def _load(name: str) -> Profile:
    file = resources.files("leadline") / "profiles" / "streaming" / f"{name}.toml"
    return msgspec.convert(parse_toml(file.read_text(encoding="utf-8")), Profile)


def published_balance(ref: str, changes: Mapping[str, float] | None = None) -> StreamBalance:
    """Return everything that follows for a platform, `sim:NAME`; `changes` as of `balance_of`.

    Raises:
        TargetRefused: no such platform.

    """
    name = ref.removeprefix(PREFIX)
    if name not in published_titles():
        known = ", ".join(published_titles())
        raise UsageRefused(f"{ref}: the platforms with a published balance are: {known}")
    profile = _load(name)
    phases = tuple(_phases(name, profile))
    balances = tuple(each.balance for each in phases)
    scaling = tuple(each.scaling for each in phases)
    return StreamBalance(
        system=name,
        study_id="",
        platform=profile.machine.platform,
        processors=float(profile.machine.processors),
        disks=profile.machine.processors * profile.machine.disks_per_processor,
        ratios=tuple(each.ratio(bus) for each in phases for bus in ("io", "memory")),
        costs=tuple(each.cost(disks) for each in phases for disks in each.disks),
        scaling=scaling,
        balances=balances,
        what_if=tuple(
            one
            for each in (TWICE if changes is None else (changes,))
            for one in what_ifs(balances, each)
        ),
        sentences=sentences_about(balances, scaling),
        not_measurable={"cycles": " ".join(profile.meta.assumed)},
    )


def _phases(name: str, profile: Profile) -> Iterator[_Phase]:
    directions: tuple[Direction, ...] = ("read", "write")
    for kernel in KERNELS:
        for direction in directions:
            yield _Phase(name, profile, kernel, direction)


class _Phase:
    """One phase of a kernel on a platform."""

    def __init__(self, name: str, profile: Profile, kernel: KernelName, phase: Direction) -> None:
        self.machine = profile.machine
        self.profile = profile
        self.which = Which(name, kernel, phase, self.machine.platform)
        instructions: _Instructions = getattr(getattr(profile, kernel), phase)
        self.instructions = instructions
        symbols = Symbols(parties=self.machine.processors)
        asked = (kernel, self.machine.platform, phase)
        self.terms = {
            "io": paper_model(*asked, "io", symbols),
            "memory": paper_model(*asked, "memory", symbols),
        }
        self.corrections = paper_corrections(*asked, symbols)
        # Of what crosses the I/O bus, half of what is no disk's goes out and half comes in.
        self.sent = (total(self.terms["io"]) - 1) / 2
        self.memory = total((*self.terms["memory"], *self.corrections))

    @property
    def disks(self) -> tuple[int, ...]:
        """Numbers of disks, the same of each processor."""
        processors = self.machine.processors
        return tuple(n * processors for n in range(1, self.machine.disks_per_processor + 1))

    @property
    def disk_mb_s(self) -> float:
        """Of one disk."""
        reads = self.which.phase == "read"
        return self.machine.disk_read_mb_s if reads else self.machine.disk_write_mb_s

    @cached_property
    def limits_mb_s(self) -> dict[Resource, float]:
        """Disk bandwidth of a processor at which each resource is used up."""
        found: dict[Resource, float] = {
            "disks": self.machine.disks_per_processor * self.disk_mb_s,
            "io_path": self.profile.io_bus.usable_mb_s / total(self.terms["io"]),
            "cpu": self.machine.clock_mhz / self._cycles_by_byte,
            "memory": self.profile.memory_bus.usable_mb_s / self.memory,
        }
        if self.profile.network is not None and self.sent:
            found["network"] = self.profile.network.usable_mb_s / self.sent
        return found

    @property
    def _cycles_by_byte(self) -> float:
        return (self.instructions.system + self.instructions.user) * self.instructions.cpi

    def ratio(self, bus: Bus) -> Ratio:
        """Return what crosses a bus for every byte of the disks (Figs. 4 and 6)."""
        return Ratio(
            kernel=self.which.kernel,
            phase=self.which.phase,
            platform=self.which.platform,
            disks=self.disks[-1],
            bus=bus,
            modelled=total(self.terms[bus]),
            corrected=self.memory if bus == "memory" else None,
            measured=None,
            tier=f"{NOT_HERE}the machine is the paper's",
            terms=self.terms[bus],
            corrections=self.corrections if bus == "memory" else (),
        )

    def cost(self, disks: int) -> PhaseCost:
        """Return what so many disks cost the processors (Figs. 7 and 8)."""
        own = self.instructions
        ns_per_instruction = 1e3 * own.cpi / self.machine.clock_mhz
        return PhaseCost(
            kernel=self.which.kernel,
            phase=self.which.phase,
            platform=self.which.platform,
            disks=disks,
            cpu_user_ns_per_byte=exactly(own.user * ns_per_instruction),
            cpu_system_ns_per_byte=exactly(own.system * ns_per_instruction),
            cpu_utilisation=exactly(self._used(disks)["cpu"]),
            instructions_per_byte=exactly(own.user + own.system),
            cycles_per_instruction=exactly(own.cpi),
        )

    def _reached_mb_s(self, disks: int) -> float:
        """Of a processor with its part of so many disks."""
        others = [rate for name, rate in self.limits_mb_s.items() if name != "disks"]
        return min(disks / self.machine.processors * self.disk_mb_s, *others)

    def _used(self, disks: int) -> dict[Resource, float]:
        """Of each resource's capacity; of a bus of its peak, as the paper draws it (Fig. 5)."""
        reached = self._reached_mb_s(disks)
        found = {name: reached / rate for name, rate in self.limits_mb_s.items()}
        found["disks"] = reached * self.machine.processors / (disks * self.disk_mb_s)
        found["io_path"] *= self.profile.io_bus.usable_mb_s / self.profile.io_bus.peak_mb_s
        found["memory"] *= self.profile.memory_bus.usable_mb_s / self.profile.memory_bus.peak_mb_s
        return found

    @property
    def scaling(self) -> Scaling:
        """What each disk of a processor adds (Fig. 3), over all processors."""
        steps: list[ScalingStep] = []
        for disks in self.disks:
            before = steps[-1] if steps else None
            steps.append(self._step(disks, before))
        return scaling_from(steps)

    def _step(self, disks: int, before: ScalingStep | None) -> ScalingStep:
        reached = self._reached_mb_s(disks) * self.machine.processors
        ideal = disks * self.disk_mb_s
        full = min(self.limits_mb_s.items(), key=lambda each: each[1])[0]
        used = self._used(disks)
        return ScalingStep(
            kernel=self.which.kernel,
            phase=self.which.phase,
            platform=self.which.platform,
            disks=disks,
            achieved_mb_s=exactly(reached),
            ideal_mb_s=exactly(ideal),
            gained_mb_s=exactly(reached - (before.achieved_mb_s.value if before else 0.0)),
            ideal_gain_mb_s=ideal - (before.ideal_mb_s.value if before else 0.0),
            limited_by=None if reached > 0.999 * ideal else full,
            evidence=(),
            utilisation={name: exactly(share) for name, share in used.items()},
        )

    @property
    def balance(self) -> Balance:
        """The disk bandwidth of a processor at which each resource is used up (Fig. 9)."""
        found = tuple(
            Saturation(resource=name, mb_s_per_processor=exactly(rate), why=_WHY[name])
            for name, rate in self.limits_mb_s.items()
        )
        return balance_from(self.which, float(self.machine.processors), found)


_WHY: dict[Resource, str] = {
    "disks": "what the paper's disks can do by themselves",
    "io_path": "the usable part of the I/O bus, by what crosses it (AD98 Figs. 2 and 5)",
    "cpu": "the clock, by instructions for every byte and cycles for each (AD98 Figs. 7 and 8)",
    "memory": "the usable part of the memory bus, by what crosses it (AD98 Figs. 2 and 6)",
    "network": "a link, by what a processor sends (AD98 section 5.4)",
}
