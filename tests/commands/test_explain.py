"""`leadline explain`: every code can be looked up, by itself or by a warning's first words."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from leadline.app import app
from leadline.record.finding import Finding, catalogue, entries


def explained(*words: str, code: int = 0) -> str:
    done = CliRunner().invoke(app, ["explain", *words])
    assert done.exit_code == code, done.output
    return done.output


def test_every_code_is_listed_once_under_where_it_is_found() -> None:
    lines = explained().split()
    for group, told in catalogue().items():
        assert f"{group}:" in lines
        assert all(lines.count(name) + lines.count(f"{name},") >= 1 for name in told)


def test_a_code_says_its_severity_meaning_detection_and_remedy() -> None:
    entry = entries()["littles_law"]
    told = explained("littles_law")
    for said in ("invalid: ", entry.means, entry.found, entry.advice, "<error_frac>"):
        assert " ".join(said.split()) in " ".join(told.split())


def test_the_first_words_of_a_warning_find_its_code() -> None:
    warning = Finding.of("littles_law", error_frac=0.1)
    assert explained(str(warning).partition(":")[0]).startswith("littles_law\n")


def test_json_has_what_the_terminal_has() -> None:
    told = json.loads(explained("littles_law", "--json"))["littles_law"]
    assert told["severity"] == "invalid"
    assert told["means"] == entries()["littles_law"].means
    assert json.loads(explained("--json")).keys() - {"leadline", "schema"} == entries().keys()


@pytest.mark.parametrize("word", ["no_such_code", ""])
def test_what_is_no_warning_is_refused_with_where_the_codes_are(word: str) -> None:
    assert "leadline explain" in " ".join(explained(word, code=2).split())
