"""Studies of simulated page caches find the sizes and the policy that the profiles state."""

from __future__ import annotations

import pytest

from leadline.engine import profile_names
from leadline.record import CacheSize, WritePolicy
from shared_surveys import studied

KINDS = ("decstation-5000-sprite", "write-through")
"""One of each: two sizes, none for writes; `test_file_cache_sizes.py` has one for all."""
OTHERS = [
    pytest.param(name, marks=pytest.mark.long) for name in profile_names() if name not in KINDS
]


def error_frac(size: CacheSize, truth: float | None) -> float:
    """Relative error of a size; none and none agree."""
    if size.bytes is None or truth is None:
        return 0.0 if (size.bytes is None) == (truth is None) else float("inf")
    return abs(size.bytes.value / truth - 1)


@pytest.mark.parametrize("profile", [*KINDS, *OTHERS])
def test_sizes_are_found_within_ten_percent_and_the_policy_is_named(profile: str) -> None:
    run = studied(profile)
    found = run.study.cache
    assert error_frac(found.reads, run.true_read_bytes) <= 0.10, found.reads
    assert error_frac(found.writes, run.true_write_bytes) <= 0.10, found.writes
    assert found.policy is run.true_policy, found.evidence
    assert run.study.points == run.study.start.plan.points == len(run.points)


@pytest.mark.long
def test_most_stated_intervals_hold_the_true_size() -> None:
    runs = [studied(profile) for profile in profile_names()]
    pairs = [(run.study.cache.reads, run.true_read_bytes) for run in runs]
    pairs += [(run.study.cache.writes, run.true_write_bytes) for run in runs]
    covered = [size.bytes.covers(truth) for size, truth in pairs if size.bytes and truth]
    assert len(covered) > 20
    assert sum(covered) >= 0.8 * len(covered)


def test_sprite_has_two_sizes() -> None:
    """CP93 section 5: "For writes the cache size is only 5-8 MB, while for reads it is 20 MB"."""
    found = studied("decstation-5000-sprite").study.cache
    assert found.reads.bytes is not None
    assert found.writes.bytes is not None
    assert found.reads.bytes.value > 3 * found.writes.bytes.value
    assert "Reads over writes: ×" in found.sentences[0]
    assert found.reads.memory_frac is not None
    assert found.reads.memory_frac.value == pytest.approx(20 / 32, rel=0.1)


@pytest.mark.long
def test_one_sized_caches_are_not_said_to_have_two() -> None:
    found = studied("two-level").study.cache
    assert found.policy is WritePolicy.CANCELLING
    assert "The two sizes differ" not in found.sentences[0]


def test_a_write_through_cache_has_no_size_for_writes_and_says_why() -> None:
    found = studied("write-through").study.cache
    assert found.writes.bytes is None
    assert "write-through" in found.writes.reason
    assert "Write policy: write-through" in found.sentences[1]
