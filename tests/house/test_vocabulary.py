"""Product text uses the field's words: none of those that the glossary replaced."""

from __future__ import annotations

import io
import re
import subprocess
import tokenize
from collections.abc import Iterator

import pytest

from places import ROOT

REPLACED = {
    "against nothing": "with the null backend",
    "asked accuracy": "CI target",
    "admissible": "valid",
    "bench time": "test time",
    "borders?(?! *:)": "boundary",
    "busy machine": "host busy",
    "bytes touched": "working set",
    "disciplines?": "write mode",
    "file caches?": "page cache",
    "flushers?": "writeback",
    "gives? out(?: gradually)?": "bottleneck; changes gradually",
    "idle cache reclaimed": "idle page reclaim",
    "issuers?": "worker",
    "no difference shown": "no significant difference",
    "on (?:its|their) way at once": "outstanding",
    "past the (?:file|page) cache": "direct I/O",
    "share of reads": "read fraction",
    "share of sequential requests": "sequential fraction",
    "stops gaining": "sublinear from",
    "two lists": "active/inactive LRU",
    "turn by turn": "interleaved",
    "would have fared": "policy comparison",
}
"""Of each word or phrase, a pattern, what is written in its place."""
FOUND = re.compile(rf"(?<![\w./#`*\[-])(?:{'|'.join(REPLACED)})(?![\w`*\]-]|\.\w)", re.IGNORECASE)
_RUST = re.compile(r'//[^\n]*|"(?:\\.|[^"\\])*"', re.DOTALL)
_MARKER = re.compile(r"<!--.*?-->", re.DOTALL)
_BRACES = re.compile(r"\{[^{}]*\}")


def _in_python(text: str) -> Iterator[str]:
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT or (
            token.type == tokenize.STRING and " " in token.string
        ):
            yield _BRACES.sub("", token.string)


def _in_rust(text: str) -> Iterator[str]:
    for found in _RUST.findall(text):
        if found.startswith("//") or " " in found:
            yield _BRACES.sub("", found)


def texts(path: str, content: str) -> Iterator[str]:
    """What of a file people read: comments, and strings of more than a word."""
    if path.endswith(".py"):
        return _in_python(content)
    if path.endswith((".rs", ".js")):
        return _in_rust(content)
    return iter([_BRACES.sub("", _MARKER.sub("", content))])


def tracked(*places: str) -> list[str]:
    """The files of those places that are in the repository."""
    listed = subprocess.run(["git", "ls-files", *places], cwd=ROOT, capture_output=True, check=True)
    return listed.stdout.decode().splitlines()


@pytest.mark.parametrize("ending", [".py", ".rs", ".md", ".toml", ".j2", ".js"])
def test_replaced_words_are_not_in_product_text(ending: str) -> None:
    places = ("python/leadline", "crates/*/src", "docs", "*.md")
    wrong = [
        f"{path}: {found}"
        for path in tracked(*places)
        if path.endswith(ending) and (ROOT / path).exists()
        for text in texts(path, (ROOT / path).read_text(encoding="utf-8"))
        for found in FOUND.findall(" ".join(text.split()))
    ]
    assert wrong == []


def _found(path: str, content: str) -> list[str]:
    return [word for text in texts(path, content) for word in FOUND.findall(" ".join(text.split()))]


@pytest.mark.parametrize(
    ("path", "content", "word"),
    [
        ("a.py", 'say("An issuer waits.")', "issuer"),
        ("a.py", "# the issuers wait", "issuers"),
        ("a.rs", "/// The Issuer\n", "Issuer"),
        ("a.rs", '"into the file\n cache"', "file cache"),
        ("a.md", "Bench time is\nless.", "Bench time"),
    ],
)
def test_a_replaced_word_is_found(path: str, content: str, word: str) -> None:
    assert _found(path, content) == [word]


@pytest.mark.parametrize(
    ("path", "content"),
    [
        ("a.py", "issuers = count('issuers')  # see file-cache.md and file_cache.py"),
        ("a.py", 'say(f"{issuer} waits")'),
        ("a.rs", "let issuer = 1;"),
    ],
)
def test_a_name_is_no_text(path: str, content: str) -> None:
    assert _found(path, content) == []
