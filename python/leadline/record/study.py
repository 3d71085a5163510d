"""A study: what a person asked for at one time, as a survey, a validation or an experiment.

It is a start, which decides it; items, each durable when it is known; and an answer.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Generic, Protocol, TypeVar

import msgspec

from leadline.record.finding import Finding


class Status(StrEnum):
    """The life of a study; a finished one is never edited."""

    RUNNING = "running"
    STOPPED = "stopped"
    """Ended early with what was measured kept; `--resume` goes on."""
    DONE = "done"


class StudyStart(msgspec.Struct, frozen=True, kw_only=True):
    """What every start says; each kind's own has all that decides it."""

    study_id: str
    system: str
    """The name by which it is found again."""
    started_at: str
    """UTC, ISO 8601."""

    @property
    def target(self) -> str:
        """What was measured, in words."""
        raise NotImplementedError

    @property
    def beyond(self) -> tuple[str, ...]:
        """How it was reached, as far as that is not as usual: `direct`, `compress 4`."""
        return ()

    @property
    def simulated(self) -> bool:
        """Whether its time is a simulated system's, for which nobody waits."""
        return self.target.startswith("sim:")

    @property
    def parent(self) -> str | None:
        """Id of the study that this one is about."""
        return None


class Item(Protocol):
    """Something that happened in a study."""

    @property
    def order(self) -> int:
        """Place in its group, from 0 without a gap."""

    @property
    def item_id(self) -> str | None:
        """Id of something that was measured; None of what only says how the study went."""


class Answer(Protocol):
    """What a study found, beside its items."""

    @property
    def wall_s(self) -> float:
        """How long it took."""


class TextAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of a study that is told in words."""

    sentences: tuple[str, ...]
    findings: tuple[Finding, ...]
    wall_s: float


class ElapsedAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of a study whose items say all that was found."""

    wall_s: float
    written_bytes: int = 0
    """Bytes written on the target, a run included that was ended and is no item."""


S_co = TypeVar("S_co", bound=StudyStart, covariant=True)
A_co = TypeVar("A_co", bound=Answer, covariant=True)


@dataclass(frozen=True)
class Records(Generic[S_co, A_co]):
    """One kind of study: its documents, and what it is called."""

    kind: str
    start: type[S_co]
    item: Any
    """The type of its items, maybe a union."""
    answer: type[A_co]
    said: str
    """What a person calls it."""
    made_by: str
    """The command that makes one."""
    named: bool = True
    """Whether its system's name means it; otherwise only its id does."""


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """One line of a list of studies."""

    kind: str
    study_id: str
    system: str
    target: str
    started_at: str
    """UTC, ISO 8601."""
    status: Status
    items: int
    """Those that have an id: what was measured."""
    parts: int = 0
    """Those without one: of a measurement the single runs, of which it is made when it is whole."""
    parent: str | None
    wall_s: float | None
    """None until the study ended or stopped."""
    host_name: str | None = None
    """Where it was measured; None of a simulated system, and where a trace does not say."""
    leadline_version: str | None = None

    @property
    def origin(self) -> str:
        """Where it was measured, and by which version; nothing where neither is known."""
        version = self.leadline_version and f"Leadline {self.leadline_version}"
        return ", ".join(filter(None, (self.host_name, version)))


def derive_seed(seed: int, order: int) -> int:
    """Seed of one point: 63 bits, the same in every process and on every machine."""
    digest = hashlib.blake2b(f"{seed}:{order}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 1


def point_id(run_id: str, order: int) -> str:
    """Id of a point of a survey or a validation: the same for the same run and order."""
    return hashlib.blake2b(f"{run_id}:{order}".encode(), digest_size=16).hexdigest()
