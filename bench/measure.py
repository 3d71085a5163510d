"""`make measure`: every stored result that is older than its code is measured anew, alone.

    .venv/bin/python bench/measure.py [--folder DIR] [--only NAME …] [--minutes 180] [--list]

One bench after the other, the shortest first, each with the time it is expected to take (what it
took here last, else what `bench/measure.toml` says). None begins while others use the processors or
the disk. A bench that fails or is ended is told at the end, and begun again the next time; what was
stored is of the code now and is not. Results of uncommitted code are not stored.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import subprocess
import sys
import time
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from check_conditions import why_not_calm
from figures.origin import commit_now, measures_of, why_stale
from figures.stored import ROOT, load, names

PLACE = ROOT / "build" / "measure"
CALM_TRIES = 30
"""Looks of some 20 s each at a busy machine before a bench is left out."""


class Bench(msgspec.Struct, frozen=True, kw_only=True):
    """How a result is measured."""

    name: str
    words: str
    minutes: float
    virtual: bool = False
    """Others on the machine do not change what it finds."""
    stores: tuple[str, ...] = ()
    """Results of one run, where they are not the one of its name."""

    def command(self, folder: Path) -> list[str]:
        """Return what is run."""
        keep = PLACE / self.name
        words = self.words.format(folder=folder, keep=keep)
        return [sys.executable, *shlex.split(words), "--save", self.name]

    @property
    def results(self) -> tuple[str, ...]:
        """What it stores."""
        return self.stores or (self.name,)

    @property
    def program(self) -> str:
        """The file that is run."""
        return self.words.split()[0]


def benches() -> tuple[Bench, ...]:
    """Read the table."""
    told: dict[str, Any] = tomllib.loads((ROOT / "bench" / "measure.toml").read_text("utf-8"))
    return tuple(msgspec.convert(row | {"name": name}, Bench) for name, row in told.items())


def stale(asked: Sequence[str]) -> list[Bench]:
    """Return those to be measured, the shortest first."""
    took = json.loads(_times().read_text()) if _times().is_file() else {}
    known = {each.name: each for each in benches()}
    wanted = [
        msgspec.structs.replace(each, minutes=took.get(each.name, each.minutes))
        for each in known.values()
        if (each.name in asked if asked else _is_stale(each))
    ]
    return sorted(wanted, key=lambda each: each.minutes)


def _is_stale(bench: Bench) -> bool:
    stored = set(names())
    return any(
        name not in stored or load(name).entered or load(name).older or why_stale(load(name))
        for name in bench.results
    )


def _times() -> Path:
    return PLACE / "minutes.json"


def wait_until_calm(folder: Path) -> str | None:
    """Wait; say what disturbs the machine if it stays so."""
    for _ in range(CALM_TRIES):
        why = why_not_calm(folder)
        if why is None:
            break
        print(f"  waiting: {why}", flush=True)
    return why


def measure(bench: Bench, folder: Path) -> str | None:
    """Run a bench; say why it stored nothing, if it did not."""
    if (commit_now((bench.program, *measures_of(bench.program))) or "-").endswith("-dirty"):
        return "its code is not committed"
    why = None if bench.virtual else wait_until_calm(folder)
    if why is not None:
        return f"the machine is not calm: {why}"
    (PLACE / bench.name).mkdir(parents=True, exist_ok=True)
    log, began_s = PLACE / f"{bench.name}.log", time.monotonic()
    own = os.environ | {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    with log.open("w") as out:
        done = subprocess.run(
            bench.command(folder), cwd=ROOT, env=own, stdout=out, stderr=out, check=False
        )
    if done.returncode:
        return f"exit code {done.returncode}: {log.relative_to(ROOT)}"
    took = json.loads(_times().read_text()) if _times().is_file() else {}
    took[bench.name] = round((time.monotonic() - began_s) / 60, 1)
    _times().write_text(json.dumps(took, indent=1))
    return None


def main() -> int:
    """Measure, and say what is left."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--folder", type=Path, default=ROOT / "build", help="on the disk to use")
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME")
    parser.add_argument("--minutes", type=float, help="begin no bench that would take longer")
    parser.add_argument("--list", action="store_true", help="say what would be measured")
    asked = parser.parse_args()
    unknown = set(asked.only) - {each.name for each in benches()}
    if unknown:
        parser.error(f"no bench of that name: {', '.join(sorted(unknown))}")
    PLACE.mkdir(parents=True, exist_ok=True)
    asked.folder.mkdir(parents=True, exist_ok=True)
    began_s, failed = time.monotonic(), []
    for bench in stale(asked.only):
        left = asked.minutes and asked.minutes - (time.monotonic() - began_s) / 60
        print(f"{bench.name}: about {bench.minutes:g} minutes", flush=True)
        if asked.list:
            continue
        if left is not None and bench.minutes > left:
            failed.append(f"{bench.name}: no time is left for it")
            continue
        why = measure(bench, asked.folder.resolve())
        if why is not None:
            failed.append(f"{bench.name}: {why}")
            print(f"  not stored: {why}", flush=True)
    if not asked.list:
        done = "all are of the code now: `make figures` puts them into the text"
        print("\n".join(failed) or done)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
