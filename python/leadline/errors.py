"""The root of every error Leadline raises on purpose."""

from __future__ import annotations


class LeadlineError(Exception):
    """Something a person can act on: the message says what, why, and what to type next."""

    exit_code = 1
    """What the command line ends with (DESIGN.md: 0 done, 1 fault, 2 refused, 3 stopped early)."""
