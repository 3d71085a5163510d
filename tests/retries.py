"""Where a test does again what it asserts: such a verdict depends on luck and on the machine."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

_COUNTED = re.compile(r"(^|_)(tries|attempts|retries)(_|$)", re.IGNORECASE)
_MARKED = re.compile(r"\bmark\.(flaky|rerun)|--reruns\b|^\s*@(flaky|retry)\b", re.MULTILINE)
_RUST = (
    re.compile(r"repeat_with\b[^;]{0,400}?\.take\([^;]{0,400}?\.(find|find_map|any|position)\("),
    re.compile(r"\b\w*(?<![a-z])(?:tries|attempts|retries)\b(?!\()", re.IGNORECASE),
)


def retries_in_python(source: str) -> list[str]:
    """Name every loop that tries again and every marker that makes pytest do it.

    A function called wait... looks again at what something else does; it does nothing again.
    """
    tree = ast.parse(source)
    found = [f"marked {match.group(0).strip()}" for match in _MARKED.finditer(source)]
    waits = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and node.name.lstrip("_").startswith("wait")
        for inner in ast.walk(node)
    }
    for loop in ast.walk(tree):
        if isinstance(loop, ast.For | ast.While) and id(loop) not in waits:
            found += [f"line {loop.lineno}: {why}" for why in _why_again(loop)]
    return found


def _why_again(loop: ast.For | ast.While) -> Iterator[str]:
    head = loop.iter if isinstance(loop, ast.For) else loop.test
    for node in ast.walk(head):
        if isinstance(node, ast.Name) and _COUNTED.search(node.id):
            yield f"a loop over {node.id}"
    for node in ast.walk(loop):
        if isinstance(node, ast.ExceptHandler) and node.type is not None:
            caught = {each.id for each in ast.walk(node.type) if isinstance(each, ast.Name)}
            if "AssertionError" in caught:
                yield "a loop that catches what an assertion raises"


def retries_in_rust(source: str) -> list[str]:
    """Name every construct that takes the first of several results that pleases."""
    code = re.sub(r"//[^\n]*|\"(?:[^\"\\]|\\.)*\"", "", source)
    return [match.group(0) for pattern in _RUST for match in pattern.finditer(code)]
