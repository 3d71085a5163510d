"""Render stored figures into README and docs/, or say what is wrong with them.

.venv/bin/python bench/figures            `make figures`: put the stored figures into the text
.venv/bin/python bench/figures --check    say where text and stored figures differ; 1 if so
.venv/bin/python bench/figures --stale    `make figures-stale`: list results that are older than
                                          the code they measured
.venv/bin/python bench/figures --mark     write that into them, so that the text says it too
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import msgspec

sys.path.insert(0, str(Path(__file__).parents[1]))

from figures.origin import why_stale
from figures.rendered import FigureError, differences, documents, render
from figures.stored import ROOT, keep, load, names

CHANGED = "code that decides these figures has changed since"


def main() -> int:
    """Do one of the four."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--stale", action="store_true")
    parser.add_argument("--mark", action="store_true")
    asked = parser.parse_args()
    try:
        if asked.stale or asked.mark:
            return mark_stale() if asked.mark else list_stale()
        return check() if asked.check else write()
    except FigureError as error:
        print(error, file=sys.stderr)
        return 2


def write() -> int:
    """Put the stored figures into every document."""
    for document in documents():
        text = document.read_text(encoding="utf-8")
        try:
            rendered = render(text)
        except FigureError as error:
            raise FigureError(f"{document.relative_to(ROOT)}: {error}") from error
        if rendered != text:
            document.write_text(rendered, encoding="utf-8")
            print(f"{document.relative_to(ROOT)}: written")
    return 0


def check() -> int:
    """List what `write` would change."""
    found = list(differences())
    for document, marker in found:
        print(f"{document.relative_to(ROOT)}: {marker}")
    return 1 if found else 0


def list_stale() -> int:
    """List every result that is not known to be of the code that is checked out."""
    old = [(name, why) for name in names() if (why := why_stale(load(name)))]
    for name, why in old:
        print(f"{name}: {why}")
        made_by, command = load(name).made_by, load(name).command
        if made_by:
            print(f"    again: {command if command.startswith(made_by) else made_by}")
    print(f"{len(old)} of {len(names())} stored results are older than the code they measured")
    return 0


def mark_stale() -> int:
    """Have every result that `--stale` lists say so, unless it does already."""
    for name in names():
        result = load(name)
        if why_stale(result) and not result.older and result.commit:
            keep(name, msgspec.structs.replace(result, older=CHANGED))
            print(f"{name}: marked")
    return write()


if __name__ == "__main__":
    sys.exit(main())
