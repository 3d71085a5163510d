"""One look for every chart: styles by role, so that light and dark pages colour the same marks.

Marks name a role (`style="reading"`), never a colour; the configuration gives the role its
colour. Roles also differ in shape, dash or opacity, so colour never carries a meaning alone.
"""

from __future__ import annotations

from typing import Any

FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif"
SYSTEM_DASHES = ([1, 0], [7, 3], [2, 3], [9, 3, 2, 3], [4, 2], [1, 2])
SYSTEM_SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down")

_LIGHT = {
    "paper": "#ffffff",
    "ink": "#16232e",
    "soft": "#53626f",
    "faint": "#e3e8ec",
    "rule": "#9aa7b2",
    "line": "#0b6e8f",
    "reading": "#0b6e8f",
    "good": "#2f9e78",
    "focal": "#b4441c",
    "boundary": "#8a5a00",
    "series": ["#0b6e8f", "#b4441c", "#2f8f6b", "#8a5a00", "#6b4fa0", "#53626f"],
    "ramp": ["#eef6f9", "#9fcbdb", "#3a8fae", "#0b5f7d", "#083f55"],
    "on-pale": "#16232e",
    "on-deep": "#ffffff",
}
_DARK = {
    "paper": "#0f171d",
    "ink": "#e6edf2",
    "soft": "#a5b4c0",
    "faint": "#25323c",
    "rule": "#5b6b78",
    "line": "#4cc0e0",
    "reading": "#4cc0e0",
    "good": "#3fbf93",
    "focal": "#ff9466",
    "boundary": "#e2b24c",
    "series": ["#4cc0e0", "#ff9466", "#5fd0a5", "#e2b24c", "#b9a2ee", "#a5b4c0"],
    "ramp": ["#1b2c37", "#23586c", "#2f8aa6", "#6cc4de", "#c9eefa"],
    "on-pale": "#e6edf2",
    "on-deep": "#0f171d",
}


def config(*, dark: bool = False, background: str | None = None) -> dict[str, Any]:
    """Return the Vega-Lite configuration; `background` None leaves the page's colour through."""
    tone: dict[str, Any] = _DARK if dark else _LIGHT
    axis = {
        "labelFont": FONT,
        "titleFont": FONT,
        "labelFontSize": 12,
        "titleFontSize": 12.5,
        "titleFontWeight": 500,
        "labelColor": tone["soft"],
        "titleColor": tone["ink"],
        "gridColor": tone["faint"],
        "domainColor": tone["rule"],
        "tickColor": tone["rule"],
        "titlePadding": 10,
        "labelPadding": 4,
        "labelFlush": False,
    }
    return {
        "background": background or "transparent",
        "font": FONT,
        "padding": {"left": 2, "right": 10, "top": 6, "bottom": 2},
        "view": {"stroke": None},
        "axis": axis,
        "axisX": {"grid": False, "tickSize": 5},
        "axisY": {"domain": False, "ticks": False},
        "title": {
            "font": FONT,
            "subtitleFont": FONT,
            "anchor": "start",
            "fontSize": 16,
            "fontWeight": 600,
            "subtitleFontSize": 12.5,
            "color": tone["ink"],
            "subtitleColor": tone["soft"],
            "offset": 14,
            "subtitlePadding": 6,
        },
        "legend": {
            "labelFont": FONT,
            "titleFont": FONT,
            "labelFontSize": 12,
            "titleFontSize": 12,
            "labelColor": tone["ink"],
            "titleColor": tone["soft"],
            "orient": "bottom",
            "labelLimit": 260,
            "symbolSize": 90,
            "symbolOpacity": 1,
            "columns": 2,
        },
        "range": {"category": tone["series"], "heatmap": tone["ramp"], "ramp": tone["ramp"]},
        "style": _styles(tone),
    }


def _look(color: str, width: float, opacity: float) -> dict[str, Any]:
    return {"color": color, "strokeWidth": width, "opacity": opacity}


def _words(tone: dict[str, Any]) -> dict[str, Any]:
    """Give each role of words its look."""
    label = {"font": FONT, "fontSize": 12, "color": tone["soft"]}
    return {
        "pale-cell-text": label | {"color": tone["on-pale"], "fontSize": 12.5},
        "deep-cell-text": label | {"color": tone["on-deep"], "fontSize": 12.5},
        "boundary-label": label | {"color": tone["boundary"], "fontWeight": 600},
        "region-label": label | {"fontSize": 13, "fontWeight": 600, "color": tone["ink"]},
        "small-label": label | {"fontSize": 10.5},
        "short-label": label | {"color": tone["focal"], "fontWeight": 600, "fontSize": 11.5},
        "bar-label": label | {"color": tone["paper"], "fontWeight": 600, "fontSize": 11.5},
    }


def _styles(tone: dict[str, Any]) -> dict[str, Any]:
    """Give each role its look; Vega-Lite reads `color` and `filled`, not fill and stroke."""
    dot = {"filled": True, "opacity": 1, "color": tone["line"]}
    ring = {"filled": False, "opacity": 1}
    return {
        "curve": {"color": tone["line"], "strokeWidth": 2},
        "interval": {"color": tone["line"], "strokeWidth": 1.4, "opacity": 0.9},
        "mean": dot | {"size": 44, "shape": "circle"},
        "reading": ring | _look(tone["reading"], 1, 0.5) | {"size": 26, "shape": "circle"},
        "over": ring | _look(tone["focal"], 1.2, 0.75) | {"size": 34, "shape": "square"},
        "given-up": dot | {"color": tone["focal"], "shape": "triangle-up", "size": 70},
        "lost": ring | _look(tone["focal"], 2.4, 1) | {"size": 90, "shape": "cross"},
        "held": {"color": tone["line"], "strokeWidth": 2.6, "strokeCap": "butt"},
        "held-over": {"color": tone["focal"], "strokeWidth": 4.6, "strokeCap": "butt"},
        "cell": {"stroke": tone["paper"], "strokeWidth": 1.5},
        "empty-cell": {"filled": False, "color": tone["rule"], "strokeDash": [3, 3]},
        "measured-cell": {"filled": False, "color": tone["ink"], "strokeWidth": 1.2},
        "ideal-cell": {"filled": False, "color": tone["focal"], "strokeWidth": 4},
        # Vega's own marks take fill and stroke, not a colour.
        "floor": {"stroke": tone["faint"], "strokeWidth": 1},
        "facet": {"stroke": tone["paper"], "strokeWidth": 0.8, "fillOpacity": 0.93},
        "corner": {"fill": tone["focal"], "stroke": tone["paper"], "strokeWidth": 1},
        "corner-interval": {"stroke": tone["focal"], "strokeWidth": 1.6},
        "height-axis": {"stroke": tone["rule"], "strokeWidth": 1},
        "level-name": {"fill": tone["soft"], "font": FONT, "fontSize": 12},
        "bound": dot | {"color": tone["ink"], "size": 70},
        "good": {"color": tone["good"], "opacity": 0.15},
        "good-edge": {"color": tone["good"], "opacity": 0.8, "strokeWidth": 1},
        "focal": dot | {"color": tone["focal"], "size": 130, "shape": "diamond"},
        "focal-rule": {"color": tone["focal"], "strokeDash": [3, 3], "strokeWidth": 1.2},
        "boundary": {"color": tone["boundary"], "strokeDash": [6, 4], "strokeWidth": 1.6},
        "boundary-band": {"color": tone["boundary"], "opacity": 0.18},
        "average": {"color": tone["soft"], "strokeDash": [8, 4], "strokeWidth": 1.4},
        "single": {"color": tone["soft"], "strokeWidth": 1.4},
        "spread": {"color": tone["soft"], "strokeWidth": 1.4},
        "spread-end": {"color": tone["soft"]},
        "band": {"color": tone["line"], "opacity": 0.16},
        "touch": dot | {"size": 120, "opacity": 0},
        "gain": {"color": tone["line"], "opacity": 0.62},
        "short-gain": {"color": tone["focal"], "opacity": 0.85},
        "whisker": {"color": tone["ink"], "strokeWidth": 1.1, "opacity": 0.75},
        "model": {"color": tone["ink"], "strokeWidth": 2.4},
        "model-bar": {"color": tone["ink"], "opacity": 1},
        "corrected": {"color": tone["focal"], "strokeWidth": 2.2, "strokeDash": [5, 3]},
        "cpi": {"color": tone["ink"], "strokeWidth": 1.6, "strokeDash": [1.5, 3]},
        "cpi-point": ring | _look(tone["ink"], 1.4, 1) | {"size": 44, "shape": "diamond"},
        "profile": {"color": tone["line"], "strokeWidth": 1.4, "opacity": 0.4},
        "zero": {"color": tone["rule"], "strokeWidth": 1},
        **_words(tone),
        "steep": dot | {"color": tone["focal"], "shape": "triangle-down", "size": 100},
    }
