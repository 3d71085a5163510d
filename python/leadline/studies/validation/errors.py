"""What can stop a validation; each message says what to type next."""

from __future__ import annotations

from leadline.errors import LeadlineError


class ValidationRefused(LeadlineError):
    """The survey, the system or the options allow no honest validation."""

    exit_code = 2
