"""The pages of docs/ whose every command is run, and held to what stands below it."""

from __future__ import annotations

from pathlib import Path

GUIDE = Path(__file__).parent.parent / "docs" / "guide"
PAGES = ("tutorial", "coming-from-fio", "cloud-volume", "nfs-peak")
TUTORIALS = tuple(GUIDE / f"{name}.md" for name in PAGES)
