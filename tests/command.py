"""Runs the installed `leadline` command as a user does."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

LEADLINE = str(Path(sys.executable).with_name("leadline"))


def environment(store: Path) -> dict[str, str]:
    """A clean environment whose store is a file of the test's own."""
    kept = {name: value for name, value in os.environ.items() if name != "LEADLINE_STORE"}
    return kept | {"LEADLINE_STORE": str(store), "NO_COLOR": "1", "COLUMNS": "100"}


def leadline(
    *arguments: str, store: Path, timeout_s: float = 120
) -> subprocess.CompletedProcess[str]:
    """Run the command to its end."""
    return subprocess.run(
        [LEADLINE, *arguments],
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
        env=environment(store),
    )
