"""Harm Leadline in every way that is known, and count what it loses, leaves behind or says wrongly.

Every attempt is made on a real command in a process of its own, in a place of its own below the
temporary directory; what it is and when it comes is drawn from the seed. The goal is zero: nothing
lost, nothing left, no wrong exit code. Most of it needs root; what could not be tried is said.

    .venv/bin/python bench/faults.py [--seed 1] [--kills 10] [--only FAMILY] [--short] [--save]

`--kills` is how often each kind of study is killed; the other families take a share of it. 10 take
about an hour, 100 a night. `--short` is what `make test` runs (tests/real/test_faults.py). With
`--keep FILE` a family that has ended is kept there, and not tried again by the same command. With
`--beside` several commands, each with families of its own, may keep theirs in one file: whether the
machine's lock is left is not looked at then.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from attempts.families import FAMILIES
from attempts.outcome import Asked, Attempt, Count, counts
from attempts.scene import Scene
from figures import Cell, Column, Content, Row, add_save_option, markdown, save, slug
from figures.origin import commit_now

MEASURES = ("python/leadline", "crates", "bench/attempts")
COLUMNS = (
    Column("family", "harm"),
    Column("kinds", "kinds", ("{value:.0f}",)),
    Column("tried", "tried", ("{value:.0f}",)),
    Column("survived", "survived", ("{value:.0f}",)),
    Column("lost", "lost something", ("{value:.0f}",)),
    Column("left", "left something", ("{value:.0f}",)),
    Column("wrong", "said wrongly", ("{value:.0f}",)),
)


def main() -> int:
    """Try everything that is asked for; 1 when something was found."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--only", choices=sorted(FAMILIES), action="append")
    parser.add_argument("--short", action="store_true")
    parser.add_argument("--keep", type=Path, metavar="FILE")
    parser.add_argument("--beside", action="store_true", help="other families run meanwhile")
    add_save_option(parser, "faults")
    given = parser.parse_args()
    asked = Asked(given.seed, given.kills, short=given.short)
    Scene.alone = not given.beside
    found = [each for name in given.only or FAMILIES for each in once(name, asked, given.keep)]
    told = counts(found)
    families = itertools.groupby(told, key=lambda of: of.family)
    rows = [row_of(name, list(family)) for name, family in families]
    total = row_of("all", told)
    print("\n" + "\n".join(markdown(COLUMNS, [*rows, total])))
    save(
        given,
        COLUMNS,
        [*rows, total],
        directory=Path(tempfile.gettempdir()),
        seeds=f"seed {given.seed}, {given.kills} kills of each kind of study",
        interval="",
    )
    return 0 if all(each.survived or each.untried for each in found) else 1


def once(name: str, asked: Asked, keep: Path | None) -> list[Attempt]:
    """Try one family, or read what it came to when the same code tried it before."""
    if keep is None:
        return tried(name, asked)
    head = [name, asked.seed, asked.kills, asked.short, commit_now(MEASURES)]
    for line in keep.read_bytes().splitlines() if keep.exists() else ():
        of, kept = msgspec.json.decode(line, type=tuple[list[Any], list[Attempt]])
        if of == head:
            return kept
    found = tried(name, asked)
    with keep.open("ab") as file:
        file.write(msgspec.json.encode((head, found)) + b"\n")
    return found


def tried(name: str, asked: Asked) -> list[Attempt]:
    """Try one family, saying at once what was found."""
    found = []
    begun_s = time.monotonic()
    for attempt in attempts_of(name, asked):
        found.append(attempt)
        for line in attempt.told():
            print(f"{name}, {attempt.kind} ({attempt.how}): {line}", flush=True)
    survived = sum(each.survived for each in found)
    took_s = time.monotonic() - begun_s
    print(f"{name}: {survived} of {len(found)} in {took_s:.0f} s", file=sys.stderr, flush=True)
    return found


def attempts_of(name: str, asked: Asked) -> Iterator[Attempt]:
    """Yield a family's attempts; one that cannot be made ends the family, and counts as wrong."""
    try:
        yield from FAMILIES[name](asked)
    except Exception as error:
        traceback.print_exc()
        yield Attempt(name, "the bench itself", asked.seed, wrong=[repr(error)])


def row_of(name: str, told: list[Count]) -> Row:
    """Return a line of the table: the sums of a family's kinds."""
    cells: dict[str, Content] = {"family": name, "kinds": float(len(told))}
    cells |= {of: float(sum(getattr(one, of) for one in told)) for of in ("tried", "survived")}
    for of in ("lost", "left", "wrong"):
        cells[of] = Cell(sum(getattr(one, of) for one in told), most=0)
    notes = [f"{one.kind}: {one.untried}" for one in told if one.untried]
    note = f"not tried: {'; '.join(notes)}" if notes and name != "all" else ""
    return Row(key=slug(name), cells=cells, note=note)


if __name__ == "__main__":
    sys.exit(main())
