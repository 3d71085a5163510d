"""What can be done with a study of any kind: each says it itself, nobody asks which it is."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from rich.console import RenderableType

from leadline.record import Measurement
from leadline.record.study import Records
from leadline.record.survey import SURVEY
from leadline.store import NotStored, Store, Stored, rows

Row = dict[str, Any]


class Page(Protocol):
    """The module that draws a kind; it is loaded with Altair when something is drawn."""

    def save_study(self, store: Store, study: Any, path: Path, beside: Sequence[str]) -> None:
        """Draw a study to a file, with others beside it."""

    def charts_of(self, study: Any) -> dict[str, Any]:
        """Return every chart of its page by name, the one to look at first before the others."""

    def require_format(self, path: Path) -> None:
        """Refuse what it cannot be drawn as, before anything is measured."""

    def checked_in(self, store: Store, survey_id: str) -> Any:
        """Of a validation: return what it says on the page of its survey."""


@dataclass(frozen=True)
class Kind:
    """What can be done with one kind of study."""

    records: Records[Any, Any]
    load: Callable[[Store, str], Any]
    """Find a study by its id or name and explain it, finished or not."""
    document: Callable[[Any], Any]
    """What `--json` puts on stdout."""
    render: Callable[[Any], RenderableType]
    """What a terminal shows."""
    rows: Callable[[Store, str], list[Row]]
    """What `export` writes: a flat row for each thing that was measured."""
    page: str
    """Name of the module that draws it."""
    ending: str
    """How a file's usual name ends."""
    headline: Callable[[Any], str] = lambda _: ""
    """The answer in a sentence, as its page begins; empty when there is none yet."""

    @property
    def drawn(self) -> Page:
        """What draws it."""
        page: Any = importlib.import_module(self.page)
        return page  # type: ignore[no-any-return]


HOMES = {
    "survey": "leadline.studies.survey.text",
    "validation": "leadline.studies.validation.text",
    "cache": "leadline.studies.cache.text",
    "files": "leadline.studies.files.text",
    "stream": "leadline.studies.streaming.text",
    "experiment": "leadline.studies.workbench.tables",
    "measurement": "leadline.studies.measurement.text",
    "application": "leadline.studies.application.text",
}
"""Of each kind, by its name in the store, the module whose `KIND` it is."""


class _Kinds(Mapping[str, Kind]):
    """Every kind that there is; one is loaded when it is asked for."""

    def __getitem__(self, name: str) -> Kind:
        kind: Kind = importlib.import_module(HOMES[name]).KIND
        return kind

    def __iter__(self) -> Iterator[str]:
        return iter(HOMES)

    def __len__(self) -> int:
        return len(HOMES)


KINDS = _Kinds()


def find_study(store: Store, ref: str) -> Stored[Any, Any]:
    """Return a study of any kind; a name means a survey where one has it.

    Raises:
        StoreError: no study, or several, go by this reference.

    """
    try:
        return store.find(ref, SURVEY)
    except NotStored as not_a_survey:
        try:
            return store.find(ref)
        except NotStored:
            raise not_a_survey from None


def first(sentences: Sequence[str]) -> str:
    """Return the first of an answer's sentences, nothing of none."""
    return next(iter(sentences), "")


def stored_points(records: Records[Any, Any]) -> Callable[[Store, str], list[Row]]:
    """Return what exports the points of a kind."""
    return lambda store, study_id: point_rows(store.items(study_id), records, study_id)


def point_rows(points: Sequence[Measurement], records: Records[Any, Any], own: str) -> list[Row]:
    """Return points as flat rows."""
    found: list[Row] = rows(points, records.kind, own)
    return found
