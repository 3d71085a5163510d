"""bench/faults.py in its short form: nothing lost, nothing left, nothing said wrongly."""

from __future__ import annotations

import pytest

from attempts.families import FAMILIES
from attempts.outcome import Asked

pytestmark = pytest.mark.real


@pytest.mark.parametrize("name", FAMILIES)
def test_harm_is_survived(name: str) -> None:
    found = list(FAMILIES[name](Asked(seed=1, kills=1, short=True)))
    assert found
    assert [f"{each.kind} ({each.how}): {line}" for each in found for line in each.told()] == []
    if not any(each.survived for each in found):
        pytest.skip(f"nothing of it can be tried here: {found[0].untried}")
