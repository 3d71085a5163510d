"""Write what the site of the documentation is built from: `make docs`, into build/docs/pages.

docs/ is copied as it is; what is made from the code is added (`generated.py`), and links that
leave docs/ for the checkout become text. mkdocs then builds the site, and fails over a link that
leads nowhere.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from pathlib import Path
from typing import Any

from generated import SCHEMAS, command_pages, python_page, schema_page

ROOT = Path(__file__).parent.parent.parent
BUILT = ROOT / "build" / "docs"
PAGES = BUILT / "pages"
SECTIONS = (
    ("Tutorial", ("index.md", "guide/tutorial.md")),
    ("How-to guides", ("guide/coming-from-fio.md", "guide/*.md", "notebooks/*.md")),
    ("Commands", ("commands/index.md", "commands/*.md")),
    ("Reference", ("reference/*.md",)),
    ("Explanation", ("how-it-works.md", "concepts/*.md", "papers.md")),
    ("Decisions", ("decisions/*.md",)),
)
_LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s]+)\)")
_SLUGS = "!!python/object/apply:pymdownx.slugs.slugify {kwds: {case: lower}}"


def main() -> None:
    """Write the pages and the configuration."""
    shutil.rmtree(PAGES, ignore_errors=True)
    shutil.copytree(ROOT / "docs", PAGES)
    for page in PAGES.rglob("*.md"):
        text = page.read_text(encoding="utf-8")
        page.write_text(inside(text, page.relative_to(PAGES).parent), encoding="utf-8")
    add_generated()
    (BUILT / "mkdocs.yml").write_text(configuration(), encoding="utf-8")


def inside(text: str, folder: Path) -> str:
    """Return a page with every link that leaves docs/ as its words alone."""

    def kept(link: re.Match[str]) -> str:
        target = link[3].partition("#")[0]
        if not target or re.match(r"\w+:", target):
            return link[0]
        path = Path(os.path.normpath(folder / target))
        return link[2] if path.parts[:1] == ("..",) else link[0]

    return _LINK.sub(kept, text)


def add_generated() -> None:
    """Add the pages that are made from the code."""
    (PAGES / "commands").mkdir()
    for name, text in command_pages().items():
        (PAGES / "commands" / f"{name}.md").write_text(text, encoding="utf-8")
    (PAGES / "reference" / "schemas.md").write_text(schema_page(), encoding="utf-8")
    (PAGES / "reference" / "python.md").write_text(python_page(), encoding="utf-8")
    for path in SCHEMAS:
        shutil.copy(path, PAGES / "reference")


def configuration() -> str:
    """Return mkdocs.yml; JSON is YAML."""
    said: dict[str, Any] = {
        "site_name": "Leadline",
        "site_url": "",
        "use_directory_urls": False,
        "docs_dir": str(PAGES),
        "site_dir": str(BUILT / "site"),
        "theme": {
            "name": "material",
            "font": False,  # the network is not asked
            "features": ["navigation.sections", "navigation.footer", "content.code.copy"],
            "palette": {"primary": "cyan", "scheme": "default"},
        },
        "plugins": ["search", "offline"],
        "nav": navigation(),
        "validation": {
            "links": {"anchors": "warn", "not_found": "warn", "unrecognized_links": "warn"}
        },
        "markdown_extensions": [
            "tables",
            "sane_lists",
            "pymdownx.superfences",
            {"toc": {"permalink": True, "slugify": "SLUGS"}},
        ],
    }
    return json.dumps(said, indent=2).replace('"SLUGS"', _SLUGS)


def navigation() -> list[dict[str, Any]]:
    """Return every page once, under its section, by its title."""
    told: set[Path] = set()
    sections = []
    for title, patterns in SECTIONS:
        pages = []
        for pattern in patterns:
            for page in sorted(PAGES.glob(pattern)):
                if page not in told:
                    told.add(page)
                    pages.append({title_of(page): str(page.relative_to(PAGES))})
        if pages:
            sections.append({title: pages})
    left = sorted(str(page.relative_to(PAGES)) for page in set(PAGES.rglob("*.md")) - told)
    if left:
        raise SystemExit(f"in no section of release/site/build.py: {', '.join(left)}")
    return sections


def title_of(page: Path) -> str:
    """Return a page's first heading, without its marks."""
    text = page.read_text(encoding="utf-8")
    found = re.search(r"^# (.+)$", text, re.MULTILINE)
    return re.sub(r"[`*]", "", found[1]) if found else page.stem


if __name__ == "__main__":
    main()
