"""How many inputs every fuzz target has had: slices of each in turn, in as many sittings as wanted.

    .venv/bin/python bench/fuzzing.py [--minutes 60] [--slice 60] [--goal 10000000]
                                      [--pause FILE] [--save] [TARGET ...]

A target that has had the goal is left out. What was counted is kept in build/fuzz/counts.json, so
that a sitting may end at any time; a checkout that is made anew counts anew. While FILE exists
nothing runs: what does is told to end, within a second. Exit code 1 when something was found: it
lies in build/fuzz/findings.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

from figures import Cell, Column, Row, add_save_option, save

ROOT = Path(__file__).resolve().parent.parent
MEASURES = ("python/leadline", "crates", "fuzz")
COUNTS = ROOT / "build" / "fuzz" / "counts.json"
CORPUS = ROOT / "fuzz" / "corpus"
RUST = {
    "job": "jobs of the wire",
    "profile": "simulated systems, by the engine",
    "histogram": "lists of times",
    "reply": "replies of NFS servers, by each of three readers",
    "nfs": "NFS servers, over connections",
    "layout": "layouts of striped data sets, by the engine",
    "server": "simulated servers",
    "trace": "traces of applications",
}
PYTHON = {
    "experiment": "experiment files",
    "toml": "TOML of any kind",
    "system": "simulated systems, as files",
    "published": "published figures",
    "fio_job": "fio's job files",
    "stripes": "layouts of striped data sets",
    "fio_answer": "fio's answers",
    "load": "what load generators print",
    "event": "events of the engine",
    "worker": "results of a cluster's workers",
    "row": "documents of the store",
    "marker": "markers of claims",
    "limits": "records of dirty limits",
    "mounts": "the kernel's mounts",
    "nfs_url": "addresses of NFS servers",
    "target": "targets",
    "workload": "workloads",
    "size": "sizes",
    "duration": "durations",
    "sync": "ways to wait",
    "prices": "prices",
    "rule": "rules of the gate",
    "changes": "what-ifs",
    "secrets": "addresses with passwords",
}
"""What each target reads."""
_COUNTED = re.compile(
    r"^(?:fuzz|parsers): \w+ .*?(\d+) (?:executions|inputs),.*?(\d+) findings", re.M
)
_NICE = 19
_LOOK_S = 0.2


def main() -> int:
    """Run slices until the time or the goal is reached; print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("targets", nargs="*", default=[*RUST, *PYTHON])
    parser.add_argument("--minutes", type=float, default=60.0, help="of this sitting")
    parser.add_argument("--slice", type=float, default=60.0, help="seconds of one target")
    parser.add_argument("--goal", type=int, default=10**7, help="inputs of each target")
    parser.add_argument("--pause", type=Path, help="nothing runs while this file exists")
    add_save_option(parser, "fuzzing")
    asked = parser.parse_args()
    os.nice(_NICE - os.nice(0))
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    until_s = time.monotonic() + 60 * asked.minutes
    counts, found = read_counts(), 0
    while left := [name for name in asked.targets if counts.get(name, 0) < asked.goal]:
        for name in left:
            wait_for(asked.pause)
            if time.monotonic() >= until_s:
                left.clear()
                break
            inputs, bad = run_slice(name, asked.slice, asked.pause, counts.get(name, 0))
            counts[name] = counts.get(name, 0) + inputs
            found += bad
            COUNTS.write_text(json.dumps(counts, indent=1), encoding="utf-8")
        if not left:
            break
    rows = [row_of(name, counts.get(name, 0), asked.goal) for name in (*RUST, *PYTHON)]
    for row in rows:
        print(f"{row.key:12} {counts.get(row.key, 0):>12,}")
    note = "Inputs are those of all sittings; a fault found is mended and kept in `fuzz/corpus`."
    save(asked, COLUMNS, rows, note=note)
    return int(found > 0)


def read_counts() -> dict[str, int]:
    """Return how many inputs each target had in earlier sittings."""
    COUNTS.parent.mkdir(parents=True, exist_ok=True)
    found: dict[str, int] = json.loads(COUNTS.read_text("utf-8")) if COUNTS.exists() else {}
    return found


def wait_for(pause: Path | None) -> None:
    """Wait until nobody wants quiet."""
    while pause is not None and pause.exists():
        time.sleep(_LOOK_S)


def run_slice(name: str, seconds: float, pause: Path | None, seed: int) -> tuple[int, int]:
    """Run one target for a while; return how many inputs it had, and how many were found bad.

    Args:
        name: of the target.
        seconds: how long.
        pause: it ends as soon as this file exists.
        seed: of what chance decides in Python; libFuzzer goes on from what it has.

    """
    program = [str(ROOT / "fuzz" / "run"), f"{seconds:.0f}", name]
    if name in PYTHON:
        parsers = str(ROOT / "fuzz" / "parsers.py")
        program = [sys.executable, parsers, "--seconds", str(seconds), "--seed", str(seed), name]
    with subprocess.Popen(
        program, cwd=ROOT, stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as running:
        told = False
        try:
            while running.poll() is None:
                if not told and pause is not None and pause.exists():
                    os.killpg(running.pid, signal.SIGUSR1)
                    told = True
                time.sleep(_LOOK_S)
        finally:
            if running.poll() is None:
                os.killpg(running.pid, signal.SIGUSR1)
        said = running.stdout.read() if running.stdout else ""
    counted = _COUNTED.search(said)
    inputs, bad = (int(counted[1]), int(counted[2])) if counted else (0, 1)
    if bad:
        print(said, flush=True)
    return inputs, bad


def row_of(name: str, inputs: int, goal: int) -> Row:
    """Return what the table says of a target."""
    mended = sum(1 for _ in (CORPUS / name).glob("*"))
    return Row(
        name,
        {
            "target": f"`{name}`",
            "reads": (RUST | PYTHON)[name],
            "inputs": Cell(float(inputs), least=float(goal)),
            "found": float(mended),
        },
    )


COLUMNS = (
    Column("target", "target"),
    Column("reads", "what it is given"),
    Column("inputs", "inputs so far", ("{value:,.0f}",)),
    Column("found", "found and mended", ("{value:.0f}",)),
)

if __name__ == "__main__":
    sys.exit(main())
