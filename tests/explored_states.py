"""How state machines are explored."""

from __future__ import annotations

from hypothesis import HealthCheck, settings


def explored(examples: int, steps: int) -> settings:
    """The same sequences each time, and none kept from earlier runs."""
    return settings(
        max_examples=examples,
        stateful_step_count=steps,
        derandomize=True,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        report_multiple_bugs=False,
    )
