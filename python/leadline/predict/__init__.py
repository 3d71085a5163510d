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
]
