"""Models of a surveyed system: throughput of workloads nobody measured (CP94 §9). Pure, no I/O."""

from leadline.models.joint import JointModel, fit_joint
from leadline.models.learning import BATCH, Box, enough, next_points, spread_out
from leadline.models.model import PredictionRefused, Sample, sample_of
from leadline.models.predictor import (
    DEFAULT_MODEL,
    MODELS,
    NAMED,
    Predictor,
    iops_of,
    response_us_of,
)
from leadline.models.product import NoFamilies, ProductModel
from leadline.models.ranges import Ranges, Span

__all__ = [
    "BATCH",
    "DEFAULT_MODEL",
    "MODELS",
    "NAMED",
    "Box",
    "JointModel",
    "NoFamilies",
    "PredictionRefused",
    "Predictor",
    "ProductModel",
    "Ranges",
    "Sample",
    "Span",
    "enough",
    "fit_joint",
    "iops_of",
    "next_points",
    "response_us_of",
    "sample_of",
    "spread_out",
]
