"""What a cache holds, from what reads at random places found in it."""

from __future__ import annotations

import numpy as np
import pytest

from leadline.stats import Lookups, held_bytes
from leadline.stats.held import _weighted_median

MIB = 2**20
PLACES = tuple(MIB * place for place in (16, 64, 90, 100, 150, 200, 270, 400, 600))
HELD = 110 * MIB


def looked(
    places: tuple[int, ...] = PLACES,
    *,
    held: float = HELD,
    count: int = 2000,
    moves: float = 0.0,
    seed: int = 1,
) -> list[Lookups]:
    """What so many reads find of data in a cache, whose size moves from point to point."""
    random = np.random.default_rng(seed)
    now = held * np.exp(moves * random.normal(size=len(places)))
    shares = np.minimum(1.0, now / places)
    found = random.binomial(count, shares) / count
    return [
        Lookups(float(place), float(share), count)
        for place, share in zip(places, found, strict=True)
    ]


def test_every_reading_past_the_border_measures_what_is_held() -> None:
    found = held_bytes(looked(count=10**9))
    assert found is not None
    assert found.bytes.value == pytest.approx(HELD, rel=1e-3)
    assert found.bytes.n == 5
    assert found.evidence_bic > 100


def test_the_interval_holds_a_size_that_moves_from_point_to_point() -> None:
    """Development seeds; 1.3 % is what the kernel's own count moved by."""
    sizes = [held_bytes(looked(moves=0.013, seed=seed)) for seed in range(300)]
    covered = [size is not None and size.bytes.covers(HELD) for size in sizes]
    widths = [size.bytes.half_width_frac for size in sizes if size is not None]
    assert 0.94 <= np.mean(covered) <= 1.0
    assert max(width for width in widths if width is not None) < 0.08


def test_a_reading_just_past_the_border_does_not_drag_the_size_down() -> None:
    """Pages of larger workloads are still there: a tenth too little is found."""
    near = Lookups(HELD * 1.03, 0.90, 2000)
    found = held_bytes([*looked(), near])
    assert found is not None
    assert found.bytes.value == pytest.approx(HELD, rel=0.03)
    alone = held_bytes([*looked(PLACES[:3]), near])
    assert alone is not None
    assert alone.bytes.covers(HELD)


def test_somebodys_disturbance_of_a_small_workload_is_no_small_cache() -> None:
    disturbed = Lookups(64.0 * MIB, 0.5, 2000)
    with_it, without = (held_bytes([*looked(), *more]) for more in ([disturbed], []))
    assert with_it is not None
    assert with_it == without


def test_one_reading_that_is_far_off_counts_little() -> None:
    found = held_bytes([*looked(), Lookups(300.0 * MIB, 0.2, 2000)])
    assert found is not None
    assert found.bytes.value == pytest.approx(HELD, rel=0.05)


def test_a_cache_holds_no_less_than_the_data_of_which_nothing_was_missed() -> None:
    found = held_bytes(
        [*looked((16 * MIB, 64 * MIB, 200 * MIB), held=100 * MIB), Lookups(108.0 * MIB, 1.0, 500)]
    )
    assert found is not None
    assert found.bytes.value == 108 * MIB
    assert found.bytes.low == 108 * MIB


def test_without_both_sides_of_its_end_no_size_is_told() -> None:
    assert held_bytes([]) is None
    assert held_bytes(looked(PLACES[:4])) is None
    assert held_bytes(looked(PLACES[4:])) is None


def test_reads_that_found_nothing_are_no_proof_of_an_empty_cache() -> None:
    found = held_bytes([Lookups(100.0 * MIB, 1.0, 30), Lookups(3000.0 * MIB, 0.0, 30)])
    assert found is not None
    assert found.bytes.low is not None
    assert found.bytes.low >= 0.9 * 3000 * MIB / 31


def test_the_end_of_a_cache_is_as_evident_as_its_lookups_make_it() -> None:
    """By hand: the flat share is a half; the cache's own explains all but what is clipped."""
    found = held_bytes([Lookups(50.0 * MIB, 1.0, 100), Lookups(200.0 * MIB, 0.5, 100)])
    assert found is not None
    flat = -2 * 100 * (np.log(0.75) + 0.5 * np.log(0.75) + 0.5 * np.log(0.25))
    ends = -2 * 100 * (np.log(0.999) + np.log(0.5))
    assert found.evidence_bic == pytest.approx(flat - ends, rel=1e-6)


def test_the_middle_of_uneven_weights_is_where_half_of_them_lies() -> None:
    values = np.array([3.0, 1.0, 2.0])
    assert _weighted_median(values, np.array([1.0, 1.0, 1.0])) == 2.0
    assert _weighted_median(values, np.array([5.0, 1.0, 1.0])) == 3.0
    assert _weighted_median(values, np.array([1.0, 5.0, 1.0])) == 1.0
