"""What can go wrong with a store."""

from __future__ import annotations

from leadline.errors import LeadlineError


class StoreError(LeadlineError):
    """The store cannot be used, or does not hold what was asked for."""

    exit_code = 2


class NotStored(StoreError):
    """No study goes by what was asked for."""


class UpdateFinishedError(StoreError):
    """Something finished was to be changed; finished points and surveys never are."""

    exit_code = 1
