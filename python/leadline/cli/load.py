"""What a stored survey was measured on."""

from __future__ import annotations

from pathlib import Path

from leadline.engine import Target, TargetRefused
from leadline.record import Survey


def is_relative(stored: str) -> bool:
    """Whether a stored target is a directory as it was typed: earlier Leadlines kept no more."""
    return ":" not in stored and not Path(stored).expanduser().is_absolute()


def surveyed_target(survey: Survey) -> Target:
    """Return the target of a survey; of a simulated one the very system that was surveyed.

    Raises:
        TargetRefused: it cannot be used now, or nobody can say which directory it was.

    """
    start = survey.start
    if start.system_profile is not None:
        return Target(text=start.target, kind="simulated", profile=start.system_profile)
    if is_relative(start.target):
        raise TargetRefused(
            f"survey {start.study_id[:8]} is of {start.target!r}, relative to a directory that an "
            "earlier Leadline did not keep: survey it again to measure on it"
        )
    return Target.parse(start.target)
