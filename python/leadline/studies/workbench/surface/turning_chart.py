"""The response surface in three dimensions (SH08 Fig. 2), turned with a pointer or two sliders.

One specification of Vega draws both the page's picture and the files': azimuth and elevation are
signals, every corner is projected by formulas, and the facets are sorted by their depth. It needs
no script of ours and no network. Floor coordinates are places of levels, from -1 to 1, as in the
paper; height is the rate, from 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from leadline.charts.drawable import Picture
from leadline.record.wording import say_level
from leadline.record.workbench import Factor, Surface
from leadline.studies.workbench.answer import say_sample
from leadline.studies.workbench.surface.text import Plane, rate_range
from leadline.studies.workbench.text import say_load, say_peak

_HEIGHT_PX, _WIDTH_PX = 400, 560
_AZIMUTH, _ELEVATION = -35, 26
"""Degrees from which the paper looks at its surfaces, about."""
_TICKS = 4
_LABELS_MAX = 9
_LEVEL_PX, _NAME_PX = 22, 64
"""How far outside of the floor levels and names stand, lying flat."""
Row = dict[str, Any]
Floor = tuple[Factor, Factor]
"""The factors along x and y."""


def surface_picture(plane: Plane, surface: Surface) -> Picture | None:
    """Return the picture of one plane; None where there is no facet to draw."""
    if plane.y is None:
        return None
    floor = plane.x, plane.y
    _, most = rate_range(surface)
    step = _nice_step(most)
    top = step * -(-most // step)
    corners = _corners(plane, floor, top)
    facets = _facets(plane, corners)
    if not facets:
        return None
    title = f"Peak rate over {plane.x.name} and {plane.y.name}"
    if plane.fixed:
        title += f", {plane.where}"
    said = "Drag to turn it. Dots were measured, with their intervals."
    return Picture(_spec(floor, corners, facets, (top, step)), title, said)


def _nice_step(most: float) -> float:
    """Return a round distance of ticks, so that about `_TICKS` of them reach `most`."""
    power = 1.0
    while power * 10 <= most / _TICKS:
        power *= 10
    while power > most / _TICKS and power > 1e-6:
        power /= 10
    return next((power * by for by in (1, 2, 2.5, 5) if power * by * _TICKS >= most), power * 10)


def _at(place: int, factor: Factor) -> float:
    return 2 * place / max(1, len(factor.levels) - 1) - 1


def _corners(plane: Plane, floor: Floor, top: float) -> dict[tuple[int, int], Row]:
    found = {}
    for (x, y), cell in plane.cells.items():
        rate = cell.rate_per_s
        if rate is None:
            continue
        found[x, y] = {
            "x": _at(x, floor[0]),
            "y": _at(y, floor[1]),
            "z": rate.value / top,
            "low": (rate.value if rate.low is None else max(0.0, rate.low)) / top,
            "high": (rate.value if rate.high is None else rate.high) / top,
            "rate": rate.value,
            "measured": cell.measured,
            "ideal": (x, y) == plane.ideal,
            "said": f"{say_sample(cell.sample)}: {say_peak(rate)}, "
            + ("measured" if cell.measured else "predicted"),
        }
    return found


def _facets(plane: Plane, corners: dict[tuple[int, int], Row]) -> list[Row]:
    """Quadrilaterals between four neighbouring cells that all have a rate."""
    found = []
    for x in range(len(plane.x.levels) - 1):
        for y in range(plane.rows - 1):
            round_it = [(x, y), (x + 1, y), (x + 1, y + 1), (x, y + 1)]
            if all(place in corners for place in round_it):
                own = [corners[place] for place in round_it]
                row: Row = {"rate": sum(each["rate"] for each in own) / 4}
                for number, each in enumerate(own):
                    row |= {f"{axis}{number}": each[axis] for axis in "xyz"}
                found.append(row)
    return found


def _spec(
    floor: Floor,
    corners: dict[tuple[int, int], Row],
    facets: Sequence[Row],
    height: tuple[float, float],
) -> dict[str, Any]:
    rates = [row["rate"] for row in corners.values()]
    return {
        "$schema": "https://vega.github.io/schema/vega/v6.json",
        "width": _WIDTH_PX,
        "height": _HEIGHT_PX,
        "padding": 4,
        "autosize": "none",
        "signals": _signals(),
        "scales": [
            {
                "name": "colour",
                "type": "linear",
                "range": "heatmap",
                "domain": [min(rates), max(*rates, min(rates) * 1.001)],
            }
        ],
        "data": [
            _projected("facets", facets, _facet_steps()),
            _projected("corners", list(corners.values()), _corner_steps()),
            _projected("floor", _floor(floor), _line_steps()),
            _projected("ticks", _levels(floor), _level_steps()),
            _projected("heights", _heights(*height), _height_steps()),
        ],
        "marks": _marks(),
    }


def _signals() -> list[Row]:
    """Say how the picture follows its box, the pointer and the sliders."""
    drag = {"signal": "drag"}
    box = "isFinite(containerSize()[0]) ? max(240, containerSize()[0]) : " + str(_WIDTH_PX)
    turn = {"input": "range", "min": -180, "max": 180, "step": 1, "name": "Turn"}
    tilt = {"input": "range", "min": 0, "max": 90, "step": 1, "name": "Tilt"}
    return [
        {"name": "width", "init": box, "on": [{"events": "window:resize", "update": box}]},
        {
            "name": "held",
            "value": None,
            "on": [{"events": "pointerdown", "update": "[x(), y(), azimuth, elevation]"}],
        },
        {
            "name": "drag",
            "value": None,
            "on": [
                {
                    "events": "[pointerdown, window:pointerup] > window:pointermove!",
                    "update": "held ? [x() - held[0], y() - held[1]] : null",
                }
            ],
        },
        {
            "name": "azimuth",
            "value": _AZIMUTH,
            "bind": turn,
            "on": [
                {
                    "events": drag,
                    "update": "drag ? ((held[2] + drag[0] / 2 + 540) % 360 + 360) % 360 - 180"
                    " : azimuth",
                }
            ],
        },
        {
            "name": "elevation",
            "value": _ELEVATION,
            "bind": tilt,
            "on": [
                {"events": drag, "update": "drag ? clamp(held[3] + drag[1] / 3, 0, 90) : elevation"}
            ],
        },
        {"name": "ca", "update": "cos(azimuth * PI / 180)"},
        {"name": "sa", "update": "sin(azimuth * PI / 180)"},
        {"name": "ce", "update": "cos(elevation * PI / 180)"},
        {"name": "se", "update": "sin(elevation * PI / 180)"},
        {"name": "height", "update": "clamp(0.78 * width, 250, 400)"},
        {
            "name": "size",
            "update": "min((width - 92) / 2.83, (height - 34 - 62 * se) / (2.82 * se + 1.5 * ce))",
        },
        {"name": "cx", "update": "width / 2 + 12"},
        {"name": "cy", "update": "height * 0.47"},
        # The near edges of the floor carry the levels; the height stands at the left corner.
        {"name": "near_y", "update": "ca >= 0 ? -1 : 1"},
        {"name": "near_x", "update": "sa >= 0 ? -1 : 1"},
        {"name": "left_x", "update": "ca >= 0 ? -1 : 1"},
        {"name": "left_y", "update": "sa >= 0 ? 1 : -1"},
    ]


_TALL = 1.5
"""Height of the highest tick, where the floor is 2 wide."""


def _sx(x: str, y: str) -> str:
    return f"cx + size * ({x} * ca - {y} * sa)"


def _sy(x: str, y: str, z: str) -> str:
    back = f"({x} * sa + {y} * ca)"
    return f"cy - size * ({back} * se + ({_TALL} * ({z}) - {_TALL / 2}) * ce)"


def _projected(name: str, rows: Sequence[Row], steps: Sequence[Row]) -> Row:
    return {"name": name, "values": list(rows), "transform": list(steps)}


def _formula(field: str, expression: str) -> Row:
    return {"type": "formula", "as": field, "expr": expression}


def _facet_steps() -> list[Row]:
    """Project four corners, and draw from the back to the front."""
    steps = []
    for number in range(4):
        x, y, z = (f"datum.{axis}{number}" for axis in "xyz")
        steps += [_formula(f"u{number}", _sx(x, y)), _formula(f"v{number}", _sy(x, y, z))]
    path = " + 'L' + ".join(f"datum.u{number} + ',' + datum.v{number}" for number in range(4))
    depth = " + ".join(f"datum.x{number} * sa + datum.y{number} * ca" for number in range(4))
    return [
        *steps,
        _formula("path", f"'M' + {path} + 'Z'"),
        _formula("depth", depth),
        {"type": "collect", "sort": {"field": "depth", "order": "descending"}},
    ]


def _corner_steps() -> list[Row]:
    return [
        _formula("u", _sx("datum.x", "datum.y")),
        _formula("v", _sy("datum.x", "datum.y", "datum.z")),
        _formula("v_low", _sy("datum.x", "datum.y", "datum.low")),
        _formula("v_high", _sy("datum.x", "datum.y", "datum.high")),
        _formula("depth", "datum.x * sa + datum.y * ca"),
        {"type": "collect", "sort": {"field": "depth", "order": "descending"}},
    ]


def _floor(floor: Floor) -> list[Row]:
    """Lines of the floor, one for each level."""
    lines: list[Row] = []
    for along, across, factor in (("x", "y", floor[0]), ("y", "x", floor[1])):
        for number in range(len(factor.levels)):
            at = _at(number, factor)
            lines.append({f"{along}0": at, f"{along}1": at, f"{across}0": -1, f"{across}1": 1})
    return lines


def _line_steps() -> list[Row]:
    steps = []
    for end in "01":
        x, y = f"datum.x{end}", f"datum.y{end}"
        steps += [_formula(f"u{end}", _sx(x, y)), _formula(f"v{end}", _sy(x, y, "0"))]
    return steps


def _levels(floor: Floor) -> list[Row]:
    """Levels and names of both factors, along the near edges."""
    rows: list[Row] = []
    for along, factor in zip("xy", floor, strict=True):
        every = -(-len(factor.levels) // _LABELS_MAX)
        rows += [
            {
                "along": along,
                "at": _at(number, factor),
                "out_px": _LEVEL_PX,
                "text": say_level(factor.name, level),
                "title": False,
            }
            for number, level in enumerate(factor.levels)
            if number % every == 0
        ]
        rows.append(
            {"along": along, "at": 0, "out_px": _NAME_PX, "text": factor.name, "title": True}
        )
    return rows


def _level_steps() -> list[Row]:
    return [
        _formula("x", "datum.along === 'x' ? datum.at : near_x * (1 + datum.out_px / size)"),
        _formula("y", "datum.along === 'x' ? near_y * (1 + datum.out_px / size) : datum.at"),
        _formula("half", "2 + 3.9 * length(datum.text)"),
        _formula("u", f"clamp({_sx('datum.x', 'datum.y')}, datum.half, width - datum.half)"),
        _formula("v", _sy("datum.x", "datum.y", "0")),
    ]


def _heights(top: float, step: float) -> list[Row]:
    count = round(top / step)
    return [
        {"z": n / count, "text": say_load(n * step), "step": 1 / count} for n in range(1, count + 1)
    ]


def _height_steps() -> list[Row]:
    return [
        _formula("u", _sx("left_x", "left_y")),
        _formula("v", _sy("left_x", "left_y", "datum.z")),
    ]


def _field(name: str) -> Row:
    return {"field": name}


def _mark(kind: str, style: str, data: str | None = None, /, **update: Row) -> Row:
    """One mark for each row of `data`, or one alone."""
    of = {} if data is None else {"from": {"data": data}}
    return {"type": kind, "style": style, **of, "encode": {"update": update}}


def _value(value: Any) -> Row:
    return {"value": value}


def _signal(expression: str) -> Row:
    return {"signal": expression}


_FLOOR = (("x", "", "u0"), ("y", "", "v0"), ("x", "2", "u1"), ("y", "2", "v1"))


def _marks() -> list[Row]:
    """Draw floor, facets, intervals, dots and words, in this order."""
    at = {"x": _field("u"), "y": _field("v")}
    visible = f"size * {_TALL} * ce * (datum.z === 1 ? 1 : datum.step) > 14 ? 1 : 0"
    axis = {f"y{end or ''}": _signal(_sy("left_x", "left_y", z)) for end, z in ((0, "0"), (2, "1"))}
    return [
        _mark("rule", "floor", "floor", **{p + e: _field(f) for p, e, f in _FLOOR}),
        _mark(
            "path",
            "facet",
            "facets",
            path=_field("path"),
            fill={"scale": "colour", "field": "rate"},
        ),
        _mark(
            "rule",
            "corner-interval",
            "corners",
            x=_field("u"),
            y=_field("v_low"),
            y2=_field("v_high"),
            strokeOpacity=_signal("datum.measured ? 0.9 : 0"),
        ),
        _mark(
            "symbol",
            "corner",
            "corners",
            **at,
            tooltip=_field("said"),
            size=_signal("datum.ideal ? 150 : 42"),
            shape=_signal("datum.ideal ? 'diamond' : 'circle'"),
            opacity=_signal("datum.ideal || datum.measured ? 1 : 0"),
        ),
        _mark(
            "text",
            "level-name",
            "ticks",
            **at,
            text=_field("text"),
            align=_value("center"),
            baseline=_value("middle"),
            fontWeight=_signal("datum.title ? 600 : 400"),
            opacity=_signal("se > 0.06 || !datum.title ? 1 : 0"),
        ),
        _mark(
            "text",
            "level-name",
            "heights",
            **at,
            text=_field("text"),
            align=_value("right"),
            dx=_value(-8),
            baseline=_value("middle"),
            opacity=_signal(visible),
        ),
        _mark(
            "text",
            "level-name",
            x=_value(0),
            y=_value(2),
            baseline=_value("top"),
            text=_value("Peak rate (requests/s)"),
        ),
        _mark("rule", "height-axis", x=_signal(_sx("left_x", "left_y")), **axis),
    ]
