"""Leadline: sound a storage system to the bottom.

    leadline.survey("/data", budget="5min").predict(leadline.Workload(...))
    leadline.open("system").predict("unique_bytes=2GiB,size_mean=32KiB")
    leadline.stream("sort", "/data/records", "/data/sorted", memory="1GiB")
    leadline.peak("server.toml").rate_per_s

The package root stays light: the engine child imports it inside a memory cgroup, where every
imported module would take room from the file cache under test. Names are resolved on first use.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from leadline.api import (
        MeasuredServer,
        Predicted,
        Predictions,
        StoredStudy,
        StreamedData,
        SurveyedSystem,
        peak,
        stream,
        surface,
        survey,
    )
    from leadline.api import open_study as open  # noqa: A004
    from leadline.record import Workload

_HOMES = {
    "MeasuredServer": ("leadline.api", "MeasuredServer"),
    "Predicted": ("leadline.api", "Predicted"),
    "Predictions": ("leadline.api", "Predictions"),
    "StoredStudy": ("leadline.api", "StoredStudy"),
    "StreamedData": ("leadline.api", "StreamedData"),
    "SurveyedSystem": ("leadline.api", "SurveyedSystem"),
    "Workload": ("leadline.record", "Workload"),
    "open": ("leadline.api", "open_study"),
    "peak": ("leadline.api", "peak"),
    "stream": ("leadline.api", "stream"),
    "surface": ("leadline.api", "surface"),
    "survey": ("leadline.api", "survey"),
}

__all__ = [
    "MeasuredServer",
    "Predicted",
    "Predictions",
    "StoredStudy",
    "StreamedData",
    "SurveyedSystem",
    "Workload",
    "open",
    "peak",
    "stream",
    "surface",
    "survey",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home, attribute = _HOMES[name]
    return getattr(importlib.import_module(home), attribute)
