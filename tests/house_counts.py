"""The table of HOUSE.md, counted: `python tests/house_counts.py` prints it."""

from __future__ import annotations

import ast
import re
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "python" / "leadline"
KINDS = sorted(path.name for path in (PACKAGE / "studies").iterdir() if (path / "text.py").exists())


def tracked(*patterns: str) -> list[Path]:
    """Files of the checkout that git knows, by git's patterns."""
    said = subprocess.run(
        ["git", "ls-files", "-z", "--", *patterns], cwd=ROOT, capture_output=True, check=True
    )
    return [ROOT / name for name in said.stdout.decode().split("\0") if name]


def product() -> list[Path]:
    """Files of the product: Python, Rust, what pages are made of; no tests."""
    suffixes = {".py", ".rs", ".js", ".j2", ".css"}
    return [
        path
        for path in tracked("python", "crates")
        if path.suffix in suffixes and "tests" not in path.parts and path.name != "tests.rs"
    ]


def lines_of(path: Path) -> int:
    """Lines of a file; of Rust without the tests at its end."""
    return path.read_text(encoding="utf-8").partition("\n#[cfg(test)]\nmod ")[0].count("\n")


def python() -> Iterator[tuple[Path, str]]:
    """Every Python file of the product, with its text."""
    for path in sorted(PACKAGE.rglob("*.py")):
        yield path, path.read_text(encoding="utf-8")


def calls_of(name: str) -> int:
    """How often a function is called in the product."""
    return sum(len(re.findall(rf"(?<!def )\b{name}\(", text)) for _, text in python())


def private_with_one_caller() -> float:
    """Share of the private top-level functions that are named once outside their definition."""
    alone = known = 0
    for _, text in python():
        said = Counter(re.findall(r"\w+", text))
        for node in ast.parse(text).body:
            if isinstance(node, ast.FunctionDef) and node.name.startswith("_"):
                known += 1
                alone += said[node.name] == 2
    return alone / known


def on_kind() -> int:
    """Tests on what kind a target is, outside of the targets."""
    asks = re.compile(r"\btarget\.kind\b|isinstance\([^)]*\b(Directory|NfsExport|Simulated|Null)\b")
    return sum(
        len(asks.findall(text))
        for path, text in python()
        if "engine/targets" not in path.as_posix()
    )


def counts() -> dict[str, tuple[float, float]]:
    """Each measure of the plan: what it is, and its goal."""
    of_kinds = sum(len(list((PACKAGE / "studies" / kind).rglob("*.py"))) for kind in KINDS)
    return {
        "product lines": (sum(map(lines_of, product())), 95_000),
        "Python files of the kinds": (of_kinds, 120),
        "late(": (calls_of("late"), 12),
        "make_callable": (calls_of("make_callable"), 0),
        "tests on a target's kind": (on_kind(), 0),
        "private functions with one caller, %": (100 * private_with_one_caller(), 50),
    }


if __name__ == "__main__":
    for name, (found, goal) in counts().items():
        print(f"{name:<38}{found:>10,.0f}  goal {goal:,.0f}")
