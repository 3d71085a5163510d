"""A whole store as a folder of pages: one for each study, and a start page that leads to them."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from leadline.charts.embedding import bare_page
from leadline.charts.images import ReportError
from leadline.errors import LeadlineError
from leadline.record import Summary
from leadline.store import Store, Stored
from leadline.studies.registry import KINDS

START = "index.html"
_ID = re.compile(r"[0-9a-f]{32}")
"""A study's id is part of its page's name."""


class Entry(NamedTuple):
    """A study on the start page."""

    study_id: str
    kind: str
    system: str
    target: str
    started: str
    """In UTC, to the minute."""
    state: str
    """Empty when it is done."""
    headline: str
    page: str
    """Its file, beside the start page; empty where it could not be drawn."""
    why: str
    """Why it could not be drawn."""


def save_site(
    store: Store, folder: Path, on_page: Callable[[int, int], None] = lambda *_: None
) -> list[Entry]:
    """Write a page for every study of a store, and the start page that lists them.

    Args:
        store: what is drawn.
        folder: where; made when it is not there. Pages of the same names are written anew.
        on_page: told after each page how many are there, and how many there will be.

    Returns: a line for each study, newest first.

    Raises:
        ReportError: the folder cannot be written.

    """
    studies = _newest_first(store)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        entries = []
        # Drawn beside their places and then renamed: a page is whole or not there, and a link of
        # its name is replaced, never followed.
        with tempfile.TemporaryDirectory(prefix=".leadline-", dir=folder) as name:
            for number, item in enumerate(studies, 1):
                entries.append(_entry(store, item, Path(name)))
                on_page(number, len(studies))
            (Path(name) / START).write_text(render_start(entries), encoding="utf-8")
            for page in Path(name).iterdir():
                page.replace(folder / page.name)
    except OSError as error:
        raise ReportError(
            f"{folder} cannot be written: {error.strerror}; give another folder"
        ) from error
    return entries


def render_start(entries: Sequence[Entry]) -> str:
    """Render the start page: each system with its studies, the newest system first."""
    systems = list(dict.fromkeys(entry.system for entry in entries))
    return bare_page(
        "site.html.j2",
        systems=[(name, [each for each in entries if each.system == name]) for name in systems],
        studies=len(entries),
    )


def _newest_first(store: Store) -> list[Summary]:
    found = [item for kind in KINDS.values() for item in store.list(kind.records)]
    return sorted(found, key=lambda item: item.started_at, reverse=True)


def _entry(store: Store, item: Summary, folder: Path) -> Entry:
    """Draw a study; one that cannot be read or drawn does not keep others from it."""
    page, said, why = f"{item.study_id[:12]}.html", "", ""
    try:
        if not _ID.fullmatch(item.study_id):
            raise ReportError("its id is none that Leadline gives: the store was changed by others")
        found: Stored[Any, Any] = store.find(item.study_id)
        kind = KINDS[found.kind]
        study = kind.load(store, item.study_id)
        said = kind.headline(study)
        kind.drawn.save_study(store, study, folder / page, ())
    except LeadlineError as error:
        page, why = "", str(error)
    except Exception as error:  # a defect in one drawing keeps no other from its page
        page, why = "", f"a defect in Leadline: {type(error).__name__}: {error}"
    return Entry(
        study_id=item.study_id[:8],
        kind=KINDS[item.kind].records.said if item.kind in KINDS else item.kind,
        system=item.system,
        target=item.target,
        started=item.started_at[:16].replace("T", " "),
        state="" if item.status.value == "done" else item.status.value,
        headline=said,
        page=page,
        why=why,
    )
