"""The claim of a directory as a state machine: whatever comes in whatever order, killed anywhere.

Held all the while: what is the user's is as it was; what a living claim has is there; two never
hold one `.leadline`; nothing is left open. And what a kill left is gone after the next start.
"""

from __future__ import annotations

import itertools
import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from claim_steps import Holder, Killed, Steps, stepping, undisturbed
from explored_states import explored
from leadline.engine import TargetRefused
from leadline.engine.targets.claim import DATA, DIRECTORY, LOCK, MARKER

OURS = (DATA, "file.bin", "raw-3.bin", "stream-in.part0.stripe1", ".stream-out.layout")
DATA_SET = "data-mail-67108864-1"
HANDLES = 4
"""That a living claim has open: of the target, of `.leadline`, of the run and of the lock."""
STEPS_MOST = 90
"""More than any claim or release takes here."""


def open_handles() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


class Claims(RuleBasedStateMachine):
    """A directory, a user who does as he likes in it, and Leadlines that come and go."""

    @initialize()
    def begin(self) -> None:
        self.root = Path(tempfile.mkdtemp(prefix="leadline-claims-"))
        self.place = self.root / "place"
        self.numbers = itertools.count()
        self.theirs: dict[Path, tuple[str, tuple[int, int]]] = {}
        """What is the user's: its content, and which file it is, so that it is found when its
        directory was renamed."""
        self.holders: list[tuple[Holder, set[str]]] = []
        """The living, each with the names that it made."""
        self.places: list[Path] = []
        self.handles = open_handles()
        self.make_place()

    def teardown(self) -> None:
        if hasattr(self, "root"):
            for holder, _ in self.holders:
                holder.release()
            assert open_handles() == self.handles
            shutil.rmtree(self.root)

    # ---- what the user does ----

    def make_place(self) -> None:
        self.place.mkdir()
        self.places.append(self.place)
        self.write(self.place / "mine")

    def write(self, path: Path) -> None:
        path.write_text(f"precious {next(self.numbers)}")
        facts = path.lstat()
        self.theirs[path] = (path.read_text(), (facts.st_dev, facts.st_ino))

    @property
    def own(self) -> Path:
        return self.place / DIRECTORY

    def runs(self) -> list[Path]:
        return sorted(self.own.glob(f"run-{'[0-9a-f]' * 32}"))

    @precondition(lambda self: self.own.is_dir())
    @rule(name=st.sampled_from(["thesis.tex", "run-1", "locks", f"{MARKER}~"]))
    def a_file_is_put_in_leadlines_directory(self, name: str) -> None:
        if not (self.own / name).exists():
            self.write(self.own / name)

    @precondition(lambda self: bool(self.runs()))
    @rule(name=st.sampled_from(["thesis.tex", "data.bin.bak", "mount-x"]), which=st.integers(0, 3))
    def a_file_is_put_in_a_run(self, name: str, which: int) -> None:
        run = self.runs()[which % len(self.runs())]
        if not (run / name).exists():
            self.write(run / name)

    @precondition(lambda self: any(not self.is_alive(run) for run in self.runs()))
    @rule(link=st.booleans(), which=st.integers(0, 3))
    def a_name_of_ours_is_given_to_their_file(self, *, link: bool, which: int) -> None:
        dead = [run for run in self.runs() if not self.is_alive(run)]
        name = dead[which % len(dead)] / DATA
        name.unlink(missing_ok=True)
        precious = next(path for path in self.theirs if path.name == "mine")
        if link:
            name.symlink_to(precious)
        else:
            name.hardlink_to(precious)

    @rule()
    def what_they_put_there_goes(self) -> None:
        for path in [path for path in self.theirs if path.is_relative_to(self.own)]:
            path.unlink()
            del self.theirs[path]
            if path.parent.name == DATA_SET:
                path.parent.rmdir()
        for run in self.runs():
            if not self.is_alive(run) and ((run / DATA).is_symlink() or linked(run / DATA)):
                (run / DATA).unlink()

    @rule()
    def the_directory_is_renamed_and_made_anew(self) -> None:
        moved = self.root / f"moved-{next(self.numbers)}"
        self.rename(self.place, moved)
        self.places[self.places.index(self.place)] = moved
        self.make_place()

    @precondition(lambda self: self.own.is_dir())
    @rule()
    def leadlines_directory_is_renamed(self) -> None:
        self.rename(self.own, self.place / f"stray-{next(self.numbers)}")

    def rename(self, old: Path, new: Path) -> None:
        old.rename(new)
        for path in [path for path in self.theirs if path.is_relative_to(old)]:
            self.theirs[new / path.relative_to(old)] = self.theirs.pop(path)

    @precondition(lambda self: self.own.is_dir() and (self.own / MARKER).exists())
    @rule()
    def a_load_lays_its_data_set(self) -> None:
        if not (self.own / DATA_SET).exists() and any(self.is_alive(run) for run in self.runs()):
            (self.own / DATA_SET).mkdir()
            self.write(self.own / DATA_SET / "f0000000")

    # ---- what Leadline does ----

    def is_alive(self, run: Path) -> bool:
        facts = run.stat()
        return any(
            os.path.samestat(facts, os.fstat(each.claimed.folder.fd)) for each, _ in self.holders
        )

    def foreign(self) -> bool:
        """Whether something in `.leadline` is not Leadline's, or may not be."""
        kept = {self.own / DATA_SET / "f0000000"}
        theirs = any(path.is_relative_to(self.own) for path in self.theirs.keys() - kept)
        names = [run / DATA for run in self.runs()]
        lent = any(name.is_symlink() or linked(name) for name in names)
        doubtful = self.own.is_dir() and not (self.own / MARKER).exists()
        return theirs or lent or (doubtful and bool(self.runs()))

    def tree(self) -> dict[str, str]:
        return {
            str(path.relative_to(self.root)): path.read_text() if path.is_file() else ""
            for path in self.root.rglob("*")
        }

    def hold(self, steps: Steps | None = None) -> None:
        with stepping(steps or Steps()):
            self.holders.append((Holder(self.place), set()))

    @rule()
    def a_leadline_starts(self) -> None:
        before = self.tree()
        if self.foreign() or any(self.is_alive(run) for run in self.runs()):
            with pytest.raises(TargetRefused):
                self.hold()
            assert self.tree() == before, "what is refused is left as it is"
            return
        self.hold()
        names = {path.name for path in self.own.iterdir()} - {DATA_SET}
        run = self.holders[-1][0].claimed.run_directory
        assert names == {MARKER, LOCK, run.name}, "what was killed before is gone"
        assert list(run.iterdir()) == []

    @rule(step=st.integers(0, STEPS_MOST))
    def a_leadline_starts_and_is_killed(self, step: int) -> None:
        with suppress(Killed, TargetRefused):
            self.hold(Steps(kill_at=step))

    @rule(step=st.integers(0, STEPS_MOST), goes=st.booleans())
    def another_starts_while_one_starts(self, step: int, *, goes: bool) -> None:
        def starts() -> None:
            with undisturbed(), suppress(TargetRefused):
                self.hold()
                if goes:
                    self.holders.pop()[0].release()

        with suppress(TargetRefused):
            self.hold(Steps(before=(step, starts)))

    @precondition(lambda self: bool(self.holders))
    @rule(which=st.integers(0, 3), name=st.sampled_from([*OURS, "mount-0"]))
    def it_makes_a_file(self, which: int, name: str) -> None:
        holder, names = self.holders[which % len(self.holders)]
        if name == "mount-0":
            with suppress(FileExistsError):
                holder.claimed.folder.make_folder(name)
        else:
            os.close(holder.claimed.folder.make_or_open_file(name))
        names.add(name)

    @precondition(lambda self: bool(self.holders))
    @rule(which=st.integers(0, 3))
    def one_ends(self, which: int) -> None:
        holder, _ = self.holders.pop(which % len(self.holders))
        at = next((place for place in self.places if claimed_in(holder, place)), None)
        holder.release()
        assert not any(path.name == holder.claimed.run_directory.name for path in self.empty_runs())
        if at is not None and not any(path.is_relative_to(at / DIRECTORY) for path in self.theirs):
            assert not (at / DIRECTORY).exists()

    def empty_runs(self) -> list[Path]:
        return [
            path for path in self.root.rglob("run-*") if path.is_dir() and not any(path.iterdir())
        ]

    @precondition(lambda self: bool(self.holders))
    @rule(which=st.integers(0, 3), step=st.integers(0, STEPS_MOST))
    def one_ends_and_is_killed(self, which: int, step: int) -> None:
        holder, _ = self.holders.pop(which % len(self.holders))
        with suppress(Killed), stepping(Steps(kill_at=step)):
            holder.release()

    @precondition(lambda self: bool(self.holders))
    @rule(which=st.integers(0, 3))
    def one_is_killed(self, which: int) -> None:
        self.holders.pop(which % len(self.holders))[0].die()

    # ---- what always holds ----

    @invariant()
    def what_is_theirs_is_as_it_was(self) -> None:
        for path, (text, which) in getattr(self, "theirs", {}).items():
            facts = path.lstat()
            assert ((facts.st_dev, facts.st_ino), path.read_text()) == (which, text), path

    @invariant()
    def what_a_living_one_made_is_there(self) -> None:
        for holder, names in getattr(self, "holders", ()):
            assert names <= set(holder.claimed.folder.names())

    @invariant()
    def no_two_hold_one_directory(self) -> None:
        held = [each.claimed._held for each, _ in getattr(self, "holders", ())]
        own = [os.fstat(each.own.fd).st_ino for each in held if each is not None]
        assert len(own) == len(set(own))

    @invariant()
    def nothing_is_left_open(self) -> None:
        if hasattr(self, "holders"):
            assert open_handles() == self.handles + HANDLES * len(self.holders)


def claimed_in(holder: Holder, place: Path) -> bool:
    held, own = holder.claimed._held, place / DIRECTORY
    assert held is not None
    return own.is_dir() and os.path.samestat(own.stat(), os.fstat(held.own.fd))


def linked(path: Path) -> bool:
    return path.is_file() and path.stat().st_nlink > 1


def test_a_claim_keeps_its_word_in_whatever_order() -> None:
    run_state_machine_as_test(Claims, settings=explored(100, 25))


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_a_claim_keeps_its_word_in_very_many_orders() -> None:
    run_state_machine_as_test(Claims, settings=explored(5000, 60))


# ---- every step, one after the other -------------------------------------------------------------


def laid(place: Path) -> None:
    """What a killed run left, so that the next start has something to sweep."""
    holder = Holder(place)
    for name in OURS:
        os.close(holder.claimed.folder.make_file(name))
    holder.claimed.folder.make_folder("mount-1")
    holder.die()


def assert_comes_and_goes(place: Path) -> None:
    holder = Holder(place)
    assert list(holder.claimed.run_directory.iterdir()) == []
    assert len(list((place / DIRECTORY).iterdir())) == 3
    holder.release()
    assert list(place.iterdir()) == []


def test_killed_at_every_step_of_a_claim_the_next_one_cleans(tmp_path: Path) -> None:
    whole = Steps()
    laid(tmp_path)
    with stepping(whole):
        holder = Holder(tmp_path)
    holder.release()
    assert whole.taken > 30
    for step in range(whole.taken):
        laid(tmp_path)
        with pytest.raises(Killed), stepping(Steps(kill_at=step)):
            Holder(tmp_path)
        assert_comes_and_goes(tmp_path)


def test_killed_at_every_step_of_a_release_the_next_one_cleans(tmp_path: Path) -> None:
    def released(steps: Steps) -> None:
        holder = Holder(tmp_path)
        for name in OURS:
            os.close(holder.claimed.folder.make_file(name))
        with stepping(steps):
            holder.release()

    whole = Steps()
    released(whole)
    assert whole.taken > 10
    for step in range(whole.taken):
        with pytest.raises(Killed):
            released(Steps(kill_at=step))
        assert_comes_and_goes(tmp_path)


@pytest.mark.parametrize("goes", [True, False], ids=["that goes", "that stays"])
def test_before_every_step_of_a_claim_another_may_come(tmp_path: Path, *, goes: bool) -> None:
    """Whoever is first, one of them has it, and it is whole."""
    whole = Steps()
    with stepping(whole):
        Holder(tmp_path).release()
    for step in range(whole.taken):
        others: list[Holder] = []

        def comes(others: list[Holder] = others) -> None:
            with undisturbed(), suppress(TargetRefused):
                others.append(Holder(tmp_path))
                if goes:
                    others.pop().release()

        with suppress(TargetRefused), stepping(Steps(before=(step, comes))):
            others.append(Holder(tmp_path))
        assert len(others) == 1, step
        assert others[0].claimed.run_directory.is_dir()
        assert len(list((tmp_path / DIRECTORY).iterdir())) == 3
        others[0].release()
        assert list(tmp_path.iterdir()) == []
