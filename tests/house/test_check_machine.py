"""`make check-machine`: whose processor time is foreign, and how a claim about speed can end."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from places import ROOT

sys.path.insert(0, str(ROOT / "bench"))

import check_machine
from check_claims import BrokenError, CannotTellError, Claim, Found
from check_conditions import Process, foreign_cpu_s
from leadline.engine import EngineFault, TargetRefused

OWN = 50


def process(parent: int, cpu_s: float, began: int = 1) -> Process:
    return Process(parent=parent, began=began, cpu_s=cpu_s)


BEFORE = {1: process(0, 5.0), OWN: process(9, 3.0), 9: process(1, 4.0), 70: process(9, 2.0)}


def test_time_of_ours_and_of_what_we_began_is_not_foreign() -> None:
    after = BEFORE | {OWN: process(9, 8.0), 51: process(OWN, 3.0), 52: process(51, 3.0)}
    assert foreign_cpu_s(BEFORE, after, OWN) == 0


def test_a_daemon_whose_parent_is_gone_is_taken_for_ours() -> None:
    assert foreign_cpu_s(BEFORE, BEFORE | {53: process(1, 7.0)}, OWN) == 0


def test_time_of_others_and_of_what_they_began_is_foreign() -> None:
    after = BEFORE | {70: process(9, 2.5), 71: process(70, 1.0), 72: process(71, 0.25)}
    assert foreign_cpu_s(BEFORE, after, OWN) == pytest.approx(1.75)


def test_a_child_that_ended_hands_its_parent_only_what_it_used_meanwhile() -> None:
    after = {number: each for number, each in BEFORE.items() if number != 70}
    after[9] = process(1, 4.0 + 2.0 + 0.5)  # 2.0 had been used before
    assert foreign_cpu_s(BEFORE, after, OWN) == pytest.approx(0.5)


def test_nor_does_a_child_of_a_child_that_ended() -> None:
    before = BEFORE | {71: process(70, 30.0)}
    after = {number: each for number, each in BEFORE.items() if number != 70}
    after[9] = process(1, 4.0 + 2.0 + 30.0 + 0.5)
    assert foreign_cpu_s(before, after, OWN) == pytest.approx(0.5)


def test_a_number_given_to_another_process_is_another_process() -> None:
    after = BEFORE | {70: process(OWN, 9.0, began=2)}
    assert foreign_cpu_s(BEFORE, after, OWN) == 0


def claim(found: Found | Exception) -> Claim:
    def measure(_folder: Path) -> Found:
        if isinstance(found, Exception):
            raise found
        return found

    return Claim("disks spin", "fast", measure)


@pytest.fixture
def calm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check_machine, "why_no_room", lambda _folder: None)
    monkeypatch.setattr(check_machine, "why_not_calm", lambda _folder: None)
    monkeypatch.setattr(check_machine, "why_not_calm_between", lambda *_looks: None)


SPINS, STANDS = Found(True, "7 rpm"), Found(False, "0 rpm")


@pytest.mark.usefixtures("calm")
@pytest.mark.parametrize(
    ("found", "said"),
    [
        (SPINS, "holds: disks spin: 7 rpm"),
        (STANDS, "FAILS: disks spin: 0 rpm; wanted: fast"),
        (CannotTellError("no disk"), "cannot tell here: disks spin: no disk"),
        (TargetRefused("a tmpfs"), "cannot tell here: disks spin: TargetRefused: a tmpfs"),
        (EngineFault("it died"), "FAILS: disks spin: EngineFault: it died"),
        (BrokenError("it said so"), "FAILS: disks spin: BrokenError: it said so"),
    ],
)
def test_a_claim_has_one_line_with_its_outcome(
    found: Found | Exception, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ends = check_machine.run([claim(found)], tmp_path)
    assert capsys.readouterr().out == f"{said}\n"
    assert ends.total() == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("calm")
@pytest.mark.parametrize("when", ["why_not_calm", "why_not_calm_between"])
@pytest.mark.parametrize("found", [SPINS, STANDS])
def test_a_busy_machine_can_neither_hold_nor_refute_a_claim(
    when: str, found: Found, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(check_machine, when, lambda *_: "other programs used 0.40 processors")
    outcome, said = check_machine.tried(claim(found), tmp_path)
    assert outcome == check_machine.OPEN
    assert "0.40 processors" in said


@pytest.mark.usefixtures("calm")
def test_only_a_claim_that_fails_ends_it_with_1(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["check_machine"])
    for claims, code in (
        ((claim(SPINS), claim(CannotTellError("no disk"))), 0),
        ((claim(SPINS), claim(STANDS)), 1),
    ):
        monkeypatch.setattr(check_machine, "CLAIMS", claims)
        assert check_machine.main() == code
