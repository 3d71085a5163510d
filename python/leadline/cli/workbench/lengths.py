"""`leadline peak … --run-lengths 30s,1m,3m`: the options of a study of run lengths."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from leadline.cli.options import positive_seconds
from leadline.record.workbench import RunLengths
from leadline.record.workload import parse_share
from leadline.studies.workbench.run_lengths import read_run_lengths

LENGTH_OPTIONS: dict[str, tuple[Any, Any]] = {
    "run_lengths": (
        Annotated[
            str | None,
            typer.Option(
                metavar="TIME,…",
                help="Then trials of each of these lengths at parts of the peak, e.g. 30s,1m,3m,5m:"
                " how far responses spread, and which length reaches the accuracy in the least "
                "bench time. They come on top of the deadline.  [default: none]",
                show_default=False,
            ),
        ],
        None,
    ),
    "load_factors": (
        Annotated[
            str | None,
            typer.Option(
                metavar="SHARE,…",
                help="Parts of the peak at which --run-lengths are tried.  [default: 30%,90%]",
                show_default=False,
            ),
        ],
        None,
    ),
    "trials": (
        Annotated[
            int | None,
            typer.Option(
                metavar="N",
                min=1,
                help="Of each length at each load of --run-lengths.  [default: 10]",
                show_default=False,
            ),
        ],
        None,
    ),
}


def lengths_of(
    run_lengths: str | None = None, load_factors: str | None = None, trials: int | None = None
) -> RunLengths | None:
    """Return the study that was asked for; None where nobody asked.

    Raises:
        BadParameter: a list that cannot be read, or its options without it.
        ExperimentRefused: lengths, loads or trials that make no study.

    """
    if run_lengths is None:
        for name, given in (("--load-factors", load_factors), ("--trials", trials)):
            if given is not None:
                raise typer.BadParameter(f"{name} goes with --run-lengths, for example 30s,1m,3m")
        return None
    try:
        seconds = [positive_seconds(each) for each in run_lengths.split(",")]
        parts = [parse_share(each) for each in (load_factors or "").split(",") if each.strip()]
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    return read_run_lengths(seconds, parts, trials)
