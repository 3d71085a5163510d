"""Every command of the tutorials is run, in their order, and says what stands below it.

A line `    $ leadline …` is a command; the lines below it are its answer, of which `…` leaves out
any. What is shown must be said, in that order; ids and times are those of the day.
`UPDATE_GOLDENS=1` puts in what is said now, line by line; what has no line like it fails the
next time.
"""

from __future__ import annotations

import difflib
import functools
import os
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from command import environment
from forked_command import run_forked
from places import ROOT
from tutorials import GUIDE, PAGES

WIDTH = "100"


class Example(NamedTuple):
    """A command of a page and what it is shown to say."""

    command: tuple[str, ...]
    shown: tuple[str, ...]


def examples_of(text: str) -> Iterator[Example]:
    """Yield the commands of a page in their order."""
    for block in re.findall(r"(?:^ {4}.*\n)+", text, re.MULTILINE):
        lines = [line[4:] for line in block.splitlines()]
        starts = [at for at, line in enumerate(lines) if line.startswith("$ ")]
        for start, end in zip(starts, (*starts, len(lines))[1:], strict=True):
            words = shlex.split(lines[start][2:])
            assert words[0] == "leadline", words
            shown = [line for line in lines[start + 1 : end] if line != "\N{HORIZONTAL ELLIPSIS}"]
            yield Example(tuple(words[1:]), tuple(shown))


def not_said(shown: tuple[str, ...], said: str) -> list[str]:
    """Return the shown lines that were not said, or not in that order."""
    lines = iter(line.rstrip() for line in said.splitlines())
    return [line for line in shown if not any(line.rstrip() == each for each in lines)]


DEAR = ("cloud-volume", "nfs-peak")
"""What these show is held by tests of their own; the pages themselves by make test-long."""


def renewed(text: str, lost: list[str], said: str) -> str:
    """Put the line that is most alike in the place of each line that is not said any more."""
    for line in lost:
        alike = difflib.get_close_matches(line, [each.rstrip() for each in said.splitlines()], 1)
        if alike:
            text = text.replace(f"    {line}\n", f"    {alike[0]}\n", 1)
    return text


@pytest.mark.parametrize(
    "name", [pytest.param(page, marks=[pytest.mark.long] * (page in DEAR)) for page in PAGES]
)
def test_a_page_shows_what_its_commands_say(name: str, tmp_path: Path) -> None:
    (tmp_path / "workloads").symlink_to(ROOT / "workloads")
    own = environment(tmp_path / "store.sqlite") | {"COLUMNS": WIDTH}
    page = GUIDE / f"{name}.md"
    found = list(examples_of(page.read_text("utf-8")))
    assert found
    for example in found:
        done = run_forked(example.command, own, 100, steer=functools.partial(os.chdir, tmp_path))
        assert done.returncode == 0, (example.command, done.stderr)
        lost = not_said(example.shown, done.stdout + done.stderr)
        if lost and os.environ.get("UPDATE_GOLDENS"):
            text = renewed(page.read_text("utf-8"), lost, done.stdout + done.stderr)
            page.write_text(text, encoding="utf-8")
            continue
        assert lost == [], (example.command, done.stdout, done.stderr)


def test_a_line_that_is_not_said_would_have_been_seen() -> None:
    lines = ("$ leadline systems", "one", "\N{HORIZONTAL ELLIPSIS}", "three", "$ leadline sims")
    text = "Words.\n\n" + "".join(f"    {line}\n" for line in lines)
    first, second = examples_of(text)
    assert first == Example(("systems",), ("one", "three"))
    assert second == Example(("sims",), ())
    assert not_said(first.shown, "zero\none\ntwo\nthree\n") == []
    assert not_said(first.shown, "three\none\n") == ["three"]


def test_a_line_is_renewed_by_the_one_most_alike() -> None:
    text = "    $ leadline show\n    37 points in 2 min\n    the end\n"
    said = "40 points in 3 min\nquite another line\n"
    renewed_text = renewed(text, ["37 points in 2 min", "the end"], said)
    assert renewed_text == "    $ leadline show\n    40 points in 3 min\n    the end\n"
