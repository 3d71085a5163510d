"""An application's time on a surveyed system: its own misses, times what each level costs."""

from leadline.models.application.predicted import predict_application

__all__ = ["predict_application"]
