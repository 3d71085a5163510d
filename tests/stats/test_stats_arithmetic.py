"""Numbers with intervals: every rule worked by hand."""

from __future__ import annotations

import math

import pytest

from leadline.record import Interval
from leadline.stats import arithmetic

TEN = Interval(10.0, 8.0, 12.5, 7)
FOUR = Interval(4.0, 3.2, 5.0, 5)
"""Both a quarter wide on the log scale: 12.5 / 8 = 5 / 3.2 = 1.25^2."""
EXACT = arithmetic.exactly(2.0, 3)


def ends(number: Interval) -> tuple[float, float | None, float | None, int]:
    return number.value, number.low, number.high, number.n


def near(*numbers: float) -> object:
    return pytest.approx(numbers)


def test_a_number_without_an_interval_is_exact() -> None:
    assert ends(EXACT) == (2.0, None, None, 3)
    assert arithmetic.exactly(2.0).n == 1


def test_scaling_scales_the_ends() -> None:
    assert ends(arithmetic.scaled(TEN, 2.0)) == (20.0, 16.0, 25.0, 7)
    assert ends(arithmetic.scaled(EXACT, 2.0)) == (4.0, None, None, 3)


def test_the_inverse_swaps_the_ends() -> None:
    assert ends(arithmetic.inverse(FOUR)) == near(0.25, 0.2, 0.3125, 5)
    assert ends(arithmetic.inverse(EXACT)) == (0.5, None, None, 3)
    for low in (0.0, -1.0):
        upward = arithmetic.inverse(Interval(1.0, low, 4.0, 2))
        assert (upward.low, upward.high) == (0.25, None), "as large as one likes"
    assert arithmetic.inverse(Interval(1.0, 0.5, 4.0, 2)).high == 2.0


def test_relative_errors_of_products_and_quotients_add_in_quadrature() -> None:
    wide = 1.25 ** math.sqrt(2)
    assert ends(arithmetic.product(TEN, FOUR)) == near(40.0, 40 / wide, 40 * wide, 5)
    assert ends(arithmetic.quotient(TEN, FOUR)) == near(2.5, 2.5 / wide, 2.5 * wide, 5)


def test_an_exact_side_adds_no_error_and_no_count() -> None:
    assert ends(arithmetic.product(TEN, EXACT)) == near(20.0, 16.0, 25.0, 7)
    assert ends(arithmetic.quotient(EXACT, FOUR)) == near(0.5, 0.4, 0.625, 5)
    assert ends(arithmetic.product(EXACT, arithmetic.exactly(3.0, 2))) == (6.0, None, None, 2)


@pytest.mark.parametrize("low", [None, 0.0, -1.0])
def test_an_end_that_has_no_logarithm_says_nothing_of_a_product(low: float | None) -> None:
    open_ended = Interval(3.0, low, 9.0, 4)
    assert arithmetic.product(open_ended, EXACT).low is None
    assert ends(arithmetic.product(open_ended, TEN))[:3] == near(30.0, 24.0, 37.5)


def test_nothing_times_something_is_exactly_nothing() -> None:
    assert ends(arithmetic.product(Interval(0.0, 0.5, 1.0, 4), TEN)) == (0.0, None, None, 4)


def test_a_low_end_just_above_zero_counts() -> None:
    assert arithmetic.product(Interval(1.0, 0.5, 2.0, 4), EXACT).high == pytest.approx(4.0)


def test_absolute_errors_of_sums_and_differences_add_in_quadrature() -> None:
    three, four = Interval(10.0, 7.0, 13.0, 9), Interval(4.0, 0.0, 8.0, 6)
    assert ends(arithmetic.difference(three, four)) == near(6.0, 1.0, 11.0, 6)
    assert ends(arithmetic.sum_of([three, four, EXACT])) == near(16.0, 11.0, 21.0, 3)
    assert ends(arithmetic.difference(EXACT, arithmetic.exactly(5.0))) == (-3.0, None, None, 1)
    assert ends(arithmetic.sum_of([EXACT, EXACT])) == (4.0, None, None, 3)
    half_known = Interval(1.0, None, 9.0, 2)
    assert ends(arithmetic.difference(half_known, EXACT)) == (-1.0, None, None, 2)
    assert ends(arithmetic.sum_of([Interval(1.0, 0.0, None, 2)])) == (1.0, None, None, 2)


def test_what_is_wrong_together_adds_its_ends() -> None:
    assert ends(arithmetic.sum_alike([TEN, FOUR])) == near(14.0, 11.2, 17.5, 5)
    assert ends(arithmetic.sum_alike([TEN, EXACT])) == near(12.0, 10.0, 14.5, 3)
    assert ends(arithmetic.sum_alike([EXACT, EXACT])) == (4.0, None, None, 3)


def test_the_largest_and_the_least_take_the_ends_of_all() -> None:
    low, high = Interval(9.0, 3.0, 20.0, 2), Interval(10.0, 4.0, 12.0, 6)
    assert ends(arithmetic.largest([low, high])) == (10.0, 4.0, 20.0, 6)
    assert ends(arithmetic.least([low, high])) == (9.0, 3.0, 12.0, 2)
    exact = [arithmetic.exactly(1.0, 4), arithmetic.exactly(2.0, 5)]
    assert arithmetic.largest(exact) == exact[1]
    assert arithmetic.least(exact) == exact[0]


def test_an_exact_rival_bounds_the_largest_and_the_least_by_itself() -> None:
    wide = Interval(10.0, 1.0, 30.0, 6)
    assert ends(arithmetic.largest([wide, arithmetic.exactly(9.0)])) == (10.0, 9.0, 30.0, 6)
    assert ends(arithmetic.least([wide, arithmetic.exactly(11.0)])) == (10.0, 1.0, 11.0, 6)
    assert ends(arithmetic.largest([arithmetic.exactly(10.0), Interval(9.0, 8.0, 9.5, 1)])) == (
        10.0,
        10.0,
        10.0,
        1,
    )
    assert ends(arithmetic.least([arithmetic.exactly(9.0), Interval(10.0, 9.5, 11.0, 1)])) == (
        9.0,
        9.0,
        9.0,
        1,
    )


def test_the_value_lies_within_whatever_the_ends_are() -> None:
    lopsided = [Interval(10.0, 9.0, 11.0, 1), Interval(9.5, 10.5, 12.0, 1)]
    assert arithmetic.largest(lopsided).low == 10.0
    assert arithmetic.least([Interval(10.0, 9.0, 11.0, 1), Interval(11.0, 8.0, 9.0, 1)]).high == 10


def test_below_is_sure_only_when_the_intervals_lie_apart() -> None:
    assert arithmetic.surely_below(FOUR, TEN)
    assert not arithmetic.surely_below(TEN, FOUR)
    assert not arithmetic.surely_below(FOUR, Interval(6.0, 5.0, 7.0, 1)), "they touch"
    assert not arithmetic.surely_below(Interval(4.0, 3.0, 9.0, 1), TEN)
    assert arithmetic.surely_below(EXACT, FOUR)
    assert arithmetic.surely_below(FOUR, arithmetic.exactly(5.5))
