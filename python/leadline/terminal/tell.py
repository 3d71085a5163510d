"""How commands tell of a study, and draw it, whatever its kind."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from leadline.errors import UsageRefused
from leadline.record.study import StudyStart
from leadline.store import Store
from leadline.studies.registry import Kind
from leadline.terminal.talk import put_json, show, talk


def tell(study: Any, kind: Kind, *, json: bool, to_draw: bool = True) -> None:
    """Show a study under its id, target and date, or put its document.

    Args:
        study: as its kind loads it.
        kind: what can be done with it.
        json: put the document.
        to_draw: say how it is drawn.

    """
    if json:
        put_json(kind.document(study))
        return
    show(f"{format_study(kind.records.said, study.start)}, {study.status.value}\n")
    show(kind.render(study))
    if to_draw:
        talk(f"\nleadline report {study.start.study_id[:8]} -o page.html draws it")


def format_study(said: str, start: StudyStart) -> str:
    """Write `survey 1a2b3c4d of hp (/data, direct), 2026-01-01 12:00 UTC`."""
    when = start.started_at[:16].replace("T", " ")
    reached = ", ".join([start.target, *start.beyond])
    return f"{said} {start.study_id[:8]} of {start.system} ({reached}), {when} UTC"


def usual_output(study: Any, kind: Kind) -> Path:
    """Return the file that a study is drawn to where none is named: with its system's name."""
    return Path(f"leadline-{study.start.system.replace('/', '_')}{kind.ending}")


def draw(store: Store, study: Any, kind: Kind, path: Path, beside: Sequence[str]) -> None:
    """Write a study to a file."""
    require_output(path, kind)
    kind.drawn.save_study(store, study, path, beside)
    talk(f"wrote {path}")


def require_output(path: Path | None, kind: Kind) -> None:
    """Refuse a file that could not be written after a run."""
    if path is not None:
        require_directory(path)
        kind.drawn.require_format(path)


def require_directory(path: Path) -> None:
    """Refuse a file that has no directory."""
    if not path.absolute().parent.is_dir():
        raise UsageRefused(f"the directory of {path} does not exist; create it first")
