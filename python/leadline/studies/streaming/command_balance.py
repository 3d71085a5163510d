"""`leadline balance S [S2 …]` and `leadline stream scale DIR…`: the bottleneck?"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from leadline.engine import Target
from leadline.errors import UsageRefused
from leadline.record.balance import StreamBalance
from leadline.record.streaming import KERNELS, STREAM, KernelName, StreamStart
from leadline.record.wording import format_count, join_words
from leadline.store import Store
from leadline.studies.conduct import conduct
from leadline.studies.resume import format_kept
from leadline.studies.streaming.answer import balance_of, compared
from leadline.studies.streaming.balance import WhatIfRefused, format_changes, parse_changes
from leadline.studies.streaming.command_options import OUTPUT_SAID, Threads
from leadline.studies.streaming.command_run import print_stream, require_stream_output
from leadline.studies.streaming.published import PREFIX, published_balance
from leadline.studies.streaming.run import load_stream
from leadline.studies.streaming.study import (
    REPETITIONS,
    DiskScaling,
    RunDone,
    ScalingOptions,
    plan_steps,
    whole_bytes,
)
from leadline.terminal.context import Context
from leadline.terminal.options import (
    Json,
    Name,
    Seed,
    positive_bytes,
    positive_seconds,
    reader,
    study_argument,
    with_output,
)
from leadline.terminal.talk import put_json, show, talk
from leadline.terminal.tell import format_study, require_directory
from leadline.terminal.watch import Teller
from leadline.units import format_bytes, format_rate, format_seconds

# `leadline stream scale DIR…`: how far does adding disks help, and what stops it?

BUDGET_S = 1800.0
DATA_BYTES = 512 * 2**20
MEMORY_BYTES = 2**30


def _kernels(text: str) -> tuple[KernelName, ...]:
    words = dict.fromkeys(word.strip() for word in text.split(",") if word.strip())
    found = tuple(kernel for kernel in KERNELS if kernel in words)
    if not found or len(found) < len(words):
        raise ValueError(f"{text!r} is not of the kernels {', '.join(KERNELS)}")
    return found


_Directories = Annotated[
    list[str], typer.Argument(metavar="DIR…", help="One directory for each disk, as they are added")
]
_Kernels = Annotated[
    Any, typer.Option(parser=reader(_kernels), metavar="K,…", help="Of scan, sort and transpose.")
]
_Size = Annotated[
    int,
    typer.Option(
        parser=reader(positive_bytes),
        metavar="SIZE",
        show_default=False,
        help="Data of every run, striped over its disks.  [default: 512 MiB]",
    ),
]
_Memory = Annotated[
    int,
    typer.Option(
        parser=reader(positive_bytes),
        metavar="SIZE",
        show_default=False,
        help="Most memory of a kernel. Data that does not fit takes two passes.  [default: 1 GiB]",
    ),
]
_Repeat = Annotated[
    int, typer.Option(min=1, max=100, help="Repetitions; intervals need two or more.")
]
_Budget = Annotated[
    float,
    typer.Option(
        parser=reader(positive_seconds),
        metavar="TIME",
        show_default=False,
        help="Ends within this time.  [default: 30m]",
    ),
]


@with_output(OUTPUT_SAID)
def scale(
    context: typer.Context,
    *,
    directories: _Directories,
    kernels: _Kernels = KERNELS,
    size: _Size = DATA_BYTES,
    memory: _Memory = MEMORY_BYTES,
    threads: Threads = 1,
    repeat: _Repeat = REPETITIONS,
    budget: _Budget = BUDGET_S,
    name: Name = None,
    seed: Seed = 1,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with this system's unfinished study.")
    ] = False,
    output: Path | None = None,
    json: Json = False,
) -> None:
    """Run every kernel on 1 to n disks: what each disk adds, where that stops, and why.

    Example: leadline stream scale /disk1 /disk2
    """
    require_stream_output(output)
    paths = [str(Target.parse(directory).path or directory) for directory in directories]
    asked = ScalingOptions(
        system=name or Path(paths[0]).name,
        kernels=kernels,
        data_bytes=whole_bytes(size),
        memory_bytes=memory,
        threads=threads,
        repetitions=repeat,
        budget_s=budget,
        seed=seed,
    )
    own: Context = context.obj
    store = own.open_store()
    watcher = _Teller(lambda start, _: _tell_plan(start.study_id, len(paths), asked))
    study = conduct(DiskScaling(paths, asked), store, watcher, resume=resume)
    print_stream(study, store, json=json, output=output)
    if not json:
        talk(f"leadline balance {study.start.study_id[:8]} says what to buy")


class _Teller(Teller):
    """Tells of every run."""

    _last: RunDone | None = None

    def ended(self, item: RunDone) -> None:
        self._last = item
        _tell_run(item)

    def stopped(self, store: Store, start: StreamStart, error: BaseException) -> None:
        if self._last is not None:
            done, planned = self._last.done, self._last.of
            talk(format_kept(done, planned, start.study_id, what="runs"))


def _tell_plan(study_id: str, disks: int, asked: ScalingOptions) -> None:
    steps = plan_steps(disks, asked)
    talk(
        f"stream {study_id[:8]} of {asked.system}: {join_words(list(asked.kernels))} of "
        f"{format_bytes(asked.data_bytes)} on 1 to {format_count(disks, 'disk')}, "
        f"{format_count(asked.threads, 'thread')}, {format_count(len(steps), 'run')}; ends within "
        f"{format_seconds(asked.budget_s)}"
    )


def _tell_run(done: RunDone) -> None:
    run = done.run
    rates = ", ".join(f"{phase.name} {format_rate(phase.mb_s)}" for phase in run.result.phases)
    talk(
        f"  {done.done:>3} of {done.of}  {run.options.kernel} on "
        f"{format_count(run.disks, 'disk')}: {rates}"
    )


# `leadline balance S [S2 …]`: which resource is the bottleneck, and what would have to be bought?


def _changes(text: str) -> dict[str, float]:
    try:
        return parse_changes(text)
    except WhatIfRefused as error:
        raise ValueError(str(error)) from error


_Studies = Annotated[
    list[str],
    study_argument(
        "S…",
        "Stream studies, their systems, or platforms as published (sim:ultra-1); "
        "several are compared.",
    ),
]
_WhatIf = Annotated[
    Any,
    typer.Option(
        "--what-if",
        parser=reader(_changes),
        metavar="PART=FACTOR,…",
        help="Another machine: cores=2,disks=2,memory=1.5,network=10.  [default: twice the disks, "
        "and twice the cores]",
    ),
]


@with_output("Also draw it: .html")
def command(
    context: typer.Context,
    *,
    studies: _Studies,
    what_if: _WhatIf = None,
    output: Path | None = None,
    json: Json = False,
) -> None:
    """Find the bottleneck as disks are added, and the gain of upgrades.

    Example: leadline balance data --what-if disks=2
    """
    _require_output(output)
    found = [_balance_of(context.obj, ref, what_if) for ref in studies]
    systems = [system for system, _ in found]
    if json:
        put_json(balance_document(systems))
    else:
        from leadline.studies.streaming.balance_text import render_balance  # noqa: PLC0415

        show("balance of " + "\n  and of ".join(of for _, of in found) + "\n")
        show(render_balance(systems))
    if what_if is not None and not any(one.what_if for one in systems):
        talk(f"nothing can be said of {format_changes(what_if)}: no capacity was measured")
    if output is not None:
        from leadline.studies.streaming.page import save_balance  # noqa: PLC0415 - it loads Altair

        save_balance(systems, output)
        talk(f"wrote {output}")


def _balance_of(
    own: Context, ref: str, what_if: dict[str, float] | None
) -> tuple[StreamBalance, str]:
    """Return a balance, and whose it is."""
    if ref.startswith(PREFIX):
        return published_balance(
            ref, what_if
        ), f"{ref}, as published; its cycles per instruction are assumed"
    study = load_stream(own.read_store(), ref)
    return balance_of(study, what_if), format_study(STREAM.said, study.start)


def balance_document(systems: Sequence[StreamBalance]) -> dict[str, Any]:
    """Return everything that is said of every system."""
    return {
        "systems": [msgspec.structs.asdict(one) for one in systems],
        "compared": compared(systems),
    }


def _require_output(output: Path | None) -> None:
    if output is None:
        return
    require_directory(output)
    if output.suffix.lower() != ".html":
        raise UsageRefused(f"{output}: a balance is drawn as a page; end the name in .html")
