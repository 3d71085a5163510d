"""A comparison in words and rows: for the terminal and for the page alike."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import msgspec

from leadline.record import Interval, Workload, WritePolicy
from leadline.record.comparison import (
    CacheSize,
    ComparedWorkload,
    FactDifference,
    Gate,
    SystemsComparison,
)
from leadline.record.finding import Finding
from leadline.record.wording import (
    say_bytes,
    say_count,
    say_interval,
    say_number,
    say_rate,
    say_workload,
)
from leadline.studies.facts import say_fact
from leadline.units import say_percent

PRICE_UNIT = 1000
"""MB/s are told for so much money: one unit of it buys too few."""


def say_title(title: str | None, workload: Workload) -> str:
    """Write a workload's name, or its parameters when it has none."""
    return (title or say_workload(workload)).replace("_", " ")


def say_ratio(ratio: Interval | None) -> str:
    """Write `×3.1 (2.9 to 3.3)`."""
    if ratio is None:
        return "not known"
    return f"×{say_interval(ratio, say_number)}"


def say_verdict(pair: ComparedWorkload) -> str:
    """Write who is faster; where many questions took a verdict away, what it said alone."""
    if pair.ratio is None:
        return "not known"
    said = {"a": f"{pair.a} is faster", "b": f"{pair.b} is faster", "cannot tell": "cannot tell"}
    text = said[pair.verdict]
    if pair.verdict != pair.verdict_alone:
        text += f" (asked alone: {said[pair.verdict_alone]})"
    return text


def say_per_price(rate: Interval | None) -> str:
    """Write MB/s for PRICE_UNIT units of money with its interval."""
    if rate is None:
        return "not known"
    ends = (rate.low, rate.high)
    low, high = (None if end is None else end * PRICE_UNIT for end in ends)
    return say_rate(Interval(rate.value * PRICE_UNIT, low, high, rate.n))


def marks(pair: ComparedWorkload) -> str:
    """Write what was found in a few words: `hp-730: region border`."""
    about = ((f"{each.where}: " if each.where else "", each.code) for each in pair.findings)
    return ", ".join(dict.fromkeys(where + code.replace("_", " ") for where, code in about))


def pair_groups(document: SystemsComparison) -> list[tuple[str, str, list[ComparedWorkload]]]:
    """Return the rows of each pair of systems, in order."""
    groups: dict[tuple[str, str], list[ComparedWorkload]] = {}
    for pair in document.pairs:
        groups.setdefault((pair.a, pair.b), []).append(pair)
    return [(a, b, rows) for (a, b), rows in groups.items()]


def say_score(a: str, b: str, rows: Sequence[ComparedWorkload]) -> str:
    """Write how often each is faster: `hp-730 faster on 3 of 7 workloads, convex on 2, …`."""
    count = Counter("not known" if row.ratio is None else row.verdict for row in rows)
    parts = [f"{a} faster on {count['a']} of {say_count(len(rows), 'workload')}"]
    parts += [f"{b} on {count['b']}"]
    parts += [f"{what} on {count[what]}" for what in ("cannot tell", "not known") if count[what]]
    return ", ".join(parts)


def say_withheld(rows: Sequence[ComparedWorkload]) -> list[str]:
    """Write why verdicts are withheld, each reason once, behind the workloads it holds of."""
    titles: dict[str, list[str]] = {}
    for row in rows:
        for found in row.withheld:
            titles.setdefault(str(found), []).append(say_title(row.title, row.workload))
    return [f"{', '.join(names)}: {reason}" for reason, names in titles.items()]


def fact_cells(difference: FactDifference) -> list[str]:
    """Return one cell per system."""
    return [say_fact(value, difference.unit) for value in difference.values]


def say_chance(document: SystemsComparison) -> str:
    """Write what the verdicts together stand for."""
    count = document.verdicts
    if count <= 1:
        return "The verdict is wrong on equally fast systems in at most 5 % of cases."
    return (
        f"{count} verdicts: judged each alone, chance would make about "
        f"{document.expected_by_chance:.2g} of them on equally fast systems. They are judged "
        "together (Holm), so any wrong one at all comes in at most 5 % of cases; each interval "
        "holds 95 % by itself."
    )


def survey_doubts(document: SystemsComparison) -> list[Finding]:
    """What the surveys found, each behind its system's name."""
    return [
        msgspec.structs.replace(found, where=each.name)
        for each in document.contenders
        for found in each.findings
    ]


def cache_rows(document: SystemsComparison) -> list[tuple[str, str, str, str, list[str]]]:
    """Return name, size for reads, size for writes, write policy and its evidence, each in words.

    Systems of which nothing is known but a border are left to the charts.
    """
    return [
        (
            size.name,
            say_bytes(size.bytes) if size.bytes else "none found",
            _say_writes(size),
            f"{size.policy} ({'study' if size.studied else 'survey'})",
            list(size.evidence),
        )
        for size in document.cache_sizes
        if size.evidence or size.studied
    ]


def _say_writes(size: CacheSize) -> str:
    if size.policy is WritePolicy.THROUGH:
        return "none: they go through"
    return say_bytes(size.writes_bytes) if size.writes_bytes else "not told apart"


def gate_lines(gate: Gate) -> list[str]:
    """Return the gate's answer, the failures first."""
    limit = say_percent(gate.slower_frac)
    lines = [
        f"slower: {say_title(item.title, item.workload)}, new over old "
        f"{say_ratio(item.new_over_old)}"
        for item in gate.failures
    ]
    if gate.undecided:
        lines.append(
            f"cannot exclude that it is slower by more than {limit} on: "
            + ", ".join(name.replace("_", " ") for name in gate.undecided)
        )
    verdict = "failed" if gate.failed else "passed"
    return [f"gate {verdict} (slower by more than {limit} fails)", *lines]


def currency(document: SystemsComparison) -> str | None:
    """Return the money's name, `money` when it has none; None when no system has a price."""
    prices = [each.price for each in document.contenders if each.price is not None]
    return (prices[0].currency or "money") if prices else None


def say_price(document: SystemsComparison, index: int) -> str:
    """Write a contender's price."""
    price = document.contenders[index].price
    if price is None:
        return "not given"
    return f"{price.amount:,.10g} {price.currency or ''}".strip()
