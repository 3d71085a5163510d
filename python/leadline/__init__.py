"""Leadline: sound a storage system to the bottom.

    leadline.survey("/data", budget="5min").predict(leadline.Workload("2GiB", "32KiB"))
    leadline.open("system").predict("unique_bytes=2GiB,size_mean=32KiB")
    leadline.measure("/data", "bs=4k,rw=randread,size=2g").to_frame()
    leadline.compare("old", "new").plot()
    leadline.stream("sort", "/data/records", "/data/sorted", memory="1GiB")
    leadline.peak("server.toml").rate_per_s

The package root stays light: the engine child imports it inside a memory cgroup, where every
imported module would take room from the page cache under test. Names are resolved on first use.
"""

from typing import TYPE_CHECKING, Any

from leadline.lazy_import import names_from

if TYPE_CHECKING:
    from leadline.api.caches_and_files import cache, files, validate
    from leadline.api.comparisons import ComparedSystems, compare
    from leadline.api.measurements import measure
    from leadline.api.servers import MeasuredServer, peak, surface
    from leadline.api.streams import StreamedData, stream
    from leadline.api.studies import StoredStudy
    from leadline.api.studies import open_study as open  # noqa: A004
    from leadline.api.systems import Predicted, Predictions, SurveyedSystem, predict, survey
    from leadline.errors import LeadlineError
    from leadline.record import Access, Workload

    __version__: str

_HOMES = {
    "Access": "leadline.record",
    "ComparedSystems": "leadline.api.comparisons",
    "LeadlineError": "leadline.errors",
    "MeasuredServer": "leadline.api.servers",
    "Predicted": "leadline.api.systems",
    "Predictions": "leadline.api.systems",
    "StoredStudy": "leadline.api.studies",
    "StreamedData": "leadline.api.streams",
    "SurveyedSystem": "leadline.api.systems",
    "Workload": "leadline.record",
    "cache": "leadline.api.caches_and_files",
    "compare": "leadline.api.comparisons",
    "files": "leadline.api.caches_and_files",
    "measure": "leadline.api.measurements",
    "open": "leadline.api.studies:open_study",
    "peak": "leadline.api.servers",
    "predict": "leadline.api.systems",
    "stream": "leadline.api.streams",
    "surface": "leadline.api.servers",
    "survey": "leadline.api.systems",
    "validate": "leadline.api.caches_and_files",
    "__version__": "leadline.machine.facts:leadline_version",
}

__all__ = [
    "Access",
    "ComparedSystems",
    "LeadlineError",
    "MeasuredServer",
    "Predicted",
    "Predictions",
    "StoredStudy",
    "StreamedData",
    "SurveyedSystem",
    "Workload",
    "__version__",
    "cache",
    "compare",
    "files",
    "measure",
    "open",
    "peak",
    "predict",
    "stream",
    "surface",
    "survey",
    "validate",
]


_resolve = names_from(__name__, _HOMES)


def __getattr__(name: str) -> Any:
    found = _resolve(name)
    return found() if name == "__version__" else found


def __dir__() -> list[str]:
    return sorted(__all__)
