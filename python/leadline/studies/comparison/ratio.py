"""Ratios of two throughputs, how sure they are, and what they decide.

Everything is done on the natural-log scale, where noise is additive: the ratio's variance is the
sum of both variances, and Student's t takes its degrees of freedom from Welch and Satterthwaite
(Welch, "The generalization of Student's problem when several different population variances are
involved", Biometrika 34, 1947). See docs/concepts/comparison.md.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from leadline.errors import LeadlineError
from leadline.record import Interval, Prediction, Workload
from leadline.record.comparison import Gate, GateFailure, Price, Verdict
from leadline.record.wording import format_workload
from leadline.stats import pooled_noise
from leadline.stats.intervals import CONFIDENCE, student_cdf, student_t

ALPHA = 0.05
"""Chance of a wrong verdict: what the 95% intervals leave."""


@dataclass(frozen=True)
class LogRatio:
    """The natural log of throughput A over throughput B, as well as it is known."""

    mean: float
    sd: float
    """Standard error of the mean."""
    df: float
    """Degrees of freedom of Student's t."""
    n: int
    """Readings it rests on, both sides together."""

    def interval(self, confidence: float = CONFIDENCE) -> Interval:
        """Return the ratio with an interval that holds it with this confidence."""
        half = student_t(self.df, confidence) * self.sd
        low, high = math.exp(self.mean - half), math.exp(self.mean + half)
        return Interval(math.exp(self.mean), low, high, self.n)

    def p_value(self) -> float:
        """Probability of a ratio at least this far from 1, if both are equally fast."""
        return 2 * student_cdf(self.df, -abs(self.mean) / self.sd)

    def p_value_below(self, limit: float) -> float:
        """Twice the probability of a ratio this low, if the true one is `limit`.

        Twice, so that 5% stands where the two-sided 95% interval ends below `limit`.
        """
        return min(1.0, 2 * student_cdf(self.df, (self.mean - math.log(limit)) / self.sd))

    def inverse(self) -> LogRatio:
        """Return B over A."""
        return LogRatio(-self.mean, self.sd, self.df, self.n)


def predicted_ratio(a: Prediction, b: Prediction) -> LogRatio | None:
    """Return A over B of two independent surveys; None when a side has no spread to go by."""
    rates = (a.throughput_mb_s.value, b.throughput_mb_s.value)
    spreads = (a.ln_sd, b.ln_sd)
    if not all(math.isfinite(x) and x > 0 for x in (*rates, *spreads, a.df, b.df)):
        return None
    variances = [sd**2 for sd in spreads]
    df = sum(variances) ** 2 / (variances[0] ** 2 / a.df + variances[1] ** 2 / b.df)
    return LogRatio(
        mean=math.log(rates[0] / rates[1]),
        sd=math.sqrt(sum(variances)),
        df=df,
        n=a.throughput_mb_s.n + b.throughput_mb_s.n,
    )


def paired_ratio(readings: Sequence[tuple[float, float]]) -> LogRatio | None:
    """Return A over B from readings taken in pairs, one after the other (MB/s each).

    What disturbs both halves of a pair alike is in neither ratio. The spread of the pairs' ratios
    is pooled with the weak prior of `pooled_noise`, so that two lucky pairs are not exact. None
    with fewer than two pairs, or when a reading is not above zero.
    """
    if len(readings) < 2 or not all(x > 0 and math.isfinite(x) for pair in readings for x in pair):
        return None
    ratios = [a / b for a, b in readings]
    noise = pooled_noise([ratios])
    mean = float(np.log(ratios).mean())
    return LogRatio(mean, noise.sd_frac / math.sqrt(len(ratios)), noise.df, 2 * len(ratios))


def unpaired_ratio(a: Sequence[float], b: Sequence[float]) -> LogRatio | None:
    """Return A over B of readings taken at different times (MB/s); None as `paired_ratio`.

    What differed between the times is in the ratio and not in its interval.
    """
    if min(len(a), len(b)) < 2 or not all(x > 0 and math.isfinite(x) for x in (*a, *b)):
        return None
    noise = pooled_noise([a, b])
    mean = float(np.log(a).mean() - np.log(b).mean())
    sd = noise.sd_frac * math.sqrt(1 / len(a) + 1 / len(b))
    return LogRatio(mean, sd, noise.df, len(a) + len(b))


def verdict_of(ratio: LogRatio, p_value: float) -> Verdict:
    """Name the faster system if this p-value shows one; one that is not a number shows none."""
    if not p_value < ALPHA:
        return "inconclusive"
    return "a" if ratio.mean > 0 else "b"


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjust p-values so that the chance of any false one below 5% is at most 5%.

    Holm's step-down procedure ("A simple sequentially rejective multiple test procedure",
    Scandinavian Journal of Statistics 6, 1979), valid however the tests depend on each other. A
    p-value that is not a number counts as 1.
    """
    known = [p if math.isfinite(p) else 1.0 for p in p_values]
    order = sorted(range(len(known)), key=known.__getitem__)
    adjusted, running = [1.0] * len(known), 0.0
    for rank, index in enumerate(order):
        running = max(running, min(1.0, known[index] * (len(known) - rank)))
        adjusted[index] = running
    return adjusted


# Price/performance: MB/s for one unit of money, where the prices are given (METHODS §4).

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


# May the new system replace the old one? A gate for CI that fails only on what is shown.
#
# A workload fails when the ratio new over old is shown to lie below the limit: by itself, when its
# 95% interval ends below it; of several workloads, when Holm's procedure over all of them says so,
# so that a gate over many workloads fails on equally fast systems in at most 5% of its runs.

_RULE = re.compile(r"\s*slower\s*=\s*([0-9]+(?:\.[0-9]+)?)\s*%\s*\Z")


NOT_TWO = "--fail-if judges a new system against an old one: give exactly two, OLD then NEW"


class GateRefused(LeadlineError):
    """A rule that cannot be read or applied; the message says what to type."""

    exit_code = 2


@dataclass(frozen=True)
class Judged:
    """One workload under the gate: old over new; None when there is no ratio."""

    title: str | None
    workload: Workload
    old_over_new: LogRatio | None
    admissible: bool = True
    """Whether its readings may decide anything."""


def parse_rule(text: str) -> float:
    """Read `slower=5%` as 0.05.

    Raises:
        GateRefused: anything else.

    """
    match = _RULE.match(text)
    if match is None or not 0 <= float(match[1]) < 100:
        raise GateRefused(
            f"--fail-if {text!r} is not a rule this gate knows; write --fail-if slower=5% "
            "(from 0 to less than 100%)"
        )
    return float(match[1]) / 100


def judge(slower_frac: float, judged: Sequence[Judged]) -> Gate:
    """Apply the rule to every workload. What cannot be told never fails."""
    limit = 1 - slower_frac
    ratios = [
        item.old_over_new.inverse() if item.old_over_new is not None and item.admissible else None
        for item in judged
    ]
    adjusted = iter(holm([r.p_value_below(limit) for r in ratios if r is not None]))
    failures, undecided = [], []
    for item, ratio in zip(judged, ratios, strict=True):
        if ratio is None:
            undecided.append(item.title or format_workload(item.workload))
        elif next(adjusted) < ALPHA:
            failures.append(
                GateFailure(title=item.title, workload=item.workload, new_over_old=ratio.interval())
            )
        elif (ratio.interval().low or 0.0) < limit:
            undecided.append(item.title or format_workload(item.workload))
    return Gate(
        slower_frac=slower_frac,
        failed=bool(failures),
        failures=tuple(failures),
        undecided=tuple(undecided),
    )
