"""Options that several commands share, read as people write them."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from glob import escape
from pathlib import Path
from typing import Annotated, Any, TypeVar

import msgspec
import typer

from leadline.errors import LeadlineError, UsageRefused
from leadline.record import Access
from leadline.record.access import ACCESS_OPTIONS
from leadline.record.workload import parse_share
from leadline.terminal.context import Context
from leadline.terminal.talk import talk
from leadline.units import parse_bytes, parse_seconds

_Value = TypeVar("_Value")


def reader(parse: Callable[[str], _Value]) -> Callable[[str | _Value], _Value]:
    """Turn a parser of text into one that typer can use; its ValueError becomes the message."""

    def read(text: str | _Value) -> _Value:
        try:
            return parse(text) if isinstance(text, str) else text
        except ValueError as error:
            raise typer.BadParameter(str(error)) from error

    return read


def positive_bytes(text: str) -> int:
    """A size above zero."""
    size = parse_bytes(text)
    if size <= 0:
        raise ValueError(f"{text!r} is not above zero")
    return size


def positive_seconds(text: str) -> float:
    """A duration above zero."""
    seconds = parse_seconds(text)
    if seconds <= 0:
        raise ValueError(f"{text!r} is no time at all; write for example 90s or 10m")
    return seconds


def duration(said: str, *names: str) -> Any:
    """Return the option of a time, `90s` or `10m`, with what its help says."""
    return typer.Option(*names, parser=reader(positive_seconds), metavar="TIME", help=said)


def share_between(low: float, high: float) -> Callable[[str | float], float]:
    """Return what reads a share from `low` to `high`, for an option."""

    def read(text: str) -> float:
        value = parse_share(text)
        if not low <= value <= high:
            raise ValueError(
                f"{text!r} is not between {low:g} and {high:g} ({100 * low:g}% to {100 * high:g}%)"
            )
        return value

    return reader(read)


def cache_limit_bytes(text: str) -> int:
    """A size above zero; `none` is zero: the machine's whole memory."""
    return 0 if text.lower() == "none" else positive_bytes(text)


CacheLimit = Annotated[
    int | None,
    typer.Option(
        parser=reader(cache_limit_bytes),
        metavar="SIZE|none",
        help="Run in a memory cgroup of this size, so that a machine with much memory has a "
        "small page cache.  [default: as much as lets the budget reach the disk; for measure none]",
    ),
]
Name = Annotated[
    str | None,
    typer.Option(
        metavar="S", help="Name of the system, to find it again.  [default: of the target]"
    ),
]
MaxBytes = Annotated[
    int | None,
    typer.Option(
        parser=reader(positive_bytes),
        metavar="SIZE",
        help="Most data to lay out on the target, what lies there at one time; requests write "
        "over it again and again: --max-written limits that.  [default: all but 5% of the file "
        "system, at least 1 GiB, a quarter below 4 GiB]",
    ),
]
MaxWritten = Annotated[
    int | None,
    typer.Option(
        parser=reader(positive_bytes),
        metavar="SIZE",
        help="Most bytes to write in all, layout and requests together: a limit of wear, at which "
        "it ends with what it has; --resume with a larger one goes on.  [default: no limit]",
    ),
]
Precondition = Annotated[
    int | None,
    typer.Option(
        parser=reader(positive_bytes),
        metavar="SIZE",
        help="Write at most this much first, until the device is on its sustained rate.  "
        "[default: nothing]",
    ),
]


def with_group(
    parameter: str, options: Mapping[str, tuple[Any, Any]], make: Callable[..., Any]
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command a group of options in place of one parameter, which is made of them.

    Args:
        parameter: of the command; keyword only.
        options: what each option is, for typer, and its default.
        make: called with those that were given, by name; returns the parameter's value.

    """

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        signature = inspect.signature(command, eval_str=True)
        added = [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=told, default=usual)
            for name, (told, usual) in options.items()
        ]
        parameters: list[inspect.Parameter] = []
        for each in signature.parameters.values():
            parameters += added if each.name == parameter else [each]

        @functools.wraps(command)
        def run(*arguments: Any, **given: Any) -> None:
            asked = {name: given.pop(name) for name in options if name in given}
            command(*arguments, **{parameter: make(**asked)}, **given)

        run.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
        run.__annotations__ = {each.name: each.annotation for each in parameters} | {"return": None}
        return run

    return decorate


_CHARTS = (".svg", ".png", ".pdf")
"""Suffixes of which several files may be written, each with its chart's name."""
Force = Annotated[bool, typer.Option("--force", help="Overwrite a file that is there already.")]


def new_file(path: Path | None, *, force: bool) -> Path | None:
    """Return where to write.

    Raises:
        TargetRefused: a file is there, and nobody said that it may be overwritten.

    """
    if path is not None and not force:
        require_new(path)
    return path


def require_new(path: Path) -> None:
    """Refuse to overwrite a file, or a chart that would be written beside it.

    Raises:
        TargetRefused: it is there.

    """
    beside = f"{escape(path.stem)}-*{escape(path.suffix)}"
    charts = path.parent.glob(beside) if path.suffix.lower() in _CHARTS else ()
    for each in (path, *charts):
        if each.is_file() or each.is_symlink():
            raise UsageRefused(
                f"{each} is there already; add --force to overwrite it, or give another name"
            )


def with_output(
    said: str, *names: str, parameter: str = "output"
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command the option of a file to write, and --force beside it.

    Args:
        said: in the help.
        names: of the option; `-o` and `--output` without.
        parameter: of the command that gets the path.

    """
    option = typer.Option(*(names or ("-o", "--output")), metavar="FILE", help=said)

    def make(*, force: bool = False, **path: Path | None) -> Path | None:
        return new_file(path.get(parameter), force=force)

    told = {parameter: (Annotated[Path | None, option], None), "force": (Force, False)}
    return with_group(parameter, told, make)


def _declared(name: str, kind: type, told: Any) -> tuple[Any, Any]:
    """Return what a declared option is for typer, and its default."""
    if kind is bool:
        return Annotated[bool, typer.Option(f"--{name}", help=told.description)], False
    extra = told.extra or {}
    read = extra.get("parse", kind)
    option = typer.Option(
        parser=reader(read), metavar=extra.get("metavar"), help=told.description, show_default=False
    )
    return Annotated[kind | None, option], None


with_access = with_group(
    "access",
    {name: _declared(name, *told) for name, told in ACCESS_OPTIONS.items()},
    lambda **asked: Access(**{name: said for name, said in asked.items() if said is not None}),
)
"""Gives a command the options of how storage is reached, in place of its `access`."""


def capped(access: Access, cache_limit: int | None) -> Access:
    """Put the option --cache-limit into an access; 0 is no limit."""
    return msgspec.structs.replace(access, cache_limit_bytes=cache_limit or None)


def given_access(context: typer.Context) -> frozenset[str]:
    """Return the names of the options of access that the user gave."""
    sources = {name: context.get_parameter_source(name) for name in ACCESS_OPTIONS}
    return frozenset(name for name, it in sources.items() if it and it.name != "DEFAULT")


Json = Annotated[bool, typer.Option("--json", help="One JSON document on stdout.")]
Seed = Annotated[int, typer.Option(min=0, help="Decides order, addresses and simulated noise.")]


def complete_targets(incomplete: str) -> list[str]:
    """Return the simulated systems that begin so; directories are the shell's."""
    from leadline.engine.targets.profiles import profile_names  # noqa: PLC0415 - for a shell alone

    names = (f"sim:{name}" for name in profile_names())
    return [name for name in names if incomplete and name.startswith(incomplete)]


def complete_studies(context: typer.Context, incomplete: str) -> list[tuple[str, str]]:
    """Return systems and ids of the store that begin so, each with what it is."""
    from leadline.record.kinds import KINDS  # noqa: PLC0415 - for a shell alone

    try:
        store = Context(context.find_root().params.get("store")).read_store()
        found = [item for kind in KINDS for item in store.list(kind)]
    except LeadlineError:  # a shell has no use for what is wrong with it
        return []
    told = {item.system: f"newest {item.kind}" for item in found}
    told |= {item.study_id[:8]: f"{item.kind} of {item.system}" for item in found}
    return [(name, said) for name, said in told.items() if name.startswith(incomplete)]


def study_argument(metavar: str, said: str) -> Any:
    """Return the argument of stored studies, which a shell completes."""
    return typer.Argument(metavar=metavar, help=said, autocompletion=complete_studies)


TargetArgument = Annotated[
    str,
    typer.Argument(
        metavar="TARGET",
        help="DIR, nfs://HOST/PATH, sim:NAME, sim:FILE.toml or null:",
        autocompletion=complete_targets,
    ),
]
Ref = Annotated[str, study_argument("S", "A survey's id or the first letters of it, or a system.")]


def print_ignored_options(context: typer.Context, began: Mapping[str, tuple[bool, str]]) -> None:
    """Say which options were given in vain: what is resumed keeps those that it began with.

    Args:
        context: of the command.
        began: of each option whether it says what the study began with, and what that is.

    """
    for name, (alike, said) in began.items():
        source = context.get_parameter_source(name)
        if not alike and source is not None and source.name == "COMMANDLINE":
            typed = name.replace("_", "-")
            talk(f"note: --{typed} is not used: with --resume it goes on as it began ({said})")
