"""The style is enforced, not hoped for: sizes, names, layers, leftovers."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from retries import retries_in_python, retries_in_rust

ROOT = Path(__file__).parent.parent
PYTHON = sorted((ROOT / "python").rglob("*.py"))
RUST = sorted((ROOT / "crates").rglob("*.rs"))
SOURCES = (
    PYTHON + RUST + sorted((ROOT / "tests").rglob("*.py")) + sorted((ROOT / "bench").rglob("*.py"))
)

FILE_LINES_MAX = 600
FUNCTION_LINES_MAX = 70
"""Rust's are counted by clippy (clippy.toml)."""
FOLDER_FILES_MAX = 20
LINE_LENGTH_MAX = 110

LAYERS = {
    "units": 0,
    "errors": 0,
    "late": 0,
    "profiles": 0,
    "record": 1,
    "stats": 2,
    "fio": 2,
    "machine": 2,
    "engine": 3,
    "predict": 3,
    "store": 3,
    "servers": 4,
    "studies": 5,
    "compare": 6,
    "report": 6,
    "api": 7,
    "testing": 7,
    "cli": 8,
}
"""A module may import only from layers below its own, or from itself (DESIGN.md)."""


def names(paths: list[Path]) -> list[str]:
    return [str(path.relative_to(ROOT)) for path in paths]


@pytest.mark.parametrize("path", SOURCES, ids=names(SOURCES))
def test_file_can_be_read_at_one_sitting(path: Path) -> None:
    lines = path.read_text(encoding="utf-8").splitlines()
    assert len(lines) <= FILE_LINES_MAX
    long = [number for number, line in enumerate(lines, 1) if len(line) > LINE_LENGTH_MAX]
    assert not long, f"lines over {LINE_LENGTH_MAX} characters: {long}"
    leftover = re.compile(r"\b(TO" + r"DO|FIX" + r"ME|XX" + r"X)\b")
    assert not [line for line in lines if leftover.search(line)]


@pytest.mark.parametrize("path", PYTHON, ids=names(PYTHON))
def test_functions_are_short(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            assert length <= FUNCTION_LINES_MAX, f"{node.name} has {length} lines"


FOLDERS = sorted({path.parent for path in PYTHON + RUST})


@pytest.mark.parametrize("folder", FOLDERS, ids=names(FOLDERS))
def test_a_folder_can_be_seen_at_one_glance(folder: Path) -> None:
    """What a folder is and whom it lets in is no room of it."""
    for kind in ("py", "rs"):
        rooms = [path for path in folder.glob(f"*.{kind}") if path.stem not in ("__init__", "mod")]
        assert len(rooms) <= FOLDER_FILES_MAX


def test_no_module_is_a_drawer_for_odds_and_ends() -> None:
    banned = {"utils", "util", "common", "helpers", "misc"}
    assert not [path for path in PYTHON + RUST if path.stem in banned]


def imports(path: Path) -> Iterator[str]:
    """Names of the leadline packages a file imports."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        found: list[str] = []
        if isinstance(node, ast.ImportFrom):
            module = node.module or ""
            found = [module] if module != "leadline" else [f"leadline.{a.name}" for a in node.names]
        elif isinstance(node, ast.Import):
            found = [alias.name for alias in node.names]
        for name in found:
            parts = name.split(".")
            if parts[0] == "leadline" and len(parts) > 1 and not parts[1].startswith("_"):
                yield parts[1]


@pytest.mark.parametrize("path", PYTHON, ids=names(PYTHON))
def test_dependencies_point_one_way(path: Path) -> None:
    own = path.relative_to(ROOT / "python" / "leadline").parts[0].removesuffix(".py")
    if own in ("__init__", "__main__"):
        return
    for other in imports(path):
        assert other == own or LAYERS[other] < LAYERS[own], f"{own} must not import {other}"


@pytest.mark.parametrize("path", PYTHON, ids=names(PYTHON))
def test_only_store_knows_sql_and_only_engine_starts_processes(path: Path) -> None:
    package = path.relative_to(ROOT / "python" / "leadline").parts[0]
    text = path.read_text(encoding="utf-8")
    if package not in ("store", "testing"):
        assert "sqlalchemy" not in text
    if package not in ("engine", "machine", "servers") and path.name != "images.py":
        assert not re.search(r"^\s*(import|from) subprocess", text, flags=re.MULTILINE)
    if package != "cli":
        assert not re.search(r"\bsys\.exit\(|^\s*print\(", text, flags=re.MULTILINE)


QUOTING = {"retries.py", "test_tidy.py"}
"""They spell out what they forbid."""
PYTHON_TESTS = [p for p in sorted((ROOT / "tests").rglob("*.py")) if p.name not in QUOTING]
RUST_TESTS = [path for path in RUST if "tests" in path.parts or path.stem == "tests"]


@pytest.mark.parametrize("path", PYTHON_TESTS, ids=names(PYTHON_TESTS))
def test_no_python_test_retries_an_assertion(path: Path) -> None:
    assert retries_in_python(path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("path", RUST_TESTS, ids=names(RUST_TESTS))
def test_no_rust_test_retries_an_assertion(path: Path) -> None:
    assert retries_in_rust(path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    "source",
    [
        "while not shares or (shares[-1] != wanted and len(shares) < ATTEMPTS):\n    again()",
        "def found():\n    for seed in range(TRIES):\n        yield seed",
        "while len(tried) < TRIES_MAX and not close(tried[-1]):\n    tried.append(run())",
        "for _ in [1, 2]:\n  try:\n    check()\n  except AssertionError:\n    continue",
        "while True:\n  try:\n    check()\n  except (OSError, AssertionError):\n    pass",
        "@pytest.mark.flaky(reruns=3)\ndef test_it() -> None: ...",
        "@flaky\ndef test_it() -> None: ...",
    ],
)
def test_a_python_test_that_tries_again_would_be_seen(source: str) -> None:
    assert retries_in_python(source)


@pytest.mark.parametrize(
    "source",
    [
        "let mut runs = std::iter::repeat_with(|| result(job)).take(5).find(calm);",
        "let runs = repeat_with(|| run()).take(3);\n    let mut attempts = runs;",
        "const TRIES: usize = 3;",
        "for _ in 0..ATTEMPTS { if good(run()) { return; } }",
    ],
)
def test_a_rust_test_that_tries_again_would_be_seen(source: str) -> None:
    assert retries_in_rust(source)


def test_waiting_and_words_about_trying_are_no_retries() -> None:
    waits = "def wait_until(tries: int) -> None:\n    for _ in range(tries):\n        sleep(1)"
    assert retries_in_python(waits + "\nfor entries in listed: ...\n") == []
    said = '// five attempts\nlet entries = "3 tries"; assert!(entries.take(5).count() == 5);'
    assert retries_in_rust(said) == []


@pytest.mark.parametrize("path", RUST, ids=names(RUST))
def test_a_rust_test_that_is_left_out_is_run_by_test_long(path: Path) -> None:
    """Neither passed nor skipped, it is in no count: nothing else may be left out this way."""
    left_out = re.findall(r"#\[ignore\b.*", path.read_text(encoding="utf-8"))
    assert set(left_out) <= {'#[ignore = "long: make test-long"]'}
