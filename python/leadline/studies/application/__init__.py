"""What is an application's I/O like? A trace of it, read and described."""

from leadline.studies.application.characterize import characterize_trace
from leadline.studies.application.stored import load_application
from leadline.studies.application.trace import TraceRefused, TraceStopped

__all__ = ["TraceRefused", "TraceStopped", "characterize_trace", "load_application"]
