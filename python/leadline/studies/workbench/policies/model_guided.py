"""SH08 Algorithm 4, model-guided: R = 1/(a - b λ) through two loads says which load is next.

SH08 §3.6: "a model-guided search is not guaranteed to converge". Where the model says nothing that
can be tried (a response that falls with the load, a load below none), the algorithm's own beginning
is used again: twice the load, or half of it. It never goes to more than `_RISE_MAX` times the
highest load so far, which two noisy readings of a flat curve can ask for, and gives up after
`_VISITS_MAX` loads.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from leadline.record.workbench import Goal, Prior
from leadline.studies.workbench.policies.algorithm2 import Algorithm2, Visit

_RISE_MAX = 10.0
_VISITS_MAX = 60


def model_guided(goal: Goal, seed: int, prior: Prior | None = None) -> Algorithm2:
    """Return a search that starts at `goal.rate_start_per_s`, whatever is known before."""
    del prior
    return Algorithm2("model-guided", pick_by_model, goal, seed, visits_max=_VISITS_MAX)


def model_guided_seeded(goal: Goal, seed: int, prior: Prior | None = None) -> Algorithm2:
    """Return a search that starts at the prior's rate (SH08 §3.7), if there is one."""
    name = "model-guided-seeded"
    return Algorithm2(name, pick_by_model, goal, seed, prior=prior, visits_max=_VISITS_MAX)


def pick_by_model(visits: Sequence[Visit], start_per_s: float) -> float:
    """Return the next load (SH08 Algorithm 4)."""
    if not visits:
        return start_per_s
    current = visits[-1]
    others = [visit for visit in visits[:-1] if visit.rate_per_s != current.rate_per_s]
    predicted = None
    if others:
        nearest = min(others, key=lambda visit: abs(visit.ratio - 1))
        predicted = predict(current, nearest)
    if predicted is None:
        return current.rate_per_s * (2 if current.ratio < 1 else 0.5)
    return min(predicted, _RISE_MAX * max(visit.rate_per_s for visit in visits))


def predict(one: Visit, other: Visit) -> float | None:
    """Return the load at which R = 1/(a - b λ) through both is at the threshold.

    None when the response does not rise with the load, or the load would be none.
    """
    b = (1 / other.ratio - 1 / one.ratio) / (one.rate_per_s - other.rate_per_s)
    if not b > 0:
        return None
    a = 1 / one.ratio + b * one.rate_per_s
    rate_per_s = (a - 1) / b
    return rate_per_s if rate_per_s > 0 and math.isfinite(rate_per_s) else None
