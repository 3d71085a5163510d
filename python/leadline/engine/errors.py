"""What can go wrong between the controller, the engine and the target."""

from __future__ import annotations

from leadline.errors import LeadlineError


class TargetRefused(LeadlineError):  # noqa: N818 - the contract's name
    """The target is unknown, unsafe or unusable; nothing was touched."""

    exit_code = 2


class CacheLimitRefused(LeadlineError):  # noqa: N818 - says what happened, as TargetRefused does
    """Memory cannot be capped as asked; a silent full-memory run would answer something else."""

    exit_code = 2


class PointFailed(LeadlineError):  # noqa: N818 - the contract's name
    """One point could not be measured; the engine is still good for the next one."""


class EngineFault(LeadlineError):  # noqa: N818 - the contract's name
    """The engine itself failed: it died, hung, or spoke nonsense."""
