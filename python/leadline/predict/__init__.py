"""Models of a surveyed system: throughput of workloads nobody measured (CP94 §9). Pure, no I/O."""

from leadline.late import make_callable
from leadline.predict.design import Box, spread_out
from leadline.predict.joint import JointModel, fit_joint
from leadline.predict.learning import BATCH, enough, next_points
from leadline.predict.model import PredictionRefused
from leadline.predict.named import NAMED
from leadline.predict.predictor import DEFAULT_MODEL, MODELS, Predictor
from leadline.predict.product import NoFamilies, ProductModel
from leadline.predict.ranges import Ranges, Span
from leadline.predict.rates import iops_of, response_us_of
from leadline.predict.sample import Sample, sample_of

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

make_callable(__name__, "leadline.api.systems:predict")
