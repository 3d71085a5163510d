"""The peak of a real disk under a latency target, ten times, and what fio says below and above it.

    .venv/bin/python bench/latency_target.py DIR [--searches 10] [--p99 5ms] [--workload …] [--save]

The same search by `leadline peak DIR --p99 …`, every second time beside a busy loop: all intervals
should overlap, and each search should end within five minutes. After each, fio offers fixed rates
at random moments (rate_iops, rate_process=poisson) to a file of its own on the same disk, ten per
cent below that search's rate and twenty above: the first should keep the target, the second break
it. fio may have 512 requests under way, so that a queue stands at the disk; it counts a request
from when it is issued, Leadline from when it was due, which differ only where fio itself is late.

Each search is kept in build/latency_target, so that a run that was stopped goes on; the load
average stands beside each: on a busy host a miss says little.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from itertools import combinations
from pathlib import Path

import msgspec

from figures import Cell, Column, Content, Row, add_save_option, markdown, save, slug
from figures.origin import commit_now
from leadline.fio.words import USUAL, read_words
from leadline.units import parse_seconds

MEASURES = (
    "python/leadline/servers/storage.py",
    "python/leadline/studies/workbench",
    "crates/engine/src/run",
    "crates/engine/src/load",
    "crates/engine/src/backend/asynchronous",
    "crates/stats/src/belief",
)
P99 = ("{value:.3g} {unit}",)
COLUMNS = (
    Column("what", "run"),
    Column("rate", "requests/s", ("{value:,.0f} [{low:,.0f}, {high:,.0f}]", "{value:,.0f}")),
    Column("said", "says"),
    Column("minutes", "took", ("{value:.1f} {unit}",), "min"),
    Column("load", "load average", ("{value:.2f}",)),
    Column("below", "fio's p99 at 0.9 x", P99, "ms"),
    Column("above", "fio's p99 at 1.2 x", P99, "ms"),
    Column("count", "count", ("{value:.0f} of {n}",)),
)
BELOW, ABOVE = 0.9, 1.2
MINUTES_MAX = 5.0
FIO_DEPTH = 512
FIO_S, FIO_RAMP_S = 20, 2
LEADLINE = "from leadline.app import main; main()"
LOOP = "import os; own = os.getppid()\nwhile os.getppid() == own: pass"
"""Ends with the bench, also where that is killed."""
KEPT = Path(__file__).parent.parent / "build" / "latency_target"
WAIT_S = 30.0
"""Between two looks whether the machine is calm."""


class Search(msgspec.Struct, frozen=True, kw_only=True):
    """One search as it was told, and fio's 99th percentiles around its rate."""

    busy: bool
    verdict: str
    trials: int
    rate: dict[str, float] | None
    minutes: float
    load: float
    below_ms: float | None = None
    above_ms: float | None = None


def main() -> None:
    """Search twice, ask fio, print and store."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("directory", type=Path, metavar="DIR")
    parser.add_argument("--p99", default="5ms")
    parser.add_argument("--workload", default="bs=4k,rw=randread,direct=1,size=1g")
    parser.add_argument("--calm", type=float, metavar="LOAD", help="wait for this load average")
    parser.add_argument("--patience", type=float, default=600.0, help="seconds, for a calm machine")
    add_save_option(parser, "latency_target")
    parser.add_argument("--searches", type=int, default=10)
    asked = parser.parse_args()
    searches = [kept(asked, number) for number in range(asked.searches)]
    rows = [search_row(number, found) for number, found in enumerate(searches, 1)]
    rows += counts(searches, 1e3 * parse_seconds(asked.p99))
    print("\n".join(markdown(COLUMNS, rows)))
    seeds = f"seeds 1 to {asked.searches}"
    note = f"{asked.workload}, target p99 {asked.p99}."
    save(asked, COLUMNS, rows, directory=asked.directory, seeds=seeds, note=note)


def kept(asked: argparse.Namespace, number: int) -> Search:
    """Return a search with its runs of fio, from the last run or anew."""
    of = slug(f"{asked.directory.resolve()} {asked.workload} {asked.p99} {commit_now(MEASURES)}")
    path = KEPT / of / f"{number + 1}.json"
    if path.is_file():
        return msgspec.json.decode(path.read_bytes(), type=Search)
    wait_for_calm(asked.calm, asked.patience)
    with busy_loop() if number % 2 else nullcontext():
        found = search(asked, number)
        if found.rate is not None:
            value = found.rate["value"]
            below, above = (by_fio(asked, part * value) for part in (BELOW, ABOVE))
            found = msgspec.structs.replace(found, below_ms=below, above_ms=above)
    print(found, flush=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(msgspec.json.encode(found))
    return found


@contextmanager
def busy_loop() -> Iterator[None]:
    """Keep one processor busy."""
    with subprocess.Popen([sys.executable, "-c", LOOP]) as loop:
        try:
            yield
        finally:
            loop.kill()


def wait_for_calm(most: float | None, patience_s: float) -> None:
    """Wait until the load average is low enough, or patience is over; say which."""
    end_s = time.monotonic() + patience_s
    while most is not None and os.getloadavg()[0] > most and time.monotonic() < end_s:
        time.sleep(WAIT_S)


def search(asked: argparse.Namespace, number: int) -> Search:
    """Run the command as a person would."""
    load, began_s = os.getloadavg()[0], time.monotonic()
    with tempfile.TemporaryDirectory() as own:
        told = subprocess.run(
            [
                *(sys.executable, "-c", LEADLINE, "--store", f"{own}/store.sqlite"),
                *("peak", str(asked.directory), "--p99", asked.p99, "--workload", asked.workload),
                *("--seed", str(number + 1), "--json"),
            ],
            stdout=subprocess.PIPE,
            check=False,
        )
    if not told.stdout:
        raise SystemExit(f"the search ended with {told.returncode} and without an answer")
    document = json.loads(told.stdout)
    return Search(
        busy=bool(number % 2),
        verdict=document["verdict"],
        trials=document["trials"],
        rate=document["peak_rate"],
        minutes=(time.monotonic() - began_s) / 60,
        load=load,
    )


def search_row(number: int, found: Search) -> Row:
    """Return a search as a row."""
    rate = found.rate
    cells: dict[str, Content] = {
        "what": f"search {number}{', beside a busy loop' if found.busy else ''}",
        "said": found.verdict,
        "minutes": Cell(found.minutes, most=MINUTES_MAX),
        "load": Cell(found.load),
        "below": found.below_ms,
        "above": found.above_ms,
    }
    if rate is not None:
        cells["rate"] = Cell(rate["value"], rate["low"], rate["high"], int(rate["n"]))
    return Row(f"search-{number}", cells)


def counts(searches: Sequence[Search], limit_ms: float) -> Iterator[Row]:
    """Yield how often what should be so was."""
    rates = [found.rate for found in searches if found.rate is not None]
    pairs = list(combinations(rates, 2))
    below = [found.below_ms for found in searches if found.below_ms is not None]
    above = [found.above_ms for found in searches if found.above_ms is not None]
    overlap = [a["low"] <= b["high"] and b["low"] <= a["high"] for a, b in pairs]
    found: tuple[tuple[str, Sequence[bool], float], ...] = (
        ("pairs of intervals that overlap", overlap, 1.0),
        ("fio at 0.9 x keeps the target", [each <= limit_ms for each in below], 0.9),
        ("fio at 1.2 x breaks the target", [each > limit_ms for each in above], 0.9),
        ("not ended by the deadline", [each.verdict != "deadline" for each in searches], 0.8),
    )
    for what, flags, least in found:
        cell = Cell(sum(flags), n=len(flags), least=least * len(flags))
        yield Row(slug(what), {"what": what, "count": cell})


def by_fio(asked: argparse.Namespace, rate_per_s: float) -> float:
    """Offer a rate by fio; return the 99th percentile in milliseconds."""
    typed = read_words([asked.workload], USUAL)
    workload = typed.workload
    with tempfile.TemporaryDirectory(dir=asked.directory) as own:
        mixed = 0 < workload.read_frac < 1
        kind = "randrw" if mixed else "randread" if workload.read_frac == 1 else "randwrite"
        options = {
            "name": "rate",
            "directory": own,
            "rw": kind,
            "bs": workload.size_mean,
            "size": workload.unique_bytes,
            "direct": int(typed.access.direct),
            "ioengine": "io_uring",
            "iodepth": FIO_DEPTH,
            "rate_iops": max(1, round(rate_per_s)),
            "rate_process": "poisson",
            "norandommap": 1,
            "time_based": 1,
            "runtime": FIO_S,
            "ramp_time": FIO_RAMP_S,
            "lat_percentiles": 1,
            "percentile_list": "99",
            "output-format": "json",
        }
        if mixed:
            options["rwmixread"] = round(100 * workload.read_frac)
        told = subprocess.run(
            ["fio", *(f"--{name}={value}" for name, value in options.items())],
            capture_output=True,
            text=True,
            check=True,
        )
    job = json.loads(told.stdout[told.stdout.index("{") :])["jobs"][0]
    sides = [job[side] for side in ("read", "write") if job[side]["total_ios"]]
    return max(float(side["lat_ns"]["percentile"]["99.000000"]) for side in sides) / 1e6


if __name__ == "__main__":
    main()
