"""Which file systems, on how many drives: the columns of KM83's tables, and why some stay empty."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from leadline.engine import Target, target_facts, usual_blocks, why_not_made
from leadline.errors import LeadlineError
from leadline.machine.file_systems import MAKERS
from leadline.record.files import FilesCell, FileSystemUnderTest

EXISTING = "existing"
"""The word for the file system that is there."""
CHOICES = (EXISTING, *MAKERS)


class FilesRefused(LeadlineError):
    """A study that makes no sense; nothing was touched."""

    exit_code = 2


def plan_cells(
    targets: Sequence[Target],
    file_systems: Sequence[str] = CHOICES,
    block_sizes: Sequence[int] = (),
) -> tuple[FilesCell, ...]:
    """Return every file system on one drive and on several, in the order in which they run.

    Several drives are all the directories at once; with one directory, two loop devices in it,
    and nothing for the file system that is there.

    Raises:
        FilesRefused: an unknown file system, or a directory given twice.

    """
    _require_sense(targets, file_systems)
    several = max(2, len(targets))
    cells = []
    for name in dict.fromkeys(file_systems):
        if name == EXISTING:
            found = existing_system(targets[0])
            alone = None if len(targets) > 1 else "a second drive needs a second directory"
            cells += [
                FilesCell(system=found, drives=1),
                FilesCell(system=found, drives=several, missing=alone),
            ]
            continue
        for block in block_sizes or usual_blocks(name):
            made = FileSystemUnderTest(fs=name, block_bytes=block, made=True)
            why = why_not_made(name, block)
            cells += [FilesCell(system=made, drives=drives, missing=why) for drives in (1, several)]
    return tuple(cells)


def existing_system(target: Target) -> FileSystemUnderTest:
    """Return the file system of a directory as it is."""
    facts = target_facts(str(target.path))
    block = facts.get("filesystem_block_bytes")
    return FileSystemUnderTest(
        fs=str(facts.get("filesystem_type") or "unknown"),
        block_bytes=block if isinstance(block, int) else None,
        made=False,
    )


def shared_devices(targets: Sequence[Target]) -> tuple[str, ...]:
    """Return the directories that lie on the device of an earlier one: no drives of their own."""
    seen: set[int] = set()
    found = []
    for target in targets:
        device = Path(str(target.path)).stat().st_dev
        if device in seen:
            found.append(target.text)
        seen.add(device)
    return tuple(found)


def _require_sense(targets: Sequence[Target], file_systems: Sequence[str]) -> None:
    for target in targets:
        if not target.has_files:
            raise FilesRefused(
                f"{target.text}: plain files need a directory, one for each drive; simulated "
                "systems and servers are surveyed: leadline survey"
            )
    paths = [target.path for target in targets]
    twice = next((path for path in paths if paths.count(path) > 1), None)
    if twice is not None:
        raise FilesRefused(f"{twice} is given twice: every drive needs a directory of its own")
    unknown = [name for name in file_systems if name not in CHOICES]
    if unknown or not file_systems:
        named = f"{unknown[0]!r} is not known" if unknown else "none was given"
        raise FilesRefused(f"--filesystems: {named}; it takes {', '.join(CHOICES)}")
