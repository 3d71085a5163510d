"""Systems against each other: ratios with verdicts, common curves, prices, a gate (METHODS §4)."""

from leadline.studies.comparison.contenders import Disturbance, Named, disturbance_of
from leadline.studies.comparison.document import (
    ComparisonRefused,
    Question,
    Readings,
    Terms,
    compare_systems,
    focal_questions,
    name_systems,
    named_questions,
    questions_on,
)
from leadline.studies.comparison.facts import known_cache
from leadline.studies.comparison.ratio import (
    NOT_TWO,
    GateRefused,
    LogRatio,
    PriceRefused,
    holm,
    paired_ratio,
    parse_prices,
    parse_rule,
    predicted_ratio,
)
from leadline.studies.comparison.run import PASSES, Asked, Opened, measure_in_turns

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
