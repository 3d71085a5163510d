"""What is loaded on first use, because loading all of Leadline takes longer than most commands."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from types import ModuleType
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


def make_callable(package: str, where: str) -> None:
    """Let a package be called as a function of the same name, `module:name`.

    `leadline.predict` and `leadline.compare` are packages, and verbs of the interface as well:
    Python puts a package's name over a function's as soon as it is loaded.
    """

    class Verb(ModuleType):
        def __call__(self, *arguments: Any, **options: Any) -> Any:
            return self.__wrapped__(*arguments, **options)

        @property
        def __wrapped__(self) -> Callable[..., Any]:  # for inspect.signature
            home, _, name = where.partition(":")
            found: Callable[..., Any] = getattr(importlib.import_module(home), name)
            return found

    sys.modules[package].__class__ = Verb
