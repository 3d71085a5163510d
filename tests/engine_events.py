"""Something done at a moment that the engine itself tells, not at one that is hoped to be right."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from leadline.engine.child import EngineChild


def when_measuring(monkeypatch: pytest.MonkeyPatch, act: Callable[[], None]) -> list[str]:
    """Act once, as soon as an engine child tells that its window on a real target has begun.

    Returns a list that then has an entry.
    """
    acted: list[str] = []
    run = EngineChild.run

    def watched(self: EngineChild, job: dict[str, Any], **options: Any) -> dict[str, Any]:
        told = options.pop("on_event", None)

        def on_event(event: dict[str, Any]) -> None:
            real = job.get("target", {}).get("kind") != "null"  # that is the generator's ceiling
            if real and event.get("phase") == "measure" and not acted:
                acted.append(str(event["event"]))
                act()
            if told is not None:
                told(event)

        return run(self, job, on_event=on_event, **options)

    monkeypatch.setattr(EngineChild, "run", watched)
    return acted
