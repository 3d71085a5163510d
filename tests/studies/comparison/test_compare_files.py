"""The gate for continuous integration: JUnit's XML and Markdown say what the exit code says."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from xml.etree import ElementTree as Xml

import msgspec
import pytest
from golden_cases import HERE

from command import leadline
from compare_fixture import atlas, question, quicker, systems
from leadline.record.comparison import Gate, GateFailure, GateUndecided, Rule, SystemsComparison
from leadline.studies.comparison.document import Terms, compare_systems
from leadline.studies.comparison.text import junit_xml, markdown


def document() -> SystemsComparison:
    """Two systems on two workloads."""
    asked = (question("one"), question("two", read_frac=0.25))
    return compare_systems(systems(atlas(), quicker()), Terms(questions=asked))


def gated(found: SystemsComparison, *, fails: int) -> SystemsComparison:
    """The document with a gate that this workload fails, and is inconclusive on the next."""
    pair, next_pair = found.pairs[fails], found.pairs[fails + 1]
    assert pair.ratio is not None
    failure = GateFailure(
        title=pair.title, workload=pair.workload, metric="slower", new_over_old=pair.ratio
    )
    unsure = GateUndecided(title=next_pair.title, workload=next_pair.workload, metric="slower")
    gate = Gate(
        rules=(Rule("slower", 0.05),), failed=True, failures=(failure,), undecided=(unsure,)
    )
    return msgspec.structs.replace(found, gate=gate)


@pytest.fixture
def frozen(tmp_path: Path) -> Path:
    return Path(shutil.copyfile(HERE / "store-today.sqlite", tmp_path / "s.sqlite"))


def test_a_gate_is_written_for_ci_and_still_ends_with_its_code(
    frozen: Path, tmp_path: Path
) -> None:
    xml, text = tmp_path / "gate.xml", tmp_path / "gate.md"
    words = ("compare", "atlas", "boreas", "--fail-if", "slower=5%")
    files = ("--junit", str(xml), "--markdown", str(text))
    done = leadline(*words, *files, store=frozen)
    assert done.returncode == 4, done.stderr
    assert f"wrote {xml}\nwrote {text}\n" in done.stderr
    suite = Xml.fromstring(xml.read_text("utf-8"))  # noqa: S314 - just written
    states = [next((each.tag for each in case), None) for case in suite]
    assert suite.get("tests") == str(len(states))
    assert suite.get("failures") == str(states.count("failure"))
    assert suite.get("skipped") == str(states.count("skipped"))
    document = json.loads(leadline(*words, "--json", store=frozen).stdout)
    assert states.count("failure") == len(document["gate"]["failures"]) > 0
    assert states.count("skipped") == len(document["gate"]["undecided"]) > 0
    assert text.read_text("utf-8").startswith("**Gate failed** (slower by more than 5.0% fails)\n")
    again = leadline(*words, *files, store=frozen)
    assert again.returncode == 2
    assert "--force" in again.stderr
    assert leadline(*words, *files, "--force", store=frozen).returncode == 4


def test_a_gate_that_decides_nothing_ends_with_the_code_asked_for(frozen: Path) -> None:
    words = ("compare", "boreas", "atlas", "--fail-if", "slower=5%", "--json")
    done = leadline(*words, store=frozen)
    gate = json.loads(done.stdout)["gate"]
    assert gate["undecided"]
    assert not gate["failed"]
    assert done.returncode == 0
    assert leadline(*words, "--undecided-exit", "125", store=frozen).returncode == 125


def test_what_cannot_be_told_is_skipped_and_neither_fails_nor_passes() -> None:
    found = gated(document(), fails=0)
    suite = Xml.fromstring(junit_xml(found))  # noqa: S314 - just made
    cases = list(suite)
    assert cases[0].find("failure") is not None
    skipped = cases[1].find("skipped")
    assert skipped is not None
    assert (skipped.get("message") or "").startswith("inconclusive: ")


def test_a_gate_file_without_a_gate_is_refused(frozen: Path, tmp_path: Path) -> None:
    done = leadline("compare", "atlas", "boreas", "--junit", str(tmp_path / "x"), store=frozen)
    assert done.returncode == 2
    assert "add --fail-if" in done.stderr


def test_names_from_outside_are_text_in_both() -> None:
    found = document()
    odd = tuple(msgspec.structs.replace(each, title="<b>|`x`|</b>\x1b[2J") for each in found.pairs)
    found = gated(msgspec.structs.replace(found, pairs=odd), fails=0)
    text = markdown(found)
    assert "<b>" not in text
    assert "\x1b" not in text
    assert "\\<b\\>\\|" in text
    names = [case.get("name") for case in Xml.fromstring(junit_xml(found))]  # noqa: S314
    assert names[0] == "<b>|`x`|</b>?[2J"
