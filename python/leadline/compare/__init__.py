"""Systems against each other: ratios with verdicts, common curves, prices, a gate (METHODS §4)."""

from leadline.compare.curves import Named
from leadline.compare.disturbance import Disturbance, disturbance_of
from leadline.compare.document import (
    ComparisonRefused,
    Question,
    Terms,
    compare_systems,
    focal_questions,
    name_systems,
    named_questions,
    questions_on,
)
from leadline.compare.file_caches import known_cache
from leadline.compare.gate import NOT_TWO, GateRefused, parse_rule
from leadline.compare.measured import PASSES, Asked, Opened, Readings, measure_in_turns
from leadline.compare.price import PriceRefused, parse_prices
from leadline.compare.ratio import LogRatio, holm, paired_ratio, predicted_ratio
from leadline.late import make_callable

__all__ = [
    "NOT_TWO",
    "PASSES",
    "Asked",
    "ComparisonRefused",
    "Disturbance",
    "GateRefused",
    "LogRatio",
    "Named",
    "Opened",
    "PriceRefused",
    "Question",
    "Readings",
    "Terms",
    "compare_systems",
    "disturbance_of",
    "focal_questions",
    "holm",
    "known_cache",
    "measure_in_turns",
    "name_systems",
    "named_questions",
    "paired_ratio",
    "parse_prices",
    "parse_rule",
    "predicted_ratio",
    "questions_on",
]

make_callable(__name__, "leadline.api.comparisons:compare")
