"""An unprivileged user, who owns the target's directory, against root: swaps without an end.

He renames `.leadline` away, puts a tree of his own there whose names are links to files of root's,
takes it away again and puts the true one back, as fast as he can, from a random moment on until the
command has ended. He is told the run's name, which he could learn from a loop device.
"""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from random import Random

from attacker import LAYS, NOBODY, PRECIOUS, Arena, Lay, arena_below_tmp, attacker
from attempts.kinds import CAP, COMMAND_SERVER, GENERATOR, POINT_S, SMALL
from attempts.outcome import Asked, Attempt
from attempts.scene import Scene, ended, scene, wait_or_end, wait_until
from leadline.engine.targets.claim import DIRECTORY

FAMILY = "races"
COMMANDS: dict[str, list[str]] = {
    "measure": ["--workload", SMALL, "--seconds", "1", "--runs", "2"],
    "survey": [*CAP, "--budget", "60s"],
    "cache": [*CAP, "--budget", "60s"],
    "files": [
        *("--filesystems", "existing,ext4", "--block-sizes", "4KiB"),
        *("--file-size", "4MiB", "--runs", "10"),
    ],
    "stream scale": ["--size", "4MiB", "--memory", "64MiB", "--repeat", "6"],
}
HURRIED = ("survey", "cache")


def attempts(asked: Asked) -> Iterator[Attempt]:
    """Race against every kind of study that root runs in a user's directory."""
    if os.geteuid() != 0:
        why = "only root has something that an unprivileged user may not write"
        yield Attempt(FAMILY, "all", asked.seed, untried=why)
        return
    for command in list(COMMANDS)[:1] if asked.short else COMMANDS:
        for lay in LAYS[1:2] if asked.short else LAYS:
            for number in range(asked.rounds(0.2)):
                draws = asked.draws(FAMILY, command, lay.__name__, number)
                yield _raced(command, lay, asked.seed, draws)
    for number in range(0 if asked.short else asked.rounds(0.4)):
        yield _output_raced(asked.seed, asked.draws(FAMILY, "sort", number))
    for before in ("a link", "a directory"):
        yield _temporary_taken(before, asked.seed)


def _raced(command: str, lay: Lay, seed: int, draws: Random) -> Attempt:
    attempt = Attempt(FAMILY, command, seed, lay.__name__)
    with scene() as place, arena_below_tmp() as arena:
        words = [*command.split(), str(arena.place), *COMMANDS[command]]
        point_s = POINT_S * (command in HURRIED)
        with place.start(*words, point_s=point_s) as child:
            wait_until(lambda: any((arena.place / DIRECTORY).glob("run-*")), child)
            wait_or_end(child, draws.uniform(0.0, 1.0))
            run = next((arena.place / DIRECTORY).glob("run-*"), Path("run-gone")).name
            with attacker(partial(_swap_for_ever, arena, run, lay, draws.random())):
                done = ended(child)
        attempt.expect_code(done.code, 0, 1, 2, 3, 5, said=done.said)
        _judge(attempt, place, arena)
    return attempt


def _swap_for_ever(arena: Arena, run: str, lay: Lay, seed: float) -> None:
    draws = Random(seed)  # noqa: S311 - no secret
    own = arena.place / DIRECTORY
    while True:
        with suppress(OSError):
            own.rename(arena.moved)
        with suppress(OSError):
            own.mkdir()
            lay(arena, own / run)
        time.sleep(draws.uniform(0.0, 0.02))
        if not (own / run).is_symlink():
            shutil.rmtree(own / run, ignore_errors=True)
        with suppress(OSError):
            (own / run).unlink()
        with suppress(OSError):
            own.rmdir()
            arena.moved.rename(own)
        time.sleep(draws.uniform(0.0, 0.02))


def _judge(attempt: Attempt, place: Scene, arena: Arena) -> None:
    if arena.facts() != arena.before:
        attempt.lost.append("something of root's was touched")
    for path in arena.home.rglob("*"):
        facts = path.lstat()
        # The directory itself cannot be removed while it has another name.
        if facts.st_uid == 0 and path not in (arena.moved, arena.place / DIRECTORY):
            attempt.left.append(f"{path.relative_to(arena.home)} of root's")
    attempt.left += place.left()


def _output_raced(seed: int, draws: Random) -> Attempt:
    """The output's own name is swapped for a link to a file of root's, and back."""
    attempt = Attempt(FAMILY, "stream sort", seed)
    with scene() as place, arena_below_tmp() as arena:
        source, output = place.base / "in", arena.place / "out"
        made = place.run("stream", "generate", str(source), "--records", "50000")
        attempt.expect_code(made.code, 0, said=made.said)
        options = ("--memory", "48MiB", "--no-bound", "--runs", "6", "--replace")
        with place.start("stream", "sort", str(source), str(output), *options) as child:
            wait_or_end(child, draws.uniform(0.0, 0.5))
            with attacker(partial(_link_for_ever, output, arena.victim / "data.bin")):
                done = ended(child)
        attempt.expect_code(done.code, 0, 1, 2, 3, 5, said=done.said)
        if arena.facts() != arena.before:
            attempt.lost.append("something of root's was touched")
        attempt.left += place.left()
    return attempt


def _link_for_ever(output: Path, victim: Path) -> None:
    while True:
        with suppress(OSError):
            output.unlink()
        with suppress(OSError):
            output.symlink_to(victim)
        time.sleep(0.001)


def _temporary_taken(what: str, seed: int) -> Attempt:
    """What a peak search keeps lies below a temporary directory that everybody may write in."""
    attempt = Attempt(FAMILY, "peak", seed, f"its place is {what}")
    with scene() as place:
        victim = place.base / "victim"
        victim.mkdir()
        (victim / "precious").write_bytes(PRECIOUS)
        place.temporary.chmod(0o1777)
        taken = place.temporary / "leadline-0"
        if what == "a link":
            taken.symlink_to(victim)
        else:
            taken.mkdir()
        os.chown(taken, NOBODY, NOBODY, follow_symlinks=False)
        file = place.base / "experiment.toml"
        file.write_text(COMMAND_SERVER.format(python=sys.executable, generator=GENERATOR))
        done = place.run("peak", str(file), "--no-compare", "--deadline", "20s")
        attempt.expect_code(done.code, 5, said=done.said)
        if [path.name for path in victim.rglob("*")] != ["precious"]:
            attempt.lost.append("root's directory was written in")
        if what == "a directory" and list(taken.iterdir()):
            attempt.left.append(f"files in the user's directory: {list(taken.iterdir())}")
    return attempt
