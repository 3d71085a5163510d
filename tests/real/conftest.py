"""Fixtures of these tests; mypy, which takes one conftest alone, leaves this out."""

from capture_arena import any_way, arena
from served import cgroup_or_skip, serve

__all__ = ["any_way", "arena", "cgroup_or_skip", "serve"]
