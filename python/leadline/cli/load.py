"""What a stored survey was measured on."""

from __future__ import annotations

from leadline.engine import Simulated, Target
from leadline.record import Survey


def surveyed_target(survey: Survey) -> Target:
    """Return the target of a survey; of a simulated one the very system that was surveyed.

    Raises:
        TargetRefused: it cannot be used now.

    """
    start = survey.start
    if start.system_profile is not None:
        return Simulated(text=start.target, profile=start.system_profile)
    return Target.parse(start.target)
