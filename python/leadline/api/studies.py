"""Stored studies of any kind, opened by id or name."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

import msgspec

from leadline.api.frames import chosen, frame, table
from leadline.api.servers import MeasuredServer
from leadline.api.streams import StreamedData
from leadline.api.systems import SurveyedSystem
from leadline.record.measurement import Measured
from leadline.record.streaming import STREAM
from leadline.record.survey import SURVEY
from leadline.record.wording import format_rate_ci, format_workload
from leadline.record.workbench import EXPERIMENT
from leadline.store import open_store
from leadline.studies.registry import KINDS, Kind, find_study


@dataclass(frozen=True, repr=False)
class StoredStudy:
    """A study as it is stored: a validation, a page cache, plain files, measurements."""

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
            self._kind.drawn.save_study(kept, self.study, Path(path), ())

    def plot(self, name: str | None = None) -> Any:
        """Return a chart of its page for a notebook, an Altair chart: the first, or by name.

        Raises:
            ChartsMissing: Altair is not installed.
            NoChart: none of this name, or nothing to draw.

        """
        return chosen(lambda: KINDS[self.kind].drawn.charts_of(self.study), name)

    @property
    def _kind(self) -> Kind:
        return KINDS[self.kind]

    def __repr__(self) -> str:
        start = self.study.start
        return f"{self._kind.records.said} {start.study_id[:8]} of {start.system}"

    def _repr_html_(self) -> str:
        if not isinstance(self.study, Measured):
            said = getattr(self._answer, "sentences", ())
            return f"<h4>{escape(repr(self))}</h4>" + "".join(f"<p>{escape(s)}</p>" for s in said)
        heads = ("workload", "throughput (95% CI)", "requests/s", "warnings")
        rows = [
            (
                format_workload(point.workload),
                format_rate_ci(point.result.throughput_mb_s),
                f"{point.result.iops.value:,.0f}",
                "; ".join((*map(str, point.findings), *point.result.warnings)),
            )
            for point in self.study.points
        ]
        return f"<h4>{escape(repr(self))}</h4>{table(heads, rows)}"

    @property
    def _answer(self) -> Any:
        """What has the sentences: the study, or of it what was found."""
        inside = [getattr(self.study, name, None) for name in ("cache", "found")]
        told = [each for each in (self.study, *inside) if hasattr(each, "sentences")]
        return told[0] if told else None


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
