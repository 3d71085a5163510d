"""A disk that answers with an error (EIO), stands still for a while, or is pulled out."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random

from attempts.disks import MIB
from attempts.faulty_fs import Faulty, faulty, why_no_fuse
from attempts.kinds import CAP, POINT_S
from attempts.outcome import Asked, Attempt
from attempts.scene import Scene, ended, scene, stats_of, wait_or_end, wait_until

FAMILY = "I/O errors"
STILL_S = 2.0
"""How long the disk stands still."""
_LAID_BYTES = 2 * MIB


def _measured(*more: str) -> Callable[[Path], list[str]]:
    workload = "unique_bytes=4MiB,size_mean=16KiB,read_frac=0.5"
    seconds = () if "--seconds" in more else ("--seconds", "2")
    run = ("--runs", "1", *seconds, *more)
    return lambda target: ["measure", str(target), "--workload", workload, *run]


def _survey(target: Path) -> list[str]:
    return ["survey", str(target), *CAP, "--budget", "60s"]


def _cache(target: Path) -> list[str]:
    return ["cache", str(target), *CAP, "--budget", "60s"]


def _files(target: Path) -> list[str]:
    effort = ("--file-size", "4MiB", "--runs", "20")
    return ["files", str(target), "--filesystems", "existing", *effort]


def _stream(target: Path) -> list[str]:
    effort = ("--size", "8MiB", "--memory", "64MiB", "--repeat", "20")
    return ["stream", "scale", str(target), "--kernels", "sort", *effort]


@dataclass(frozen=True)
class Course:
    """A command, and what fails of the disk in the middle of it."""

    kind: str
    how: str
    words: Callable[[Path], list[str]]
    fails: tuple[str, ...]
    at_once: bool = False
    """Before anything is laid out."""
    point_s: float = 0.0


COURSES = (
    Course("measure", "write by pread", _measured(), ("write",)),
    Course("measure", "write by uring", _measured("--backend", "uring"), ("write",)),
    Course("measure", "write by mmap", _measured("--backend", "mmap"), ("write",)),
    Course("measure", "read by pread", _measured("--direct"), ("read",)),
    Course("measure", "read by uring", _measured("--direct", "--backend", "uring"), ("read",)),
    Course("measure", "fsync", _measured("--sync", "dsync"), ("fsync",)),
    Course("measure", "laying out", _measured(), ("write",), at_once=True),
    Course("measure", "create", _measured(), ("create",), at_once=True),
    Course("measure", "unlink", _measured(), ("unlink",)),
    Course("survey", "write", _survey, ("write",), point_s=POINT_S),
    Course("survey", "all", _survey, ("read", "write", "fsync"), point_s=POINT_S),
    Course("cache", "write", _cache, ("write",), point_s=POINT_S),
    Course("files", "write", _files, ("write",)),
    Course("files", "read", _files, ("read",)),
    Course("stream", "write", _stream, ("write",)),
    Course("stream", "read", _stream, ("read",)),
)


def attempts(asked: Asked) -> Iterator[Attempt]:
    """Break the disk below every kind of study."""
    if why := why_no_fuse():
        yield Attempt(FAMILY, "all", asked.seed, untried=why)
        return
    for course in COURSES[1:2] if asked.short else COURSES:
        for number in range(asked.rounds(0.1)):
            draws = asked.draws(FAMILY, course.kind, course.how, number)
            yield _tried(course, course.how, asked.seed, draws, _errors(course))
    for name, harm in () if asked.short else HARMS.items():
        for course in (COURSES[0], COURSES[1], COURSES[9], COURSES[12]):
            draws = asked.draws(FAMILY, course.kind, name)
            yield _tried(course, name, asked.seed, draws, harm)
    yield Attempt(FAMILY, "device mapper", asked.seed, untried=why_no_mapper())


Harm = Callable[[Faulty], None]


def _errors(course: Course) -> Harm:
    return lambda disk: disk.switch.fail(*course.fails)


def _stand_still(disk: Faulty) -> None:
    disk.stand_still()
    # By a process, since this one may come to wait for the file system itself.
    subprocess.Popen(["sh", "-c", f"sleep {STILL_S}; kill -CONT {disk.server}"])


def _pull_out(disk: Faulty) -> None:
    os.kill(disk.server, signal.SIGKILL)


HARMS: dict[str, Harm] = {"stands still": _stand_still, "pulled out": _pull_out}


def _tried(course: Course, how: str, seed: int, draws: Random, harm: Harm) -> Attempt:
    attempt = Attempt(FAMILY, course.kind, seed, how)
    pulled = harm is _pull_out
    with scene() as place, faulty(place.target) as disk:
        if course.at_once:
            harm(disk)
        with place.start(*course.words(place.target), point_s=course.point_s) as child:
            if not course.at_once:
                wait_until(lambda: _laid_out(place.target), child)
                wait_or_end(child, draws.uniform(0.0, 1.0))
                harm(disk)
            done = ended(child)
        promised = (0,) if harm is _stand_still else (0, 1, 2, 3, 5)
        attempt.expect_code(done.code, *promised, said=done.said)
        attempt.left += place.wait_gone()
        if not pulled:
            disk.switch.fail()
            _well_again(attempt, place)
    return attempt


def _laid_out(target: Path) -> bool:
    found = target.glob(".leadline/run-*/*")
    return any(each.st_size >= _LAID_BYTES for each in stats_of(found))


def _well_again(attempt: Attempt, place: Scene) -> None:
    """What could not be removed is removed by the next start."""
    done = place.run(*_measured("--seconds", "0.3")(place.target))
    if done.code != 0:
        attempt.wrong.append(f"no use of a disk that is well again: {done.said[-300:]}")
    attempt.left += place.left()


def why_no_mapper() -> str:
    """Say why the kernel's own faulty devices (dm-error, dm-flakey) cannot be used."""
    if shutil.which("dmsetup") is None:
        return "dmsetup is not installed"
    done = subprocess.run(["dmsetup", "targets"], capture_output=True, text=True, check=False)
    if done.returncode:
        return f"dmsetup targets: {' '.join(done.stderr.split())[:120]}"
    return "it is there, and fails no otherwise than the file system above"
