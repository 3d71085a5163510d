"""`leadline stream scan|sort|transpose SRC DST`, `generate DST`, `check SRC`: AD98's kernels."""

from __future__ import annotations

from typing import Annotated

import msgspec
import typer

from leadline.errors import UsageRefused
from leadline.record.job import SKEW_MAX
from leadline.record.streaming import RECORD_BYTES
from leadline.studies.streaming.command_balance import scale
from leadline.studies.streaming.command_options import (
    Destination,
    KernelAsked,
    Match,
    Source,
    Temporary,
    with_kernel_options,
    with_wanted,
)
from leadline.studies.streaming.command_run import check_records, make_records, run_kernel
from leadline.studies.streaming.plan import Wanted
from leadline.terminal.options import Json, positive_bytes, reader

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


@app.callback()
def command() -> None:
    """Stream data through the machine: scan, sort or transpose, verified."""


@app.command()
@with_kernel_options
def scan(
    context: typer.Context,
    source: Source,
    destination: Destination,
    *,
    match: Match = 0.5,
    asked: KernelAsked,
) -> None:
    """Write the records of SRC whose keys lie in a range to DST.

    Example: leadline stream scan /data/records /data/found --match 0.1
    """
    run_kernel(
        context.obj,
        "scan",
        asked.of(source, destination),
        asked.shown,
        name=asked.name,
        match_frac=match,
    )


@app.command()
@with_kernel_options
def sort(
    context: typer.Context,
    source: Source,
    destination: Destination,
    *,
    temp: Temporary = None,
    asked: KernelAsked,
) -> None:
    """Order the 100-byte records of SRC by their 10-byte keys into DST.

    Example: leadline stream sort /data/records /data/sorted --memory 1GiB
    """
    wanted = asked.of(source, destination, temporary=temp or ())
    run_kernel(context.obj, "sort", wanted, asked.shown, name=asked.name)


@app.command()
@with_kernel_options
def transpose(
    context: typer.Context,
    source: Source,
    destination: Destination,
    *,
    rows: Annotated[
        int | None, typer.Option(min=1, help="Rows of SRC, in blocks of 4 KiB.  [default: square]")
    ] = None,
    columns: Annotated[
        int | None, typer.Option(min=1, help="Columns of SRC, in blocks.  [default: square]")
    ] = None,
    asked: KernelAsked,
) -> None:
    """Write the 4 KiB blocks of SRC, which lie row after row, column after column into DST.

    Example: leadline stream transpose /data/rows /data/columns
    """
    wanted = asked.of(source, destination)
    run_kernel(
        context.obj, "transpose", wanted, asked.shown, name=asked.name, rows=rows, columns=columns
    )


@app.command()
@with_wanted(
    "memory", "threads", "stripe", "stripe_unit", "buffered", "depth", "replace", "seed", "budget"
)
def generate(
    destination: Destination,
    *,
    records: Annotated[
        int | None, typer.Option(min=1, help="How many of 100 bytes.  [default: by --bytes]")
    ] = None,
    size: Annotated[
        int | None,
        typer.Option(
            "--bytes",
            parser=reader(positive_bytes),
            metavar="SIZE",
            help="As many as fit into this size.  [default: by --records]",
        ),
    ] = None,
    format: Annotated[  # noqa: A002 - the option's name
        str, typer.Option(metavar="binary|ascii", help="Any bytes, or printable lines.")
    ] = "binary",
    skew: Annotated[
        float,
        typer.Option(
            min=0, max=SKEW_MAX, help="Exponent of a Zipf distribution of keys; 0: uniform."
        ),
    ] = 0.0,
    wanted: Wanted,
    json: Json = False,
) -> None:
    """Make records of the sort benchmark, as gensort does.

    Example: leadline stream generate /data/records --bytes 1GiB
    """
    if (records is None) == (size is None):
        raise UsageRefused("say how many: --records N, or --bytes SIZE, and not both")
    count = records if records is not None else (size or 0) // RECORD_BYTES
    if count == 0:
        raise UsageRefused(f"--bytes {size}: a record has {RECORD_BYTES} bytes; give more")
    wanted = msgspec.structs.replace(wanted, destination=destination)
    make_records(wanted, count, format, skew, json=json)


@app.command()
@with_wanted("memory", "threads", "io", "buffered", "depth", "budget")
def check(
    source: Source,
    *,
    against: Annotated[
        str | None, typer.Option(metavar="FILE", help="Must hold the same records, in any order.")
    ] = None,
    records: Annotated[
        int | None, typer.Option(min=0, help="Must be this many.  [default: any]")
    ] = None,
    checksum: Annotated[
        str | None, typer.Option(metavar="HEX", help="Must be the sum of their CRC-32.")
    ] = None,
    any_order: Annotated[bool, typer.Option("--any-order", help="Need not be in order.")] = False,
    wanted: Wanted,
    json: Json = False,
) -> None:
    """Count records, sum their checksums and say whether they are in order, as valsort does.

    Example: leadline stream check /data/sorted --against /data/records
    """
    wanted = msgspec.structs.replace(wanted, source=source)
    check_records(
        wanted, against=against, records=records, checksum=checksum, any_order=any_order, json=json
    )


app.command(name="scale")(scale)
