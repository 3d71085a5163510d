"""Packages whose names are resolved on first use, because loading all of them takes too long."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any


def names_from(package: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """Return the `__getattr__` of a package (PEP 562).

    Args:
        package: its name.
        homes: of each name the module that it is in, or `module:name` where it has another there.

    """

    def resolve(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        home, _, own = homes[name].partition(":")
        return getattr(importlib.import_module(home), own or name)

    return resolve
