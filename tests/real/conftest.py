"""Fixtures of these tests; mypy, which takes one conftest alone, leaves this out."""

from served import cgroup_or_skip, serve

__all__ = ["cgroup_or_skip", "serve"]
