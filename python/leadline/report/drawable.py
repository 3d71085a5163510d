"""Charts as specifications that can be drawn whatever a stranger called a system.

vl-convert ends the whole process when a text holds a character that XML forbids, such as ESC.
"""

from __future__ import annotations

import re
from typing import Any

import altair as alt

_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def drawable(chart: alt.LayerChart | alt.Chart) -> dict[str, Any]:
    """Return a chart's specification with `?` for every character that XML forbids."""
    spec: dict[str, Any] = _clean(chart.to_dict())
    return spec


def _clean(part: Any) -> Any:
    if isinstance(part, str):
        return _FORBIDDEN.sub("?", part)
    if isinstance(part, dict):
        return {_clean(key): _clean(value) for key, value in part.items()}
    if isinstance(part, list):
        return [_clean(each) for each in part]
    return part
