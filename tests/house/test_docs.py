"""README and docs/: every relative link leads to a file and every anchor to a heading."""

from __future__ import annotations

import functools
import os
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from places import ROOT

PAGES = sorted(
    [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "release").rglob("*.md")]
)

_LINK = re.compile(r"!?\[(?:[^\]\[]|\[[^\]]*\])*\]\(([^)\s]+)\)")
_FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"`[^`\n]+`")


def links_of(text: str) -> Iterator[str]:
    """Yield where every link of a page goes; none that stands in code."""
    prose = _FENCE.sub("", text)
    kept = "\n".join(line for line in prose.splitlines() if not line.startswith("    "))
    for found in _LINK.finditer(_CODE.sub("code", kept)):
        yield found[1]


@functools.cache
def anchors_of(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as GitHub and the site make them."""
    seen: Counter[str] = Counter()
    anchors = set()
    for head in re.findall(r"^#+ +(.+?) *$", _FENCE.sub("", page.read_text("utf-8")), re.MULTILINE):
        words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", head).lower()
        slug = re.sub(r"[^\w\- ]", "", words).strip().replace(" ", "-")
        anchors.add(slug if not seen[slug] else f"{slug}-{seen[slug]}")
        seen[slug] += 1
    return anchors


def faults_of(page: Path, text: str) -> Iterator[str]:
    """Yield the links of a page that lead nowhere."""
    for link in links_of(text):
        if re.match(r"\w+:", link):
            continue
        target, _, anchor = link.partition("#")
        path = Path(os.path.normpath(page.parent / target)) if target else page
        if not path.exists():
            yield f"{link}: there is no such file"
        elif anchor and path.suffix == ".md" and anchor not in anchors_of(path):
            yield f"{link}: there is no such heading"


def test_every_link_leads_somewhere() -> None:
    faults = {
        str(page.relative_to(ROOT)): found
        for page in PAGES
        if (found := list(faults_of(page, page.read_text("utf-8"))))
    }
    assert faults == {}


def test_there_are_links_to_look_at() -> None:
    counted = {page: len(list(links_of(page.read_text("utf-8")))) for page in PAGES}
    assert sum(counted.values()) > 150
    assert counted[ROOT / "README.md"] > 5
    assert counted[ROOT / "docs" / "index.md"] > 10


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("[a](nowhere.md)", "nowhere.md: there is no such file"),
        ("[a](README.md#no-such-part)", "README.md#no-such-part: there is no such heading"),
        ("[a](#install)", ""),
        ("[a](docs/guide/ci.md#a-job)", ""),
        ("`[a](nowhere.md)` and\n\n    [a](nowhere.md)\n", ""),
        ("[a](https://example.org/nowhere)", ""),
    ],
)
def test_a_link_that_leads_nowhere_would_have_been_seen(text: str, fault: str) -> None:
    assert list(faults_of(ROOT / "README.md", text)) == ([fault] if fault else [])
