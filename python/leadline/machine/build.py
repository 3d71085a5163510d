"""Which Leadline this is: its version, the commit it was made of, how its engine was compiled."""

from __future__ import annotations

import re
from pathlib import Path

from leadline.machine.facts import engine_build, leadline_version
from leadline.machine.kernel_files import attempt, text

PACKAGE = Path(__file__).parent.parent
COMMIT = "COMMIT"
"""A file that `make wheel` puts into a wheel; a checkout has its .git instead."""
EXTRAS = (
    ("charts", "pages and charts (`leadline report`)", ("altair", "vl_convert")),
    ("frames", "data frames in Python", ("pandas",)),
    ("frames", "export as Parquet and Arrow", ("pyarrow",)),
    ("cluster", "streams under mpirun", ("mpi4py",)),
    ("cluster", "trials on a pool of machines", ("distributed",)),
    ("postgresql", "stores in PostgreSQL", ("psycopg",)),
)
"""Extras of the package, what they are for, and the modules by which that is told."""
_HASH = re.compile(r"[0-9a-f]{40}")
SHORT = 10


def format_missing(module: str | None) -> str | None:
    """Say which extra brings a module that is not installed; None of one that none brings."""
    top = (module or "").partition(".")[0]
    for extra, what_for, modules in EXTRAS:
        if top in modules:
            return f"{top} is not installed, which {what_for} need: pip install 'leadline[{extra}]'"
    return None


def commit(package: Path = PACKAGE) -> str | None:
    """Return the commit that this was made of, shortened; None when nothing says it."""
    written = (text(package / COMMIT) or "").strip()
    found = _of_checkout(package.parent.parent) or (_HASH.fullmatch(written) and written)
    return found[:SHORT] if found else None


def _of_checkout(root: Path) -> str | None:
    """Read what .git says, without running git."""
    git = root / ".git"
    if git.is_file():  # a worktree's names the folder
        git = root / (text(git) or "").strip().removeprefix("gitdir: ")
    head = (text(git / "HEAD") or "").strip()
    if _HASH.fullmatch(head):
        return head
    name = head.removeprefix("ref: ")
    if not name.startswith("refs/") or ".." in name:
        return None
    common = text(git / "commondir")
    shared = (git / common.strip()) if common else git
    for folder in (git, shared):
        found = (text(folder / name) or "").strip()
        if _HASH.fullmatch(found):
            return found
    packed = text(shared / "packed-refs") or ""
    line = re.search(rf"^([0-9a-f]{{40}}) {re.escape(name)}$", packed, flags=re.MULTILINE)
    return line[1] if line else None


def version_words() -> str:
    """Write `leadline 0.1.0 (commit 0123456789, release engine)`."""
    said = attempt(commit)
    engine = engine_build()
    parts = [
        f"commit {said}" if said else "commit unknown",
        f"{engine} engine" if engine else "no engine",
    ]
    return f"leadline {leadline_version() or 'not installed'} ({', '.join(parts)})"
