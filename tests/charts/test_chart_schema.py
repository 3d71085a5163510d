"""One chart of every kind meets Vega-Lite's schema; drawing them no longer looks (`drawable`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
from altair.utils.schemapi import SchemaValidationError

import balance_fixture as balance
import experiment_fixture as experiments
import survey_fixture as surveys
from leadline.charts.drawable import Drawn, drawable
from leadline.charts.theme import config
from leadline.studies.streaming.use_charts import balance_charts, stream_charts
from leadline.studies.survey.charts import charts
from leadline.studies.workbench.page import experiment_charts

KINDS: dict[str, Callable[[], Mapping[str, Drawn]]] = {
    "survey": lambda: charts(surveys.two_region()),
    "stream": lambda: stream_charts(*balance.atlas()),
    "balance": lambda: balance_charts([balance.atlas()[1], balance.boreas()[1]]),
    "peaks": lambda: experiment_charts(
        experiments.peak_experiment(experiments.BOTH), [experiments.peak_experiment(seed=3)]
    ),
    "surface": lambda: experiment_charts(experiments.partly(experiments.full_surface())),
}


@pytest.mark.parametrize("kind", list(KINDS))
def test_charts_are_what_vega_lite_reads(kind: str) -> None:
    drawn = KINDS[kind]()
    assert drawn
    for chart in drawn.values():
        chart.to_dict(validate=True)


def test_a_dark_look_is_what_vega_lite_reads() -> None:
    chart = next(iter(charts(surveys.one_region()).values()))
    chart.config = config(dark=True)
    chart.to_dict(validate=True)


def test_a_chart_that_is_not_would_be_seen() -> None:
    chart = next(iter(charts(surveys.one_region()).values()))
    chart.config = config() | {"axis": {"labelFontSize": "large"}}
    with pytest.raises(SchemaValidationError, match="labelFontSize"):
        chart.to_dict(validate=True)
    assert drawable(chart)


def _intervals(part: Any) -> Iterator[dict[str, Any]]:
    """Yield every layer that draws from a low to a high end."""
    if isinstance(part, dict):
        ends = part.get("encoding", {})
        if any(ends.get(end, {}).get("field") == "high" for end in ("x2", "y2")):
            yield part
        part = list(part.values())
    if isinstance(part, list):
        for each in part:
            yield from _intervals(each)


@pytest.mark.parametrize("kind", list(KINDS))
def test_no_interval_is_drawn_through_an_axis(kind: str) -> None:
    found = [own for chart in KINDS[kind]().values() for own in _intervals(drawable(chart))]
    lines = [own for own in found if own["mark"]["type"] in ("rule", "area")]
    assert lines
    through = [own["mark"] for own in lines if not own["mark"].get("clip")]
    assert through == []
