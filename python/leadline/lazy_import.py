"""What is loaded on first use, because loading all of Leadline takes longer than most commands."""

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


def late(where: str) -> Callable[..., Any]:
    """Return a function that loads `module:name` when it is called, and calls it."""
    home, _, name = where.partition(":")

    def call(*arguments: Any, **options: Any) -> Any:
        return getattr(importlib.import_module(home), name)(*arguments, **options)

    return call
