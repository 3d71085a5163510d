"""The root of every error Leadline raises on purpose, and what can go wrong with a target."""

from __future__ import annotations


class LeadlineError(Exception):
    """Something a person can act on: the message says what, why, and what to type next."""

    exit_code = 1
    """What the command line ends with (docs/reference/stability.md)."""


class WorkloadError(ValueError):
    """A workload that makes no sense; the message says what to type instead."""


class TargetRefused(LeadlineError):
    """The target is unknown, unsafe or unusable; nothing was touched."""

    exit_code = 5


class UsageRefused(TargetRefused):
    """What was typed, or what is stored, makes no sense for the target."""

    exit_code = 2


class CacheLimitRefused(LeadlineError):
    """Memory cannot be capped as asked; a silent full-memory run would answer something else."""

    exit_code = 5


class PointFailed(LeadlineError):
    """One point could not be measured; the engine is still good for the next one."""


class NothingCompleted(PointFailed):
    """No request ended in the measured window; a longer one may measure the point."""


class ServerLost(LeadlineError):
    """A server died, was stopped, began anew or cannot be reached; what was measured is kept."""

    exit_code = 3


class EngineFault(LeadlineError):
    """The engine itself failed: it died, hung, or spoke nonsense."""
