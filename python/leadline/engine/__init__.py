"""Targets and engines: the only package that starts processes or touches a target."""

from leadline.engine.client import Engine, Limits, open_engine
from leadline.engine.errors import CacheLimitRefused, EngineFault, PointFailed, TargetRefused
from leadline.engine.profiles import load_profile, profile_names
from leadline.engine.stop import Stopped, stop_on_signals
from leadline.engine.target import Target

__all__ = [
    "CacheLimitRefused",
    "Engine",
    "EngineFault",
    "Limits",
    "PointFailed",
    "Stopped",
    "Target",
    "TargetRefused",
    "load_profile",
    "open_engine",
    "profile_names",
    "stop_on_signals",
]
