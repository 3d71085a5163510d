"""The target goes away in the middle: unmounted, removed, renamed, made unwritable."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from random import Random

from attacker import NOBODY, as_nobody, become_nobody
from attempts.disks import FLOOR_BYTES, MIB, mounted_memory, unmount, why_no_mounts
from attempts.kinds import POINT_S
from attempts.outcome import Asked, Attempt
from attempts.scene import Scene, ended, scene, wait_or_end, wait_until

FAMILY = "target lost"
_SIZE = ("--max-bytes", "512MiB", "--cache-limit", "none")
"""The least that is not refused without a control group, which a user may not make."""
_WORKLOAD = "unique_bytes=16MiB,size_mean=4KiB,read_frac=0.5"


@dataclass(frozen=True)
class Course:
    """A command on a directory."""

    name: str
    words: Callable[[Path], list[str]]
    later_s: float
    point_s: float = 0.0


COURSES = (
    Course(
        "measure",
        lambda at: ["measure", str(at), "--workload", _WORKLOAD, "--seconds", "1", "--runs", "2"],
        later_s=3.0,
    ),
    Course(
        "survey",
        lambda at: ["survey", str(at), *_SIZE, "--budget", "60s"],
        later_s=3.0,
        point_s=POINT_S,
    ),
    Course(
        "cache",
        lambda at: ["cache", str(at), *_SIZE, "--budget", "60s"],
        later_s=3.0,
        point_s=POINT_S,
    ),
    Course(
        "files",
        lambda at: [
            *("files", str(at), "--filesystems", "existing"),
            *("--file-size", "4MiB", "--runs", "30"),
        ],
        later_s=1.0,
    ),
    Course(
        "stream",
        lambda at: [
            *("stream", "scale", str(at), "--size", "4MiB", "--memory", "64MiB"),
            *("--repeat", "30"),
        ],
        later_s=1.5,
    ),
)


def _unmounted(at: Path) -> None:
    unmount(at)


def _removed(at: Path) -> None:
    shutil.rmtree(at, ignore_errors=True)


def _own_removed(at: Path) -> None:
    shutil.rmtree(at / ".leadline", ignore_errors=True)


def _data_removed(at: Path) -> None:
    for path in at.glob(".leadline/run-*/*"):
        with suppress(OSError):
            path.unlink()


def _renamed(at: Path) -> None:
    at.rename(at.with_name("elsewhere"))


def _unwritable(at: Path) -> None:
    for path in (*at.glob(".leadline/run-*"), at / ".leadline", at):
        with suppress(OSError):
            path.chmod(0)


HARMS: dict[str, Callable[[Path], None]] = {
    "unmounted": _unmounted,
    "removed": _removed,
    ".leadline removed": _own_removed,
    "its files removed": _data_removed,
    "renamed": _renamed,
    "chmod 000": _unwritable,
    "chmod 000, as a user": _unwritable,
}


def attempts(asked: Asked) -> Iterator[Attempt]:
    """Take the target away from every kind of study in every way."""
    for name, harm in HARMS.items():
        if asked.short and name != "removed":
            continue
        for course in COURSES[:1] if asked.short else COURSES:
            if why := why_not(name):
                yield Attempt(FAMILY, name, asked.seed, untried=why)
                break
            for number in range(asked.rounds(0.1)):
                draws = asked.draws(FAMILY, course.name, name, number)
                yield _tried(course, name, harm, asked.seed, draws)


def why_not(name: str) -> str:
    """Say why a harm cannot be done here; nothing when it can."""
    if name == "unmounted":
        return why_no_mounts()
    if not name.endswith("as a user"):
        return ""

    def look() -> None:
        Path(sys.executable).resolve().stat()

    if os.geteuid() != 0:
        return "only root may become another user"
    try:
        as_nobody(look)
    except AssertionError:
        return f"nobody but root may run {Path(sys.executable).resolve()}"
    return ""


def _tried(
    course: Course, name: str, harm: Callable[[Path], None], seed: int, draws: Random
) -> Attempt:
    attempt = Attempt(FAMILY, course.name, seed, name)
    with scene() as place, ExitStack() as stack:
        beside = place.base / "precious"
        beside.write_text("precious")
        if name == "unmounted":
            stack.enter_context(mounted_memory(place.target, FLOOR_BYTES + 1024 * MIB))
        steer = become_nobody if name.endswith("as a user") else None
        if steer is not None:
            for path in (place.base, place.target, place.temporary):
                os.chown(path, NOBODY, NOBODY)
        words = course.words(place.target)
        with place.start(*words, point_s=course.point_s, steer=steer) as child:
            wait_until(lambda: any(place.target.glob(".leadline/run-*/*")), child)
            wait_or_end(child, draws.uniform(0.0, course.later_s))
            harm(place.target)
            done = ended(child)
        attempt.expect_code(done.code, 0, 1, 2, 3, 5, said=done.said)
        if beside.read_text() != "precious":
            attempt.lost.append("a file beside the target")
        attempt.left += place.wait_gone() + _elsewhere(place, name)
    return attempt


def _elsewhere(place: Scene, name: str) -> list[str]:
    """What is left where Leadline still could reach it: in the directory it was given."""
    if name == "renamed":
        return [f"file {path}" for path in place.base.glob("elsewhere/*")]
    return [f"temporary {path.name}" for path in place.temporary.iterdir()]
