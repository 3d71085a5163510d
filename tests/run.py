"""Run everything `make test` runs, parts that do not wait for each other side by side.

usage: tests/run.py FOLDER      (where the logs of the parts go)

A build, a link and mypy each keep one processor busy for a while; two parts at once keep two, and
three took a tenth longer. A part's output is shown whole when it ends. Needs nothing but Python:
what it starts first is pip.
"""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

SLOTS = 2
END_S = 20.0
"""How long an interrupted part may put back what it changed before it is killed."""
SLOWEST = 10


@dataclass(frozen=True)
class Part:
    """One target of the Makefile, started when those it needs have passed."""

    target: str
    needs: tuple[str, ...] = ()


PARTS = (
    Part("packages"),
    Part("install"),
    Part("build-for-tests", needs=("install",)),
    Part("python-test", needs=("build-for-tests", "packages")),
    Part("lint-rust", needs=("build-for-tests",)),
    Part("rust-test", needs=("lint-rust", "packages")),
    Part("lint-python", needs=("install",)),
)
"""In the order in which a free place is given away: what others wait for, and what takes longest,
comes first."""


@dataclass
class Running:
    """A part that was started; it leads a process group of its own."""

    part: Part
    log: Path
    process: subprocess.Popen[bytes]
    begun_s: float

    def end(self, how: signal.Signals) -> None:
        """Send a signal to all it started."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, how)


@dataclass(frozen=True)
class Ended:
    """What became of a part; no exit code means that it was not started."""

    part: Part
    wall_s: float = 0.0
    code: int | None = None


def environment() -> dict[str, str]:
    """Return the caller's, without what the calling make says to its own children.

    Python may keep what it compiled: hundreds of commands start, and would each compile it again.
    """
    left_out = {"MAKEFLAGS", "MFLAGS", "MAKELEVEL", "PYTHONDONTWRITEBYTECODE"}
    return {name: value for name, value in os.environ.items() if name not in left_out}


def start(part: Part, folder: Path) -> Running:
    log = folder / f"part-{part.target}.log"
    with log.open("wb") as out:
        process = subprocess.Popen(
            ["make", "--no-print-directory", part.target],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            env=environment(),
            start_new_session=True,
        )
    print(f"[{part.target} ...]", flush=True)
    return Running(part, log, process, time.monotonic())


def show(ended: Ended, log: Path) -> None:
    said = log.read_text(encoding="utf-8", errors="replace").rstrip()
    how = "passed" if ended.code == 0 else f"FAILED with exit code {ended.code}"
    print(f"\n[{ended.part.target} {how} after {ended.wall_s:.0f} s]", flush=True)
    if said:
        print(said, flush=True)


def run_all(parts: Iterable[Part], folder: Path) -> list[Ended]:
    """Run every part whose needs passed; what a failed one leaves is still run."""
    waiting, running, ended = list(parts), list[Running](), list[Ended]()
    try:
        while waiting or running:
            waiting = _start_next(waiting, running, ended, folder)
            time.sleep(0.1)
            for each in [one for one in running if one.process.poll() is not None]:
                running.remove(each)
                wall_s = time.monotonic() - each.begun_s
                ended.append(Ended(each.part, wall_s, each.process.returncode))
                show(ended[-1], each.log)
    finally:
        _end(running)
    return ended


def _start_next(
    waiting: list[Part], running: list[Running], ended: list[Ended], folder: Path
) -> list[Part]:
    """Fill the free places; return the parts that still wait."""
    passed = {each.part.target for each in ended if each.code == 0}
    lost = {each.part.target for each in ended if each.code != 0}
    left = []
    for part in waiting:
        if lost & set(part.needs):
            ended.append(Ended(part))
        elif len(running) < SLOTS and passed.issuperset(part.needs):
            running.append(start(part, folder))
        else:
            left.append(part)
    return left


def _end(running: list[Running]) -> None:
    """Interrupt what still runs, and kill what has not ended then."""
    for each in running:
        each.end(signal.SIGINT)
    until = time.monotonic() + END_S
    while time.monotonic() < until and any(each.process.poll() is None for each in running):
        time.sleep(0.1)
    for each in running:
        each.end(signal.SIGKILL)
        each.process.wait()


def slowest_tests(report: Path) -> list[tuple[float, str]]:
    """Return the Python tests that took longest, from pytest's JUnit report."""
    if not report.exists():
        return []
    cases = ElementTree.parse(report).iter("testcase")  # noqa: S314 - written by pytest just now
    took = [(float(c.get("time", 0)), f"{c.get('classname')}::{c.get('name')}") for c in cases]
    return sorted(took, reverse=True)[:SLOWEST]


def tell(ended: list[Ended], wall_s: float, folder: Path) -> None:
    print("\nslowest Python tests")
    for seconds, name in slowest_tests(folder / "python.xml"):
        print(f"{seconds:7.1f} s  {name}")
    print("\nparts")
    for each in sorted(ended, key=lambda one: -one.wall_s):
        words = {None: "not run", 0: ""}.get(each.code, "FAILED")
        print(f"{each.wall_s:7.1f} s  {each.part.target}  {words}".rstrip())
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu_s = used.ru_utime + used.ru_stime
    # What the work costs, whatever else the machine does; on two processors half of it at least.
    print(f"{wall_s:7.1f} s  in all, of {cpu_s:.0f} s of processor time", flush=True)


def main(folder: Path) -> int:
    """Return 1 when a part failed or tests disappeared."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("*.*"):
        old.unlink()
    for name in ("python", "rust"):  # what never ran is counted as none that passed
        (folder / f"{name}.log").touch()
    begun_s = time.monotonic()
    try:
        ended = run_all(PARTS, folder)
    except KeyboardInterrupt:
        print("\ninterrupted")
        return 130
    tell(ended, time.monotonic() - begun_s, folder)
    counted = subprocess.run([sys.executable, "tests/check_counts.py", folder], check=False)
    return int(any(each.code != 0 for each in ended) or counted.returncode != 0)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
