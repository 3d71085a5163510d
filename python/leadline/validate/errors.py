"""What can stop a validation; each message says what to type next."""

from __future__ import annotations

from leadline.errors import LeadlineError


class ValidationRefused(LeadlineError):
    """The survey, the system or the options allow no honest validation."""

    exit_code = 2


class BudgetSpent(LeadlineError):
    """The time budget ended before the plan did; what was measured is kept."""

    exit_code = 3
