"""Leadline: sound a storage system to the bottom.

    leadline.survey("/data", budget="5min").predict(leadline.Workload(...))
    leadline.open("system").predict("unique_bytes=2GiB,size_mean=32KiB")
    leadline.stream("sort", "/data/records", "/data/sorted", memory="1GiB")
    leadline.peak("server.toml").rate_per_s

The package root stays light: the engine child imports it inside a memory cgroup, where every
imported module would take room from the file cache under test. Names are resolved on first use.
"""

from typing import TYPE_CHECKING

from leadline.late import names_from

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
    "MeasuredServer": "leadline.api",
    "Predicted": "leadline.api",
    "Predictions": "leadline.api",
    "StoredStudy": "leadline.api",
    "StreamedData": "leadline.api",
    "SurveyedSystem": "leadline.api",
    "Workload": "leadline.record",
    "open": "leadline.api:open_study",
    "peak": "leadline.api",
    "stream": "leadline.api",
    "surface": "leadline.api",
    "survey": "leadline.api",
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


__getattr__ = names_from(__name__, _HOMES)
