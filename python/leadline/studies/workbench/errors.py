"""What can be wrong with an experiment before or while it runs."""

from __future__ import annotations

from leadline.errors import LeadlineError


class ExperimentRefused(LeadlineError):
    """The experiment file, or what was asked of it, makes no sense; nothing was started."""

    exit_code = 2


class ReplayRefused(LeadlineError):
    """The stored trials are not those this policy would ask for; they are kept as they are."""

    exit_code = 2
