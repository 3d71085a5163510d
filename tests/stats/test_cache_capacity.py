"""What a cache holds, from what reads at random places found in it."""

from __future__ import annotations

import numpy as np
import pytest

from leadline.stats import Lookups, held_bytes, student_t

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


def test_every_reading_past_the_boundary_measures_what_is_held() -> None:
    found = held_bytes(looked(count=10**9))
    assert found is not None
    assert found.bytes.value == pytest.approx(HELD, rel=1e-3)
    assert found.bytes.n == 5
    assert found.evidence_bic > 100


def test_the_interval_holds_a_size_that_moves_from_point_to_point() -> None:
    """Development seeds; 1.3% is what the kernel's own count moved by."""
    sizes = [held_bytes(looked(moves=0.013, seed=seed)) for seed in range(300)]
    covered = [size is not None and size.bytes.covers(HELD) for size in sizes]
    widths = [size.bytes.half_width_frac for size in sizes if size is not None]
    assert 0.94 <= np.mean(covered) <= 1.0
    assert max(width for width in widths if width is not None) < 0.08


def test_a_reading_just_past_the_boundary_does_not_drag_the_size_down() -> None:
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
    assert held_bytes([Lookups(64.0 * MIB, 0.5, 2000), Lookups(90.0 * MIB, 1.0, 2000)]) is None


def test_as_much_data_once_held_and_once_not_is_the_end_itself() -> None:
    whole, part = Lookups(90.0 * MIB, 1.0, 2000), Lookups(90.0 * MIB, 0.9, 2000)
    found = held_bytes([whole, part])
    assert found is not None
    assert found.bytes.value == 90 * MIB
    beyond = Lookups(200.0 * MIB, 0.45, 2000)
    with_it, without = held_bytes([whole, part, beyond]), held_bytes([whole, beyond])
    assert with_it is not None
    assert without is not None
    assert with_it.evidence_bic < without.evidence_bic, "a reading that neither explains"


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


MANY = 10**12
"""So many lookups that chance is nothing beside what else moves a share."""


def clear(ln: float) -> Lookups:
    """A reading far beyond a cache: half of it found, off 100 MiB by `ln`; its sd is then 0.03."""
    return Lookups(200 * MIB * np.exp(ln), 0.5, MANY)


CLEAN = Lookups(40.0 * MIB, 1.0, MANY)


def test_readings_alike_by_hand() -> None:
    """Two, 0.06 apart, each 1 sd off: (3 + 2) / 4 is the variance, of 4 degrees of freedom."""
    found = held_bytes([CLEAN, clear(0.0), clear(0.06)])
    sd = np.sqrt((5 / 4) * 0.03**2 / 2 + 0.01**2)
    ends = 100 * MIB * np.exp(0.03 + student_t(4) * sd * np.array([-1, 0, 1]))
    assert found is not None
    assert (found.bytes.low, found.bytes.value, found.bytes.high) == pytest.approx(tuple(ends))


def test_a_reading_far_off_by_hand() -> None:
    """Two alike and one 6 sd beyond, which pulls as 2 sd do: 1 sd. Weights 1, 1, 0.4."""
    found = held_bytes([CLEAN, clear(0.0), clear(0.0), clear(0.18)])
    sd = np.sqrt((3 + 1 + 1 + 0.4 * 25) / 5 * 0.03**2 / 2.4 + 0.01**2)
    ends = 100 * MIB * np.exp(0.03 + student_t(5) * sd * np.array([-1, 0, 1]))
    assert found is not None
    assert (found.bytes.low, found.bytes.value, found.bytes.high) == pytest.approx(tuple(ends))


def test_readings_that_agree_too_well_by_hand() -> None:
    """No less than what was expected of them, and never better than 1% a side."""
    found = held_bytes([CLEAN, *[clear(0.0)] * 3])
    assert found is not None
    sd = np.sqrt(0.03**2 / 3 + 0.01**2)
    assert found.bytes.high == pytest.approx(100 * MIB * np.exp(student_t(5) * sd))
    at_the_end = held_bytes([Lookups(120.0 * MIB, 1.0, MANY), *[clear(0.0)] * 400])
    assert at_the_end is not None
    assert at_the_end.bytes.high == pytest.approx(120 * MIB * np.exp(0.01))


def test_chance_by_hand_and_a_reading_that_found_nothing() -> None:
    """One read in a hundred: a share of 0.01 +- 0.01, where the kernel's own 1% is nothing."""
    one = held_bytes([CLEAN, Lookups(9000.0 * MIB, 0.01, 99)])
    none = held_bytes([CLEAN, Lookups(9000.0 * MIB, 0.0, 99)])
    assert one is not None
    assert none is not None
    assert one.bytes == none.bytes
    sd = np.sqrt(0.99 / (0.01 * 99) + (0.01 + 0.08 * 0.01**2) ** 2 + 0.01**2)
    assert one.bytes.value == pytest.approx(90 * MIB)
    assert one.bytes.high == pytest.approx(90 * MIB * np.exp(student_t(3) * sd))
    assert one.bytes.low == 40 * MIB


def test_readings_near_the_end_are_asked_while_fewer_than_two_lie_clearly_beyond() -> None:
    near, beyond = Lookups(125.0 * MIB, 0.801, MANY), Lookups(200.0 * MIB, 0.5, MANY)
    at_the_line = Lookups(137.5 * MIB, 0.8, MANY)
    for readings, asked in (([near, beyond], 2), ([near, beyond, at_the_line], 2)):
        found = held_bytes([CLEAN, *readings])
        assert found is not None
        assert found.bytes.n == asked


def test_a_reading_that_missed_a_two_hundredth_missed_something() -> None:
    missed, not_quite = Lookups(100.0 * MIB, 0.994, MANY), Lookups(100.0 * MIB, 0.995, MANY)
    beyond = [Lookups(200.0 * MIB, 0.5, MANY)] * 2
    for reading, low in ((missed, 40 * MIB), (not_quite, 100 * MIB)):
        found = held_bytes([CLEAN, reading, *beyond])
        assert found is not None
        assert found.bytes.low is not None
        assert (found.bytes.low >= 100 * MIB) == (low == 100 * MIB)


def test_the_evidence_of_one_share_is_never_endless() -> None:
    """Where next to nothing is expected and nothing was found, as where all was."""
    count = 10**6
    far = Lookups(40.0 * MIB * 4000, 1 / 4000, count)
    found = held_bytes([Lookups(40.0 * MIB, 1.0, count), far])
    assert found is not None
    flat = (1 + 1 / 4000) / 2
    one = -2 * count * 2 * (flat * np.log(flat) + (1 - flat) * np.log(1 - flat))
    ends = -2 * count * (np.log(0.999) + np.log(0.001) / 4000 + (3999 / 4000) * np.log(0.999))
    assert found.evidence_bic == pytest.approx(one - ends, rel=1e-6)
