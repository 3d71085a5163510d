"""What bench/faults.py counts: a harm that did harm is seen, and told as what it is."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from attempts.families import FAMILIES
from attempts.faulty_fs import faulty, why_no_fuse
from attempts.kills import _alike
from attempts.outcome import Asked, Attempt, counts
from attempts.scene import Kept, scene
from attempts.unsafe import around
from faults import once, row_of
from left_behind import processes_with


def test_an_item_that_is_gone_or_changed_is_lost() -> None:
    whole = Kept({"a": b"plan"}, Counter({("a", b"1"): 1, ("a", b"2"): 1}))
    more = Kept({"a": b"plan", "b": b"x"}, whole.items + Counter({("b", b"3"): 1}))
    assert whole.lost_in(more) == []
    assert more.lost_in(whole) == ["1 of 3 items", "the plan of study b"]
    other = Kept({"a": b"another"}, Counter({("a", b"1"): 1, ("a", b"two"): 1}))
    assert whole.lost_in(other) == ["1 of 2 items", "the plan of study a"]


def test_a_code_that_was_not_promised_and_a_traceback_are_wrong() -> None:
    attempt = Attempt("f", "k", 1)
    attempt.expect_code(3, 0, 3, said="stopped early")
    assert attempt.survived
    attempt.expect_code(None, 0, said="Traceback (most recent call last)")
    assert [line[:15] for line in attempt.told()] == ["wrong: exit cod", "wrong: Tracebac"]
    assert not attempt.survived


def test_attempts_are_counted_by_what_was_found() -> None:
    found = [
        Attempt("f", "k", 1),
        Attempt("f", "k", 2, lost=["an item"], left=["a file", "a mount"]),
        Attempt("f", "other", 1, untried="no root"),
    ]
    told = counts(found)
    assert [(each.tried, each.survived, each.lost, each.left) for each in told] == [
        (2, 1, 1, 1),
        (0, 0, 0, 0),
    ]
    assert (told[1].wrong, told[1].untried) == (0, "no root")
    row = row_of("f", told)
    assert (row.cells["kinds"], row.cells["tried"], row.cells["survived"]) == (2.0, 2.0, 1.0)
    assert "no root" in row.note


def test_a_family_that_ended_is_kept_and_one_that_broke_is_wrong(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried = []

    def harm(asked: Asked) -> Iterator[Attempt]:
        tried.append(asked.seed)
        yield Attempt("f", "k", asked.seed, left=["a file"])
        raise ZeroDivisionError

    monkeypatch.setitem(FAMILIES, "f", harm)
    monkeypatch.setattr("faults.traceback.print_exc", lambda: None)
    first, again, other = (once("f", Asked(seed, 2), tmp_path / "keep") for seed in (1, 1, 2))
    assert tried == [1, 2]
    assert first == again
    assert [each.kind for each in first] == ["k", "the bench itself"]
    assert first[1].wrong == ["ZeroDivisionError()"]
    assert other[0].seed == 2


def test_a_moment_is_of_the_seed_and_the_name() -> None:
    draws = [Asked(seed, 1).draws("kills", kind).random() for seed in (1, 2) for kind in "ab"]
    assert len(set(draws)) == 4
    assert Asked(1, 1).draws("kills", "a").random() == draws[0]
    assert (Asked(1, 10).rounds(0.2), Asked(1, 1).rounds(0.2)) == (2, 1)
    assert Asked(1, 100, short=True).rounds(1.0) == 1


def test_studies_that_answer_alike_differ_in_what_is_their_own_alone() -> None:
    one = {"item_id": "1", "trial": {"started_at": "now", "due": 3}, "runs": [{"wall_s": 1.0}]}
    assert _alike(one) == {"trial": {"due": 3}, "runs": [{}]}


def test_what_is_left_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("attempts.scene.GONE_S", 0.2)
    with scene() as place:
        assert place.left() == []
        (place.target / "data.bin").touch()
        (place.temporary / "half").touch()
        name, _, value = place.mark.partition("=")
        child = subprocess.Popen(["sleep", "60"], env=os.environ | {name: value})
        while not processes_with(place.mark):  # Within exec(2), its environment reads as empty.
            time.sleep(0.01)
        told = place.left()
        assert [line.split()[0] for line in told] == ["process", "file", "temporary"]
        assert place.left("data.bin", "half") == told[:1]
        assert place.outside() == ["file data.bin"]
    assert child.wait(60) != 0, "what is left harms no later attempt"
    assert not place.base.exists()


def test_a_change_around_a_target_is_seen() -> None:
    with scene() as place:
        (place.target / "precious").write_text("precious")
        before = around(place, str(place.target))
        assert around(place, str(place.target)) == before
        (place.target / "precious").write_text("Precious")
        assert around(place, str(place.target)) != before


FAILING = """
import os, sys
where, what = sys.argv[1:]
fd = os.open(where + "/data.bin", os.O_RDWR | os.O_CREAT)
os.write(fd, bytes(65536))
print("written", flush=True)
sys.stdin.readline()
try:
    os.write(fd, bytes(65536)) if what == "write" else os.fsync(fd)
except OSError as error:
    print(error.errno)
"""


@pytest.mark.skipif(bool(why_no_fuse()), reason=why_no_fuse() or "-")
@pytest.mark.parametrize("what", ["write", "fsync", "nothing"])
def test_a_faulty_file_system_keeps_what_it_was_given_until_it_fails(
    tmp_path: Path, what: str
) -> None:
    with faulty(tmp_path) as disk:
        with subprocess.Popen(
            [sys.executable, "-c", FAILING, str(tmp_path), what],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as child:
            assert child.stdout is not None
            assert child.stdout.readline() == "written\n"
            if what != "nothing":
                disk.switch.fail(what)
            said, _ = child.communicate("\n", timeout=60)
        assert said.split() == ([] if what == "nothing" else ["5"])
        disk.switch.fail()
        assert (tmp_path / "data.bin").read_bytes() == bytes(65536)
        (tmp_path / "folder").mkdir()
        assert sorted(path.name for path in tmp_path.iterdir()) == ["data.bin", "folder"]
        (tmp_path / "data.bin").unlink()
    end_s = time.monotonic() + 60
    while os.path.ismount(tmp_path) and time.monotonic() < end_s:
        time.sleep(0.01)
    assert list(tmp_path.iterdir()) == []
