"""What charts of kernels share: a group of marks for each phase, one mark for each number of disks.

Under the axis stand the numbers of disks, the phases, and the kernels, so that no chart needs a
legend for them. Everything is placed by bands, not by pixels: a page makes charts as wide as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import altair as alt

from leadline.report.drawing.layers import AnyChart, values
from leadline.report.streaming.order import Group, group_name

DISK_NUMBERS_MAX = 6
"""More numbers of disks than these would run into each other on a narrow page."""
_DISKS_ROW_PX, _PHASE_ROW_PX, _KERNEL_ROW_PX = 11, 20, 42


def group_x(groups: Sequence[Group]) -> alt.X:
    """Return the axis of groups; its labels are the phases."""
    axis = alt.Axis(
        title=None,
        labelExpr="slice(datum.label, lastindexof(datum.label, ' ') + 1)",
        labelPadding=_PHASE_ROW_PX,
        labelAlign="center",
        labelBaseline="top",
        labelAngle=0,
        labelOverlap=False,
        ticks=False,
        domain=False,
    )
    names = [group_name(*group) for group in groups]
    scale = alt.Scale(type="band", domain=names, paddingInner=0.22, paddingOuter=0.11)
    return alt.X("group:N", sort=names, scale=scale, axis=axis)


def disk_offset(disks: Sequence[int]) -> alt.XOffset:
    """Return the place of a number of disks within its group."""
    return alt.XOffset("disks:O", scale=alt.Scale(domain=list(disks), paddingInner=0.16))


def across(x: alt.X) -> alt.X:
    """Return the beginning of a line across a whole group; `across_end` is its end."""
    begin: alt.X = x.bandPosition(0)
    return begin


def across_end() -> alt.X2:
    """Return where a line across a whole group ends."""
    return alt.X2("group:N", bandPosition=1)


def under_axis(groups: Sequence[Group], disks: Sequence[int], height_px: int) -> list[AnyChart]:
    """Write the numbers of disks and the kernels in rows of their own below the axis."""
    layers = _kernel_row(groups, height_px)
    if len(disks) > 1:
        layers += _disks_row(groups, disks, height_px)
    return layers


def zero_line() -> AnyChart:
    """Draw the line that bars stand on; losses hang from it."""
    line: AnyChart = alt.Chart(values([{"y": 0}])).mark_rule(style="zero").encode(y=alt.Y("y:Q"))
    return line


def _kernel_row(groups: Sequence[Group], height_px: int) -> list[AnyChart]:
    rows: dict[float, list[dict[str, Any]]] = {0.5: [], 1.0: []}
    for kernel in dict.fromkeys(kernel for kernel, _ in groups):
        own = [group for group in groups if group[0] == kernel]
        middle = own[(len(own) - 1) // 2]
        place = 1.0 if len(own) % 2 == 0 else 0.5
        rows[place].append({"group": group_name(*middle), "kernel": kernel})
    return [
        alt.Chart(values(found))
        .mark_text(style="region-label", baseline="top")
        .encode(
            x=alt.X("group:N", bandPosition=place),
            y=alt.YValue(height_px + _KERNEL_ROW_PX),
            text=alt.Text("kernel:N"),
        )
        for place, found in rows.items()
        if found
    ]


def _disks_row(groups: Sequence[Group], disks: Sequence[int], height_px: int) -> list[AnyChart]:
    shown = list(disks) if len(disks) <= DISK_NUMBERS_MAX else [disks[0], disks[-1]]
    rows = [{"group": group_name(*group), "disks": count} for group in groups for count in shown]
    numbers = (
        alt.Chart(values(rows))
        .mark_text(style="small-label")
        .encode(
            x=alt.X("group:N"),
            xOffset=disk_offset(disks),
            y=alt.YValue(height_px + _DISKS_ROW_PX),
            text=alt.Text("disks:O"),
        )
    )
    caption = (
        alt.Chart(values([{"text": "disks"}]))
        .mark_text(style="small-label", align="right", dx=-6)
        .encode(x=alt.XValue(0), y=alt.YValue(height_px + _DISKS_ROW_PX), text=alt.Text("text:N"))
    )
    return [numbers, caption]
