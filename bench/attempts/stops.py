"""Signals to every kind of study: it stops, says so with exit code 3, and leaves nothing."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from random import Random

from attempts.kinds import KINDS, Kind
from attempts.outcome import Asked, Attempt
from attempts.scene import (
    Scene,
    ended,
    expect_status,
    hears,
    pid_of,
    scene,
    wait_or_end,
    wait_until,
)
from leadline.record import Status

FAMILY = "signals"
INT, TERM, HUP = signal.SIGINT, signal.SIGTERM, signal.SIGHUP
STOP, CONT = signal.SIGSTOP, signal.SIGCONT
COURSES = {
    "INT": (INT,),
    "TERM": (TERM,),
    "HUP": (HUP,),
    "INT, INT": (INT, INT),
    "TERM, INT, HUP": (TERM, INT, HUP),
    "STOP, CONT": (STOP, CONT),
    "STOP, TERM, CONT": (STOP, TERM, CONT),
}
PAUSE_S = 0.4
"""At most, between two signals of a course."""


def attempts(asked: Asked) -> Iterator[Attempt]:
    """Send every course of signals to every kind of study, at random moments."""
    for kind in KINDS:
        if asked.short and kind.name != "measure":
            continue
        with scene() as place:
            kind.prepare(place)
            for name in ("INT", "STOP, TERM, CONT") if asked.short else COURSES:
                draws = asked.draws(FAMILY, kind.name, name)
                for _ in range(asked.rounds(0.2)):
                    yield _signalled(place, kind, name, asked.seed, draws)


def _signalled(place: Scene, kind: Kind, name: str, seed: int, draws: Random) -> Attempt:
    attempt = Attempt(FAMILY, kind.name, seed, name)
    before = place.kept()
    with place.start(*kind.words(place), point_s=kind.point_s) as child:
        wait_until(lambda: hears(pid_of(child), HUP), child)
        going = wait_or_end(child, draws.uniform(0.0, kind.span_s / 2))
        for number in COURSES[name]:
            if child.process.exitcode is None:
                os.kill(pid_of(child), number)
                wait_or_end(child, draws.uniform(0.0, PAUSE_S))
        done = ended(child)
    stops = going and COURSES[name] != (STOP, CONT)
    # A signal may come when the work is done, and the answer is told.
    attempt.expect_code(done.code, *((3, 0) if stops else (0,)), said=done.said)
    after = place.kept()
    attempt.lost += before.lost_in(after)
    attempt.left += place.left(*kind.beside, *() if done.code == 0 else kind.kept)
    if after.starts.keys() != before.starts.keys():
        # Also while the answer is told: then 3 comes of a study that is done.
        right = (Status.DONE,) if done.code == 0 else (Status.STOPPED, Status.DONE)
        expect_status(attempt, after, kind.records, *right)
    if done.code == 3 and "stopped early" not in done.said:
        attempt.wrong.append(f"it does not say that it was stopped: {done.said[-300:]}")
    return attempt
