"""Does disk scaling name the resource that must be the limit, and does balance extrapolate to it?

Loop devices on this disk are throttled by blkio cgroups, the engine's processors by a cpu cgroup:
first so that the disks must be the limit, then so that the processors must be. Of the second, the
saturation is extrapolated from the runs below it alone and held against the runs past it.

    python bench/stream_scaling.py [--disks 4] [--mb-s 60] [--size 160MiB] [--repeat 3]

Needs root, loop devices and cgroup v1 (tests/real/stream_throttle.py). Takes about ten minutes;
ends with 1 when a name is wrong or the extrapolation is off by more than 15%.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import msgspec

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "real"))

from stream_throttle import Disk, Throttle, loop_disks, throttle, why_no_throttles

from figures import Cell, Column, Row, add_save_option, save
from leadline.engine import stop_on_signals
from leadline.engine.streams.disks import StreamDisks, open_stream_disks
from leadline.record.balance import Balance, Scaling
from leadline.record.streaming import KernelName, StreamStudy
from leadline.store import open_store
from leadline.studies.streaming.answer import balance_of, scaling_of
from leadline.studies.streaming.balance import balances_of
from leadline.studies.streaming.study import RunDone, ScalingOptions, begin_scaling, run_scaling
from leadline.units import format_bytes, parse_bytes

MEASURES = (
    "crates/kernels/src",
    "python/leadline/engine/streams",
    "python/leadline/studies/streaming",
)
COLUMNS = (
    Column("what", ""),
    Column(
        "rate", "MB/s", ("{value:.1f} {unit} [{low:.1f}, {high:.1f}]", "{value:.1f} {unit}"), "MB/s"
    ),
    Column("off", "off", ("{value:.1f} {unit}",), "%"),
    Column("quota", "processors", ("{value:.3f}",)),
    Column("first", "CPU named from disk", ("{value:.0f}",)),
)
KERNEL: KernelName = "sort"
PHASE = "write"
DISKS_BELOW = 2
"""The quota is set so that the processors are used up between this number of disks and the next."""
OFF_FRAC_MAX = 0.15


def asked_of(options: argparse.Namespace) -> ScalingOptions:
    """Return what both studies ask."""
    return ScalingOptions(
        system="throttled",
        kernels=(KERNEL,),
        data_bytes=options.size,
        memory_bytes=3 * options.size,
        repetitions=options.repeat,
        capacity_bytes=round(options.mb_s * 4e5),
        seed=options.seed,
    )


def study_of(disks: StreamDisks, asked: ScalingOptions) -> StreamStudy:
    """Run a scaling and print every run."""
    return run_scaling(
        disks,
        open_store("sqlite://"),
        begin_scaling(disks.directories, asked),
        asked,
        on_run=print_run,
    )


def print_run(done: RunDone) -> None:
    """Print one run's phases."""
    phases = "  ".join(
        f"{phase.name} {phase.mb_s:6.1f} MB/s, {1e9 * phase.cpu_s / phase.bytes_moved:5.2f} ns/B"
        for phase in done.run.result.phases
    )
    print(f"    {done.done:>2}/{done.of}  {done.run.disks} disks  {phases}", flush=True)


def scaling_in(study: StreamStudy) -> Scaling:
    """Return the phase's scaling."""
    found = scaling_of(balance_of(study), KERNEL, PHASE)
    assert found is not None, "the study has capacities and runs"
    return found


def cpu_mb_s(study: StreamStudy, disks: Sequence[int]) -> tuple[Balance, float, float, float]:
    """Return the balance by runs on these disks, and the processors' saturation, all together."""
    runs = tuple(run for run in study.runs if run.disks in disks)
    balance = next(
        one for one in balances_of(msgspec.structs.replace(study, runs=runs)) if one.phase == PHASE
    )
    rate = next(one for one in balance.saturations if one.resource == "cpu").mb_s_per_processor
    assert rate is not None, "processors saturate"
    low, high = rate.low or rate.value, rate.high or rate.value
    count = balance.processors
    return balance, count * rate.value, count * low, count * high


def print_scaling(scaling: Scaling) -> None:
    """Print Fig. 3's numbers."""
    for step in scaling.steps:
        used = "; ".join(step.evidence)
        print(
            f"    {step.disks} disks: {step.achieved_mb_s.value:6.1f} of "
            f"{step.ideal_mb_s.value:6.1f} MB/s, limited by {step.limited_by or '-':8} {used}"
        )
    print(f"    {scaling.sentence}")


def disks_must_limit(disks: StreamDisks, asked: ScalingOptions) -> tuple[bool, StreamStudy]:
    """Scale with slow disks and all processors."""
    print("Disks must be the limit:")
    study = study_of(disks, asked)
    scaling = scaling_in(study)
    print_scaling(scaling)
    return scaling.limited_by == "disks" and scaling.stops_at is None, study


def processors_must_limit(
    disks: StreamDisks, held: Throttle, asked: ScalingOptions, cost_mb_s: float, mb_s: float
) -> tuple[bool, StreamStudy, float]:
    """Scale with a quota that lets through what two disks and a half give."""
    quota = (DISKS_BELOW + 0.5) * mb_s / cost_mb_s
    held.limit_processors(quota)
    print(f"Processors must be the limit, by a quota of {quota:.3f}:")
    study = study_of(disks, asked)
    scaling = scaling_in(study)
    print_scaling(scaling)
    stopped = scaling.stops_at is not None and scaling.stops_at > DISKS_BELOW
    return scaling.limited_by == "cpu" and stopped, study, quota


def extrapolated(study: StreamStudy, quota: float) -> list[Row]:
    """Hold the saturation by the runs below it against the runs past it; return both."""
    most = max(run.disks for run in study.runs)
    first = scaling_in(study).stops_at or most
    below = first - 1
    balance, predicted, low, high = cpu_mb_s(study, range(1, below + 1))
    used = next(one for one in balance.saturations if one.resource == "cpu").use_at_most
    past = scaling_in(study).steps[-1].achieved_mb_s
    off = past.value / predicted - 1
    print(
        f"Saturation by runs on 1 to {below} disks (used at most "
        f"{used.value if used else 0:.0%}): {predicted:.1f} MB/s [{low:.1f}, {high:.1f}]\n"
        f"Run past it, on {most} disks: {past.value:.1f} MB/s ({past.low or 0:.1f} to "
        f"{past.high or 0:.1f}), {off:+.1%}"
    )
    most_off = 100 * OFF_FRAC_MAX
    met = Cell(past.value, past.low, past.high)
    return [
        Row(
            "predicted",
            {
                "what": "saturation extrapolated from the runs below it",
                "rate": Cell(predicted, low, high),
                "quota": quota,
                "first": Cell(first, least=DISKS_BELOW + 1),
            },
        ),
        Row(
            "met",
            {
                "what": f"the run past it, on {most} disks",
                "rate": met,
                "off": Cell(100 * off, least=-most_off, most=most_off),
            },
        ),
    ]


def run(options: argparse.Namespace, directory: Path) -> list[str]:
    """Run everything; return what falls short."""
    short = []
    room = 4 * options.size
    with loop_disks(directory, options.disks, room) as made, throttle() as held:
        held.limit_disks(made, options.mb_s)
        tell(options, made)
        asked = asked_of(options)
        homes = [str(disk.directory) for disk in made]
        with open_stream_disks(homes, command=held.command) as disks:
            named, slow = disks_must_limit(disks, asked)
            if not named:
                short.append("slow disks were not named")
            _, cost_mb_s, _, _ = cpu_mb_s(slow, range(1, options.disks + 1))
            named, few, quota = processors_must_limit(disks, held, asked, cost_mb_s, options.mb_s)
            if not named:
                short.append("few processors were not named")
            rows = extrapolated(few, quota)
            off = rows[-1].cells["off"]
            if isinstance(off, Cell) and off.missed:
                short.append("the extrapolated saturation is off by more than 15%")
            about = {"rounds": options.repeat, "seeds": f"seed {options.seed}"}
            save(options, COLUMNS, rows, directory=directory, **about)
    return short


def tell(options: argparse.Namespace, disks: Sequence[Disk]) -> None:
    """Print what is measured."""
    print(
        f"{KERNEL} of {format_bytes(options.size)} on 1 to {len(disks)} loop devices of "
        f"{options.mb_s:g} MB/s each, {options.repeat} repetitions, seed {options.seed}",
        flush=True,
    )


def main() -> int:
    """Run it from the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--disks", type=int, default=4)
    parser.add_argument("--mb-s", type=float, default=60.0)
    parser.add_argument("--size", type=parse_bytes, default=parse_bytes("160MiB"))
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--directory", default="/var/tmp")  # noqa: S108 - a disk, not memory
    add_save_option(parser, "stream_scaling")
    options = parser.parse_args()
    if why := why_no_throttles():
        print(f"cannot throttle here: {why}")
        return 2
    with (
        stop_on_signals(),
        tempfile.TemporaryDirectory(dir=options.directory, prefix="leadline-scaling-") as name,
    ):
        short = run(options, Path(name))
    print("\n".join(short) if short else "all named, extrapolation confirmed")
    return 1 if short else 0


if __name__ == "__main__":
    sys.exit(main())
