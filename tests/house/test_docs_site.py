"""What `make docs` makes: a page for every command, schema and name, each once in the contents."""

from __future__ import annotations

import importlib
import json
import re
from pathlib import Path
from typing import Any

import pytest

import leadline
from leadline.app import COMMANDS
from places import ROOT

SITE = ROOT / "release" / "site"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Return `build.py` after it wrote its pages into a folder of the test's own."""
    with pytest.MonkeyPatch.context() as patched:
        patched.syspath_prepend(str(SITE))
        build: Any = importlib.import_module("build")
    build.BUILT = tmp_path_factory.mktemp("docs")
    build.PAGES = build.BUILT / "pages"
    build.main()
    return build


def _text(built: Any, name: str) -> str:
    text: str = (built.PAGES / name).read_text(encoding="utf-8")
    return text


def test_every_command_has_a_page_with_its_options(built: Any) -> None:
    pages = {path.stem for path in (built.PAGES / "commands").glob("*.md")}
    assert pages >= {*COMMANDS, "index", "stream-sort"}
    survey = _text(built, "commands/survey.md")
    assert "# leadline survey" in survey
    assert "`--budget TIME`" in survey
    index = _text(built, "commands/index.md")
    assert all(f"[`leadline {name}`]({name}.md)" in index for name in COMMANDS)


def test_every_name_of_the_package_has_its_signature_and_words(built: Any) -> None:
    page = _text(built, "reference/python.md")
    for name in leadline.__all__:
        assert name == "__version__" or f"## leadline.{name}\n" in page, name
    assert "    budget: str | float | None = None,\n" in page
    assert "- `budget`: a hard cap" in page
    assert " at 0x" not in page


def test_every_type_of_the_wire_is_on_its_page(built: Any) -> None:
    page = _text(built, "reference/schemas.md")
    for kind in ("job", "event"):
        schema = json.loads(_text(built, f"reference/{kind}.schema.json"))
        assert all(f"### {name}\n" in page for name in schema["$defs"])


def test_every_page_stands_once_in_the_contents(built: Any) -> None:
    listed = re.findall(r'"([\w/.-]+\.md)"', built.configuration())
    pages = {str(path.relative_to(built.PAGES)) for path in built.PAGES.rglob("*.md")}
    assert sorted(listed) == sorted(pages)
    assert listed[:2] == ["index.md", "guide/tutorial.md"]


def test_a_link_that_leaves_the_docs_is_its_words(built: Any) -> None:
    kept = "[a](b.md#c), [d](https://e.org), [f](#g)"
    assert built.inside(kept, Path("guide")) == kept
    assert built.inside("[http](../../workloads/http/)", Path("guide")) == "http"
