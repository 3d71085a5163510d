"""One experiment with several goals or policies: what accuracy, confidence and width cost.

SH08 Figs. 8, 9 and 10. Each combination is an experiment of its own, stored like any other.
"""

from __future__ import annotations

import itertools
import math
import uuid
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from leadline.record.wording import say_count
from leadline.record.workbench import Experiment, ExperimentStart
from leadline.record.workload import parse_share
from leadline.studies.workbench.policies import POLICIES
from leadline.studies.workbench.policy import ExperimentRefused

EXPERIMENTS_MAX = 64
Variation = dict[str, float | str]
"""What of a start one experiment has otherwise: values by `VARIED`'s names."""


def _share_between(low: float, high: float) -> Callable[[str], float]:
    def read(text: str) -> float:
        value = parse_share(text)
        if not low <= value <= high:
            raise ValueError(f"{text!r} is not between {100 * low:g} % and {100 * high:g} %")
        return value

    return read


def _policy(text: str) -> str:
    if text not in POLICIES:
        raise ValueError(f"there is no policy {text!r}; there are {', '.join(POLICIES)}")
    return text


VARIED: dict[str, Callable[[str], Any]] = {
    "accuracy": _share_between(0.5, 0.999),
    "confidence": _share_between(0.5, 0.999),
    "width": _share_between(0.001, 0.9),
    "policy": _policy,
}
"""What can be varied, and how a value of it is read."""


def read_variations(texts: Sequence[str]) -> tuple[Variation, ...]:
    """Return all combinations of `accuracy=70%,90%` and the like, the last varying fastest.

    Raises:
        ExperimentRefused: a name that is none or is there twice, a value that makes no sense, or
            too many combinations.

    """
    asked: dict[str, list[Any]] = {}
    for text in texts:
        name, equals, values = text.partition("=")
        name = name.strip()
        if not equals or name not in VARIED:
            raise ExperimentRefused(
                f"--vary {text!r} is none of {', '.join(VARIED)} with its values, for example "
                "accuracy=70%,80%,90%"
            )
        if name in asked:
            raise ExperimentRefused(f"--vary says {name} twice; give all its values at once")
        try:
            asked[name] = [VARIED[name](each.strip()) for each in values.split(",")]
        except ValueError as error:
            raise ExperimentRefused(f"--vary {name}: {error}") from error
        if len(set(asked[name])) < len(asked[name]):
            raise ExperimentRefused(f"--vary {name}: a value is there twice")
    if math.prod(map(len, asked.values())) > EXPERIMENTS_MAX:
        raise ExperimentRefused(f"--vary makes more than {EXPERIMENTS_MAX} experiments")
    return tuple(dict(zip(asked, each, strict=True)) for each in itertools.product(*asked.values()))


def varied_start(start: ExperimentStart, variation: Variation) -> ExperimentStart:
    """Return the start of an experiment of its own, with another goal or policy."""
    goal = start.goal
    given = {name: variation[name] for name in ("accuracy", "confidence") if name in variation}
    threshold = goal.threshold
    if "width" in variation:
        threshold = msgspec.structs.replace(threshold, width_frac=float(variation["width"]))
    return msgspec.structs.replace(
        start,
        study_id=uuid.uuid4().hex,
        goal=msgspec.structs.replace(goal, threshold=threshold, **given),
        policy=str(variation.get("policy", start.policy)),
    )


def spent_s(experiment: Experiment) -> float:
    """Return the bench time of all its trials."""
    return sum(trial.cost_s for own in experiment.peaks for trial in own.trials)


def say_variation(variation: Variation) -> str:
    """Write `accuracy 90 %, confidence 95 %`."""
    return ", ".join(f"{name} {say_value(value)}" for name, value in variation.items())


def say_value(value: float | str) -> str:
    """Write one of the values as it is typed."""
    return value if isinstance(value, str) else f"{100 * value:.4g} %"


def varied_sentences(variations: Sequence[Variation], found: Sequence[Experiment]) -> list[str]:
    """Say which combination took the least bench time and which the most."""
    costs = [spent_s(each) for each in found]
    least, most = min(costs), max(costs)
    if least <= 0 or len(costs) < 2:
        return []
    dear = say_variation(variations[costs.index(most)])
    cheap = say_variation(variations[costs.index(least)])
    said = (
        f"Of {say_count(len(found), 'experiment')} {cheap} took the least bench time, and {dear} "
        f"the most: {most / least:.3g} times as much."
    )
    return [said]
