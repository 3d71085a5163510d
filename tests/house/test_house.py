"""The plan of the house: nothing stands in it for tests alone, and no line is laid out by hand."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from house_counts import counts
from leadline.record.finding import entries
from places import ROOT

PRODUCT = sorted((ROOT / "python" / "leadline").rglob("*.py"))
TOOLS = sorted((ROOT / "bench").rglob("*.py")) + sorted((ROOT / "tests" / "proving").glob("*.py"))
TEMPLATES = sorted((ROOT / "python" / "leadline" / "charts").glob("*.j2"))

KEPT = {
    "_common": "typer calls it: the options of all commands",
    "format_commands": "typer calls it",
    "list_commands": "typer calls it",
}
"""Called by nobody here, and why it stays."""

_IMPORT = re.compile(r"^\s*from [\w.]+ import (?:\([^)]*\)|[^\n]*)", flags=re.MULTILINE)
_OFFERED = re.compile(r"^(?:__all__|_HOMES) = [\[{].*?^[\]}]", flags=re.MULTILINE | re.DOTALL)


def defined(path: Path) -> Iterator[str]:
    """Functions and classes, also those inside others."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("__"):
            yield node.name


def words(path: Path) -> Counter[str]:
    """What a file says, without what it only imports or hands on."""
    text = path.read_text(encoding="utf-8")
    return Counter(re.findall(r"\w+", _OFFERED.sub("", _IMPORT.sub("", text))))


def test_nothing_is_there_for_its_tests_alone() -> None:
    places = Counter(name for path in PRODUCT for name in defined(path))
    said = sum((words(path) for path in PRODUCT), Counter[str]())
    used = set().union(*(words(path) for path in (*TOOLS, *TEMPLATES)))
    offered = (ROOT / "python" / "leadline" / "__init__.py").read_text(encoding="utf-8")
    used |= set(re.findall(r"\w+", offered))
    idle = {name for name, count in places.items() if said[name] <= count and name not in used}
    assert idle == KEPT.keys() - used


MATCHING = {
    *("startswith", "endswith", "removeprefix", "removesuffix", "partition", "rpartition"),
    *("split", "rsplit", "find", "rfind", "index", "rindex", "count", "replace"),
    *("compile", "match", "search", "fullmatch", "findall", "finditer", "sub"),
}
"""Methods of texts and of `re` that look for their first argument in another text."""


FOREIGN = {
    ("_database.py", "is not a database"): "SQLite says it",
    ("_database.py", "no such"): "SQLite says it",
}
"""What others write and Leadline happens to write, too."""


def texts(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """The texts in a tree, each by its node's id."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield id(node), node.value


def looked_for(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Those that are looked for in other texts."""
    for node in ast.walk(tree):
        places: Sequence[ast.AST] = ()
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            places = node.args[: node.func.attr in MATCHING]
        elif isinstance(node, ast.Compare):
            places = [node.left] * any(isinstance(how, ast.In | ast.NotIn) for how in node.ops)
        for place in places:
            yield from texts(place)


def test_nothing_is_decided_by_what_leadline_itself_wrote() -> None:
    """Findings have codes: a text of several words that is looked for is one of somebody else."""
    trees = {path: ast.parse(path.read_text("utf-8")) for path in PRODUCT if path.suffix == ".py"}
    patterns = {node: (path, text) for path in trees for node, text in looked_for(trees[path])}
    nodes = [node for tree in trees.values() for node in ast.walk(tree)]
    silent = {id(node.value) for node in nodes if isinstance(node, ast.Expr)} | patterns.keys()
    said = [entry.text for entry in entries().values()]
    said += [text for tree in trees.values() for node, text in texts(tree) if node not in silent]
    sentences = "\n".join(text for text in said if " " in text.strip())
    own = {
        (path.name, text)
        for path, text in patterns.values()
        if " " in text and re.search("[a-z]{3}", text) and text in sentences
    }
    assert own == FOREIGN.keys()


def test_no_line_is_laid_out_by_hand() -> None:
    mark = "fmt: " + "skip"
    sources = (*PRODUCT, *TOOLS, *sorted((ROOT / "tests").rglob("*.py")))
    assert not [path for path in sources if mark in path.read_text(encoding="utf-8")]


@pytest.mark.parametrize(
    "name", ["ARCHITECTURE.md", "CONTRIBUTING.md", "docs/reference/invariants.md"]
)
def test_every_file_that_a_document_names_is_there(name: str) -> None:
    said = re.findall(
        r"`((?:python|crates|tests|bench|docs|protocol|fuzz)/[\w./-]*)`",
        (ROOT / name).read_text(encoding="utf-8"),
    )
    assert said
    assert not [path for path in said if not (ROOT / path).exists()]


def test_the_plan_of_the_house_is_on_one_page() -> None:
    plan = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8").partition("## Invariants")[0]
    assert len(plan.split()) < 900
    folders = {path.parent.relative_to(ROOT) for path in PRODUCT}
    rooms = {"/".join(folder.parts[:3]) for folder in folders if len(folder.parts) > 2}
    assert not [room for room in rooms if f"`{room}/`" not in plan]


def test_what_the_plan_brought_down_stays_down() -> None:
    """Upward imports are `test_tidy.test_dependencies_point_one_way`'s."""
    found = counts()
    for name in ("late(", "make_callable", "tests on a target's kind"):
        now, goal = found[name]
        assert now <= goal, name
    assert found["Python files of the kinds"][0] <= 125
