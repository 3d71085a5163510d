"""A comparison for continuous integration: JUnit's XML of the gate, and Markdown for people."""

from __future__ import annotations

import re
from collections.abc import Iterator
from xml.etree import ElementTree as Xml

from leadline.inert import printable
from leadline.record.comparison import ComparedWorkload, SystemsComparison
from leadline.record.wording import say_rate, say_workload
from leadline.report.comparison import words
from leadline.units import say_percent

_STEERS = re.compile(r"([\\`*_{}\[\]<>|#!~])")
"""What Markdown and HTML within it read as more than text."""


def junit_xml(document: SystemsComparison) -> bytes:
    """Return a test case for each workload of a gate, as CI systems show them.

    A workload that is slower beyond doubt fails. One that cannot be told is skipped, with why: it
    fails no gate, and is no pass.
    """
    gate = document.gate
    failures = {} if gate is None else {each.workload: each for each in gate.failures}
    undecided = () if gate is None else gate.undecided
    old, new = (printable(each.name) for each in document.contenders[:2])
    suite = Xml.Element("testsuite", name=f"leadline compare {old} {new}")
    skipped = 0
    for pair in document.pairs:
        title = printable(words.say_title(pair.title, pair.workload))
        case = Xml.SubElement(suite, "testcase", classname=f"{new} against {old}", name=title)
        said = _said(pair)
        failed = failures.get(pair.workload)
        if failed is not None:
            message = f"{new} is slower: new over old {words.say_ratio(failed.new_over_old)}"
            Xml.SubElement(case, "failure", message=message, type="slower").text = said
        elif pair.ratio is None or (pair.title or say_workload(pair.workload)) in undecided:
            skipped += 1
            Xml.SubElement(case, "skipped", message=f"cannot tell: {said}")
        else:
            Xml.SubElement(case, "system-out").text = said
    suite.set("tests", str(len(document.pairs)))
    suite.set("failures", str(len(failures)))
    suite.set("skipped", str(skipped))
    return bytes(Xml.tostring(suite, encoding="utf-8", xml_declaration=True)) + b"\n"


def _said(pair: ComparedWorkload) -> str:
    parts = [
        f"{pair.a} {say_rate(pair.a_mb_s) if pair.a_mb_s else 'not known'}",
        f"{pair.b} {say_rate(pair.b_mb_s) if pair.b_mb_s else 'not known'}",
        f"{pair.a} / {pair.b} {words.say_ratio(pair.ratio)}",
        *map(str, pair.findings),
    ]
    return printable("; ".join(parts))


def markdown(document: SystemsComparison) -> str:
    """Return a comparison for a job's summary or a comment: verdict, table, what differs."""
    return "\n".join(_lines(document)) + "\n"


def _lines(document: SystemsComparison) -> Iterator[str]:
    gate = document.gate
    if gate is not None:
        verdict, limit = "failed" if gate.failed else "passed", say_percent(gate.slower_frac)
        yield f"**Gate {verdict}** (slower by more than {limit} fails)"
        yield from (f"- {_plain(line)}" for line in words.gate_lines(gate)[1:])
        yield ""
    for a, b, pairs in words.pair_groups(document):
        one, other = _plain(a), _plain(b)
        yield f"| Workload | {one} | {other} | {one} / {other} (95 %) | Verdict |"
        yield "|---|---|---|---|---|"
        for pair in pairs:
            cells = [
                words.say_title(pair.title, pair.workload),
                say_rate(pair.a_mb_s) if pair.a_mb_s else "not known",
                say_rate(pair.b_mb_s) if pair.b_mb_s else "not known",
                words.say_ratio(pair.ratio),
                words.say_verdict(pair),
            ]
            yield "| " + " | ".join(map(_plain, cells)) + " |"
        yield ""
    if document.differing_facts:
        yield "What differs: " + "; ".join(
            _plain(f"{each.title}: {' against '.join(words.fact_cells(each))}")
            for each in document.differing_facts
        )
        yield ""
    yield from (f"- {_plain(str(doubt))}" for doubt in words.survey_doubts(document))
    yield from (f"- {_plain(note)}" for note in document.notes)


def _plain(text: str) -> str:
    return _STEERS.sub(r"\\\1", printable(text).replace("\n", " "))
