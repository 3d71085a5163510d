"""Models of a surveyed system: throughput of workloads nobody measured (CP94 §9). Pure, no I/O."""

from leadline.predict.model import Expected, Model
from leadline.predict.named import NAMED
from leadline.predict.predictor import (
    DEFAULT_MODEL,
    MODELS,
    PredictionRefused,
    Predictor,
    interval_at,
)
from leadline.predict.product import NoFamilies, ProductModel
from leadline.predict.ranges import Outside, Ranges, Span
from leadline.predict.rates import iops_of, response_us_of

__all__ = [
    "DEFAULT_MODEL",
    "MODELS",
    "NAMED",
    "Expected",
    "Model",
    "NoFamilies",
    "Outside",
    "PredictionRefused",
    "Predictor",
    "ProductModel",
    "Ranges",
    "Span",
    "interval_at",
    "iops_of",
    "response_us_of",
]
