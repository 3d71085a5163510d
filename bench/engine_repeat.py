"""Repetitions of one point: do Leadline's stated intervals cover, and who scatters less?

Leadline runs as its users run it, `leadline measure --json`, with the accuracy it comes with; fio
runs on a file of the same size for as long as Leadline's window lasted. Both are pinned to the
same processor and take turns.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from engine_runs import Setting, drop_from_cache, fio, pinned, watched
from figures import Cell, Column, Row, markdown, slug

COMMAND = (sys.executable, "-I", "-c", "from leadline.app import main; main()")
_POLL_S = 0.01


@dataclass(frozen=True)
class Stated:
    """One answer of Leadline, and fio's beside it, in operations per second."""

    value: float
    low: float | None
    high: float | None
    window_s: float
    foreign_cpu: float
    fio: float
    fio_foreign_cpu: float


PERCENT = ("{value:.2f} {unit}",)
COLUMNS = (
    Column("point", "point"),
    Column("covered", "intervals that cover the grand mean", ("{value:.0f} of {n}",)),
    Column("cv", "CV of Leadline", PERCENT, "%"),
    Column("cv_fio", "CV of fio", PERCENT, "%"),
    Column("half", "half-width, median", PERCENT, "%"),
    Column("foreign", "foreign CPU, most", ("{value:.2f}",)),
)


def repeat_points(setting: Setting, repetitions: int) -> tuple[dict[str, Any], list[Row]]:
    """Measure both points, print one line each; return every number, and the lines."""
    numbers, rows = {}, []
    for name, direct in (("cached 4 KiB pread", False), ("direct 4 KiB pread", True)):
        answers = [answer(setting, number, direct=direct) for number in range(repetitions + 1)][1:]
        rows.append(line(name, answers))
        numbers[name] = [asdict(answer) for answer in answers]
    print("\n".join(markdown(COLUMNS, rows)))
    return numbers, rows


def answer(setting: Setting, number: int, *, direct: bool) -> Stated:
    """Return one repetition: Leadline, then fio for as long."""
    print(f"\rrepetition {number} ", end="", file=sys.stderr, flush=True)
    contender = fio("fio psync", "psync", 4096, *(["--direct=1"] if direct else []))
    with ExitStack() as stack:
        if direct:
            drop_from_cache(setting.data_file)
        else:
            stack.enter_context(pinned(setting.data_file))
        result = measured(setting, number, direct=direct)
        peer = watched(contender, replace(setting, seconds=result["wall_s"]))
    iops = result["iops"]
    return Stated(
        iops["value"],
        iops["low"],
        iops["high"],
        result["wall_s"],
        result["foreign_cpu"] or 0.0,
        peer.operations_per_s,
        peer.foreign_cpu,
    )


def measured(setting: Setting, number: int, *, direct: bool) -> dict[str, Any]:
    """Run `leadline measure --json` once and return its result."""
    workload = (
        f"unique_bytes={setting.file_bytes},size_mean=4096,size_dist=fixed,read_frac=1,"
        "seq_frac=0,process_num=1"
    )
    command = [
        "taskset",
        "-c",
        setting.cpu_list,
        *COMMAND,
        "measure",
        "TARGET",
        "--workload",
        workload,
        "--seconds",
        str(setting.seconds),
        "--seed",
        str(number + 1),
        "--json",
        *(["--direct"] if direct else []),
    ]
    with tempfile.TemporaryDirectory(dir=setting.directory) as target:
        command[command.index("TARGET")] = target
        store = {"LEADLINE_STORE": f"{target}/bench.sqlite"}
        with ExitStack() as stack:
            if not direct:
                stack.enter_context(pinned_when_laid_out(Path(target), setting.file_bytes))
            done = subprocess.run(
                command, capture_output=True, text=True, check=False, env=os.environ | store
            )
    if done.returncode:
        sys.exit(f"leadline measure ended with {done.returncode}: {done.stderr.strip()}")
    result: dict[str, Any] = json.loads(done.stdout)["result"]
    return result


@contextmanager
def pinned_when_laid_out(target: Path, file_bytes: int) -> Iterator[None]:
    """Keep the data file that `leadline measure` makes in memory from when it is whole."""
    ended = threading.Event()

    def pin() -> None:
        while not ended.wait(_POLL_S):
            for path in target.glob(".leadline/**/data.bin"):
                if path.stat().st_size >= file_bytes:
                    with pinned(path):
                        ended.wait()
                    return

    thread = threading.Thread(target=pin)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def line(name: str, answers: list[Stated]) -> Row:
    """Return one line of the table."""
    values = [answer.value for answer in answers]
    peers = [answer.fio for answer in answers]
    mean = statistics.mean(values)
    stated = [
        (answer.low, answer.high, answer.value)
        for answer in answers
        if answer.low is not None and answer.high is not None
    ]
    covered = sum(low <= mean <= high for low, high, _ in stated)
    half = [100 * (high - low) / 2 / value for low, high, value in stated]
    foreign = max(max(answer.foreign_cpu, answer.fio_foreign_cpu) for answer in answers)
    return Row(
        slug(name),
        {
            "point": name,
            "covered": Cell(covered, n=len(answers), least=round(0.9 * len(answers))),
            "cv": cv_percent(values),
            "cv_fio": cv_percent(peers),
            "half": statistics.median(half) if half else None,
            "foreign": foreign,
        },
    )


def cv_percent(values: list[float]) -> float:
    """Return the coefficient of variation in percent."""
    return 100 * statistics.stdev(values) / statistics.mean(values)
