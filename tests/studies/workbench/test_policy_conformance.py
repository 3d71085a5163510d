"""Every registered policy keeps the same rules (`proving.policy_conformance`)."""

from __future__ import annotations

import pytest

from leadline.studies.workbench.policies import POLICIES, Maker
from proving.policy_conformance import LONG, MEAN, PolicyConformance, TwoModesConformance

QUICK = ("curve", "binary")
FEW_TRIALS = ("mlrsearch",)


class TestPolicy(PolicyConformance):
    @pytest.fixture(
        params=[
            pytest.param(name, marks=[LONG] * (name in {"linear-seeded", "model-guided-seeded"}))
            for name in POLICIES
        ]
    )
    def make(self, request: pytest.FixtureRequest) -> Maker:
        return POLICIES[request.param]


class TestPolicyOfTwoModes(TwoModesConformance):
    @pytest.fixture(
        params=[
            pytest.param(name, marks=[LONG] * (name not in QUICK))
            for name in POLICIES
            if name not in FEW_TRIALS
        ]
    )
    def make(self, request: pytest.FixtureRequest) -> Maker:
        return POLICIES[request.param]


class TestPolicyOfTwoTrials(TwoModesConformance):
    """Two trials at a load, none anywhere else: both see the same mode in half of the cases."""

    modes_said_of_five = 1

    @pytest.fixture(params=FEW_TRIALS)
    def make(self, request: pytest.FixtureRequest) -> Maker:
        return POLICIES[request.param]


@pytest.mark.parametrize("name", list(POLICIES))
def test_it_answers_with_its_own_name(name: str) -> None:
    assert POLICIES[name](MEAN, 1, None).answer_now().policy == name
