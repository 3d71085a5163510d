"""Made-up systems to compare, without measuring."""

from __future__ import annotations

import functools
from typing import Any

import msgspec

import survey_fixture as made
from leadline.models.predictor import Predictor
from leadline.record import Survey, Workload
from leadline.studies.comparison.contenders import Named
from leadline.studies.comparison.document import Question, name_systems

MIB = 2**20
INSIDE = Workload(unique_bytes=100 * MIB, size_mean=32768, process_num=2)


def renamed(survey: Survey, survey_id: str, **changes: Any) -> Survey:
    """The same survey under another id, with parts of its start changed."""
    start = msgspec.structs.replace(survey.start, study_id=survey_id, **changes)
    return msgspec.structs.replace(survey, start=start)


def atlas() -> Survey:
    """480 MiB of cache before a disk."""
    return renamed(made.two_region(), "aaaa0001")


def quicker(factor: float = 2.0, survey_id: str = "bbbb0002", system: str = "rapid") -> Survey:
    """The same machine, so many times faster throughout."""
    levels = tuple(
        made.Level(
            level.name,
            level.holds_bytes,
            level.read_mb_s * factor,
            level.write_mb_s * factor,
            level.cost_us / factor,
            level.random_cost_us / factor,
            level.processes,
        )
        for level in (made.CACHE, made.DISK)
    )
    survey = made.build(made.Machine(levels), [480 * MIB], top_bytes=3 * 2**30, system=system)
    return renamed(survey, survey_id)


def systems(
    *surveys: Survey, extrapolate: bool = False, model: str | None = None
) -> tuple[Named, ...]:
    """Systems under the names that a comparison gives them."""
    return tuple(
        Named(name, _predictor(msgspec.json.encode(survey), model, extrapolate=extrapolate))
        for name, survey in zip(
            name_systems([[survey.start] for survey in surveys]), surveys, strict=True
        )
    )


@functools.cache
def _predictor(survey: bytes, model: str | None, *, extrapolate: bool) -> Predictor:
    """Fitting takes a second or more, and most tests compare the same two systems."""
    decoded = msgspec.json.decode(survey, type=Survey)
    return Predictor(decoded, made.points(decoded), model=model, extrapolate=extrapolate)


def question(title: str | None = None, **changes: Any) -> Question:
    """A workload inside what the made-up systems were surveyed for."""
    return Question(title, msgspec.structs.replace(INSIDE, **changes))


def layers(chart: Any) -> list[dict[str, Any]]:
    """Layers of a chart, each with its rows."""
    spec = chart.to_dict(validate=False)
    sets = spec.get("datasets", {})
    return [
        {"rows": sets.get(layer["data"].get("name"), layer["data"].get("values", [])), **layer}
        for layer in spec["layer"]
    ]


def rows(chart: Any, mark: str) -> list[dict[str, Any]]:
    """Rows of all layers with this mark."""
    return [
        row for layer in layers(chart) if layer["mark"]["type"] == mark for row in layer["rows"]
    ]
