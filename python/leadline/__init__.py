"""Leadline: sound a storage system to the bottom.

    leadline.survey("/data", budget="5min").predict(leadline.Workload(...))
    leadline.open("system").predict("unique_bytes=2GiB,size_mean=32KiB")
    leadline.measure("/data", "unique_bytes=2GiB,size_mean=32KiB").to_frame()
    leadline.stream("sort", "/data/records", "/data/sorted", memory="1GiB")
    leadline.peak("server.toml").rate_per_s

The package root stays light: the engine child imports it inside a memory cgroup, where every
imported module would take room from the file cache under test. Names are resolved on first use.
"""

from typing import TYPE_CHECKING

from leadline.late import names_from

if TYPE_CHECKING:
    from leadline.api.measurements import measure
    from leadline.api.servers import MeasuredServer, peak, surface
    from leadline.api.streams import StreamedData, stream
    from leadline.api.studies import StoredStudy
    from leadline.api.studies import open_study as open  # noqa: A004
    from leadline.api.systems import Predicted, Predictions, SurveyedSystem, survey
    from leadline.record import Access, Workload

_HOMES = {
    "Access": "leadline.record",
    "MeasuredServer": "leadline.api.servers",
    "Predicted": "leadline.api.systems",
    "Predictions": "leadline.api.systems",
    "StoredStudy": "leadline.api.studies",
    "StreamedData": "leadline.api.streams",
    "SurveyedSystem": "leadline.api.systems",
    "Workload": "leadline.record",
    "measure": "leadline.api.measurements",
    "open": "leadline.api.studies:open_study",
    "peak": "leadline.api.servers",
    "stream": "leadline.api.streams",
    "surface": "leadline.api.servers",
    "survey": "leadline.api.systems",
}

__all__ = [
    "Access",
    "MeasuredServer",
    "Predicted",
    "Predictions",
    "StoredStudy",
    "StreamedData",
    "SurveyedSystem",
    "Workload",
    "measure",
    "open",
    "peak",
    "stream",
    "surface",
    "survey",
]


__getattr__ = names_from(__name__, _HOMES)
