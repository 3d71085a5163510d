"""Run Leadline for long and many times in a row, and say whether anything of it grows.

Surveys in a row, simulated and small real ones, in one process through the Python interface and as
commands; windows and surveys of seconds to hours of virtual time; a measurement of an hour of real
time. Looked at: memory of the controller and of its engine, handles, threads, processes, temporary
files, files in the target, the store. `endurance/trend.py` states the test.

    .venv/bin/python bench/soak.py [--surveys 50] [--hours 8] [--real-minutes 60] [--only COURSE]
                                   [--keep FILE] [--save]

Ctrl-C ends a course, and what was seen of it by then is told as that. With `--keep FILE` a course
that has ended is kept there, and not run again by the same code. All of it takes about two hours.
tests/house/test_soak.py is the short form.
"""

from __future__ import annotations

import argparse
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from endurance import courses
from endurance.looks import Look
from endurance.table import COLUMNS, VIRTUAL_COLUMNS, Course, row_of, verdict_of, virtual_rows
from figures import add_save_option, markdown, save
from figures.origin import commit_now
from figures.stored import Cell, Row

MEASURES = ("python/leadline", "crates", "bench/endurance")
WINDOWS_S = (10, 100, 1000, 10_000)
PROFILES = ("two-level", "convex-c240", "cloud-gp2-burst")
VIRTUAL = "virtual"
Run = Callable[[Path, courses.Told], None]


def main() -> int:
    """Run what is asked for; 1 when something grows or is left."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's & has it ignored
    given = asked()
    if given.course is not None:
        run_here(plan(given)[given.course])
        return 0
    wanted = tuple(given.only or [""])
    names = (name for name in plan(given) if "tiny" not in name or given.only)
    found = [once(name, given) for name in names if name.startswith(wanted)]
    virtual = virtual_rows([each for each in found if each.name.startswith(VIRTUAL)])
    others = [each for each in found if not each.name.startswith(VIRTUAL) and len(each.looks) > 3]
    rows = list(map(row_of, others))
    about: dict[str, Any] = {"directory": Path(tempfile.gettempdir()), "seeds": "0 and on"}
    if virtual:
        print("\n" + "\n".join(markdown(VIRTUAL_COLUMNS, virtual)))
        save(given, VIRTUAL_COLUMNS, virtual, part="virtual", interval="", **about)
    if rows:
        interval = "95%, of Sen's slope over the looks behind the first fifth"
        print("\n" + "\n".join(markdown(COLUMNS, rows)))
        save(given, COLUMNS, rows, interval=interval, **about)
    held = all(verdict_of(each) == "no growth" for each in others)
    return 0 if held and not any(map(missed, virtual)) else 1


def asked() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--surveys", type=int, default=50)
    parser.add_argument("--hours", type=float, default=8.0, help="of virtual time")
    parser.add_argument("--real-minutes", type=float, default=60.0, help="0 leaves it out")
    parser.add_argument("--only", action="append", metavar="COURSE", help="by its beginning")
    parser.add_argument("--keep", type=Path, metavar="FILE")
    parser.add_argument("--course", help=argparse.SUPPRESS)
    add_save_option(parser, "soak")
    return parser.parse_args()


def plan(given: argparse.Namespace) -> dict[str, Run]:
    """Return every course by its name, in the order in which they run."""
    made: dict[str, Run] = {}
    for seconds in WINDOWS_S:
        made[f"{VIRTUAL} window, s: {seconds}"] = partial(courses.window, seconds=seconds)
    for profile in PROFILES:
        for hours in (given.hours / 8, given.hours):
            long = partial(courses.virtual_hours, profile=profile, virtual_s=hours * 3600)
            made[f"{VIRTUAL} survey of {profile}, min: {hours * 60:g}"] = long
    for kind in courses.ASKED:
        for row, how in ((courses.api_row, "in one process"), (courses.command_row, "as commands")):
            name = f"{given.surveys} {kind} surveys {how}"
            made[name] = partial(row, count=given.surveys, kind=kind)
    if given.real_minutes > 0:
        name = f"one real measurement of {given.real_minutes:g} min"
        made[name] = partial(courses.real_time, minutes=given.real_minutes)
    return made


def run_here(run: Run) -> None:
    """Run one course in this process, telling every look as a line."""
    with tempfile.TemporaryDirectory(prefix="leadline-soak-") as text:
        run(Path(text), lambda each: print(msgspec.json.encode(each).decode(), flush=True))


def once(name: str, given: argparse.Namespace) -> Course:
    """Run one course in a process of its own, or read what it came to with the same code."""
    head = [name, commit_now(MEASURES)]
    keep: Path | None = given.keep
    for line in keep.read_bytes().splitlines() if keep is not None and keep.exists() else ():
        of, kept = msgspec.json.decode(line, type=tuple[list[str], Course])
        if of == head:
            return kept
    print(f"{name} ...", file=sys.stderr, flush=True)
    found = watched(name, given)
    if keep is not None and found.code == 0:
        with keep.open("ab") as file:
            file.write(msgspec.json.encode((head, found)) + b"\n")
    return found


def watched(name: str, given: argparse.Namespace) -> Course:
    """Run one course in a process of its own."""
    found = Course(name, looks=[])
    lengths = ("surveys", "hours", "real_minutes")
    words = [f"--{each.replace('_', '-')}={getattr(given, each)}" for each in lengths]
    with subprocess.Popen(
        [sys.executable, __file__, *words, f"--course={name}"],
        stdout=subprocess.PIPE,
        start_new_session=True,  # a Ctrl-C is this process's, which tells it
    ) as child:
        assert child.stdout is not None
        try:
            for line in child.stdout:
                found.looks.append(msgspec.json.decode(line, type=Look))
        except KeyboardInterrupt:
            child.send_signal(signal.SIGINT)
            child.wait()
            found.note = f"ended by hand after {found.looks[-1].at_s / 60:.0f} min"
            return found
        found.code = child.wait()
    return found


def missed(row: Row) -> bool:
    """Tell whether a cell of a line misses its goal."""
    return any(isinstance(each, Cell) and each.missed for each in row.cells.values())


if __name__ == "__main__":
    sys.exit(main())
