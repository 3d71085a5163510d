"""Whatever is read is understood or refused by name: what fuzzing found once, and a little more.

`fuzz/parsers.py` goes on for hours; here it only shows that it works, on a fixed seed.
"""

from __future__ import annotations

import random
import re
import time
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

import parsers
from leadline.engine import TargetRefused
from leadline.engine.targets.claim import DIRECTORY, MARKER, claim
from leadline.errors import EngineFault
from leadline.machine.dirty_limits import _read
from leadline.record.workbench import Threshold, TrialRequest
from leadline.servers.load_document import NonsensePrinted, measured_of, read_document
from leadline.store._place import masked
from leadline.units import parse_bytes
from mutating import LENGTH_MAX, mutated
from parser_targets import ROOT, TARGETS, Parser

SEED = 2026
INPUTS = 400
INPUTS_LONG = 60_000
RUST = re.findall(r'name = "(\w+)"\npath = "targets', (ROOT / "fuzz/Cargo.toml").read_text("utf-8"))
FOUND = sorted(path for path in parsers.CORPUS.glob("*/*") if path.parent.name in TARGETS)


def test_the_lock_of_the_targets_knows_what_the_crates_depend_on() -> None:
    """`cargo fuzz` is told --locked: behind the crates by one dependency, no target is built."""
    locked = tomllib.loads((ROOT / "fuzz/Cargo.lock").read_text("utf-8"))["package"]
    known = {
        each["name"]: [name.split()[0] for name in each.get("dependencies", [])] for each in locked
    }
    asked = 0
    for path in ROOT.glob("crates/*/Cargo.toml"):
        crate = tomllib.loads(path.read_text("utf-8"))
        if (name := crate["package"]["name"]) in known:
            asked += 1
            assert set(crate["dependencies"]) <= set(known[name]), name
    assert asked > 3


@pytest.fixture(autouse=True)
def _watched() -> Iterator[None]:
    with parsers.watched():
        yield


@pytest.mark.parametrize("name", TARGETS)
def test_what_was_found_once_is_refused_now(name: str) -> None:
    for path in FOUND:
        if path.parent.name == name:
            assert parsers.tried(name, path.read_bytes()) is None, path


@pytest.mark.parametrize("name", TARGETS)
def test_what_makes_sense_is_read(name: str) -> None:
    def makes_sense(seed: bytes) -> bool:
        try:
            TARGETS[name].parse(seed)
        except TARGETS[name].refuses:
            return False
        return True

    assert any(map(makes_sense, TARGETS[name].seeds()))


@pytest.mark.parametrize("name", TARGETS)
def test_whatever_is_read_is_understood_or_refused(name: str) -> None:
    found = parsers.run(name, SEED, INPUTS)
    assert not found.findings, parsers.keep(name, found)
    assert found.inputs >= INPUTS


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", TARGETS)
def test_very_much_that_is_read_is_understood_or_refused(name: str) -> None:
    found = parsers.run(name, SEED + 1, INPUTS_LONG)
    assert not found.findings, parsers.keep(name, found)


def test_every_folder_of_the_corpus_is_a_targets() -> None:
    folders = {path.parent.name for path in parsers.CORPUS.glob("*/*")}
    assert folders <= TARGETS.keys() | set(RUST)
    assert not TARGETS.keys() & set(RUST), "a corpus belongs to one of them"
    assert all(path.stat().st_size <= LENGTH_MAX + 4096 for path in parsers.CORPUS.glob("*/*"))


# ---- that it would find something ----------------------------------------------------------------


def burn(data: bytes) -> None:
    until = time.process_time() + 30
    while b"slow" in data and time.process_time() < until:
        pass


def grow(data: bytes) -> bytes:
    return bytes(8 << 30) if b"large" in data else data


def deny(data: bytes) -> None:
    if b"deny" in data:
        raise ValueError("refused")
    if b"crash" in data:
        raise KeyError("crash")


def test_a_fault_a_hang_and_a_glutton_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def found(parse: object, data: bytes) -> str | None:
        assert callable(parse)
        bad = Parser(parse, lambda: [b"good"], (ValueError,))
        monkeypatch.setitem(TARGETS, "bad", bad)
        return parsers.tried("bad", data)

    monkeypatch.setattr(parsers, "CPU_S_MAX", 0.1)
    assert found(deny, b"deny") is None
    assert str(found(deny, b"crash")).startswith("KeyError at ")
    assert str(found(burn, b"slow")).startswith("TooLong at ")
    assert str(found(grow, b"large")).startswith("MemoryError at ")
    assert found(burn, b"quick") is None


def test_the_seed_decides_what_is_tried() -> None:
    def tried(seed: int) -> list[bytes]:
        chance = random.Random(seed)
        return [mutated(chance, [b"one = 1", b"two = [2]"]) for _ in range(200)]

    assert tried(1) == tried(1)
    assert len(set(tried(1))) > 150
    assert len(set(tried(1)) & set(tried(2))) < 50
    assert all(len(data) <= LENGTH_MAX for data in tried(3))


# ---- what it found, told as what it means --------------------------------------------------------


@pytest.mark.parametrize("text", [b"\xff\xfe", b'{"made_by":"\xff"}', b'{"x":' * 3000])
def test_a_marker_that_is_no_text_is_foreign(tmp_path: Path, text: bytes) -> None:
    (tmp_path / DIRECTORY).mkdir()
    (tmp_path / DIRECTORY / MARKER).write_bytes(text)
    with pytest.raises(TargetRefused, match="was not made by this Leadline"), claim(tmp_path):
        pytest.fail("claimed")
    assert (tmp_path / DIRECTORY / MARKER).read_bytes() == text


def test_a_record_of_the_limits_that_is_nested_without_end_is_none(tmp_path: Path) -> None:
    record = tmp_path / "record"
    record.write_text('{"before":' * 100_000, encoding="utf-8")
    assert _read(record) is None


def test_a_size_of_many_digits_is_refused_at_once() -> None:
    with pytest.raises(ValueError, match=r"'9{20}'\.\.\. is not a size"):
        parse_bytes("9" * 1_000_000 + "!")


def test_a_number_that_no_result_can_hold_is_nonsense() -> None:
    text = (
        b'{"leadline_load":1,"requests":{"due_s":[1.0],"response_ms":[null]},"ended_s":1e308,'
        b'"seconds":60}'
    )
    with pytest.raises(NonsensePrinted, match="too large to be a time or a count"):
        measured_of(
            read_document(text), TrialRequest(rate_per_s=10, seconds=60), Threshold(mean_ms=40)
        )


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("postgresql://me:se:cr@et@h/db", "postgresql://me:***@h/db"),
        ("x://a:b@c y://d:e@f", "x://a:***@c y://d:***@f"),
        ("a?sslpassword=1&Token%3d2&x=3", "a?sslpassword=***&Token%3d***&x=3"),
        ("pass : no, my_secret =yes;", "pass : no, my_secret =***;"),
        ("host:/disk/a:b/c@d", "host:/disk/a:b/c@d"),
    ],
)
def test_passwords_are_masked_as_before(said: str, told: str) -> None:
    assert masked(said) == told


def test_masking_takes_no_longer_for_each_sign_of_a_long_text() -> None:
    for text in ("pass" * 30_000, "://" * 30_000, "token" * 20_000 + " ", ":/a:" * 20_000):
        assert masked(text) == text


def test_an_answer_that_fio_never_gave_is_a_fault_by_name() -> None:
    with pytest.raises(EngineFault, match=r"fio's answer cannot be understood .KeyError"):
        TARGETS["fio_answer"].parse(b'{"jobs": [{"error": 0}]}')
