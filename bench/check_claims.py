"""What a claim about this machine is, and what comes of trying it."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from command import leadline

MIB = 2**20


class CannotTellError(Exception):
    """Why a claim can be neither held nor refuted here."""


class BrokenError(Exception):
    """What went wrong with Leadline itself, which is no fault of the machine."""


@dataclass(frozen=True)
class Found:
    """What was measured, in words, and whether it is what was wanted."""

    holds: bool
    measured: str


@dataclass(frozen=True)
class Claim:
    """One sentence that is true on a calm machine."""

    name: str
    wanted: str
    measure: Callable[[Path], Found]
    """Measures in an empty directory of its own."""


def told_by(*arguments: str, folder: Path, timeout_s: float = 300.0) -> dict[str, Any]:
    """Run `leadline … --json`; return its answer.

    Raises:
        CannotTellError: it was refused here, or its time was up; with its words.
        BrokenError: it ended in any other way.

    """
    done = leadline(*arguments, "--json", store=folder / "store.sqlite", timeout_s=timeout_s)
    if done.returncode != 0:
        last = " ".join(done.stderr.splitlines()[-1:])
        said = f"leadline {arguments[0]} ended with {done.returncode}: {last}"
        raise (CannotTellError if done.returncode in (2, 3) else BrokenError)(said)
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def new_directory(folder: Path, name: str) -> Path:
    """Make an empty directory."""
    made = folder / name
    made.mkdir()
    return made


def cannot_if(why: str | None) -> None:
    """Leave a claim open when there is a reason."""
    if why:
        raise CannotTellError(why)
