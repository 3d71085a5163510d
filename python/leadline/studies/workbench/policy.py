"""What can be wrong with an experiment before or while it runs."""

from __future__ import annotations

from typing import Protocol

from leadline.errors import LeadlineError
from leadline.record.workbench import PeakRate, Trial, TrialRequest


class ExperimentRefused(LeadlineError):
    """The experiment file, or what was asked of it, makes no sense; nothing was started."""

    exit_code = 2


class ReplayRefused(LeadlineError):
    """The stored trials are not those this policy would ask for; they are kept as they are."""

    exit_code = 2


# The contract of every policy that looks for a peak rate: ask, run a trial, tell.
#
# A policy is a pure, seeded conversation. It starts nothing, knows no clock, and sees only what it
# is told; so it can be replayed from the stored trials, which is how an experiment is resumed.


class Policy(Protocol):
    """One search for one peak rate. Made by `policies.open_policy`."""

    name: str

    def ask(self) -> TrialRequest | PeakRate:
        """Return the next trial, or the answer. Asked again without a `tell`, it says the same."""

    def tell(self, trial: Trial) -> None:
        """Learn of the trial that was asked last, however it ended."""

    def answer_now(self) -> PeakRate:
        """Return the best answer so far: the deadline has come, or somebody wants to see it."""
