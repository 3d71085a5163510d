"""Stored studies of any kind, opened by id or name."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

import msgspec

from leadline.api.frames import frame
from leadline.api.servers import MeasuredServer
from leadline.api.streams import StreamedData
from leadline.api.systems import SurveyedSystem
from leadline.record.streaming import STREAM
from leadline.record.survey import SURVEY
from leadline.record.workbench import EXPERIMENT
from leadline.report.kinds import KINDS, Kind, find_study
from leadline.store import open_store


@dataclass(frozen=True, repr=False)
class StoredStudy:
    """A study as it is stored: a validation, a file cache, plain files, measurements."""

    kind: str
    """As `leadline systems` names it."""
    study: Any
    """The record, of leadline.record."""
    where: str | None
    """The store."""

    def document(self) -> Any:
        """Return what `leadline show --json` puts out, as dictionaries and lists."""
        return msgspec.to_builtins(self._kind.document(self.study))

    def to_frame(self) -> Any:
        """Return what `leadline export` writes, as a pandas frame.

        Raises:
            FramesMissing: pandas is not installed.

        """
        with open_store(self.where, reading=True) as kept:
            return frame(self._kind.rows(kept, self.study.start.study_id))

    def save(self, path: str | Path) -> None:
        """Draw it to a file; the suffix decides what, as for `leadline report`.

        Raises:
            ReportError: another suffix, or nothing to draw.

        """
        with open_store(self.where, reading=True) as kept:
            self._kind.save(kept, self.study, Path(path), ())

    @property
    def _kind(self) -> Kind:
        return KINDS[self.kind]

    def __repr__(self) -> str:
        start = self.study.start
        return f"{self._kind.records.said} {start.study_id[:8]} of {start.system}"

    def _repr_html_(self) -> str:
        return f"<p>{escape(repr(self))}</p>"


def open_study(ref: str, *, store: str | None = None) -> Any:
    """Return a stored study of any kind, finished or not.

    A survey comes as a `SurveyedSystem`, an experiment as a `MeasuredServer`, a stream as
    `StreamedData`, any other kind as a `StoredStudy`.

    Args:
        ref: its id or the first letters of it, or a system's name.
        store: a file or URL; by default the one the command line uses.

    Raises:
        StoreError: there is none.

    """
    with open_store(store, reading=True) as kept:
        found = find_study(kept, ref)
        study = KINDS[found.kind].load(kept, found.start.study_id)
    if found.kind == SURVEY.kind:
        return SurveyedSystem(study.survey, study.points)
    if found.kind == EXPERIMENT.kind:
        return MeasuredServer(study)
    if found.kind == STREAM.kind:
        return StreamedData(study)
    return StoredStudy(found.kind, study, store)
