"""The `leadline` command: options common to all commands, and the one place that exits."""

from __future__ import annotations

import os
import sys
import traceback
from typing import Annotated

import typer

from leadline.cli import (
    compare,
    export,
    measure,
    predict,
    report,
    show,
    survey,
    systems,
    validate,
)
from leadline.cli.context import Context
from leadline.cli.talk import talk
from leadline.engine import stop_on_signals
from leadline.errors import LeadlineError
from leadline.record import WorkloadError
from leadline.survey import PlanRefused, ResumeMismatch

EXIT_FAULT = 1
EXIT_REFUSED = 2
EXIT_STOPPED = 3
TYPER_INTERRUPTED = 130
"""How typer ends a command that met a KeyboardInterrupt, which `Stopped` is."""

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="Sound a storage system to the bottom: `leadline survey DIR` finds its levels, "
    "measures what it does well, and says how sure it is.",
)


@app.callback()
def _common(
    context: typer.Context,
    store: Annotated[
        str | None,
        typer.Option(
            help="Where results are kept: a file, or an SQLAlchemy URL.",
            envvar="LEADLINE_STORE",
            metavar="URL",
        ),
    ] = None,
    debug: Annotated[bool, typer.Option(help="Show a traceback when something fails.")] = False,
) -> None:
    context.obj = Context(store_url=store, debug=debug)


for command in (survey, measure, predict, validate, compare, report, systems, show, export):
    app.command(name=command.__name__.rpartition(".")[2])(command.command)


def main() -> None:
    """Run the command and exit with DESIGN.md's code; every failure is one clear message."""
    debug = "--debug" in sys.argv
    try:
        with stop_on_signals():
            app()
    except (LeadlineError, WorkloadError, PlanRefused, ResumeMismatch) as error:
        _leave(str(error), getattr(error, "exit_code", EXIT_REFUSED), debug)
    except SystemExit as leaving:
        if leaving.code != TYPER_INTERRUPTED:
            raise
        _leave("stopped early; what was measured is kept", EXIT_STOPPED, debug)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(EXIT_FAULT)
    except Exception as error:
        _leave(
            f"this is a defect in Leadline, please report it: {type(error).__name__}: {error} "
            "(leadline --debug … shows where)",
            EXIT_FAULT,
            debug,
        )


def _leave(message: str, code: int, debug: bool) -> None:
    if debug:
        traceback.print_exc()
    talk(f"leadline: {message}")
    sys.exit(code)
