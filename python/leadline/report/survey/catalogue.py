"""The charts of a survey, by name (CP94 Figs. 4, 6, 7 and 10), and what has no chart and why."""

from __future__ import annotations

import altair as alt

from leadline.record import Survey
from leadline.record.wording import PARAMETER_TITLES, say_place
from leadline.report.survey.curves import (
    FAMILY_PARAMETERS,
    family_charts,
    slope_chart,
    unique_bytes_chart,
)
from leadline.report.survey.overviews import sentinels_chart, summary_chart

__all__ = ["charts", "not_measured", "summary_chart"]


def charts(survey: Survey) -> dict[str, alt.LayerChart]:
    """Return every chart that the survey's readings allow, under stable names.

    `unique_bytes`, `slope`, `region-<index>-<parameter>`, `summary`, `sentinels`.
    """
    found: dict[str, alt.LayerChart] = {}
    if survey.unique_bytes_curve.points:
        found["unique_bytes"] = unique_bytes_chart(survey)
        if survey.slope:
            found["slope"] = slope_chart(survey)
    for family in survey.families:
        found |= family_charts(survey, family)
    if survey.unique_bytes_curve.points:
        found["summary"] = summary_chart([survey])
    if survey.sentinels:
        found["sentinels"] = sentinels_chart(survey)
    return found


def not_measured(survey: Survey) -> dict[str, str]:
    """Say, for every chart that `charts` leaves out, what was not measured."""
    missing: dict[str, str] = {}
    if not survey.unique_bytes_curve.points:
        for name in ("unique_bytes", "slope", "summary"):
            missing[name] = "not measured: no point over the bytes touched"
    elif not survey.slope:
        missing["slope"] = "not measured: a slope needs two points over the bytes touched"
    families = {family.region: family for family in survey.families}
    for region in survey.regions:
        family = families.get(region.index)
        for parameter in FAMILY_PARAMETERS:
            curve = family.curve(parameter) if family else None
            if curve is None or not curve.points:
                what = PARAMETER_TITLES[parameter].lower()
                missing[f"region-{region.index}-{parameter}"] = (
                    f"not measured: {what} {say_place(region)}"
                )
    if not survey.sentinels:
        missing["sentinels"] = "not measured: the focal point was not measured again"
    return missing
