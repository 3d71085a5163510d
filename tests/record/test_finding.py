"""Findings: every code has a sentence, and the engine has the codes of the catalogue."""

from __future__ import annotations

import json
import re
from typing import Any

import msgspec
import pytest

from leadline.record.finding import Finding, Severity, entries
from places import ROOT

SCHEMA = ROOT / "protocol" / "event.schema.json"
ENGINE = ROOT / "crates"


def test_every_code_of_the_engine_is_in_the_catalogue_with_its_severity() -> None:
    codes = {each["const"] for each in json.loads(SCHEMA.read_text())["$defs"]["Code"]["oneOf"]}
    assert codes <= entries().keys()
    source = (ENGINE / "wire" / "src" / "finding.rs").read_text(encoding="utf-8")
    arms = re.findall(r"((?:\|?\s*Code::\w+\s*)+)=> (?:{\s*)?Severity::(\w+)", source)
    told = {
        re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower(): severity.lower()
        for names, severity in arms
        for name in re.findall(r"Code::(\w+)", names)
    }
    assert told.keys() == codes
    assert told == {code: entries()[code].severity for code in codes}


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (
            Finding.of("level_shift", first_mb_s=8100.0, until_s=2.3, last_mb_s=42.04),
            "level shift: 8.1 GB/s until 2.30 s, then 42 MB/s; the mean describes neither",
        ),
        (
            Finding.of("level_shift", first_mb_s=8.0, until_s=1.0, last_mb_s=4.2, levels=3),
            (
                "level shift: 8 MB/s until 1.00 s, 4.2 MB/s at the end, 3 levels in all; the "
                "mean describes none of them"
            ),
        ),
        (
            Finding.of("no_plateau", written_bytes=4 * 2**30, more_bytes=8 * 2**30),
            "precondition: no plateau after 4 GiB written (--precondition 8GiB would allow more)",
        ),
        (
            Finding.of("no_plateau", written_bytes=2**30),
            "precondition: no plateau after 1 GiB written (the job's time was up; allow it more)",
        ),
        (
            Finding.of("busy_machine", foreign_frac=0.5, io_wait_frac=0.25),
            (
                "host busy: other processes use 50% of a processor; I/O pressure (PSI) 25%; stop "
                "what else runs, and measure again"
            ),
        ),
        (
            Finding.of("server_lost", why="server lost: {why} [a|b]", lost_requests=3),
            (
                "server lost: {why} [a|b]; the run ended in its warm-up, nothing was measured; 3 "
                "unanswered requests count as lost"
            ),
        ),
    ],
)
def test_a_sentence_is_made_of_the_values(found: Finding, said: str) -> None:
    assert str(found) == said
    assert found.document()["text"] == said


def test_what_is_not_in_the_catalogue_cannot_be_found() -> None:
    with pytest.raises(KeyError):
        Finding.of("nosuch")
    with pytest.raises(KeyError):
        str(Finding.of("not_steady"))
    with pytest.raises(msgspec.ValidationError, match="there is no finding 'nosuch'"):
        msgspec.convert({"code": "nosuch", "severity": "note"}, Finding)


def test_every_sentence_can_be_said_with_all_of_its_values() -> None:
    for code, entry in entries().items():
        names = re.findall(r"\{(\w+)(?::([^{}]*))?\}", entry.text)
        values: dict[str, Any] = {name: 7.0 if how else "a name" for name, how in names}
        text = str(Finding.of(code, **values))
        assert not set("{}[]|") & set(text), code
        assert entry.severity in Severity


@pytest.mark.parametrize(
    ("frac", "said"), [(0.01002, "±1.01%"), (0.0149, "±1.49%"), (0.822, "±82.2%")]
)
def test_a_width_above_its_target_is_not_written_as_the_target(frac: float, said: str) -> None:
    found = Finding.of("time_cap", half_width_frac=frac, accuracy_frac=0.01, runs=5)
    assert f"{said} instead of ±1.0%" in str(found)
