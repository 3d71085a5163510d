"""Price/performance: MB/s for one unit of money, where the prices are given (METHODS §4)."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from leadline.errors import LeadlineError
from leadline.record import Interval
from leadline.record.comparison import Price

_PRICE = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([^\W\d_]{3,}|[$€£¥])?\s*\Z")
"""A currency has three letters at least: `12x` and `12k` are no prices."""


class PriceRefused(LeadlineError):
    """A price that cannot be read or compared; the message says what to type."""

    exit_code = 2


def parse_prices(texts: Sequence[str], names: Sequence[str]) -> dict[str, Price]:
    """Read `A=1200 EUR,B=800 EUR`, one text or several, for the systems of these names.

    Raises:
        PriceRefused: an unknown system, a price that is no number above zero, a system priced
            twice, or two currencies.

    """
    prices: dict[str, Price] = {}
    for part in (piece for text in texts for piece in text.split(",")):
        name, equals, value = part.strip().rpartition("=")
        match = _PRICE.match(value)
        if not equals or match is None or not 0 < float(match[1]) < math.inf:
            raise PriceRefused(
                f"--price {part.strip()!r} is not SYSTEM=AMOUNT with an amount above zero "
                f"and a currency or none; write "
                f"--price '{names[0]}=1200 EUR,{names[-1]}=800 EUR' (no commas within a number)"
            )
        if name not in names:
            raise PriceRefused(
                f"--price names {name!r}, which is not compared here; the systems are "
                f"{', '.join(names)}"
            )
        if name in prices:
            raise PriceRefused(f"--price gives {name!r} twice; leave one out")
        prices[name] = Price(float(match[1]), match[2])
    currencies = {price.currency for price in prices.values()}
    if len(currencies) > 1:
        written = ", ".join(sorted(currency or "none" for currency in currencies))
        raise PriceRefused(
            f"--price has several currencies ({written}); money is compared in one: convert the "
            "amounts and write the same word after each"
        )
    return prices


def per_price(rate: Interval | None, price: Price | None) -> Interval | None:
    """Return MB/s for one unit of money; None where either is missing."""
    if rate is None or price is None:
        return None
    return _scaled(rate, 1 / price.amount)


def per_price_ratio(ratio: Interval | None, a: Price | None, b: Price | None) -> Interval | None:
    """Return A over B of MB/s per money; None where something is missing. Prices are exact."""
    if ratio is None or a is None or b is None:
        return None
    return _scaled(ratio, b.amount / a.amount)


def _scaled(number: Interval, factor: float) -> Interval:
    low = None if number.low is None else number.low * factor
    high = None if number.high is None else number.high * factor
    return Interval(number.value * factor, low, high, number.n)
