"""What became of one attempt, and the counts of many."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from random import Random

DEFECT = ("defect in Leadline", "Traceback", "panicked")
"""Words of a message that must never be needed."""
PLAN_REFUSED = "may be used on the target and"
"""Words of a plan that is refused: nothing was harmed, whatever the exit code."""


@dataclass
class Attempt:
    """One harm done, and what was found wrong after it."""

    family: str
    kind: str
    """What it was done to."""
    seed: int
    """Makes the same attempt again: `bench/faults.py --only FAMILY --seed SEED`."""
    how: str = ""
    """What was done, where a family has several ways."""
    lost: list[str] = field(default_factory=list)
    """What was stored or owned before and is not there, or not as it was."""
    left: list[str] = field(default_factory=list)
    """Files, processes, groups, devices, mounts and limits that should be gone."""
    wrong: list[str] = field(default_factory=list)
    """Exit codes, statuses and messages that are not as promised."""
    ended: list[str] = field(default_factory=list)
    """How each command ended: its exit code, and the last that it said."""
    untried: str = ""
    """Why this machine cannot do it; then nothing was tried."""

    @property
    def survived(self) -> bool:
        """Whether nothing was found."""
        return not (self.lost or self.left or self.wrong or self.untried)

    def expect_code(self, code: int | None, *promised: int, said: str = "") -> None:
        """Hold an exit code and what was said on stderr to what is promised."""
        last = (said.strip().splitlines() or ["nothing was said"])[-1]
        self.ended.append(f"{code}: {last[:300]}")
        if code not in promised:
            self.wrong.append(f"exit code {code}, not one of {promised}: {last[:300]}")
        self.wrong += [f"{word}: {said.strip()[-600:]}" for word in DEFECT if word in said]
        self.wrong += [f"refused, so that nothing was tried: {last[:300]}"] * (PLAN_REFUSED in said)

    def told(self) -> list[str]:
        """Return everything found, each with what it is."""
        pairs = (("lost", self.lost), ("left", self.left), ("wrong", self.wrong))
        return [f"{what}: {why}" for what, found in pairs for why in found]


Family = Callable[["Asked"], Iterator[Attempt]]


@dataclass(frozen=True)
class Asked:
    """How much is to be tried."""

    seed: int
    kills: int
    """Of every kind of study; other families take a share of it."""
    short: bool = False
    """What a test has time for: fewer kinds, and one of each."""

    def draws(self, *what: object) -> Random:
        """Return the random numbers of one attempt: of the seed and its name, nothing else."""
        return Random(f"{self.seed} {what}")  # noqa: S311 - no secret

    def rounds(self, share: float, short: int = 1) -> int:
        """Return how often something is tried, as a share of the kills."""
        return short if self.short else max(1, round(self.kills * share))


@dataclass(frozen=True)
class Count:
    """All attempts of one kind in one family."""

    family: str
    kind: str
    tried: int
    survived: int
    lost: int
    left: int
    wrong: int
    untried: str


def counts(attempts: Iterable[Attempt]) -> list[Count]:
    """Count attempts by family and kind, in the order in which they came."""
    groups: dict[tuple[str, str], list[Attempt]] = {}
    for attempt in attempts:
        groups.setdefault((attempt.family, attempt.kind), []).append(attempt)
    return [
        Count(
            family,
            kind,
            tried=sum(not each.untried for each in found),
            survived=sum(each.survived for each in found),
            lost=sum(bool(each.lost) for each in found),
            left=sum(bool(each.left) for each in found),
            wrong=sum(bool(each.wrong) for each in found),
            untried=next((each.untried for each in found if each.untried), ""),
        )
        for (family, kind), found in groups.items()
    ]
