"""A comparison in words and rows: for the terminal and for the page alike."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from xml.etree import ElementTree as Xml

import msgspec
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from leadline.charts.terminal import Terminal, on_terminal
from leadline.record import Interval, Workload, WritePolicy
from leadline.record.application.comparison import ApplicationComparison, ApplicationPair
from leadline.record.application.prediction import ApplicationPrediction
from leadline.record.comparison import (
    CacheSize,
    ComparedWorkload,
    FactDifference,
    Gate,
    GateFailure,
    Rule,
    SystemsComparison,
)
from leadline.record.finding import Finding
from leadline.record.wording import (
    format_bytes_ci,
    format_count,
    format_interval,
    format_number,
    format_rate_ci,
    format_workload,
    join_words,
)
from leadline.sanitize import printable
from leadline.studies.facts import format_fact
from leadline.units import format_percent, format_seconds

PRICE_UNIT = 1000
"""MB/s are told for so much money: one unit of it buys too few."""


def format_title(title: str | None, workload: Workload) -> str:
    """Write a workload's name, or its parameters when it has none."""
    return (title or format_workload(workload)).replace("_", " ")


def format_ratio(ratio: Interval | None) -> str:
    """Write `×3.1 (2.9 to 3.3)`."""
    if ratio is None:
        return "not known"
    return f"×{format_interval(ratio, format_number)}"


def format_verdict(pair: ComparedWorkload) -> str:
    """Name the faster one; where many questions took a verdict away, what it said alone."""
    if pair.ratio is None:
        return "not known"
    text = _faster(pair, pair.verdict)
    if pair.verdict != pair.verdict_alone:
        text += f" (asked alone: {_faster(pair, pair.verdict_alone)})"
    return text


def _faster(pair: ComparedWorkload | ApplicationPair, verdict: str) -> str:
    return {"a": pair.a, "b": pair.b}.get(verdict, verdict)


def format_per_price(rate: Interval | None) -> str:
    """Write MB/s for PRICE_UNIT units of money with its interval."""
    if rate is None:
        return "not known"
    ends = (rate.low, rate.high)
    low, high = (None if end is None else end * PRICE_UNIT for end in ends)
    return format_rate_ci(Interval(rate.value * PRICE_UNIT, low, high, rate.n))


def marks(pair: ComparedWorkload) -> str:
    """Write what was found in a few words: `hp-730: region boundary`."""
    about = (_where(each) + each.code.replace("_", " ") for each in pair.findings)
    return ", ".join(dict.fromkeys(about))


def _where(found: Finding) -> str:
    return f"{found.where}: " if found.where else ""


def pair_groups(document: SystemsComparison) -> list[tuple[str, str, list[ComparedWorkload]]]:
    """Return the rows of each pair of systems, in order."""
    groups: dict[tuple[str, str], list[ComparedWorkload]] = {}
    for pair in document.pairs:
        groups.setdefault((pair.a, pair.b), []).append(pair)
    return [(a, b, rows) for (a, b), rows in groups.items()]


def format_score(a: str, b: str, rows: Sequence[ComparedWorkload]) -> str:
    """Write `hp-730 faster on 3 of 7 workloads, convex on 2; 2 inconclusive`."""
    count = Counter("not comparable" if row.ratio is None else row.verdict for row in rows)
    others = ("inconclusive", "not comparable")
    rest = ", ".join(f"{count[what]} {what}" for what in others if count[what])
    workloads = format_count(len(rows), "workload")
    return f"{a} faster on {count['a']} of {workloads}, {b} on {count['b']}{rest and f'; {rest}'}"


def format_withheld(rows: Sequence[ComparedWorkload], *, brief: bool = False) -> list[str]:
    """Write why verdicts are withheld, each reason once, behind the workloads it holds of.

    Args:
        rows: of one pair.
        brief: name codes, which `leadline explain` has, in place of sentences and systems.

    """
    titles: dict[str, dict[str, None]] = {}
    for row in rows:
        for found in row.withheld:
            reason = f"{found.code} (leadline explain {found.code})" if brief else str(found)
            titles.setdefault(reason, {})[format_title(row.title, row.workload)] = None
    return [f"{', '.join(names)}: {reason}" for reason, names in titles.items()]


def fact_cells(difference: FactDifference) -> list[str]:
    """Return one cell per system."""
    return [format_fact(value, difference.unit) for value in difference.values]


def format_chance(document: SystemsComparison, *, brief: bool = False) -> str:
    """Write what the verdicts together stand for."""
    count = document.verdicts
    if count <= 1:
        return "Error rate of the verdict: at most 5%, on equally fast systems."
    together = f"Familywise error rate of {count} verdicts: at most 5% (Holm)"
    if brief:
        return f"{together}."
    return (
        f"{together}; false verdicts expected without correction: "
        f"{document.expected_by_chance:.2g}. Intervals are 95% CI each."
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

    Systems of which nothing is known but a boundary are left to the charts.
    """
    return [
        (
            size.name,
            format_bytes_ci(size.bytes) if size.bytes else "none found",
            _format_writes(size),
            f"{size.policy} ({'study' if size.studied else 'survey'})",
            list(size.evidence),
        )
        for size in document.cache_sizes
        if size.evidence or size.studied
    ]


def _format_writes(size: CacheSize) -> str:
    if size.policy is WritePolicy.THROUGH:
        return "none: they go through"
    return format_bytes_ci(size.writes_bytes) if size.writes_bytes else "not told apart"


def gate_lines(gate: Gate, *, brief: bool = False) -> list[str]:
    """Return the gate's answer, the failures first; in brief without their ratios."""
    verdict = "failed" if gate.failed else "passed"
    lines = [f"gate {verdict} ({format_rules(gate.rules)} fails)"]
    for rule in gate.rules:
        failed = [item for item in gate.failures if item.metric == rule.metric]
        names = [format_title(item.title, item.workload) for item in failed]
        if brief and names:
            lines.append(f"{WORSE[rule.metric]}: {', '.join(names)}")
        else:
            lines += [
                f"{WORSE[rule.metric]}: {name}, new over old {format_ratio(item.new_over_old)}"
                for name, item in zip(names, failed, strict=True)
            ]
        unsure = [
            format_title(item.title, item.workload)
            for item in gate.undecided
            if item.metric == rule.metric
        ]
        if unsure:
            said = format_rules([rule])
            lines.append(f"cannot exclude that it is {said} on: {', '.join(unsure)}")
    return lines


WORSE = {
    "slower": "slower",
    "p99": "higher in p99 latency",
    "cpu_per_io": "higher in CPU time per request",
}


def format_rules(rules: Sequence[Rule]) -> str:
    """Say what a gate does not allow."""
    return " or ".join(
        f"{WORSE[rule.metric]} by more than {format_percent(rule.worse_frac)}" for rule in rules
    )


def currency(document: SystemsComparison) -> str | None:
    """Return the money's name, `money` when it has none; None when no system has a price."""
    prices = [each.price for each in document.contenders if each.price is not None]
    return (prices[0].currency or "money") if prices else None


def format_price(document: SystemsComparison, index: int) -> str:
    """Write a contender's price."""
    price = document.contenders[index].price
    if price is None:
        return "not given"
    return f"{price.amount:,.10g} {price.currency or ''}".strip()


# A comparison on a terminal: what differs first, then the ratios and their verdicts.


@on_terminal
def render_comparison(terminal: Terminal, document: SystemsComparison) -> Iterator[RenderableType]:
    """Tell the ratios, the prices and the gate; all of it: facts, page caches, reasons, notes."""
    named = [f"{each.name} ({each.survey_id[:8]})" for each in document.contenders]
    yield terminal.text(f"comparison of {join_words(named)}")
    facts = ", ".join(each.title for each in document.differing_facts)
    if facts and terminal.verbose:
        yield Text("What differs", "bold")
        yield _facts(terminal, document)
    else:
        yield terminal.text(f"Facts that differ: {facts or 'none'}")
    caches = cache_rows(document)
    if caches and terminal.verbose:
        yield Text("Page caches", "bold")
        heads = ["System", "Reads (95% CI)", "Writes (95% CI)", "Write policy"]
        yield terminal.table(heads, [row[:4] for row in caches])
    yield from terminal.warnings(survey_doubts(document))
    for a, b, rows in pair_groups(document):
        yield terminal.text(format_score(a, b, rows), "bold")
        if told := [row for row in rows if terminal.verbose or row.ratio is not None]:
            yield _ratios(terminal, a, b, told)
        if any(row.per_price_ratio is not None for row in rows):
            yield _prices(terminal, document, a, b, rows)
        for line in format_withheld(rows, brief=not terminal.verbose):
            yield terminal.text(line, "yellow")
    yield terminal.text(format_chance(document, brief=not terminal.verbose))
    yield from map(terminal.text, document.notes if terminal.verbose else ())
    if document.gate:
        yield from terminal.sentences(gate_lines(document.gate, brief=not terminal.verbose))


def _facts(terminal: Terminal, document: SystemsComparison) -> Table:
    rows = []
    group = ""
    for difference in document.differing_facts:
        shown = difference.group if difference.group != group else ""
        group = difference.group
        rows.append([shown, difference.title, *fact_cells(difference)])
    return terminal.table(["", "Fact", *(each.name for each in document.contenders)], rows)


def _ratios(terminal: Terminal, a: str, b: str, rows: Sequence[ComparedWorkload]) -> Table:
    marked = any(row.findings for row in rows)
    heads = ["Workload", a, b, "Ratio (95% CI)", "Faster", *(["Warnings"] if marked else [])]
    cells = [
        [
            format_title(row.title, row.workload),
            format_rate_ci(row.a_mb_s) if row.a_mb_s else "not known",
            format_rate_ci(row.b_mb_s) if row.b_mb_s else "not known",
            format_ratio(row.ratio),
            format_verdict(row),
            *([marks(row)] if marked else []),
        ]
        for row in rows
    ]
    return terminal.table(heads, cells)


def _prices(
    terminal: Terminal,
    document: SystemsComparison,
    a: str,
    b: str,
    rows: Sequence[ComparedWorkload],
) -> Table:
    names = [each.name for each in document.contenders]
    prices = [format_price(document, names.index(name)) for name in (a, b)]
    money = f"for {PRICE_UNIT} {currency(document)}"
    heads = ["Workload", f"{a} {money}", f"{b} {money}", "Ratio (95% CI)"]
    cells = [
        [
            format_title(row.title, row.workload),
            format_per_price(row.a_mb_s_per_price),
            format_per_price(row.b_mb_s_per_price),
            format_ratio(row.per_price_ratio),
        ]
        for row in rows
    ]
    return terminal.table(heads, [["price", *prices, ""], *cells])


# An application on several systems, on a terminal: each one's times, then the ratios.


@on_terminal
def render_application_comparison(
    terminal: Terminal, document: ApplicationComparison
) -> Iterator[RenderableType]:
    """Tell the times, the ratios with verdicts, and what speaks against them."""
    named = list(zip(document.names, document.predictions, strict=True))
    yield terminal.text(f"{document.application}, predicted", "bold")
    rows = [(name, _io(found), _elapsed(found), _missing(found)) for name, found in named]
    yield terminal.table(
        ("System", "I/O time (95% CI)", "Elapsed time (95% CI)", "Not surveyed"), rows
    )
    yield terminal.table(
        ("Pair", "I/O time ratio (95% CI)", "Elapsed time ratio (95% CI)", "Faster"),
        [
            (
                f"{pair.a} / {pair.b}",
                format_ratio(pair.io_ratio),
                format_ratio(pair.elapsed_ratio),
                _faster(pair, pair.verdict),
            )
            for pair in document.pairs
        ],
    )
    for pair in document.pairs:
        for found in pair.findings:
            yield terminal.text(f"{pair.a} / {pair.b}: {found}", "yellow")
    told = {each for pair in document.pairs for each in pair.findings}
    everywhere = set[Finding].intersection(*(set(found.findings) for _, found in named))
    said = dict.fromkeys(
        each if each.where or each in everywhere else msgspec.structs.replace(each, where=name)
        for name, found in named
        for each in found.findings
    )
    yield from terminal.warnings(each for each in said if each not in told)


def _io(found: ApplicationPrediction) -> str:
    least = "at least " if found.io_at_least else ""
    return least + format_interval(found.io_s, format_seconds)


def _elapsed(found: ApplicationPrediction) -> str:
    if found.elapsed_s is None:
        return "not known"
    least = "at least " if found.io_at_least else ""
    return least + format_interval(found.elapsed_s, format_seconds)


def _missing(found: ApplicationPrediction) -> str:
    return ", ".join(f"{term.calls:,} {term.name}" for term in found.terms if term.seconds is None)


# A comparison for continuous integration: JUnit's XML of the gate, and Markdown for people.

_STEERS = re.compile(r"([\\`*_{}\[\]<>|#!~])")
"""What Markdown and HTML within it read as more than text."""


def junit_xml(document: SystemsComparison) -> bytes:
    """Return a test case for each workload of a gate, as CI systems show them.

    A workload that is slower beyond doubt fails. One that cannot be told is skipped, with why: it
    fails no gate, and is no pass.
    """
    gate = document.gate
    failures: dict[Workload, list[GateFailure]] = {}
    for each in () if gate is None else gate.failures:
        failures.setdefault(each.workload, []).append(each)
    undecided = set() if gate is None else {each.workload for each in gate.undecided}
    old, new = (printable(each.name) for each in document.contenders[:2])
    suite = Xml.Element("testsuite", name=f"leadline compare {old} {new}")
    skipped = 0
    for pair in document.pairs:
        title = printable(format_title(pair.title, pair.workload))
        case = Xml.SubElement(suite, "testcase", classname=f"{new} against {old}", name=title)
        said = _said(pair)
        failed = failures.get(pair.workload)
        if failed is not None:
            told = [f"{WORSE[each.metric]}, {format_ratio(each.new_over_old)}" for each in failed]
            message = f"{new} is worse, new over old: {'; '.join(told)}"
            kinds = ",".join(each.metric for each in failed)
            Xml.SubElement(case, "failure", message=message, type=kinds).text = said
        elif pair.ratio is None or pair.workload in undecided:
            skipped += 1
            Xml.SubElement(case, "skipped", message=f"inconclusive: {said}")
        else:
            Xml.SubElement(case, "system-out").text = said
    suite.set("tests", str(len(document.pairs)))
    suite.set("failures", str(len(failures)))
    suite.set("skipped", str(skipped))
    return bytes(Xml.tostring(suite, encoding="utf-8", xml_declaration=True)) + b"\n"


def _said(pair: ComparedWorkload) -> str:
    parts = [
        f"{pair.a} {format_rate_ci(pair.a_mb_s) if pair.a_mb_s else 'not known'}",
        f"{pair.b} {format_rate_ci(pair.b_mb_s) if pair.b_mb_s else 'not known'}",
        f"{pair.a} / {pair.b} {format_ratio(pair.ratio)}",
        *map(str, pair.findings),
    ]
    return printable("; ".join(parts))


def markdown(document: SystemsComparison) -> str:
    """Return a comparison for a job's summary or a comment: verdict, table, what differs."""
    return "\n".join(_lines(document)) + "\n"


def _lines(document: SystemsComparison) -> Iterator[str]:
    gate = document.gate
    if gate is not None:
        verdict = "failed" if gate.failed else "passed"
        yield f"**Gate {verdict}** ({format_rules(gate.rules)} fails)"
        yield from (f"- {_plain(line)}" for line in gate_lines(gate)[1:])
        yield ""
    for a, b, pairs in pair_groups(document):
        one, other = _plain(a), _plain(b)
        yield f"| Workload | {one} | {other} | {one} / {other} (95% CI) | Faster |"
        yield "|---|---|---|---|---|"
        for pair in pairs:
            cells = [
                format_title(pair.title, pair.workload),
                format_rate_ci(pair.a_mb_s) if pair.a_mb_s else "not known",
                format_rate_ci(pair.b_mb_s) if pair.b_mb_s else "not known",
                format_ratio(pair.ratio),
                format_verdict(pair),
            ]
            yield "| " + " | ".join(map(_plain, cells)) + " |"
        yield ""
    if document.differing_facts:
        yield "What differs: " + "; ".join(
            _plain(f"{each.title}: {' against '.join(fact_cells(each))}")
            for each in document.differing_facts
        )
        yield ""
    yield from (f"- {_plain(str(doubt))}" for doubt in survey_doubts(document))
    yield from (f"- {_plain(note)}" for note in document.notes)


def _plain(text: str) -> str:
    return _STEERS.sub(r"\\\1", printable(text).replace("\n", " "))
