"""Which columns the table has, and why some stay empty."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from leadline.engine import Target
from leadline.engine.file_tests import image_bytes
from leadline.machine import file_systems
from leadline.machine.file_systems import MAKERS, why_not_made
from leadline.record.files import FileSystemUnderTest
from leadline.studies.files.plan import FilesRefused, plan_cells, shared_devices
from leadline.studies.files.run import FilesOptions, PlainFiles


def targets(*paths: Path) -> list[Target]:
    for path in paths:
        path.mkdir(exist_ok=True)
    return [Target.parse(str(path)) for path in paths]


@pytest.fixture
def everything(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that can make every file system."""
    monkeypatch.setattr("leadline.studies.files.plan.why_not_made", lambda *_: None)


@pytest.mark.usefixtures("everything")
def test_all_file_systems_on_one_and_two_drives(tmp_path: Path) -> None:
    cells = plan_cells(targets(tmp_path))
    named = [(cell.system.fs, cell.system.block_bytes, cell.drives) for cell in cells[2:]]
    assert named == [
        (fs, block, drives)
        for fs, blocks in (("ext4", (1024, 2048, 4096)), ("xfs", (4096,)), ("btrfs", (4096,)))
        for block in blocks
        for drives in (1, 2)
    ]
    assert [(cell.system.made, cell.drives) for cell in cells[:2]] == [(False, 1), (False, 2)]
    assert cells[0].missing is None
    assert cells[1].missing == "a second drive needs a second directory"


@pytest.mark.usefixtures("everything")
def test_every_directory_is_a_drive(tmp_path: Path) -> None:
    three = targets(*(tmp_path / name for name in "abc"))
    cells = plan_cells(three, ["existing", "ext4"], [4096])
    assert [(cell.system.made, cell.drives, cell.missing) for cell in cells] == [
        (False, 1, None),
        (False, 3, None),
        (True, 1, None),
        (True, 3, None),
    ]
    assert shared_devices(three) == tuple(target.text for target in three[1:])


@pytest.mark.parametrize(
    ("choices", "said"),
    [(["ext5"], "'ext5' is not known; it takes existing, ext4"), ([], "none was given")],
)
def test_an_unknown_file_system_is_refused(tmp_path: Path, choices: list[str], said: str) -> None:
    with pytest.raises(FilesRefused, match=said):
        plan_cells(targets(tmp_path), choices)


def test_a_directory_twice_and_what_is_no_directory_are_refused(tmp_path: Path) -> None:
    one = targets(tmp_path)[0]
    with pytest.raises(FilesRefused, match="given twice"):
        plan_cells([one, one])
    with pytest.raises(FilesRefused, match="plain files need a directory"):
        plan_cells([Target.parse("null:")])
    assert FilesRefused.exit_code == 2


def test_drives_of_two_file_systems_are_no_column(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    both = [Target.parse(str(tmp_path / name)) for name in ("a", "b")]
    systems = {target.text: fs for target, fs in zip(both, ("ext4", "xfs"), strict=True)}

    def existing(target: Target) -> FileSystemUnderTest:
        return FileSystemUnderTest(fs=systems[target.text], block_bytes=4096, made=False)

    monkeypatch.setattr("leadline.studies.files.plan.existing_system", existing)
    with pytest.raises(FilesRefused, match=r"a is ext4, .*b is xfs: .*leadline report A --with B"):
        plan_cells(both)
    assert plan_cells(both, ["ext4"])


def test_without_root_only_the_existing_file_system_is_tested(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    cells = plan_cells(targets(tmp_path))
    assert cells[0].missing is None
    assert {cell.missing for cell in cells if cell.system.made} == {
        "making file systems needs root"
    }


def test_each_missing_thing_has_its_own_reason(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setattr(file_systems, "why_no_loop_devices", lambda: "no loop devices")
    assert why_not_made("btrfs", 1024) == "btrfs has no blocks of 1 KiB here (it has 4 KiB)"
    monkeypatch.setattr(file_systems, "_program", lambda _maker: None)
    assert why_not_made("xfs", 4096) == "mkfs.xfs is not installed (package xfsprogs)"
    monkeypatch.setattr(file_systems, "_program", lambda _maker: str(tmp_path))
    assert why_not_made("ext4", 1024) == "no loop devices"


def test_no_file_system_discards_or_is_initialised_late() -> None:
    """A discarded block is a hole in the image, and a late initialisation runs beside the test."""
    for name, maker in MAKERS.items():
        words = " ".join(maker.command)
        assert "nodiscard" in words or " -K " in words, name
    assert "lazy_itable_init=0,lazy_journal_init=0" in " ".join(MAKERS["ext4"].command)
    assert MAKERS["btrfs"].options == "nodiscard"  # it discards by itself otherwise


def test_an_image_holds_the_file_twice() -> None:
    for size in (8 << 20, 256 << 20, 4 << 30):
        assert image_bytes(size) >= 2 * size + (100 << 20)


def test_a_loop_device_answered_from_memory_is_said_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    facts = {"loop_direct_io": False, "device_name": "loop7"}
    monkeypatch.setattr("leadline.studies.files.run.target_facts", lambda _: facts)
    both = targets(tmp_path / "a", tmp_path / "b")
    study = PlainFiles(both, FilesOptions(system="s", cells=(), budget_s=60.0, runs=2))
    opened: Any = None
    found = [each for each in study.findings(opened) if each.code == "loop_device"]
    assert [each.values for each in found] == [{"device": "loop7"}]
