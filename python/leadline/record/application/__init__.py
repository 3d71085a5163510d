"""An application's I/O as its trace shows it: phases, their streams, and its reuse of data."""

from leadline.record.application.capture import Capture, CapturedFile, CommandEnded, Perturbation
from leadline.record.application.phase import (
    CallCount,
    FiveParameters,
    Gaps,
    Loop,
    PhaseFound,
    SizeCount,
    Stream,
    StreamKind,
)
from leadline.record.application.reuse import AtDistance, MissRatio, Reuse
from leadline.record.application.study import (
    APPLICATION,
    Application,
    ApplicationFound,
    ApplicationStart,
    TraceFacts,
)

__all__ = [
    "APPLICATION",
    "Application",
    "ApplicationFound",
    "ApplicationStart",
    "AtDistance",
    "CallCount",
    "Capture",
    "CapturedFile",
    "CommandEnded",
    "FiveParameters",
    "Gaps",
    "Loop",
    "MissRatio",
    "Perturbation",
    "PhaseFound",
    "Reuse",
    "SizeCount",
    "Stream",
    "StreamKind",
    "TraceFacts",
]
