"""A place of its own for one attempt: a target, a store, a temporary directory, all found again."""

from __future__ import annotations

import functools
import os
import shutil
import signal
import tempfile
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from subprocess import CompletedProcess, TimeoutExpired

import msgspec

from attempts.outcome import Attempt
from attempts.settle import Steer, settle
from command import environment
from forked_command import Forked
from leadline.machine.dirty_guard import read_limits
from leadline.machine.dirty_limits import FOLDER, RECORD, VM
from leadline.machine.hierarchy import own_groups
from leadline.record import Status
from leadline.record.study import Summary
from leadline.store import StoreError, open_store
from left_behind import loops_of, mounted_below, processes_with

HANG_S = 600.0
"""Nothing that is waited for takes this long, unless it hangs, beside twelve other tasks either."""
GONE_S = 20.0
"""What ends by itself after a kill has ended by then, however busy the machine is."""
MACHINE_LOCK = Path("/run/lock/leadline-machine")


class Kept(msgspec.Struct):
    """What a store holds, to be held against what it holds later."""

    starts: dict[str, bytes]
    items: Counter[tuple[str, bytes]]
    """Each with its study."""
    summaries: tuple[Summary, ...] = ()

    def newest(self, kind: str) -> Summary | None:
        """Return the newest study of a kind."""
        return next((each for each in self.summaries if each.kind == kind), None)

    def lost_in(self, later: Kept) -> list[str]:
        """Say what of it is missing or changed later."""
        gone = self.items - later.items
        changed = [
            study for study, start in self.starts.items() if later.starts.get(study) != start
        ]
        return [f"{gone.total()} of {self.items.total()} items"] * bool(gone) + [
            f"the plan of study {study[:8]}" for study in changed
        ]


class Scene:
    """Where one attempt, or one chain of them, happens."""

    alone = False
    """Whether nothing else of Leadline's runs here: then the machine's lock is looked at, too."""

    def __init__(self, base: Path) -> None:
        self.base = base
        self.target, self.temporary = base / "target", base / "tmp"
        self.store = base / "store.sqlite"
        self.mark = f"LEADLINE_ATTEMPT={uuid.uuid4().hex}"
        self.leaders: list[int] = []
        for folder in (self.target, self.temporary):
            folder.mkdir(parents=True, exist_ok=True)
        self._limits = usual_limits()

    def start(self, *words: str, point_s: float = 0.0, steer: Steer | None = None) -> Forked:
        """Start a command; its points take at most `point_s` where that is not 0."""
        variables = environment(self.store) | {"TMPDIR": str(self.temporary)}
        name, _, value = self.mark.partition("=")
        steered = partial(settle, str(self.temporary), point_s, steer)
        child = Forked(words, variables | {name: value}, steered)
        assert child.process.pid is not None
        self.leaders.append(child.process.pid)
        return child

    def run(self, *words: str, point_s: float = 0.0, hang_s: float = HANG_S) -> Ended:
        """Run a command to its end."""
        with self.start(*words, point_s=point_s) as child:
            return ended(child, hang_s)

    def kept(self) -> Kept:
        """Read the whole store; one that was killed while it was made holds nothing."""
        items: Counter[tuple[str, bytes]] = Counter()
        starts: dict[str, bytes] = {}
        try:
            opened = open_store(str(self.store), reading=True)
        except StoreError as error:
            if "is an empty database" not in str(error):
                raise
            return Kept(starts, items)
        with opened as store:
            summaries = store.list()
            for each in summaries:
                starts[each.study_id] = msgspec.json.encode(store.find(each.study_id).start)
                found = map(msgspec.json.encode, store.items(each.study_id))
                items.update((each.study_id, item) for item in found)
        return Kept(starts, items, summaries)

    def wait_gone(self) -> list[str]:
        """Wait for what must end by itself after any end, and say what did not."""
        end_s = time.monotonic() + GONE_S
        while (found := self._running()) and time.monotonic() < end_s:
            time.sleep(0.05)
        return found

    def _running(self) -> list[str]:
        mounts = [f"mount {each}" for each in mounted_below(self.target)]
        loops = [f"loop device {each}" for each in loops_of(self.target)]
        processes = [f"process {each}" for each in processes_with(self.mark)]
        return processes + loops + mounts + self._limits_left()

    def _limits_left(self) -> list[str]:
        """Dirty limits that were changed here; others may be varying them just now."""
        record = FOLDER / RECORD
        with suppress(OSError, msgspec.DecodeError):
            owner = msgspec.json.decode(record.read_bytes())["pid"]
            return [f"{record} of process {owner}"] if owner in self.leaders else []
        now = read_limits(VM)
        return [] if now == self._limits else [f"dirty limits {now}, before {self._limits}"]

    def left(self, *allowed: str) -> list[str]:
        """Say what is left after an end in order: nothing may be, but files of these names."""
        found = self.wait_gone()
        files = (path for path in self.target.rglob("*") if path.name not in allowed)
        found += [f"file {path.relative_to(self.base)}" for path in files]
        places = (path for path in self.temporary.iterdir() if path.name not in allowed)
        found += [f"temporary {path.name}" for path in places]
        found += [f"control group {path}" for pid in self.leaders for path in _groups_of(pid)]
        return found + ([f"lock {MACHINE_LOCK}"] if self.alone and _lock_left() else [])

    def outside(self, *allowed: str) -> list[str]:
        """Say what lies outside `.leadline` after a kill."""
        own = {".leadline", *allowed}
        return [f"file {path.name}" for path in self.target.iterdir() if path.name not in own]


class Ended(msgspec.Struct, frozen=True):
    """How a command ended."""

    code: int | None
    """None when it hung, and was killed."""
    out: str
    said: str


def ended(child: Forked, hang_s: float = HANG_S) -> Ended:
    """Wait for a command's end."""
    try:
        done: CompletedProcess[str] = child.wait(hang_s)
    except TimeoutExpired as hung:
        return Ended(None, "", f"it hung for {hang_s:g} s; it had said {hung.stderr!r}")
    return Ended(done.returncode, done.stdout, done.stderr)


@contextmanager
def scene(below: Path | None = None) -> Iterator[Scene]:
    """Make a scene until the block ends; whatever became of it, nothing of it stays."""
    base = Path(tempfile.mkdtemp(prefix="leadline-fault-", dir=below))
    base.chmod(0o755)
    made = Scene(base)
    try:
        yield made
    finally:
        end_all(made)
        shutil.rmtree(base, ignore_errors=True)


def end_all(made: Scene) -> None:
    """End what a failed attempt left, so that it harms no other."""
    for found in processes_with(made.mark):
        with suppress(ProcessLookupError):
            os.kill(int(found.split()[0]), signal.SIGKILL)
    made.wait_gone()


def stats_of(paths: Iterable[Path]) -> Iterator[os.stat_result]:
    """Yield what is known of each file, without those that are removed meanwhile."""
    for path in paths:
        with suppress(FileNotFoundError):
            yield path.stat()


def wait_until(holds: Callable[[], object], child: Forked, hang_s: float = HANG_S) -> bool:
    """Wait for a moment of a command; False when it ended, or never came so far."""
    end_s = time.monotonic() + hang_s
    while time.monotonic() < end_s:
        if holds():
            return True
        if child.process.exitcode is not None:
            return False
        time.sleep(0.005)
    return False


def wait_or_end(child: Forked, seconds: float) -> bool:
    """Wait so long; False when the command ended before."""
    child.process.join(seconds)
    return child.process.exitcode is None


def hears(pid: int, number: signal.Signals) -> bool:
    """Tell whether a process has a handler for a signal (proc(5), SigCgt)."""
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("SigCgt:"):
                return bool(int(line.split()[1], 16) >> (number - 1) & 1)
    return False


def pid_of(child: Forked) -> int:
    """Return the process of a command."""
    assert child.process.pid is not None
    return child.process.pid


def expect_status(attempt: Attempt, kept: Kept, kind: str, *right: Status) -> None:
    """Hold the newest study's status to what it may be; one without an item was only begun."""
    newest = kept.newest(kind)
    if newest is not None and newest.items and newest.status not in right:
        attempt.wrong.append(f"the {kind} is {newest.status} in the store")


@functools.cache
def usual_limits() -> dict[str, int]:
    """Return the kernel's dirty limits at a moment at which no Leadline varies them."""
    end_s = time.monotonic() + HANG_S
    while (FOLDER / RECORD).exists() and time.monotonic() < end_s:
        time.sleep(0.05)
    return read_limits(VM)


def _groups_of(pid: int) -> list[str]:
    """Control groups that a command made for itself, in any hierarchy."""
    own = set(own_groups(Path("/proc/self")).values()) | {"/"}
    found = {
        group
        for top in Path("/sys/fs/cgroup").iterdir()
        for path in own
        for group in (top / path.lstrip("/")).glob(f"leadline-{pid}-*")
    }
    return sorted(map(str, found))


def _lock_left() -> bool:
    """Whether the machine's lock lies there and nobody holds it, also a moment later."""
    for _ in range(5):
        try:
            inode = MACHINE_LOCK.stat().st_ino
        except FileNotFoundError:
            return False
        if f":{inode} " in Path("/proc/locks").read_text():
            return False
        time.sleep(0.1)
    return True
