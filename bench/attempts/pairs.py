"""Two at once: on one store, on one target, on one study."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from random import Random

from attempts.kinds import SMALL, kind
from attempts.outcome import Asked, Attempt
from attempts.scene import ended, scene, wait_or_end, wait_until
from leadline.record import Status

FAMILY = "two at once"
EVERYONE = 4


def attempts(asked: Asked) -> Iterator[Attempt]:
    """Start two, or four, and let them meet at a random moment."""
    for number in range(asked.rounds(0.4)):
        yield _on_one_store(asked.seed, asked.draws(FAMILY, "store", number))
    for number in range(asked.rounds(0.4)):
        yield _on_one_target(asked.seed, asked.draws(FAMILY, "target", number))
    for number in range(0 if asked.short else asked.rounds(0.4)):
        yield _on_one_study(asked.seed, asked.draws(FAMILY, "study", number))


def _on_one_store(seed: int, draws: Random) -> Attempt:
    """All make the store at the same moment, and write into it side by side."""
    attempt = Attempt(FAMILY, "one store", seed)
    words = ("measure", "sim:two-level", "--workload", SMALL, "--seconds", "5")
    with scene() as place:
        children = []
        for _ in range(EVERYONE):
            children.append(place.start(*words))
            wait_or_end(children[-1], draws.uniform(0.0, 0.1))
        for child in children:
            with child:
                done = ended(child)
                attempt.expect_code(done.code, 0, said=done.said)
        kept = place.kept()
        whole = [each for each in kept.summaries if each.status is Status.DONE]
        if len(whole) != EVERYONE:
            attempt.lost.append(f"{EVERYONE} were told, {len(whole)} are kept")
        attempt.left += place.left()
    return attempt


def _on_one_target(seed: int, draws: Random) -> Attempt:
    """The second is refused, whenever it comes; the first does not notice."""
    attempt = Attempt(FAMILY, "one target", seed)
    with scene() as place:
        words = ("measure", str(place.target), "--workload", SMALL, "--runs", "1", "--seconds", "2")
        with place.start(*words) as first:
            wait_until(lambda: any(place.target.glob(".leadline/run-*")), first)
            if not wait_or_end(first, draws.uniform(0.0, 1.0)):
                attempt.untried = "the first ended before the second began"
                return attempt
            (leader,) = place.leaders
            os.kill(leader, signal.SIGSTOP)  # it is there, however slow the second is
            # With a store of its own: the first may stand still with its store locked.
            second = place.run("--store", str(place.base / "second.sqlite"), *words)
            os.kill(leader, signal.SIGCONT)
            done = ended(first)
        attempt.expect_code(done.code, 0, said=done.said)
        attempt.expect_code(second.code, 5, said=second.said)
        if "in use by another Leadline" not in second.said:
            attempt.wrong.append(f"the second does not say why: {second.said[-300:]}")
        if [each.status for each in place.kept().summaries].count(Status.DONE) != 1:
            attempt.lost.append("the first one's answer")
        attempt.left += place.left()
    return attempt


def _on_one_study(seed: int, draws: Random) -> Attempt:
    """Two go on with one simulated study, where no claim keeps them apart: the store does."""
    attempt = Attempt(FAMILY, "one study", seed)
    searched = kind("peak, simulated")
    with scene() as place:
        words = searched.words(place)
        with place.start(*words) as child:
            wait_until(lambda: place.kept().items, child)
            wait_or_end(child, draws.uniform(0.0, 0.3))
        before = place.kept()
        again = [*words, "--resume"]
        with place.start(*again) as first, place.start(*again) as second:
            both = [ended(first), ended(second)]
        attempt.lost += before.lost_in(place.kept())
        for done in both:
            attempt.expect_code(done.code, 0, 1, 2, 3, 5, said=done.said)
        if all(done.code for done in both):
            attempt.wrong.append(f"neither came to an end: {[done.said[-200:] for done in both]}")
        attempt.left += place.left()
    return attempt
