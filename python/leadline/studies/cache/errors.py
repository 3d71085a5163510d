"""What a cache study can refuse."""

from __future__ import annotations

from leadline.errors import LeadlineError


class CacheStudyRefused(LeadlineError):
    """No sensible study fits; the message says which limit to change."""

    exit_code = 2
