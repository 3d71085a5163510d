"""Options that the sub-commands of `leadline stream` share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import msgspec
import typer

from leadline.errors import UsageRefused
from leadline.record.job import (
    STREAM_DEPTH_MAX,
    STREAM_THREADS_MAX,
    STRIPE_BYTES_MAX,
    STRIPE_BYTES_MIN,
)
from leadline.studies.streaming.command_run import Shown
from leadline.studies.streaming.plan import BUDGET_S, Wanted
from leadline.terminal.options import (
    CacheLimit,
    Force,
    Json,
    Name,
    Seed,
    new_file,
    positive_bytes,
    positive_seconds,
    reader,
    with_group,
)


def _directories(text: str) -> tuple[str, ...]:
    found = tuple(word.strip() for word in text.split(",") if word.strip())
    if not found:
        raise ValueError(f"{text!r} names no directory; write for example /disk1,/disk2")
    return found


def _stripe_unit(text: str) -> int:
    size = positive_bytes(text)
    if size & (size - 1) or not STRIPE_BYTES_MIN <= size <= STRIPE_BYTES_MAX:
        raise ValueError(f"{text!r} is no power of two from 4 KiB to 1 GiB; 64KiB is usual")
    return size


def _share(text: str) -> float:
    try:
        share = float(text)
    except ValueError:
        raise ValueError(f"{text!r} is no number; write for example 0.5") from None
    if not 0 < share <= 1:
        raise ValueError(f"{text!r} is no share of the records: above 0, to 1 for all of them")
    return share


Source = Annotated[
    str, typer.Argument(metavar="SRC", help="The data set to read; it is only ever read.")
]
Destination = Annotated[
    str,
    typer.Argument(
        metavar="DST",
        help="The data set to make, named when it is whole; in a directory it is named as SRC is.",
    ),
]
Memory = Annotated[
    int | None,
    typer.Option(
        parser=reader(positive_bytes),
        metavar="SIZE",
        help="Most memory of the kernel, all its buffers counted; what does not fit is done in "
        "two passes or in tiles. Under mpirun of all ranks of a machine together.  [default: "
        "half of what is free]",
    ),
]
Threads = Annotated[
    int,
    typer.Option(min=1, max=STREAM_THREADS_MAX, help="Threads that compute, each on its own part."),
]
ReadBy = Annotated[
    str,
    typer.Option(
        "--io",
        metavar="mmap|uring",
        help="How the input is read: a mapping with sequential advice, or io_uring ahead "
        "(threads, where that is forbidden).",
    ),
]
Stripe = Annotated[
    Any,
    typer.Option(
        parser=reader(_directories),
        metavar="DIR,DIR,…",
        help="Stripe DST over these directories, one for each disk.",
    ),
]
StripeUnit = Annotated[
    int,
    typer.Option(
        parser=reader(_stripe_unit),
        metavar="SIZE",
        help="Bytes on one disk before the next one's turn.  [default: 64KiB]",
        show_default=False,
    ),
]
Buffered = Annotated[
    bool, typer.Option("--buffered", help="Read and write through the page cache.")
]
Depth = Annotated[
    int,
    typer.Option(min=1, max=STREAM_DEPTH_MAX, help="Reads, and writes, outstanding on each disk."),
]
Temporary = Annotated[
    Any,
    typer.Option(
        "--temp",
        parser=reader(_directories),
        metavar="DIR,DIR,…",
        help="Where the runs of a sort in two passes go, in turn.  [default: beside DST]",
    ),
]
Runs = Annotated[
    int,
    typer.Option(
        min=1,
        max=100,
        help="How often the same is run; two or more give an interval. Each after the first "
        "replaces DST.",
    ),
]
Replace = Annotated[
    bool, typer.Option("--replace", help="Replace DST, at the moment when the new one is whole.")
]
Match = Annotated[
    float,
    typer.Option(
        parser=reader(_share),
        metavar="FRACTION",
        help="Share of the records to select: the lowest keys, as if keys were uniform.  "
        "[default: 0.5]",
        show_default=False,
    ),
]
Budget = Annotated[
    float,
    typer.Option(
        parser=reader(positive_seconds),
        metavar="TIME",
        help="Ends within this time.  [default: 1h]",
        show_default=False,
    ),
]
BoundAsked = Annotated[
    bool | None,
    typer.Option(
        "--bound/--no-bound",
        help="Measure memory and disks again, or not at all, which leaves no bound. Without either "
        "they are measured once a day.",
        show_default=False,
    ),
]
Resume = Annotated[
    bool,
    typer.Option("--resume", help="Go on with this system's unfinished study of several runs."),
]
OUTPUT_SAID = "Also draw the run: .html and others."
OutputFile = Annotated[
    Path | None, typer.Option("-o", "--output", metavar="FILE", help=OUTPUT_SAID)
]


class KernelAsked(NamedTuple):
    """What the options that every kernel has say."""

    wanted: Wanted
    shown: Shown
    name: str | None

    def of(self, source: str, destination: str, **more: Any) -> Wanted:
        """Return what is wanted of this data."""
        made = within(source, destination)
        return msgspec.structs.replace(self.wanted, source=source, destination=made, **more)


def within(source: str, destination: str) -> str:
    """Return the data set that DST means: in a directory one named as SRC is, as `cp` has it.

    Raises:
        TargetRefused: `DIR/`, and there is no such directory.

    """
    if Path(destination).is_dir():
        return str(Path(destination) / Path(source).name)
    if destination.endswith("/"):
        raise UsageRefused(
            f"there is no directory {destination}; make it first: mkdir {destination}, or name the "
            f"file that is to be made: {destination.rstrip('/')}"
        )
    return destination


_OPTIONS = {
    "memory": (Memory, None),
    "threads": (Threads, 1),
    "io": (ReadBy, "uring"),
    "stripe": (Stripe, None),
    "stripe_unit": (StripeUnit, 65536),
    "buffered": (Buffered, False),
    "depth": (Depth, 8),
    "replace": (Replace, False),
    "runs": (Runs, 1),
    "resume": (Resume, False),
    "cache_limit": (CacheLimit, None),
    "bound": (BoundAsked, None),
    "name": (Name, None),
    "seed": (Seed, 1),
    "budget": (Budget, BUDGET_S),
    "output": (OutputFile, None),
    "force": (Force, False),
    "json": (Json, False),
}
_FIELDS = {
    "memory": "memory_bytes",
    "io": "read",
    "stripe": "stripes",
    "stripe_unit": "stripe_bytes",
    "budget": "budget_s",
}
"""What `Wanted` calls an option, where it has another name for it."""


def _wanted(**given: Any) -> Wanted:
    said = {_FIELDS.get(name, name): value for name, value in given.items() if value is not None}
    return Wanted(**said)


def _kernel(
    *,
    resume: bool,
    cache_limit: int | None,
    bound: bool | None,
    name: str | None,
    output: Path | None,
    force: bool,
    json: bool,
    **wanted: Any,
) -> KernelAsked:
    shown = Shown(
        json=json,
        output=new_file(output, force=force),
        cache_limit_bytes=cache_limit,
        bound=bound,
        resume=resume,
    )
    return KernelAsked(_wanted(**wanted), shown, name)


with_kernel_options = with_group("asked", _OPTIONS, _kernel)
"""Gives a command the options of every kernel, in place of its `asked`."""


def with_wanted(*names: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command these of the options that say what is wanted, in place of its `wanted`."""
    return with_group("wanted", {name: _OPTIONS[name] for name in names}, _wanted)
