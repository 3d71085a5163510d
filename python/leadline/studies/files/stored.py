"""A study of plain files as it is told, from what is stored of it."""

from __future__ import annotations

from leadline.record.files import FILES, CellMeasured, FilesStart, FilesStudy, SizeChosen
from leadline.record.study import Said
from leadline.store import Store, Stored
from leadline.studies.files.rows import with_numbers


def load_files(store: Store, ref: str) -> FilesStudy:
    """Return a stored study, finished or not.

    Raises:
        StoreError: no study of plain files, or several, go by this reference.

    """
    found = store.find(ref, FILES)
    return files_study(found, store.items(found.start.study_id))


def files_study(
    found: Stored[FilesStart, Said], items: tuple[SizeChosen | CellMeasured, ...]
) -> FilesStudy:
    """Return the study that start, items and answer make together."""
    size = next((item for item in items if isinstance(item, SizeChosen)), None)
    rows = tuple(row for item in items if isinstance(item, CellMeasured) for row in item.rows)
    answer = found.answer
    return FilesStudy(
        start=found.start,
        status=found.status,
        file_bytes=size.file_bytes if size else None,
        size_steps=size.size_steps if size else (),
        size_reason=size.size_reason if size else "",
        rows=with_numbers(rows, size.file_bytes, paper=found.start.paper) if size else (),
        sentences=answer.sentences if answer else (),
        findings=answer.findings if answer else (),
        wall_s=answer.wall_s if answer else items[-1].wall_s if items else 0.0,
    )
