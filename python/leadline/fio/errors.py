"""Why a fio job file cannot be read, or a workload not written as one."""

from __future__ import annotations

from leadline.errors import LeadlineError


class FioJobRefused(LeadlineError):
    """The job means nothing that can be run or predicted here; the message says what to write."""

    exit_code = 2
