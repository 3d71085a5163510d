"""Names and messages from outside steer neither a terminal nor a spreadsheet."""

from __future__ import annotations

import csv
import io
import json
import sys
from pathlib import Path

import pytest
from rich.table import Table
from rich.text import Text

from command import leadline
from leadline.sanitize import printable, to_csv
from leadline.terminal.talk import put_json, show, talk
from places import TESTS

HOSTILE = "\x1b]0;owned\x07\x1b[2J\x9b31m\u202eevil\udcff"
FAST = ["--budget", "1m", "--seed", "3"]


@pytest.mark.parametrize("name", ["[b]x[/]:skull:"])
def test_a_name_of_markup_is_listed_as_it_is(name: str, tmp_path: Path) -> None:
    store = tmp_path / "store.sqlite"
    done = leadline("survey", "sim:two-level", "--name", name, *FAST, store=store)
    assert done.returncode == 0, done.stderr
    assert name in done.stdout
    for again in (["systems"], ["show", name]):
        listed = leadline(*again, store=store)
        assert listed.returncode == 0, listed.stderr
        assert name in listed.stdout


def test_escape_sequences_reach_neither_stdout_nor_stderr(tmp_path: Path) -> None:
    store = tmp_path / "store.sqlite"
    name = HOSTILE.removesuffix("\udcff")
    done = leadline("survey", "sim:two-level", "--name", name, *FAST, store=store)
    listed = leadline("systems", store=store)
    as_json = leadline("systems", "--json", store=store)
    for each in (done, listed, as_json):
        assert each.returncode == 0, each.stderr
        said = each.stdout + each.stderr
        assert not [sign for sign in said if not sign.isprintable() and sign != "\n"]
    assert json.loads(as_json.stdout)[0]["system"] == name


def test_whatever_is_printed_goes_through_the_same_function(
    capsys: pytest.CaptureFixture[str],
) -> None:
    table = Table(HOSTILE)
    table.add_row(HOSTILE, end_section=True)
    show(HOSTILE)
    show(table)
    show(Text(HOSTILE, style="bold"))
    talk(HOSTILE)
    found = capsys.readouterr()
    for said in (found.out, found.err):
        assert "owned" in said
        assert not [sign for sign in said if not sign.isprintable() and sign != "\n"]


def test_json_is_the_same_document_without_raw_control_characters(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding="utf-8"))
    document = {"name": "\x7f\x9b\x1b[2J ß € \U0001f480"}
    put_json(document)
    text = raw.getvalue().decode()
    told = json.loads(text)
    assert list(told) == ["leadline", "schema", "name"]
    assert told["name"] == document["name"]
    assert not [sign for sign in text if not sign.isprintable() and sign != "\n"]
    assert "ß € \U0001f480" in text


def test_what_can_be_seen_is_left_as_it_is() -> None:
    seen = "120 MB/s ± 2% × 3, Größe \N{NARROW NO-BREAK SPACE}7 ⠿ 💀\nnext"
    assert printable(seen) == seen
    assert printable("a\x1b[2Jb\r\u2066c") == "a?[2Jb??c"


def test_no_cell_of_a_table_is_a_formula() -> None:
    rows = [
        {"=head": text, "number": -1.5}
        for text in ("=cmd|'/c calc'!A1", "@SUM(1)", "+1", "-1", "\tx", "\rx", "plain", "a=b")
    ]
    text = to_csv(rows)
    read = list(csv.reader(io.StringIO(text, newline="")))
    assert read[0] == ["'=head", "number"]
    assert [row[0][0] for row in read[1:]] == ["'"] * 6 + ["p", "a"]
    assert {row[1] for row in read[1:]} == {"-1.5"}


def test_an_exported_name_is_no_formula(tmp_path: Path) -> None:
    store = tmp_path / "store.sqlite"
    file = tmp_path / "server.toml"
    file.write_text(
        (TESTS / "golden" / "server.toml")
        .read_text(encoding="utf-8")
        .replace('name = "', 'name = "=1+', 1),
        encoding="utf-8",
    )
    done = leadline("peak", str(file), store=store)
    assert done.returncode == 0, done.stderr
    exported = leadline("export", "=1+tiny-server", "--format", "csv", store=store)
    assert exported.returncode == 0, exported.stderr
    assert "'=1+tiny-server" in exported.stdout
    cells = [cell for row in csv.reader(io.StringIO(exported.stdout)) for cell in row]
    assert "=" not in {cell[:1] for cell in cells}
