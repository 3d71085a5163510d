"""The chart of the what-if section: a prediction over one parameter, its data given by the page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import altair as alt

from leadline.record import Survey
from leadline.report.drawing.axes import on_field, parameter_x
from leadline.report.drawing.layers import TALL_PX, AnyChart, tooltips
from leadline.report.survey.curves import border_layers

_DOMAIN = [{"expr": "bottom"}, {"expr": "top"}]


def what_if_charts(survey: Survey, values: Mapping[str, Sequence[float]]) -> dict[str, Any]:
    """Return per parameter `{"linear", "log"}`, Vega-Lite specifications as wide as their box.

    The page fills the data set `curve` with rows of x, y, low, high (MB/s), region and the words
    of a tooltip, `here` with the one row of the current workload, and the parameters `bottom`,
    `top` and `ticks` with the ends of the throughput axis and, on a log one, its ticks.
    """
    return {
        parameter: {
            "linear": _chart(survey, parameter, xs, "linear"),
            "log": _chart(survey, parameter, xs, "log"),
        }
        for parameter, xs in values.items()
    }


def _chart(
    survey: Survey, parameter: str, xs: Sequence[float], kind: Literal["linear", "log"]
) -> dict[str, Any]:
    x = parameter_x(parameter, xs)
    title = "Throughput (MB/s, log scale)" if kind == "log" else "Throughput (MB/s)"
    ticks = {"tickCount": 5} if kind == "linear" else {"values": {"expr": "ticks"}}
    y = alt.Y(
        "y:Q",
        scale=alt.Scale(type=kind, domain=_DOMAIN, nice=False, clamp=True),
        axis=alt.Axis(title=title, format=",~r", **ticks),
    )
    chart = alt.Chart(alt.NamedData("curve")).encode(x=x)
    here = alt.Chart(alt.NamedData("here")).encode(x=x)
    low = on_field(y, "low")
    tips = tooltips(where="At", rate="Throughput (95 %)")
    layers: list[AnyChart] = border_layers(survey, x) if parameter == "unique_bytes" else []
    layers += [
        chart.mark_area(style="band", clip=True).encode(
            y=low, y2=alt.Y2("high:Q"), detail=alt.Detail("region:N")
        ),
        chart.mark_line(style="curve").encode(y=y, detail=alt.Detail("region:N")),
        here.mark_rule(style="focal-rule"),
        here.mark_rule(style="interval", clip=True).encode(y=low, y2=alt.Y2("high:Q")),
        here.mark_point(style="focal").encode(y=y),
        chart.mark_point(style="touch").encode(y=y, tooltip=tips),
    ]
    spec: dict[str, Any] = alt.LayerChart(layer=layers, height=TALL_PX).to_dict(validate=False)
    spec.pop("config", None)
    spec["width"] = "container"
    spec["autosize"] = {"type": "fit-x", "contains": "padding"}
    spec["params"] = [{"name": name} for name in ("bottom", "top", "ticks")]
    return spec
