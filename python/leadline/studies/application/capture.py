"""Characterise a program as it runs: a command, a process, a control group."""

from __future__ import annotations

import hashlib
import os
import signal
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import msgspec

from leadline import _engine
from leadline.machine.stop import shielded, taken_stop
from leadline.record.application import (
    Application,
    ApplicationStart,
    Capture,
    CommandEnded,
    Perturbation,
)
from leadline.stats.intervals import runs_interval
from leadline.store import Keeper
from leadline.studies.application.capture_words import say_ended
from leadline.studies.application.characterize import describe
from leadline.studies.application.trace import Trace, TraceRefused, require_requests


class Watched(msgspec.Struct, frozen=True, kw_only=True):
    """Who is watched, and how: a command, or else a process, or a control group."""

    command: tuple[str, ...] = ()
    process: int | None = None
    group: str | None = None
    way: str | None = None
    """`bpf` or `ptrace`; the best that is allowed where it is not said."""
    seconds: float | None = None
    keep_paths: bool = False
    keep_trace: Path | None = None
    keep_command: bool = False
    """Whether the words after the program's name are stored: a password may be one of them."""
    pairs: int = 0
    """Of runs, watched and not, that tell how much it suffers."""

    @property
    def said(self) -> str:
        """Who, in a few words."""
        if self.process is not None:
            return f"process {self.process}"
        if self.group is not None:
            return f"cgroup {self.group}"
        return " ".join(self.command)

    @property
    def stored(self) -> str:
        """The same, as it is kept: of a command's words a hash, which tells two apart."""
        if not self.command or self.keep_command or len(self.command) == 1:
            return self.said
        words = hashlib.sha256("\0".join(self.command[1:]).encode(errors="surrogateescape"))
        return f"{self.command[0]} … ({words.hexdigest()[:8]})"

    @property
    def named(self) -> str:
        """A name of the application where nobody gives one."""
        if self.process is not None:
            return _name_of(self.process)
        path = self.group if self.group is not None else self.command[0]
        return Path(path).name.split(".")[0] or "application"


def _name_of(process: int) -> str:
    try:
        return Path(f"/proc/{process}/comm").read_text(encoding="utf-8").strip()
    except OSError:
        return f"process-{process}"


def characterize_running(
    watched: Watched,
    store: Keeper,
    *,
    name: str | None = None,
    on_requests: Callable[[int, int], object] = lambda _requests, _bytes: None,
    on_seen: Callable[[], object] = lambda: None,
) -> Application:
    """Watch a running program, and describe it; kept when it is known whole.

    Args:
        watched: who, and how.
        store: where it is kept.
        name: of the application; its program's name otherwise.
        on_requests: told requests and bytes so far, ten times a second.
        on_seen: told that all was seen.

    Raises:
        TraceRefused: it cannot be watched or described; the message says what to do instead.

    """
    system = name or watched.named  # before it runs: a process may be gone afterwards
    trace, capture = _seen(watched, on_requests)
    if watched.pairs:
        capture = msgspec.structs.replace(capture, perturbation=_perturbation(watched, capture))
    on_seen()
    began = time.monotonic()
    require_requests(
        trace.facts.requests,
        f"{watched.said} is not described{say_ended(capture.ended)}: it made",
        "give it more to do, or watch it for longer",
    )
    start = ApplicationStart(
        study_id=uuid.uuid4().hex,
        system=system,
        started_at=datetime.now(UTC).isoformat(),
        trace=watched.stored,
        facts=trace.facts,
        capture=capture,
    )
    return describe(trace, start, store, began)


def _seen(watched: Watched, on_requests: Callable[[int, int], object]) -> tuple[Trace, Capture]:
    """Watch until the end: it is the command's affair how it answers a signal."""
    with shielded(), _kept(watched.keep_trace) as (keep, put):
        try:
            read, report = _engine.capture(
                list(watched.command),
                watched.process,
                watched.group,
                way=watched.way,
                seconds=watched.seconds,
                keep_paths=watched.keep_paths,
                keep=keep,
                hear=lambda requests, bytes_: _heard(on_requests, requests, bytes_),
            )
        except ValueError as error:
            raise TraceRefused(str(error)) from None
        capture = msgspec.json.decode(report, type=Capture)
        if capture.not_kept is None:
            put()
    return Trace(read), capture


@contextmanager
def _kept(path: Path | None) -> Iterator[tuple[int | None, Callable[[], None]]]:
    """Open a new file beside `path` for the trace, and return what puts it in its place.

    What was there stays until the trace is whole, and a link there is replaced, not followed.
    """
    if path is None:
        yield None, lambda: None
        return
    own = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        keep = os.open(own, flags, 0o600)
    except OSError as error:
        raise TraceRefused(f"the trace cannot be kept in {path}: {error.strerror}") from None

    def put() -> None:
        own.replace(path)

    try:
        yield keep, put
    finally:
        own.unlink(missing_ok=True)


def _heard(
    on_requests: Callable[[int, int], object], requests: int, bytes_: int
) -> tuple[int, bool] | None:
    """Tell how far it is; return the signal that wants an end, and whether the command has it."""
    on_requests(requests, bytes_)
    name = taken_stop()
    if name is None:
        return None
    number = signal.Signals[name].value
    return number, number == signal.SIGINT and _before_a_terminal()


def _before_a_terminal() -> bool:
    """Whether a Ctrl-C goes to all of our process group, and so to the command too."""
    try:
        terminal = os.open("/dev/tty", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        return os.tcgetpgrp(terminal) == os.getpgrp()
    except OSError:
        return False
    finally:
        os.close(terminal)


def _perturbation(watched: Watched, first: Capture) -> Perturbation:
    """Run the command not watched and watched, in turns; the first watched run is done."""
    ended = first.ended

    def checked(run: _Run) -> float:
        if run.stopped is None and run.ended == ended:
            return run.wall_s
        how = "was stopped" if run.stopped else f"ended otherwise{say_ended(run.ended) or ' (0)'}"
        raise TraceRefused(
            f"--perturbation: run {len(ratios) + 1} of {watched.pairs} pairs {how}, so that no "
            "ratio is known and nothing is kept; leave --perturbation out, or give a command that "
            "ends alike each time"
        )

    ratios: list[float] = []
    for pair in range(watched.pairs):
        plain_first = pair % 2 == 1
        before = checked(_plain(watched)) if plain_first else None
        seen = _Run(first.wall_s, first.ended, first.stopped) if pair == 0 else _again(watched)
        taken = checked(seen)
        after = before if before is not None else checked(_plain(watched))
        ratios.append(taken / after)
    found = runs_interval(ratios)
    return Perturbation(pairs=watched.pairs, ratio=found.value, low=found.low, high=found.high)


class _Run(NamedTuple):
    """One run of the command."""

    wall_s: float
    ended: CommandEnded | None
    stopped: int | None


def _again(watched: Watched) -> _Run:
    own = msgspec.structs.replace(watched, keep_trace=None)
    capture = _seen(own, lambda _requests, _bytes: None)[1]
    return _Run(capture.wall_s, capture.ended, capture.stopped)


def _plain(watched: Watched) -> _Run:
    with shielded():
        wall_s, code, number, stopped = _engine.run_unwatched(
            list(watched.command), lambda _requests, _bytes: _heard(lambda *_: None, 0, 0)
        )
    return _Run(wall_s, CommandEnded(code=code, signal=number), stopped)
