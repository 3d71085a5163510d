"""Is it still the system that was surveyed? Only then is the difference a model's error."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from leadline.studies.same_system import changed_facts
from leadline.studies.validation.errors import ValidationRefused


def require_same_system(before: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    """Refuse to validate on a system that is not the surveyed one any more.

    Raises:
        ValidationRefused: which facts differ.

    """
    changed = changed_facts(before, now)
    if changed:
        raise ValidationRefused(
            f"this is not the system that was surveyed: {'; '.join(changed)}. A difference "
            "from the predictions would say nothing about the model: survey it again "
            "(`leadline survey`), or set back what changed"
        )
