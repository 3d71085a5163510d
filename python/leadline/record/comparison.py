"""Two or more systems held against each other (METHODS §4): what differs, what is faster, for what.

A ratio is always A over B of throughput, so above 1 says that A is the faster one. Every interval
holds 95% by itself; a verdict also answers for all the other verdicts of the same document.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from leadline.record.file_cache import WritePolicy
from leadline.record.finding import Finding, Severity
from leadline.record.survey import Curve
from leadline.record.workload import Interval, Workload

Verdict = Literal["a", "b", "inconclusive"]


class Price(msgspec.Struct, frozen=True):
    """What a system costs."""

    amount: float
    currency: str | None
    """The same word for all systems of a comparison; None when none was given."""


class Contender(msgspec.Struct, frozen=True, kw_only=True):
    """One of the systems compared."""

    name: str
    """As `a` and `b` have it: the system's name, with the survey's id where names repeat."""
    system: str
    survey_id: str
    more_ids: tuple[str, ...] = ()
    """Of its other studies, where it has several: what differs from one to the next is in the
    intervals."""
    target: str
    started_at: str
    model: str
    """The model that predicted for it."""
    price: Price | None = None
    findings: tuple[Finding, ...] = ()
    """Those of its survey, and that it is not finished."""


class FactDifference(msgspec.Struct, frozen=True):
    """A recorded fact in which the systems differ."""

    group: str
    name: str
    title: str
    unit: str
    values: tuple[Any, ...]
    """One per contender, in their order; None where it is not known."""


class ComparedWorkload(msgspec.Struct, frozen=True, kw_only=True):
    """One workload on one pair of systems."""

    a: str
    b: str
    title: str | None
    """Its name where it has one: `workstation`, `disk of hp-730`."""
    workload: Workload
    source: Literal["predicted", "measured"]
    a_mb_s: Interval | None
    b_mb_s: Interval | None
    ratio: Interval | None
    """A over B; None where it cannot be had: an `invalid` finding says why."""
    p_value: float | None
    """Of the hypothesis that both are equally fast, by itself; None without a ratio."""
    verdict: Verdict
    """Holm's procedure over all verdicts of the document keeps the chance of any wrong one at 5%.
    """
    verdict_alone: Verdict
    """What the ratio's own interval says, had this been the only question."""
    a_mb_s_per_price: Interval | None = None
    """MB/s for one unit of money."""
    b_mb_s_per_price: Interval | None = None
    per_price_ratio: Interval | None = None
    """A over B of MB/s for one unit of money."""
    readings: tuple[tuple[float, float], ...] = ()
    """MB/s of A and B in each pass, when measured; none is dropped."""
    findings: tuple[Finding, ...] = ()
    """About both, or with `where` about one of them; `invalid` ones withhold the verdict."""

    @property
    def withheld(self) -> tuple[Finding, ...]:
        """Why there is no ratio, or why it decides nothing."""
        return tuple(each for each in self.findings if each.severity is Severity.INVALID)


class CommonRate(msgspec.Struct, frozen=True, kw_only=True):
    """Throughput of one system at the common request size, reads only (CP93 Figs. 2 and 3)."""

    name: str
    place: Literal["disk", "page cache"]
    workload: Workload | None
    throughput_mb_s: Interval | None
    missing: str | None = None
    """Why there is none."""
    findings: tuple[Finding, ...] = ()
    """Of the prediction."""
    extrapolated: bool = False
    """Whether it is a guess beyond what was surveyed."""


class CommonPoint(msgspec.Struct, frozen=True):
    """One x of a curve that a model drew."""

    x: float
    throughput_mb_s: Interval


class CommonCurve(msgspec.Struct, frozen=True, kw_only=True):
    """A system's throughput against one parameter, the others common to all systems.

    Only `unique_bytes` may differ where the curve is over another parameter: it is the focal
    point of the system's own page cache, because what fits one cache overflows another.
    """

    name: str
    parameter: Literal["unique_bytes", "read_frac"]
    at: Workload
    """The parameters that stay; that of the curve itself means nothing."""
    points: tuple[CommonPoint, ...]


class CacheSize(msgspec.Struct, frozen=True, kw_only=True):
    """The effective page cache of one system and what it does with writes (CP93 Figs. 4 and 5)."""

    name: str
    bytes: Interval | None
    """For reads; for both kinds where they were only seen mixed."""
    memory_bytes: int | None
    """What the share is of: the memory, or the cap when the survey ran under one."""
    capped: bool
    share: Interval | None
    writes_bytes: Interval | None = None
    """For writes, where they were told apart from reads."""
    writes_share: Interval | None = None
    policy: WritePolicy = WritePolicy.UNKNOWN
    evidence: tuple[str, ...] = ()
    """What the policy rests on, a sentence each."""
    studied: bool = False
    """Whether a study of the page cache tells, not the survey."""


class OwnCurve(msgspec.Struct, frozen=True):
    """A system's measured curve over the working set, at its own focal point (CP94 Fig. 10)."""

    name: str
    curve: Curve


class AccessCurve(msgspec.Struct, frozen=True, kw_only=True):
    """A system's measured throughput against the read fraction, as it was reached (CP93 Fig. 6).

    At the focal point of its first level: the page cache, its own or a server's.
    """

    name: str
    through: str | None
    """Protocol of the server that the files are on; None when they are local."""
    discipline: str
    """What its writes wait for: `buffered`, `O_DSYNC`, `UNSTABLE`, `FILE_SYNC`, ..."""
    level: str
    """The level of the curve, as its survey names it."""
    curve: Curve


Metric = Literal["slower", "p99", "cpu_per_io"]
"""What a gate is about: throughput, the 99th percentile of latency, processor time per request."""


class Rule(msgspec.Struct, frozen=True):
    """How much worse the second system may be."""

    metric: Metric
    worse_frac: float
    """0.05: slower by 5%, or a p99 that is 5% longer, is too much."""

    @property
    def better_min(self) -> float:
        """Least that "better, new over old" may be: of throughput as it is, of a cost inverted."""
        return 1 - self.worse_frac if self.metric == "slower" else 1 / (1 + self.worse_frac)


class GateFailure(msgspec.Struct, frozen=True, kw_only=True):
    """A workload for which the second system is worse than a rule allows, beyond doubt."""

    title: str | None
    workload: Workload
    metric: Metric
    new_over_old: Interval
    """Of the rule's metric: below 1 where throughput fails, above 1 where a cost does."""


class GateUndecided(msgspec.Struct, frozen=True, kw_only=True):
    """A workload whose interval reaches beyond a rule's limit: worse would not have been told."""

    title: str | None
    workload: Workload
    metric: Metric


class Gate(msgspec.Struct, frozen=True, kw_only=True):
    """Whether the second system may replace the first."""

    rules: tuple[Rule, ...]
    failed: bool
    failures: tuple[GateFailure, ...]
    undecided: tuple[GateUndecided, ...]


class SystemsComparison(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of `compare`, with all that its page draws."""

    version: int = 1
    contenders: tuple[Contender, ...]
    differing_facts: tuple[FactDifference, ...]
    pairs: tuple[ComparedWorkload, ...]
    verdicts: int
    """How many of the pairs could be decided: what Holm's procedure answers for."""
    expected_by_chance: float
    """How many of them would go wrong on equal systems if each were judged alone."""
    common_size_bytes: int | None = None
    """Request size of the common charts; None when the surveyed ranges share none."""
    rates: tuple[CommonRate, ...] = ()
    curves: tuple[CommonCurve, ...] = ()
    cache_sizes: tuple[CacheSize, ...] = ()
    own_curves: tuple[OwnCurve, ...] = ()
    access_curves: tuple[AccessCurve, ...] = ()
    gate: Gate | None = None
    notes: tuple[str, ...] = ()
    """How the numbers came about, for people."""
