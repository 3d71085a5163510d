"""The peak of a real disk under a latency target, twice, and what fio says below and above it.

    .venv/bin/python bench/latency_target.py DIR [--p99 5ms] [--workload bs=64k,…] [--save]

The same search twice, by `leadline peak DIR --p99 …`: their intervals should overlap, and each
should end within five minutes. Then fio offers fixed rates at random moments (rate_iops,
rate_process=poisson) to a file of its own on the same disk, ten per cent below the first search's
rate and twenty above: the first should keep the target, the second break it. fio may have 512
requests under way, so that a queue stands at the disk; it counts a request from when it is issued,
Leadline from when it was due, which differ only where fio itself is late.

The load average stands beside each line: on a busy host a miss says little.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from figures import Cell, Column, Content, Row, add_save_option, save
from leadline.fio.words import USUAL, read_words
from leadline.record import Workload
from leadline.units import parse_seconds

MEASURES = (
    "python/leadline/servers/storage.py",
    "python/leadline/studies/workbench",
    "crates/engine/src/run",
    "crates/engine/src/load",
    "crates/engine/src/backend/uring.rs",
    "crates/stats/src/belief",
)
COLUMNS = (
    Column("what", "run"),
    Column("rate", "requests/s", ("{value:,.0f} [{low:,.0f}, {high:,.0f}]", "{value:,.0f}")),
    Column("p99", "p99", ("{value:.3g} {unit}",), "ms"),
    Column("minutes", "took", ("{value:.1f} {unit}",), "min"),
    Column("load", "load average", ("{value:.2f}",)),
    Column("said", "says"),
)
BELOW, ABOVE = 0.9, 1.2
MINUTES_MAX = 5.0
FIO_DEPTH = 512
FIO_S, FIO_RAMP_S = 20, 2
LEADLINE = "from leadline.app import main; main()"
WAIT_S = 30.0
"""Between two looks whether the machine is calm."""


class Search(NamedTuple):
    """One search as it was told."""

    document: dict[str, Any]
    minutes: float
    load: float

    @property
    def rate(self) -> dict[str, float] | None:
        """The peak rate with its interval."""
        found = self.document["peak_rate"]
        return None if found is None else dict(found)


def main() -> None:
    """Search twice, ask fio, print and store."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("directory", type=Path, metavar="DIR")
    parser.add_argument("--p99", default="5ms")
    parser.add_argument("--workload", default="bs=64k,rw=randread,direct=1,size=1g")
    parser.add_argument("--calm", type=float, metavar="LOAD", help="wait for this load average")
    parser.add_argument("--patience", type=float, default=600.0, help="seconds, for a calm machine")
    add_save_option(parser, "latency_target")
    asked = parser.parse_args()
    limit_ms = 1e3 * parse_seconds(asked.p99)
    searches = []
    for seed in (1, 2):
        wait_for_calm(asked.calm, asked.patience)
        searches.append(search(asked.directory, asked.p99, asked.workload, seed))
        print(say(searches[-1], seed), flush=True)
    rows = search_rows(searches)
    first = searches[0].rate
    if first is not None:
        typed = read_words([asked.workload], USUAL)
        for name, part in (("below", BELOW), ("above", ABOVE)):
            wait_for_calm(asked.calm, asked.patience)
            rate = part * first["value"]
            p99_ms, reached = by_fio(
                asked.directory, typed.workload, rate, direct=typed.access.direct
            )
            rows.append(fio_row(name, part, rate, p99_ms, limit_ms))
            print(
                f"fio at {rate:,.0f}/s: p99 {p99_ms:.3g} ms, {reached:,.0f}/s reached", flush=True
            )
    note = f"{asked.workload}, target p99 {asked.p99}."
    save(asked, COLUMNS, rows, directory=asked.directory, seeds="seeds 1 and 2", note=note)


def wait_for_calm(most: float | None, patience_s: float) -> None:
    """Wait until the load average is low enough, or patience is over; say which."""
    end_s = time.monotonic() + patience_s
    while most is not None and os.getloadavg()[0] > most and time.monotonic() < end_s:
        time.sleep(WAIT_S)


def search(directory: Path, p99: str, workload: str, seed: int) -> Search:
    """Run the command as a person would."""
    load, began_s = os.getloadavg()[0], time.monotonic()
    with tempfile.TemporaryDirectory() as own:
        told = subprocess.run(
            [
                *(sys.executable, "-c", LEADLINE, "--store", f"{own}/store.sqlite"),
                *("peak", str(directory), "--p99", p99, "--workload", workload),
                *("--seed", str(seed), "--json"),
            ],
            stdout=subprocess.PIPE,
            check=False,
        )
    if not told.stdout:
        raise SystemExit(f"the search ended with {told.returncode} and without an answer")
    return Search(json.loads(told.stdout), (time.monotonic() - began_s) / 60, load)


def say(found: Search, seed: int) -> str:
    """Write a search in a line."""
    rate = found.rate
    told = "no rate"
    if rate is not None:
        told = f"{rate['value']:,.0f}/s ({rate['low']:,.0f} to {rate['high']:,.0f})"
    return (
        f"search {seed}: {told}, {found.document['verdict']}, {found.document['trials']} trials in "
        f"{found.minutes:.1f} min; load average {found.load:.2f}"
    )


def search_rows(searches: Sequence[Search]) -> list[Row]:
    """Return a row for each search, and one for whether they agree."""
    rows = []
    for number, found in enumerate(searches, 1):
        rate = found.rate
        cells: dict[str, Content] = {
            "what": f"search {number}",
            "minutes": Cell(found.minutes, most=MINUTES_MAX),
            "load": Cell(found.load),
            "said": found.document["verdict"],
        }
        if rate is not None:
            cells["rate"] = Cell(rate["value"], rate["low"], rate["high"], int(rate["n"]))
        rows.append(Row(f"search-{number}", cells))
    rates = [found.rate for found in searches]
    if all(rate is not None for rate in rates):
        one, other = (rate for rate in rates if rate is not None)
        overlap = one["low"] <= other["high"] and other["low"] <= one["high"]
        told = "the intervals overlap" if overlap else "**the intervals do not overlap**"
        print(told)
        rows.append(Row("overlap", {"what": "the two", "said": told}))
    return rows


def fio_row(name: str, part: float, rate: float, p99_ms: float, limit_ms: float) -> Row:
    """Return fio's run as a row: below the peak it keeps the target, above it does not."""
    goal = {"most": limit_ms} if part < 1 else {"least": limit_ms}
    cells: dict[str, Content] = {
        "what": f"fio at {100 * part:.0f}% of search 1",
        "rate": Cell(rate),
        "p99": Cell(p99_ms).aiming(goal),
        "load": Cell(os.getloadavg()[0]),
        "said": "keeps the target" if p99_ms <= limit_ms else "breaks the target",
    }
    return Row(f"fio-{name}", cells)


def by_fio(
    directory: Path, workload: Workload, rate_per_s: float, *, direct: bool
) -> tuple[float, float]:
    """Offer a rate by fio; return the 99th percentile in milliseconds, and the rate it reached."""
    with tempfile.TemporaryDirectory(dir=directory) as own:
        mixed = 0 < workload.read_frac < 1
        kind = "randrw" if mixed else "randread" if workload.read_frac == 1 else "randwrite"
        options = {
            "name": "rate",
            "directory": own,
            "rw": kind,
            "bs": workload.size_mean,
            "size": workload.unique_bytes,
            "direct": int(direct),
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
    p99_ns = max(side["lat_ns"]["percentile"]["99.000000"] for side in sides)
    return p99_ns / 1e6, sum(side["iops"] for side in sides)


if __name__ == "__main__":
    main()
