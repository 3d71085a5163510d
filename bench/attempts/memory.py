"""The kernel kills the engine for want of memory, and the wall clock is set in the middle."""

from __future__ import annotations

from collections.abc import Iterator

from attempts.kinds import SMALL
from attempts.outcome import Asked, Attempt
from attempts.scene import scene
from leadline.errors import CacheLimitRefused
from leadline.machine.cgroup import memory_cgroup

FAMILY = "memory"
GREEDY = "unique_bytes=256MiB,size_mean=8MiB,size_dist=fixed,read_frac=0,process_num=16"
"""Request buffers of 128 MiB, in a group of 32."""


def attempts(asked: Asked) -> Iterator[Attempt]:
    """Ask for more memory than the engine's group has."""
    if why := _why_no_group():
        yield Attempt(FAMILY, "measure", asked.seed, untried=why)
        return
    for _ in range(asked.rounds(0.2)):
        yield _killed(asked.seed)


def _why_no_group() -> str:
    try:
        with memory_cgroup(64 << 20):
            return ""
    except CacheLimitRefused as refused:
        return str(refused)


def _killed(seed: int) -> Attempt:
    attempt = Attempt(FAMILY, "measure", seed)
    with scene() as place:
        words = ("measure", str(place.target), "--cache-limit", "32MiB", "--seconds", "1")
        done = place.run(*words, "--workload", GREEDY, "--runs", "1")
        attempt.expect_code(done.code, 1, said=done.said)
        if "more memory than its cgroup has" not in done.said:
            attempt.wrong.append(f"it does not say why: {done.said[-300:]}")
        attempt.left += place.left()
        again = place.run(*words, "--workload", SMALL, "--runs", "1")
        attempt.expect_code(again.code, 0, said=again.said)
        attempt.left += place.left()
    return attempt
