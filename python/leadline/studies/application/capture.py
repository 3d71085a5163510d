"""A program watched as it runs: its trace, and the run held beside its description."""

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
from leadline.record import Interval, Measurement
from leadline.record.application import (
    Application,
    ApplicationStart,
    Capture,
    CommandEnded,
    Perturbation,
    PhaseFound,
    Reuse,
)
from leadline.record.wording import format_count, format_interval, format_number
from leadline.stats.intervals import runs_interval
from leadline.store import Keeper
from leadline.studies.application.characterize import describe, format_ended
from leadline.studies.application.synthetic import Synthetic
from leadline.studies.application.trace import Trace, TraceRefused, require_requests
from leadline.units import format_bytes, format_percent

# A phase that was run, beside its description: rate, what the page cache held, time in I/O.


class Beside(msgspec.Struct, frozen=True, kw_only=True):
    """What was measured, and what the description says of the same."""

    phase: int
    """From 1."""
    requests_per_s: Interval
    described_per_s: float | None
    in_io: float
    """Share of the workers' time."""
    described_in_io: float | None
    miss_ratio: float | None
    """Of the bytes read; None where nothing tells."""
    like_cache_bytes: float | None
    """Size of the LRU cache that would miss as much, compulsory misses left out."""
    weights_error: float
    """Largest difference between a stream's share of the requests and the one asked."""
    begun_again: int
    """Rounds through data that the application used once."""
    not_mapped: tuple[str, ...]


def beside(application: Application, synthetic: Synthetic, point: Measurement) -> Beside:
    """Return both sides."""
    phase, result = synthetic.phase, point.result
    misses = None if result.cached_share is None else 1.0 - result.cached_share
    once = [
        count.rounds
        for asked, count in zip(synthetic.streams, result.streams, strict=True)
        if asked.places.__struct_config__.tag == "once"
    ]
    return Beside(
        phase=phase.order + 1,
        requests_per_s=result.iops,
        described_per_s=_rate(phase),
        in_io=result.io_share,
        described_in_io=phase.in_io,
        miss_ratio=misses,
        like_cache_bytes=None if misses is None else _like(application.found.reuse, misses),
        weights_error=_weights_error(synthetic, point),
        begun_again=sum(once),
        not_mapped=tuple(str(each) for each in point.findings if each.code == "not_mapped"),
    )


def _rate(phase: PhaseFound) -> float | None:
    if phase.from_s is None or phase.to_s is None or phase.to_s <= phase.from_s:
        return None
    return phase.requests / (phase.to_s - phase.from_s)


def _like(reuse: Reuse, misses: float) -> float | None:
    """Return the bytes of the LRU cache that misses so much once it is full of this."""
    first = reuse.first_touches
    if first >= 1.0 or not 0.0 < misses < 1.0:
        return None
    low, high = 0.0, 1.1 * reuse.unique_pages * reuse.page_bytes
    for _ in range(60):
        middle = (low + high) / 2
        steady = (reuse.lru_misses(middle) - first) / (1.0 - first)
        low, high = (low, middle) if steady <= misses else (middle, high)
    return high


def _weights_error(synthetic: Synthetic, point: Measurement) -> float:
    asked = [stream.weight for stream in synthetic.streams]
    counts = [count.operations for count in point.result.streams]
    pairs = zip(asked, counts, strict=True)
    return max(abs(weight / sum(asked) - count / max(1, sum(counts))) for weight, count in pairs)


def format_beside(found: Beside) -> Iterator[str]:
    """Say it in sentences."""
    rate = format_interval(found.requests_per_s, lambda value: f"{value:,.0f}")
    described = (
        "the trace says no times"
        if found.described_per_s is None
        else f"{found.described_per_s:,.0f} where it was traced"
    )
    yield f"Phase {found.phase} ran at {rate} requests/s; {described}."
    traced = (
        "" if found.described_in_io is None else f"; {format_percent(found.described_in_io)} traced"
    )
    yield f"It was in I/O for {format_percent(found.in_io)} of the workers' time{traced}."
    if found.miss_ratio is not None:
        like = (
            ""
            if found.like_cache_bytes is None
            else (
                f", as of an LRU cache of {format_bytes(found.like_cache_bytes)} (compulsory "
                "misses left out)"
            )
        )
        yield f"{format_percent(found.miss_ratio)} of the bytes read came from the device{like}."
    yield f"Its streams' shares are within {format_number(100 * found.weights_error)} points."
    if found.begun_again:
        rounds = format_count(found.begun_again, "time")
        yield f"Data used once began again {rounds}: a cache that holds them finds them there."
    yield from (f"{said[0].upper()}{said[1:]}." for said in found.not_mapped)


# Characterise a program as it runs: a command, a process, a control group.


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
        f"{watched.said} is not described{format_ended(capture.ended)}: it made",
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
        how = (
            "was stopped" if run.stopped else f"ended otherwise{format_ended(run.ended) or ' (0)'}"
        )
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
