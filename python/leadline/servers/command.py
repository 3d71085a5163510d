"""Any server and any load generator, by commands of the user's own experiment file.

docs/reference/load-generator.md says what the commands are given and what is to be printed.
"""

from __future__ import annotations

import difflib
import os
import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from leadline.errors import TargetRefused
from leadline.machine.stop import shielded
from leadline.record.workbench import CommandServer, Trial, TrialOrder, TrialState
from leadline.servers.commands import Commands, Ended
from leadline.servers.load_document import NonsensePrinted, measured_of, read_document
from leadline.servers.sample_state import SampleState, hold_state
from leadline.servers.verdict import Outcome, state_of, timed_trial

_PLACEHOLDER = re.compile(r"\{\{|\}\}|\{([A-Za-z_]\w*)\}")


class _Words(msgspec.Struct, frozen=True):
    """The commands of one trial, filled in."""

    prepare: tuple[str, ...]
    set_up: tuple[str, ...]
    load: tuple[str, ...]
    check: tuple[str, ...]
    tear_down: tuple[str, ...]
    environment: dict[str, str]


def run_command_trial(order: TrialOrder, server: CommandServer) -> Trial:
    """Prepare once, set up, load, tear down; whatever the commands started ends with the trial.

    Raises:
        TargetRefused: a command has an unknown placeholder or is not on this machine, a factor is
            in no command, or another trial of the sample is under way here.

    """
    directory = Path(server.directory or ".").resolve()
    if not directory.is_dir():
        raise TargetRefused(f"{directory}, where the commands are to run, is not on this machine")

    def conduct() -> Outcome:
        with hold_state(order.server, order.sample) as state:
            words = _fill(server, order, state.directory)
            _require_programs(words, directory)
            with Commands(directory, words.environment) as commands:
                return _conduct(commands, words, order, server, state)

    return timed_trial(order, conduct)


def _conduct(
    commands: Commands, words: _Words, order: TrialOrder, server: CommandServer, state: SampleState
) -> Outcome:
    """Run the trial's commands in order; the server is torn down once its set-up was begun."""
    time_out_s = server.time_out_s
    if words.prepare and not state.prepared:
        state.empty()
        trouble = commands.run(words.prepare, seconds_max=time_out_s).trouble
        if trouble:
            return Outcome(TrialState.FAILED, f"prepare: {trouble}")
    state.mark_prepared()
    try:
        outcome = _set_up_and_load(commands, words, order, time_out_s)
    finally:
        trouble = None
        if words.tear_down:
            with shielded():
                trouble = commands.run(words.tear_down, seconds_max=time_out_s).trouble
    if trouble and outcome.state in (TrialState.DONE, TrialState.ABORTED):
        # The next trial would begin on a machine that is not as this one found it.
        return Outcome(TrialState.FAILED, f"tear_down: {trouble}", outcome.measured)
    return outcome


def _set_up_and_load(
    commands: Commands, words: _Words, order: TrialOrder, time_out_s: float
) -> Outcome:
    if words.set_up:
        ended = commands.run(words.set_up, seconds_max=time_out_s, leaves_server=True)
        if ended.trouble:
            return Outcome(TrialState.FAILED, f"set_up: {ended.trouble}")
    ended = commands.run(words.load, seconds_max=order.request.seconds + time_out_s)
    outcome = _judge(ended, order)
    if outcome.state is TrialState.FAILED and words.check:
        trouble = commands.run(words.check, seconds_max=time_out_s).trouble
        if trouble:
            return Outcome(
                TrialState.SERVER_LOST,
                f"the server was lost at {order.request.rate_per_s:g} requests/s; check: {trouble}",
            )
    return outcome


def _judge(ended: Ended, order: TrialOrder) -> Outcome:
    if ended.trouble:
        return Outcome(TrialState.FAILED, f"load: {ended.trouble}")
    try:
        document = read_document(ended.output)
        if document.server_lost is not None:
            return Outcome(TrialState.SERVER_LOST, document.server_lost)
        measured = measured_of(document, order.request, order.threshold)
    except NonsensePrinted as error:
        said = f"; it said: {ended.last_lines}" if ended.last_lines and not ended.output else ""
        return Outcome(
            TrialState.FAILED,
            f"load: {ended.program} did not print the JSON of a load generator: {error}{said} "
            "(docs/reference/load-generator.md)",
        )
    return Outcome(*state_of(measured, order.request, order.threshold), measured)


def _fill(server: CommandServer, order: TrialOrder, state: Path) -> _Words:
    """Put the trial's values into the commands."""
    own = _values(order, state)
    clash = sorted(own.keys() & order.sample.keys())
    if clash:
        raise TargetRefused(f"the factor {clash[0]!r} has a placeholder's name; name it otherwise")
    values = own | {name: _spell(level) for name, level in order.sample.items()}
    used: set[str] = set()

    def fill(texts: Sequence[str]) -> tuple[str, ...]:
        return tuple(_filled(text, values, used) for text in texts)

    words = _Words(
        prepare=fill(server.prepare),
        set_up=fill(server.set_up),
        load=fill(server.load),
        check=fill(server.check),
        tear_down=fill(server.tear_down),
        environment=dict(
            zip(server.environment, fill(tuple(server.environment.values())), strict=True)
        ),
    )
    idle = sorted(order.sample.keys() - used)
    if idle:
        raise TargetRefused(
            f"the factor {idle[0]!r} is in no command, so it would change nothing; write "
            f"{{{idle[0]}}} where it belongs"
        )
    for name in ("rate", "seconds"):
        if name not in used:
            raise TargetRefused(f"no command is given {{{name}}}; the load generator needs it")
    return words


def _values(order: TrialOrder, state: Path) -> dict[str, str]:
    request, limit_ms = order.request, order.threshold.limit_ms
    abort_ms = request.abort_above_ms
    return {
        "rate": f"{request.rate_per_s:.6g}",
        "seconds": f"{request.seconds:g}",
        "seed": str(order.seed),
        "state": str(state),
        "limit_ms": "" if limit_ms is None else f"{limit_ms:g}",
        "abort_above_ms": "" if abort_ms is None else f"{abort_ms:g}",
    }


def _spell(level: str | float) -> str:
    return f"{level:.6g}" if isinstance(level, float) else str(level)


def _filled(text: str, values: Mapping[str, str], used: set[str]) -> str:
    def value(found: re.Match[str]) -> str:
        name = found[1]
        if name is None:
            return found[0][0]
        if name not in values:
            close = difflib.get_close_matches(name, values, 1)
            hint = f"did you mean {{{close[0]}}}?" if close else f"known: {', '.join(values)}"
            raise TargetRefused(f"{text!r} has an unknown placeholder {found[0]}; {hint}")
        used.add(name)
        return values[name]

    return _PLACEHOLDER.sub(value, text)


def _require_programs(words: _Words, directory: Path) -> None:
    if not words.load:
        raise TargetRefused("the experiment has no load command")
    path = words.environment.get("PATH", os.environ.get("PATH"))
    for command in (words.prepare, words.set_up, words.load, words.check, words.tear_down):
        if not command:
            continue
        program = command[0]
        # One with a slash is looked for from the directory in which it will run.
        place = str(directory / program) if "/" in program else program
        if shutil.which(place, path=path) is None:
            raise TargetRefused(f"there is no program {program!r} on this machine; install it")
