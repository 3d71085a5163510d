"""What tells a few series of one chart apart: colour, the line's dashes and the mark's shape."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import altair as alt

from leadline.charts.theme import SYSTEM_DASHES, SYSTEM_SHAPES


class Series(NamedTuple):
    """Encodings by the field `which`; all three share one legend."""

    colour: alt.Color
    shape: alt.Shape
    dash: alt.StrokeDash


def series(names: Sequence[str]) -> Series:
    """Tell the values of `which` apart; at most as many as there are shapes (6)."""
    legend = alt.Legend(title=None, columns=len(names))

    def scale(marks: Sequence[object]) -> alt.Scale:
        return alt.Scale(domain=list(names), range=list(marks[: len(names)]))

    return Series(
        alt.Color("which:N", scale=alt.Scale(domain=list(names)), legend=legend),
        alt.Shape("which:N", scale=scale(SYSTEM_SHAPES), legend=legend),
        alt.StrokeDash("which:N", scale=scale(SYSTEM_DASHES), legend=legend),
    )
