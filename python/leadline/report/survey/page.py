"""The report as one page that needs nothing but a browser: no network, no files beside it.

Everything a stranger controls (names, facts, warnings) reaches the page through Jinja's autoescape
or as JSON with `<`, `>` and `&` written as escapes. A content security policy allows only the
scripts written here, by their hash, and no connection at all.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from leadline.record import Measurement, Survey
from leadline.record.wording import say_place
from leadline.report.drawing.drawable import Drawn
from leadline.report.drawing.embedding import data_uri, page_parts, render_page, script_json
from leadline.report.survey import tables
from leadline.report.survey.catalogue import charts, not_measured, summary_chart
from leadline.report.survey.curves import FAMILY_PARAMETERS
from leadline.report.survey.latency_charts import latency_charts
from leadline.report.survey.overviews import drift_title
from leadline.report.survey.what_if import what_if_document
from leadline.studies.cache import find_in_survey
from leadline.studies.facts import fact_rows


class Checked(NamedTuple):
    """What a validation says on the page of its survey."""

    validation: Any
    charts: dict[str, Drawn]
    rows: Sequence[Sequence[str]]


def render_html(
    survey: Survey,
    points: Sequence[Measurement],
    others: Sequence[Survey] = (),
    checked: Checked | None = None,
    *,
    model: str | None = None,
) -> str:
    """Render the page.

    Args:
        survey: what it shows.
        points: its points.
        others: surveys of other systems for the summary chart (CP94 Fig. 10).
        checked: by its validation, for a section of its own (CP94 §9).
        model: the one that the what-if section predicts with; None is the default.

    """
    slow = latency_charts(survey, points)
    drawn = charts(survey) | slow
    if checked is not None:
        drawn |= checked.charts
    if others:
        drawn["summary"] = summary_chart([survey, *others])
    else:
        drawn.pop("summary", None)
    asked = what_if_document(survey, points, model)
    scripts = () if isinstance(asked, str) else ("what_if_models.js", "what_if.js")
    data = {"survey": survey, "points": [_light(point) for point in points]}
    return render_page(
        "template.html.j2",
        survey=survey,
        status=survey.status.value,
        lead=next(iter(survey.sentences), ""),
        answer=survey.sentences[1:],
        tiles=tables.tile_rows(survey),
        levels=tables.level_rows(survey),
        families=_families(survey),
        validation=checked.validation if checked else None,
        validation_rows=checked.rows if checked else (),
        what_if=asked,
        what_if_json=script_json(asked),
        latencies=list(slow),
        cache=find_in_survey(survey, points),
        sure=tables.sure_rows(survey, points, drift_title(survey)),
        plan=tables.plan_rows(survey, points),
        run=tables.run_rows(survey, points),
        facts=fact_rows(survey.start.facts),
        point_heads=tables.POINT_HEADS,
        points=tables.point_rows(points),
        csv_href=data_uri("text/csv", tables.points_csv(points).encode()),
        **page_parts(drawn, data, scripts, survey.findings)
        | {"missing": not_measured(survey), "first": "unique_bytes"},
    )


def _light(point: Measurement) -> Measurement:
    """The point without its histograms and slices, which are most of its bytes.

    `leadline export` has them whole.
    """
    result = point.result
    return msgspec.structs.replace(
        point,
        result=msgspec.structs.replace(
            result,
            read=msgspec.structs.replace(result.read, histogram=()),
            write=msgspec.structs.replace(result.write, histogram=()),
            warm_up=msgspec.structs.replace(result.warm_up, intervals=()),
            intervals=(),
        ),
    )


def _families(survey: Survey) -> list[dict[str, Any]]:
    return [
        {
            "name": region.name,
            "place": say_place(region),
            "charts": [f"region-{region.index}-{name}" for name in FAMILY_PARAMETERS],
        }
        for region in survey.regions
    ]
