"""Predictions of one survey, as a command and a page tell them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from leadline.record import Prediction, Survey


class Predicted(NamedTuple):
    """What was asked of a survey, and what it says."""

    survey: Survey
    names: tuple[str, ...]
    """What each prediction is called; two may be called the same."""
    predictions: tuple[Prediction, ...]
    refused: Mapping[str, str]
    """Workloads that were not surveyed, and why."""
    document: Any
    """What `--json` says of them."""

    def items(self) -> list[tuple[str, Prediction]]:
        """Return every prediction with its name; names that are the same are told apart."""
        seen: dict[str, int] = {}
        found = []
        for name, each in zip(self.names, self.predictions, strict=True):
            seen[name] = seen.get(name, 0) + 1
            found.append((name if seen[name] == 1 else f"{name} ({seen[name]})", each))
        return found
