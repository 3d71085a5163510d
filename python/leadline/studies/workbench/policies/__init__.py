"""Load-picking policies, all behind `leadline.studies.workbench.conversation.Policy`."""

from __future__ import annotations

from collections.abc import Callable

from leadline.errors import LeadlineError
from leadline.record.workbench import Goal, Prior
from leadline.studies.workbench.conversation import Policy
from leadline.studies.workbench.policies.curve import curve
from leadline.studies.workbench.policies.ladders import (
    binary_search,
    binary_search_seeded,
    linear_search,
    linear_search_seeded,
    model_guided,
    model_guided_seeded,
    strawman,
)
from leadline.studies.workbench.policies.mlrsearch import mlrsearch

Maker = Callable[[Goal, int, Prior | None], Policy]

POLICIES: dict[str, Maker] = {
    "curve": curve,
    "strawman": strawman,
    "linear": linear_search,
    "linear-seeded": linear_search_seeded,
    "binary": binary_search,
    "binary-seeded": binary_search_seeded,
    "model-guided": model_guided,
    "model-guided-seeded": model_guided_seeded,
    "mlrsearch": mlrsearch,
}
"""Every policy by its name; `curve` is ours and the default."""

DEFAULT = "curve"


class UnknownPolicy(LeadlineError):
    """There is no policy of this name."""

    exit_code = 2


def open_policy(name: str, goal: Goal, seed: int, prior: Prior | None = None) -> Policy:
    """Return a new search.

    Args:
        name: one of `POLICIES`.
        goal: what it is to reach.
        seed: of its own random choices.
        prior: what is known before; policies without seeding leave it alone.

    Raises:
        UnknownPolicy: there is none of this name.

    """
    if name not in POLICIES:
        raise UnknownPolicy(f"there is no policy {name!r}; there are {', '.join(POLICIES)}")
    return POLICIES[name](goal, seed, prior)
