"""kill -9 at random moments, and --resume: no finished item lost, the same plan, nothing left."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import msgspec

from attempts.kinds import KINDS, Kind
from attempts.outcome import Asked, Attempt
from attempts.scene import Ended, Scene, ended, pid_of, scene, wait_or_end

FAMILY = "kills"
SITTINGS_MOST = 4
"""Of a study: then it is let go on to its end, so that ends are seen as well."""
_OWN = {
    *("point_id", "item_id", "study_id", "job_id", "parent"),
    *("started_at", "wall_s", "clock_s", "facts"),
}
"""What differs between two studies that answer alike."""


def attempts(asked: Asked) -> Iterator[Attempt]:
    """Kill every kind of study at so many moments."""
    for kind in KINDS:
        if not asked.short or kind.name in ("measure", "peak, simulated"):
            yield from _killed(kind, asked)


def _killed(kind: Kind, asked: Asked) -> Iterator[Attempt]:
    with scene() as place:
        kind.prepare(place)
        chain = _Chain(kind, place)
        if kind.simulated:
            chain.remember_undisturbed()
        draws = asked.draws(FAMILY, kind.name)
        kills = asked.rounds(1.0)
        for number in range(1, kills + 1):
            attempt = Attempt(FAMILY, kind.name, asked.seed, f"kill {number}")
            chain.kill(attempt, draws.uniform(0.0, kind.span_s))
            if chain.sittings == SITTINGS_MOST or number == kills:
                chain.finish(attempt)
            yield attempt


class _Chain:
    """A study that is killed, resumed, killed again; then the next one."""

    def __init__(self, kind: Kind, place: Scene) -> None:
        self.kind, self.place = kind, place
        self.sittings = 0
        """Of the study at hand."""
        self._before = place.kept()
        self._resumed = False
        self._expected: list[bytes] | None = None

    def remember_undisturbed(self) -> None:
        """Run a study without harm: the others are to find what it found."""
        done = self.place.run(*self.kind.words(self.place), point_s=self.kind.point_s)
        assert done.code == 0, done.said
        self._before = self.place.kept()
        self._expected = self._answer()

    def kill(self, attempt: Attempt, moment_s: float) -> None:
        """Start or resume, and kill at this moment; a study that ends before it is followed on."""
        while True:
            with self.place.start(*self._words(), point_s=self.kind.point_s) as child:
                if wait_or_end(child, moment_s):
                    seen = self.place.kept()
                    with suppress(ProcessLookupError):  # it has just ended by itself
                        os.kill(pid_of(child), signal.SIGKILL)
                    child.process.join()
                    break
                self._held_to_its_end(attempt, ended(child))
                moment_s *= 0.6
        attempt.left += self.place.wait_gone() + self.place.outside(*self.kind.beside)
        after = self.place.kept()
        attempt.lost += self._before.lost_in(after) + seen.lost_in(after)
        self._before = after
        self.sittings += 1

    def finish(self, attempt: Attempt) -> None:
        """Resume to the end."""
        with self.place.start(*self._words(), point_s=self.kind.point_s) as child:
            self._held_to_its_end(attempt, ended(child))

    def _words(self) -> list[str]:
        """The command, going on with what the last kill left, if that is anything to go on with."""
        newest = self._before.newest(self.kind.records)
        self._resumed = newest is not None and newest.status != "done" and newest.items > 0
        return [*self.kind.words(self.place), *["--resume"] * self._resumed]

    def _held_to_its_end(self, attempt: Attempt, done: Ended) -> None:
        attempt.expect_code(done.code, 0, said=done.said)
        after = self.place.kept()
        attempt.lost += self._before.lost_in(after)
        attempt.left += self.place.left(*self.kind.beside)
        newest = after.newest(self.kind.records)
        if newest is None or newest.status != "done":
            attempt.wrong.append("it ended with 0 and is not done in the store")
        if self._resumed and after.starts.keys() != self._before.starts.keys():
            attempt.wrong.append("--resume began another study")
        self._before, self.sittings = after, 0
        if self._expected is not None and self._answer() != self._expected:
            attempt.lost.append("the answer: it is not that of an undisturbed study")

    def _answer(self) -> list[bytes]:
        """Return what the newest study measured, without what no two studies share."""
        newest = self._before.newest(self.kind.records)
        assert newest is not None
        found = (item for study, item in self._before.items if study == newest.study_id)
        return sorted(msgspec.json.encode(_alike(msgspec.json.decode(item))) for item in found)


def _alike(document: Any) -> Any:
    """Return a document without what is its own."""
    if isinstance(document, list):
        return [_alike(each) for each in document]
    if isinstance(document, dict):
        return {name: _alike(each) for name, each in document.items() if name not in _OWN}
    return document
