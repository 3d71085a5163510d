"""Price/performance: one currency, each system by its name, intervals scaled with the price."""

from __future__ import annotations

import pytest

from leadline.record import Interval
from leadline.record.comparison import Price
from leadline.studies.comparison.ratio import PriceRefused, parse_prices, per_price, per_price_ratio

NAMES = ("atlas", "rapid=2")


def test_prices_are_read_in_one_option_or_several() -> None:
    expected = {"atlas": Price(1200.0, "EUR"), "rapid=2": Price(800.5, "EUR")}
    assert parse_prices(["atlas=1200 EUR,rapid=2=800.5EUR"], NAMES) == expected
    assert parse_prices(["atlas=1200 EUR", "rapid=2=800.5 EUR"], NAMES) == expected
    assert parse_prices(["atlas=1200"], NAMES) == {"atlas": Price(1200.0, None)}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("atlas", "SYSTEM=AMOUNT"),
        ("atlas=", "SYSTEM=AMOUNT"),
        ("atlas=0", "above zero"),
        ("atlas=-5", "above zero"),
        ("atlas=1,200 EUR", "no commas"),
        ("nobody=5", "atlas, rapid=2"),
        ("atlas=5,atlas=6", "twice"),
        ("atlas=5 EUR,rapid=2=6 USD", "EUR, USD"),
        ("atlas=5 EUR,rapid=2=6", "EUR, none"),
    ],
)
def test_a_price_that_cannot_be_compared_says_what_to_type(text: str, said: str) -> None:
    with pytest.raises(PriceRefused, match=said):
        parse_prices([text], NAMES)


def test_the_cheaper_of_two_equals_is_the_better_buy() -> None:
    one, other = Price(1000.0, "EUR"), Price(250.0, "EUR")
    assert per_price_ratio(Interval(1.0, 0.9, 1.1, 8), one, other) == Interval(
        0.25, 0.225, 0.275, 8
    )
    assert per_price(Interval(50.0, 40.0, 60.0, 4), one) == Interval(0.05, 0.04, 0.06, 4)


def test_without_a_price_or_an_interval_nothing_is_filled_in() -> None:
    assert per_price(Interval(50.0, 40.0, 60.0, 4), None) is None
    assert per_price(None, Price(2.0, None)) is None
    assert per_price_ratio(Interval(1.0, 0.9, 1.1, 8), Price(2.0, None), None) is None
    assert per_price(Interval(50.0, None, None, 1), Price(2.0, None)) == Interval(
        25.0, None, None, 1
    )
