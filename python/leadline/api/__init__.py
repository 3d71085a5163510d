"""Leadline from Python: survey a system, open a stored one, predict.

    import leadline
    disk = leadline.survey("/data", budget="5min")
    disk.predict(leadline.Workload(unique_bytes=2**31, size_mean=32768)).throughput_mb_s

What comes back shows itself in a notebook and turns into a pandas frame.
"""

from leadline.api.frames import FramesMissing
from leadline.api.servers import MeasuredServer, peak, surface
from leadline.api.streams import StreamedData, stream
from leadline.api.studies import StoredStudy, open_study
from leadline.api.systems import Predicted, Predictions, SurveyedSystem, survey

__all__ = [
    "FramesMissing",
    "MeasuredServer",
    "Predicted",
    "Predictions",
    "StoredStudy",
    "StreamedData",
    "SurveyedSystem",
    "open_study",
    "peak",
    "stream",
    "surface",
    "survey",
]
