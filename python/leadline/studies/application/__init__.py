"""What is an application's I/O like? A trace of it, or a program as it runs, described."""

from leadline.studies.application.capture import Watched, characterize_running
from leadline.studies.application.characterize import characterize_trace, load_application
from leadline.studies.application.trace import TraceRefused, TraceStopped

__all__ = [
    "TraceRefused",
    "TraceStopped",
    "Watched",
    "characterize_running",
    "characterize_trace",
    "load_application",
]
