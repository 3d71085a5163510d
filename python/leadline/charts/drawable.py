"""Charts as specifications that can be drawn whatever a stranger called a system.

vl-convert ends the whole process when a text holds a character that XML forbids, such as ESC.
"""

from __future__ import annotations

import re
from contextlib import AbstractContextManager
from typing import Any, TypeAlias

import altair as alt
import vl_convert
from altair.utils.schemapi import debug_mode

_NUMBERED = re.compile(r'\bid="((?:clip|gradient)[\w-]*\d+)"')
_NUMBERED_USE = re.compile(r'(\bid="|url\(#)((?:clip|gradient)[\w-]*\d+)(["\)])')
_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


Drawn: TypeAlias = alt.LayerChart | alt.Chart


def drawable(chart: Drawn) -> dict[str, Any]:
    """Return a chart's specification with `?` for every character that XML forbids.

    It is not held against Vega-Lite's schema (`unchecked`).
    """
    spec: dict[str, Any] = _clean(chart.to_dict(validate=False))
    return spec


def unchecked() -> AbstractContextManager[None]:
    """Make charts that are not held against Vega-Lite's schema, which took half of a page's time.

    The charts are ours, and `tests/charts/test_chart_schema.py` does that with one of every kind.
    What a user draws with Altair in the same process is checked as before.
    """
    unchecked: AbstractContextManager[None] = debug_mode(False)
    return unchecked


def to_svg(spec: dict[str, Any], name: str = "chart") -> str:
    """Draw a specification.

    The converter numbers what it clips by through all drawings of a process; here the numbers
    begin anew, behind `name`, so that a drawing is the same each time and several share a page.
    """
    svg: str = vl_convert.vegalite_to_svg(spec)
    found = dict.fromkeys(_NUMBERED.findall(svg))
    own = {each: f"{name}-{number}" for number, each in enumerate(found)}
    return _NUMBERED_USE.sub(lambda use: f"{use[1]}{own.get(use[2], use[2])}{use[3]}", svg)


def _clean(part: Any) -> Any:
    if isinstance(part, str):
        return _FORBIDDEN.sub("?", part)
    if isinstance(part, dict):
        return {_clean(key): _clean(value) for key, value in part.items()}
    if isinstance(part, list | tuple):
        return [_clean(each) for each in part]
    return part
