"""Ratios of two throughputs, how sure they are, and what they decide.

Everything is done on the natural-log scale, where noise is additive: the ratio's variance is the
sum of both variances, and Student's t takes its degrees of freedom from Welch and Satterthwaite
(Welch, "The generalization of Student's problem when several different population variances are
involved", Biometrika 34, 1947). See docs/concepts/comparison.md.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, cast

import numpy as np

from leadline.errors import LeadlineError
from leadline.record import EngineResult, Interval, Prediction, Workload
from leadline.record.comparison import (
    Gate,
    GateFailure,
    GateUndecided,
    Metric,
    Price,
    Rule,
    Verdict,
)
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


class Told(NamedTuple):
    """What one study says of a system."""

    value: float
    ln_sd: float
    """As it knows itself: of the logarithm."""
    df: float
    n: int = 1


def studies_ratio(a: Sequence[Told], b: Sequence[Told]) -> LogRatio | None:
    """Return A over B of independent studies; None when one has no spread to go by.

    Of several studies a side the spread between them, which holds what differs from boot to boot,
    takes the place of each study's own wherever it is the larger. No prior shrinks it: how much
    boots of a system differ nobody knows beforehand.
    """
    if not a or not b:
        return None
    if not all(math.isfinite(x) and x > 0 for each in (*a, *b) for x in each[:3]):
        return None
    logs = [np.log([each.value for each in side]) for side in (a, b)]
    between_df = len(a) + len(b) - 2
    squares = sum(float(((side - side.mean()) ** 2).sum()) for side in logs)
    variances, dfs = list[float](), list[float]()
    for side in (a, b):
        own = sum(each.ln_sd**2 for each in side) / len(side)
        larger = between_df > 0 and squares / between_df > own
        variances.append((squares / between_df if larger else own) / len(side))
        dfs.append(between_df if larger else min(each.df for each in side))
    return LogRatio(
        mean=float(logs[0].mean() - logs[1].mean()),
        sd=math.sqrt(sum(variances)),
        df=welch_df(variances, dfs) if between_df == 0 else min(dfs),
        n=sum(each.n for each in (*a, *b)),
    )


def predicted(side: Sequence[Prediction]) -> list[Told]:
    """Return what predictions of surveys of one system say."""
    rates = [each.throughput_mb_s for each in side]
    return [
        Told(rate.value, each.ln_sd, each.df, rate.n)
        for rate, each in zip(rates, side, strict=True)
    ]


def welch_df(variances: Sequence[float], dfs: Sequence[float]) -> float:
    """Degrees of freedom of a sum of means (Welch 1947, Satterthwaite 1946)."""
    parts = zip(variances, dfs, strict=True)
    return sum(variances) ** 2 / sum(variance**2 / df for variance, df in parts)


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
# A workload fails a rule when "better, new over old" is shown to lie below the rule's limit: by
# itself, when its 95% interval ends below it; of several, when Holm's procedure over all workloads
# and rules says so, so that a gate over many fails on equal systems in at most 5% of its runs.

_RULE = re.compile(r"\s*(slower|p99|cpu_per_io)\s*=\s*([0-9]+(?:\.[0-9]+)?)\s*%\s*\Z")


NOT_TWO = "--fail-if judges a new system against an old one: give exactly two, OLD then NEW"


class GateRefused(LeadlineError):
    """A rule that cannot be read or applied; the message says what to type."""

    exit_code = 2


@dataclass(frozen=True)
class Judged:
    """One workload under the gate: ratios old over new, None where there is none."""

    title: str | None
    workload: Workload
    old_over_new: LogRatio | None
    """Of throughput."""
    costs: Mapping[Metric, LogRatio | None] = field(default_factory=dict)
    admissible: bool = True
    """Whether its readings may decide anything."""

    def better(self, metric: Metric) -> LogRatio | None:
        """Return how much better the new one is: its throughput, or the old one's cost, is over."""
        if not self.admissible:
            return None
        if metric != "slower":
            return self.costs.get(metric)
        return None if self.old_over_new is None else self.old_over_new.inverse()


COSTS: tuple[Metric, ...] = ("p99", "cpu_per_io")
"""Metrics of which more is worse."""


def require_throughput(rules: Sequence[Rule], why: str) -> None:
    """Refuse rules about what is not known.

    Raises:
        GateRefused: one is not about throughput.

    """
    for rule in rules:
        if rule.metric in COSTS:
            raise GateRefused(
                f"--fail-if {rule.metric} cannot be told: {why}, or compare measurements, several "
                "of each system: leadline compare OLD1,OLD2 NEW1,NEW2"
            )


def cost_of(result: EngineResult, metric: Metric) -> float:
    """Return what a run says of a metric other than throughput: us; NaN where it says nothing."""
    if metric == "p99":
        return result.latency_us.p99
    used = result.cpu_user + result.cpu_system
    return 1e6 * used / result.iops.value if result.iops.value > 0 else math.nan


def parse_rules(texts: Sequence[str]) -> tuple[Rule, ...]:
    """Read `slower=5%`, `p99=10%`, `cpu_per_io=5%`, each at most once.

    Raises:
        GateRefused: anything else.

    """
    rules = dict[str, Rule]()
    for text in texts:
        match = _RULE.match(text)
        if match is None or not 0 <= float(match[2]) < 100:
            raise GateRefused(
                f"--fail-if {text!r} is not a rule this gate knows; write --fail-if slower=5%, "
                "p99=5% or cpu_per_io=5% (from 0 to less than 100%)"
            )
        if match[1] in rules:
            raise GateRefused(f"--fail-if {match[1]} is given twice; leave one out")
        rules[match[1]] = Rule(cast("Metric", match[1]), float(match[2]) / 100)
    return tuple(rules.values())


def judge(rules: Sequence[Rule], judged: Sequence[Judged]) -> Gate:
    """Apply every rule to every workload. What cannot be told never fails."""
    asked = [(rule, item, item.better(rule.metric)) for rule in rules for item in judged]
    chances = [r.p_value_below(rule.better_min) for rule, _, r in asked if r is not None]
    adjusted = iter(holm(chances))
    failures, undecided = [], []
    for rule, item, ratio in asked:
        about: dict[str, Any] = {"title": item.title, "workload": item.workload}
        about["metric"] = rule.metric
        if ratio is not None and next(adjusted) < ALPHA:
            told = ratio if rule.metric == "slower" else ratio.inverse()
            failures.append(GateFailure(**about, new_over_old=told.interval()))
        elif ratio is None or (ratio.interval().low or 0.0) < rule.better_min:
            undecided.append(GateUndecided(**about))
    return Gate(
        rules=tuple(rules),
        failed=bool(failures),
        failures=tuple(failures),
        undecided=tuple(undecided),
    )
