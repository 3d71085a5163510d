"""Something done at a moment that the engine itself tells, not at one that is hoped to be right."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from leadline.engine.child import EngineChild, OnEvent
from leadline.record.job import Job, NullTarget


def when_measuring(monkeypatch: pytest.MonkeyPatch, act: Callable[[], None]) -> list[str]:
    """Act once, as soon as an engine child tells that its window on a real target has begun.

    Returns a list that then has an entry.
    """
    acted: list[str] = []
    exchange = EngineChild.exchange

    def watched(
        self: EngineChild, job: Job[Any], told: OnEvent | None = None, *others: Any
    ) -> dict[str, Any]:

        def on_event(event: dict[str, Any]) -> None:
            real = not isinstance(
                getattr(job, "target", None), NullTarget
            )  # that is the generator's ceiling
            if real and event.get("phase") == "measure" and not acted:
                acted.append(str(event["event"]))
                act()
            if told is not None:
                told(event)

        return exchange(self, job, on_event, *others)

    monkeypatch.setattr(EngineChild, "exchange", watched)
    return acted
