"""Leadline: sound a storage system to the bottom.

    leadline.survey("/data", budget="5min").predict(leadline.Workload(...))
    leadline.open("system").predict("unique_bytes=2GiB,size_mean=32KiB")
    leadline.stream("sort", "/data/records", "/data/sorted", memory="1GiB")
    leadline.peak("server.toml").rate_per_s

The package root stays light: the engine child imports it inside a memory cgroup, where every
imported module would take room from the file cache under test. Names are resolved on first use.
"""

import importlib
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from leadline.api import (
        MeasuredServer,
        Predicted,
        Predictions,
        StreamedData,
        SurveyedSystem,
        open_experiment,
        peak,
        stream,
        surface,
    )
    from leadline.api import open_system as open  # noqa: A004
    from leadline.record import Workload

_HOMES = {
    "MeasuredServer": ("leadline.api", "MeasuredServer"),
    "Predicted": ("leadline.api", "Predicted"),
    "Predictions": ("leadline.api", "Predictions"),
    "StreamedData": ("leadline.api", "StreamedData"),
    "SurveyedSystem": ("leadline.api", "SurveyedSystem"),
    "Workload": ("leadline.record", "Workload"),
    "open": ("leadline.api", "open_system"),
    "open_experiment": ("leadline.api", "open_experiment"),
    "peak": ("leadline.api", "peak"),
    "stream": ("leadline.api", "stream"),
    "surface": ("leadline.api", "surface"),
}

__all__ = [
    "MeasuredServer",
    "Predicted",
    "Predictions",
    "StreamedData",
    "SurveyedSystem",
    "Workload",
    "open",
    "open_experiment",
    "peak",
    "stream",
    "surface",
]


class _CallablePackage(ModuleType):
    """`leadline.survey` is a package, and the verb."""

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        """Survey a target, see `leadline.api.survey`."""
        return importlib.import_module("leadline.api").survey(*arguments, **options)


class _Root(ModuleType):
    """The package root: makes `leadline.survey` callable at the moment it is imported."""

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "survey" and isinstance(value, ModuleType):
            value.__class__ = _CallablePackage
        super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Root


def __getattr__(name: str) -> Any:
    if name == "survey":
        return importlib.import_module("leadline.survey")
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home, attribute = _HOMES[name]
    return getattr(importlib.import_module(home), attribute)
