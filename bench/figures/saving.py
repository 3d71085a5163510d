"""How a bench stores what it measured: two calls, one for its command line and one at its end."""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from figures.origin import commit_now, machine_of, measures_of, today
from figures.stored import Column, Result, Row, keep


def add_save_option(parser: argparse.ArgumentParser, name: str) -> None:
    """Add `--save [NAME]`: store what is measured under `name`, or under another one."""
    parser.add_argument(
        "--save", nargs="?", const=name, metavar="NAME", help=f"in bench/results/ ({name})"
    )


def save(
    asked: argparse.Namespace,
    columns: Iterable[Column],
    rows: Iterable[Row],
    *,
    directory: Path | None = None,
    part: str = "",
    **about: Any,
) -> None:
    """Store what a bench found, if its command line says `--save`.

    Args:
        asked: the command line, of a parser with `add_save_option`.
        columns: how the figures are told.
        rows: the figures.
        directory: on the disk that the figures depend on; None when they do not depend on the
            machine.
        part: behind the name that does not end with it, of a bench that stores several results.
        about: what else the head of a `Result` says: `rounds`, `seeds`, `interval`, `note`; the
            `commit` and `date` of a run that went on with what it had.

    """
    if asked.save is None:
        return
    program = f"bench/{Path(sys.argv[0]).name}"
    head: dict[str, Any] = {
        "made_by": program,
        "command": shlex.join([program, *sys.argv[1:]]),
        "commit": commit_now((program, *measures_of(program))),
        "date": today(),
        "machine": {} if directory is None else machine_of(directory),
    }
    result = Result(**head | about, columns=tuple(columns), rows=tuple(rows))
    name = asked.save if asked.save.endswith(part) else f"{asked.save}_{part}"
    keep(name, result)
    print(f"\nstored in bench/results/{name}.json: `make figures` puts it into the text")
