"""What-if in the page: the document from which a browser predicts as `Predictor` does.

Everything that needs a library stays here (the fitted model, Student's t, the charts' looks);
`what_if_models.js` evaluates the model and `what_if.js` guards the ranges and draws.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from leadline.errors import LeadlineError
from leadline.predict import Predictor
from leadline.predict.ranges import SIZE_SHARE_MAX, Ranges
from leadline.record import PARAMETERS, Measurement, Region, Survey
from leadline.record.wording import PARAMETER_TITLES
from leadline.record.workload import FRACTIONS
from leadline.report.drawing.scale import LOG_THROUGHPUT_RATIO
from leadline.report.survey.what_if_chart import what_if_charts
from leadline.stats import student_t

_STEPS_PER_OCTAVE = {"unique_bytes": 8, "size_mean": 4, "process_num": 4}
_EVERY_COUNT_TO = 32
"""Processes are counted one by one up to here."""
_PACKED = ("whitening", "jacobian")
"""Matrices of a model that travel as the bytes of their numbers: half the length, every bit."""


def what_if_document(
    survey: Survey, points: Sequence[Measurement], model: str | None = None
) -> dict[str, Any] | str:
    """Return what the page predicts from, or a sentence that says why it cannot.

    `model` is one of `leadline.predict.MODELS`; None is the default.

    Keys: `survey_id`; `model` (`Model.embedded()`, its matrices packed by `pack`); `t`, the 95 %
    quantile for the model's df; `sliders`, every parameter with the values it can take and where
    it starts; `regions` with the range of each parameter (`spans`); `unique_bytes`, the range over
    all; `size_share_max` and `border_zones` as in `leadline.predict.ranges`; `chart_bytes`, where
    the chart over unique_bytes is evaluated; `charts`, a Vega-Lite specification per parameter,
    with a linear and a log axis; `log_ratio`, most over least throughput from which log is chosen.
    """
    ranges = Ranges(survey)
    regions = [region for region in survey.regions if ranges.is_surveyed(region.index)]
    if not regions:
        remedy = f"finish it: leadline survey {survey.start.target} --resume"
        return f"no level of this survey has curves yet; {remedy}"
    try:
        predictor = Predictor(survey, points, model=model)
    except LeadlineError as reason:
        return str(reason)
    sliders = [_slider(predictor, regions, parameter) for parameter in PARAMETERS]
    return {
        "survey_id": survey.start.study_id,
        "model": pack(predictor.model.embedded()),
        "t": student_t(predictor.model.df),
        "sliders": sliders,
        "regions": [_region(predictor, region) for region in survey.regions],
        "unique_bytes": [predictor.ranges.unique_bytes.low, predictor.ranges.unique_bytes.high],
        "size_share_max": SIZE_SHARE_MAX,
        "border_zones": [list(zone) for zone in predictor.ranges.border_zones],
        "chart_bytes": _chart_bytes(sliders[0]["values"], regions),
        "charts": what_if_charts(survey, {item["parameter"]: item["values"] for item in sliders}),
        "log_ratio": LOG_THROUGHPUT_RATIO,
    }


def pack(embedded: dict[str, Any]) -> dict[str, Any]:
    """Write the matrices of a model as base64 of little-endian float64, row after row.

    `{"rows", "columns", "triangular", "float64"}`; a square one with nothing above its diagonal
    keeps only the rows' parts up to there, and says so by `"triangular": true`.
    """
    packed = dict(embedded)
    for name in _PACKED:
        if name in embedded:
            packed[name] = _packed(np.asarray(embedded[name], dtype="<f8"))
    return packed


def _packed(matrix: np.ndarray[Any, np.dtype[np.float64]]) -> dict[str, Any]:
    rows, columns = matrix.shape
    triangular = rows == columns and not np.triu(matrix, 1).any()
    numbers = matrix[np.tril_indices(rows)] if triangular else matrix
    return {
        "rows": rows,
        "columns": columns,
        "triangular": triangular,
        "float64": base64.b64encode(np.ascontiguousarray(numbers).tobytes()).decode(),
    }


def _region(predictor: Predictor, region: Region) -> dict[str, Any]:
    spans = {name: predictor.ranges.of(region.index, name) for name in PARAMETERS[1:]}
    return {
        "index": region.index,
        "name": region.name,
        "high_bytes": region.high_bytes,
        "surveyed": predictor.ranges.is_surveyed(region.index),
        "focal_size": region.focal.size_mean,
        "spans": {name: [span.low, span.high] for name, span in spans.items()},
    }


def _slider(predictor: Predictor, regions: list[Region], parameter: str) -> dict[str, Any]:
    """Return the values a slider can take: a ladder over the range, every region's ends on it."""
    values = _values(predictor, regions, parameter)
    focal = float(getattr(regions[0].focal, parameter))
    start = min(range(len(values)), key=lambda place: abs(values[place] - focal))
    return {
        "parameter": parameter,
        "title": PARAMETER_TITLES[parameter],
        "values": values,
        "start": start,
    }


def _values(predictor: Predictor, regions: list[Region], parameter: str) -> list[float]:
    ranges = predictor.ranges
    if parameter == "unique_bytes":
        own = ranges.unique_bytes
        ends = {own.nearest(region.high_bytes) for region in regions}
        steps = {*_ladder(parameter, own.low, own.high), *ends}
        homes = {step: ranges.region_of(step) for step in steps}
        return sorted(step for step, home in homes.items() if home in regions)
    spans = [ranges.of(region.index, parameter) for region in regions]
    ends = {end for span in spans for end in (span.low, span.high)}
    return sorted({*_ladder(parameter, min(ends), max(ends)), *ends})


def _ladder(parameter: str, low: float, high: float) -> list[float]:
    """Return low, high and steps between: of one percent, one process, a part of an octave."""
    if parameter in FRACTIONS:
        steps: list[float] = [percent / 100 for percent in range(101)]
    else:
        parts = _STEPS_PER_OCTAVE[parameter]
        powers = range(math.floor(parts * math.log2(low)), math.ceil(parts * math.log2(high)) + 1)
        steps = [float(round(2 ** (power / parts))) for power in powers]
    if parameter == "process_num":
        every = range(1, _EVERY_COUNT_TO + 1)
        steps = [*map(float, every), *(step for step in steps if step > _EVERY_COUNT_TO)]
    return sorted({low, high, *(step for step in steps if low < step < high)})


def _chart_bytes(values: Sequence[float], regions: list[Region]) -> list[float]:
    """Return the slider's values and both sides of each region's end: a model may jump there."""
    edges = (float(region.high_bytes + side) for region in regions for side in (0, 1))
    return sorted({*values, *(edge for edge in edges if values[0] <= edge <= values[-1])})
