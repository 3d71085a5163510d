"""A file system that is full in the middle: of a layout, of writes, of the store."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random

from attempts.disks import (
    FLOOR_BYTES,
    MIB,
    fill,
    mounted_ext4,
    mounted_memory,
    resize_memory,
    why_no_mounts,
)
from attempts.kinds import POINT_S, kind
from attempts.outcome import Asked, Attempt
from attempts.scene import Scene, ended, scene, stats_of, wait_or_end, wait_until

FAMILY = "full disk"
ROOM_BYTES = FLOOR_BYTES + 600 * MIB
STORE_BYTES = 192 << 10
"""Of the store's file system: enough for a beginning."""
AGAIN = "unique_bytes=4MiB,size_mean=4KiB"
ENDS = (1, 2, 3, 5)
"""An end that is told; 0 where the work needed no more room."""


@dataclass(frozen=True)
class Course:
    """A command, and the moment at which the file system is filled."""

    name: str
    words: Callable[[Path], list[str]]
    moment: Callable[[Path], bool]
    later_s: float = 0.0
    """At most, behind the moment."""
    point_s: float = 0.0


def _written(*names: str, least_bytes: int = 1) -> Callable[[Path], bool]:
    def holds(target: Path) -> bool:
        found = (path for name in names for path in target.glob(f".leadline/run-*/{name}"))
        return any(each.st_blocks * 512 >= least_bytes for each in stats_of(found))

    return holds


def _measure(target: Path) -> list[str]:
    workload = "unique_bytes=400MiB,size_mean=64KiB,read_frac=0.3"
    return ["measure", str(target), "--workload", workload, "--seconds", "2", "--runs", "1"]


def _begun(target: Path) -> bool:
    return any(target.glob(".leadline/run-*"))


_SIZE = ("--cache-limit", "64MiB", "--max-bytes", "400MiB", "--budget", "60s")
"""More than is free, and with a cache so small that the plan takes it."""

COURSES = (
    Course("measure", _measure, _written("data.bin"), later_s=0.05),
    Course("measure", _measure, _written("data.bin", least_bytes=400 * MIB), later_s=2.0),
    Course(
        "survey",
        lambda target: ["survey", str(target), *_SIZE],
        _begun,
        later_s=2.0,
        point_s=POINT_S,
    ),
    Course(
        "cache", lambda target: ["cache", str(target), *_SIZE], _begun, later_s=2.0, point_s=POINT_S
    ),
    Course(
        "files",
        lambda target: [
            *("files", str(target), "--filesystems", "existing,ext4", "--block-sizes", "4KiB"),
            *("--file-size", "16MiB", "--runs", "6"),
        ],
        _written("*.bin"),
        later_s=2.0,
    ),
    Course(
        "stream",
        lambda target: [
            *("stream", "scale", str(target), "--size", "64MiB", "--memory", "64MiB"),
            *("--repeat", "2", "--kernels", "sort"),
        ],
        _written("stream-*", "stream-in"),
        later_s=1.5,
    ),
)


def attempts(asked: Asked) -> Iterator[Attempt]:
    """Fill the disk below every kind of study, and below the store."""
    if why := why_no_mounts():
        yield Attempt(FAMILY, "all", asked.seed, untried=why)
        return
    for course in COURSES[:1] if asked.short else COURSES:
        for number in range(asked.rounds(0.2)):
            yield _filled(course, asked.seed, asked.draws(FAMILY, course.name, number))
    for number in range(asked.rounds(0.2)):
        yield _store_filled(asked.seed, asked.draws(FAMILY, "store", number))


def _filled(course: Course, seed: int, draws: Random) -> Attempt:
    attempt = Attempt(FAMILY, course.name, seed)
    with scene() as place, mounted_ext4(place.base / "image", place.target, ROOM_BYTES):
        with place.start(*course.words(place.target), point_s=course.point_s) as child:
            came = wait_until(lambda: course.moment(place.target), child)
            wait_or_end(child, draws.uniform(0.0, course.later_s))
            filler = fill(place.target)
            done = ended(child)
        if not came:
            attempt.wrong.append(f"it ended before it wrote: {done.code}: {done.said[-300:]}")
        attempt.expect_code(done.code, 0, *ENDS, said=done.said)
        attempt.left += place.left("filler")
        filler.unlink()
        _measured_again(attempt, place)
    return attempt


def _measured_again(attempt: Attempt, place: Scene) -> None:
    """With room again the same target does."""
    done = place.run(
        *("measure", str(place.target), "--workload", AGAIN, "--seconds", "0.2", "--runs", "1")
    )
    if done.code != 0:
        attempt.wrong.append(f"no use with room again: {done.code}: {done.said[-300:]}")
    attempt.left += place.left()


def _store_filled(seed: int, draws: Random) -> Attempt:
    """The store's file system has room for some items, then for none, then for all."""
    attempt = Attempt(FAMILY, "the store", seed)
    simulated = kind("peak, simulated")
    room_bytes = STORE_BYTES + draws.randrange(0, 64) * 4096
    with scene() as place, mounted_memory(place.base / "store", room_bytes) as small:
        place.store = small / "store.sqlite"
        words = simulated.words(place)
        done = place.run(*words)
        attempt.expect_code(done.code, *ENDS, said=done.said)
        if "full" not in done.said:
            attempt.wrong.append(f"it does not say that the disk is full: {done.said[-300:]}")
        resize_memory(small, 64 * MIB)
        before = place.kept()
        resumed = place.run(*words, *("--resume",) * bool(before.items))
        attempt.expect_code(resumed.code, 0, said=resumed.said)
        attempt.lost += before.lost_in(place.kept())
        attempt.left += place.left()
    return attempt
