"""The `leadline` command: options common to all commands, and the one place that exits.

Exit codes (docs/reference/stability.md): 0 done, 1 fault, 2 usage, 3 stopped early with what was
measured kept, 4 the gate of `compare --fail-if` failed, 5 refused target.
"""

from __future__ import annotations

import gc
import importlib
import os
import sys
import traceback
from pathlib import Path
from typing import Annotated, Any

# Our matrices are small: threads for them cost twice the time, on processors that are measured.
# Said before anything loads numpy, which reads it once.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import typer
from typer.core import TyperCommand, TyperGroup

from leadline.errors import LeadlineError, WorkloadError
from leadline.machine.stop import stop_on_signals
from leadline.studies.streaming import rank_started
from leadline.terminal.context import Context
from leadline.terminal.talk import talk, verbose_answers

EXIT_FAULT = 1
EXIT_REFUSED = 2
EXIT_STOPPED = 3
TYPER_INTERRUPTED = 130
"""How typer ends a command that met a KeyboardInterrupt, which `Stopped` is."""

COMMANDS = {
    "survey": "Survey a storage system: its levels, and throughput by workload.",
    "measure": "Measure one workload: throughput, latency, cache hits.",
    "predict": "Predict workloads from a stored survey, without measuring.",
    "validate": "Measure random workloads and score a survey's predictions.",
    "cache": "Measure page-cache capacity for reads and writes, and the write policy.",
    "compare": "Compare surveyed systems: ratios with intervals, and verdicts.",
    "files": "Test plain files over file systems: read, write and rewrite.",
    "stream": "Stream data through the machine: scan, sort or transpose, verified.",
    "balance": "Find the bottleneck as disks are added, and the gain of upgrades.",
    "peak": "Find the peak rate of a server or disk at a latency target.",
    "surface": "Find the peak rate over all configurations, measuring some of them.",
    "watch": "Watch a target: probe it gently, and tell when it changed.",
    "characterize": "Characterize an application's I/O, from a trace or as it runs.",
    "report": "Draw what is stored as one self-contained page.",
    "systems": "List stored studies, newest first.",
    "show": "Show a stored study or point.",
    "export": "Export points or trials as data, or a study as a bundle.",
    "import": "Import studies from bundles or other stores.",
    "k8s": "Print a claim and a job that survey a storage class.",
    "rm": "Remove studies from the store, with their points.",
    "sims": "List the simulated systems.",
    "explain": "Explain a warning: meaning, detection, remedy.",
    "doctor": "Check what this machine can measure, and what disturbs it.",
}
"""Each command and its help: the first line of its docstring, which a test holds them to. Its
module is loaded only when its command is run, because what the commands need together takes a
second to load, and `--help` needs none of it."""
_MODULES = {
    "measure": "studies.measurement.command",
    "predict": "studies.prediction.command",
    "validate": "studies.validation.command",
    "compare": "studies.comparison.command",
    "stream": "studies.streaming.command",
    "balance": "studies.streaming.command_balance",
    "peak": "studies.workbench.command",
    "surface": "studies.workbench.surface.command",
    "characterize": "studies.application.command",
    "import": "commands.import_studies",
}
"""Modules of commands where they are not `studies.NAME.command`."""
_OWN = ("report", "systems", "show", "export", "k8s", "rm", "sims", "explain", "doctor")
"""Commands of no kind of study."""


def module_of(command: str) -> str:
    """Name the module of a command."""
    if command in _OWN:
        return f"leadline.commands.{command}"
    return f"leadline.{_MODULES.get(command, f'studies.{command}.command')}"


class _Commands(TyperGroup):
    """The group of COMMANDS, each made from its module when it is asked for."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._only_named = False
        self.commands: Any = dict.fromkeys(COMMANDS)  # the names, for typer's "Did you mean"

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names in the order of the help."""
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Load a command; None when there is none of this name."""
        if cmd_name not in COMMANDS:
            return None
        if self._only_named:
            return TyperCommand(cmd_name, callback=None, help=COMMANDS[cmd_name])
        module = importlib.import_module(module_of(cmd_name))
        if hasattr(module, "app"):  # it has sub-commands
            return typer.main.get_command(module.app)
        alone = typer.Typer(
            add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False
        )
        alone.command(name=cmd_name)(module.command)
        return typer.main.get_command(alone)

    def shell_complete(self, ctx: Any, incomplete: str) -> Any:
        """Return what may follow; of a command its name and its help, without loading any."""
        self._only_named = True
        try:
            return super().shell_complete(ctx, incomplete)
        finally:
            self._only_named = False

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the list of commands without loading any."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


app = typer.Typer(
    cls=_Commands,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="Measure a storage system as a whole: `leadline survey DIR` finds its levels and their "
    "throughput by workload, with confidence intervals.",
)


def _format_version(asked: bool) -> None:
    if asked:
        from leadline.machine.build import version_words  # noqa: PLC0415 - it loads the engine

        typer.echo(version_words())
        raise typer.Exit


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
    debug: Annotated[
        bool, typer.Option("--debug", help="Show a traceback when something fails.")
    ] = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", help="Print everything: charts, evidence, every warning.")
    ] = False,
    version: Annotated[  # noqa: ARG001 - its callback answers
        bool,
        typer.Option(
            "--version",
            callback=_format_version,
            is_eager=True,
            help="Say the version, the commit and how the engine was built, and exit.",
        ),
    ] = False,
) -> None:
    context.obj = Context(store_url=store, debug=debug)
    verbose_answers.set(verbose)


def main() -> None:
    """Run the command and exit with DESIGN.md's code; every failure is one clear message."""
    debug = "--debug" in sys.argv
    # What a command loads is thousands of objects, and a tenth of its time went into looking for
    # garbage among them.
    gc.set_threshold(50_000, 20, 100)
    try:
        with stop_on_signals(at_last=True):
            app()
    except (LeadlineError, WorkloadError) as error:
        _leave(str(error), getattr(error, "exit_code", EXIT_REFUSED), debug)
    except (SystemExit, KeyboardInterrupt) as leaving:
        # A stop just before or after typer's own `try` comes as it is.
        if isinstance(leaving, SystemExit) and leaving.code != TYPER_INTERRUPTED:
            raise
        if rank_started() > 0:  # the first rank keeps what was measured, and says so
            sys.exit(EXIT_STOPPED)
        _leave("stopped early; what was finished before is kept", EXIT_STOPPED, debug)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(EXIT_FAULT)
    except Exception as error:
        if isinstance(error, ModuleNotFoundError):
            _require_extra(error, debug=debug)
        _leave(
            f"this is a defect in Leadline, please report it: {type(error).__name__}: {error} "
            f"at {_place(error)} (leadline --debug … shows the way there)",
            EXIT_FAULT,
            debug,
        )


def _require_extra(error: ModuleNotFoundError, *, debug: bool) -> None:
    """Leave with the name of the extra that brings the module, if one does."""
    from leadline.machine.build import format_missing  # noqa: PLC0415 - it loads the facts

    said = format_missing(error.name)
    if said is not None:
        _leave(f"{said}; what was measured is kept", EXIT_REFUSED, debug)


def _place(error: Exception) -> str:
    """Where it was raised: a defect on a machine far away is seldom seen twice."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"{Path(frame.filename).name}:{frame.lineno} ({frame.name})"


def _leave(message: str, code: int, debug: bool) -> None:
    if debug:
        traceback.print_exc()
    talk(f"leadline: {message}")
    sys.exit(code)
