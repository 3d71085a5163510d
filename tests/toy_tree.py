"""A copy of Leadline's Python with a few lines added, to see how far a toy travels."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = Path("python/leadline")
TOYS = ROOT / "tests/toys"
CPU_S_MAX = 30
"""Bounds a script that went astray; each takes two seconds."""

Edits = Mapping[str, Sequence[tuple[str, str]]]
"""Of each shared file that must change: a line or lines, and those that are put after them."""


def run_toy(root: Path, edits: Edits, script: str, *arguments: str) -> None:
    """Run a script of `tests/toys` on the edited copy; it fails when one of its assertions does."""
    edited = {ROOT / name for name in edits}
    for folder, folders, files in os.walk(ROOT / PACKAGE):
        there = root / Path(folder).relative_to(ROOT)
        there.mkdir(parents=True)
        if "__pycache__" in folders:  # what was compiled of the files that stay
            folders.remove("__pycache__")
            (there / "__pycache__").symlink_to(Path(folder, "__pycache__"))
        for file in files:
            if Path(folder, file) not in edited:
                (there / file).symlink_to(Path(folder, file))
    for name, changes in edits.items():
        text = (ROOT / name).read_text(encoding="utf-8")
        for before, added in changes:
            assert text.count(before) == 1, f"{name}: {before!r}"
            text = text.replace(before, before + added)
        (root / name).write_text(text, encoding="utf-8")
    paths = os.pathsep.join([str(root / "python"), str(ROOT / "tests")])
    done = subprocess.run(
        [sys.executable, str(TOYS / script), str(root), *arguments],
        env=os.environ | {"PYTHONPATH": paths, "PYTHONDONTWRITEBYTECODE": "1", "COLUMNS": "200"},
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (CPU_S_MAX, CPU_S_MAX)),
    )
    assert done.returncode == 0, done.stderr
