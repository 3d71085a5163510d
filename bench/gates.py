"""Gates of `leadline compare --measure`: how often they fail for nothing, and find a throttle.

    .venv/bin/python bench/gates.py --folder DIR --keep DIR [--itself 30] [--throttled 6]
        [--passes 30] [--save]

Two ext4 file systems on one disk, made alike, are measured interleaved with `--fail-if slower=5%`:
one workload a gate, the five of `six_systems` in turn, every second gate beside a loop that takes a
processor. Then the second one's reads are throttled to 90% of what its device just read a second
for the workload, which is more than was asked for where the kernel reads ahead, and a verdict is
asked for with so many passes. Each gate's document is kept and not measured again. Needs root, as
`bench/six_systems.py`; an hour, on a machine that does nothing else.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import statistics
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from figures import Cell, Column, Content, Row, add_save_option, markdown, save, slug
from real_disk import beside
from six_systems import SYSTEMS, WORKLOADS, System, in_own_namespace, leadline, mounted
from verdicts import survey, throttled

MEASURES = ("python/leadline/studies/comparison", "python/leadline/stats", "crates/engine/src/run")
SURVEY_S = 60.0
NAMES = (f"one-{SURVEY_S:g}", f"other-{SURVEY_S:g}")
FAILED = 4
"""Exit code of a gate that failed."""
READS = (2, 3)
"""Workloads that only read: what is throttled."""
THROTTLED_TO = 0.9
MINUTES_MOST = 10.0
COLUMNS = (
    Column("what", "gate"),
    Column("gates", "gates", ("{value:.0f}",)),
    Column("failed", "failed; where throttled: told as slower", ("{value:.0f}",)),
    Column("wrong", "verdicts in error", ("{value:.0f}",)),
    Column("half", "half width of the 95% CI, median %", ("{value:.1f}",)),
    Column("minutes", "minutes, the longest", ("{value:.1f}",)),
)


def gate(store: Path, path: Path, workload: str, *more: str) -> dict[str, Any]:
    """Return what a gate said; asked where that is not kept."""
    if not path.is_file():
        begun_s = time.monotonic()
        words = ("--measure", "--workload", workload, "--fail-if", "slower=5%", *more)
        command = [*leadline(store), "compare", *NAMES, *words, "--json"]
        done = subprocess.run(command, check=False, stdout=subprocess.PIPE)
        (pair,) = json.loads(done.stdout)["pairs"]
        took_s = time.monotonic() - begun_s
        path.write_text(json.dumps({"code": done.returncode, "took_s": took_s, "pair": pair}))
    said: dict[str, Any] = json.loads(path.read_text())
    print(f"# {path.stem}: {said['code']}, {said['pair']['ratio']}", flush=True)
    return said


def device_rate(store: Path, system: System, point: Path, workload: str) -> float:
    """Return the MB/s that a file system's device reads for a workload just now."""
    cap = f"{system.cache_mib}MiB"
    words = ("--workload", workload, "--cache-limit", cap, "--seconds", "20s", "--json")
    said = subprocess.check_output([*leadline(store), "measure", str(point), *words])
    found = json.loads(said)["result"]
    return float(found["device_bytes"]["read"] / found["wall_s"] / 1e6)


def row_of(what: str, gates: Sequence[dict[str, Any]], *, slower: bool) -> Row:
    """Say how gates ended; `slower` where the second system is."""
    ratios = [each["pair"]["ratio"] for each in gates]
    half = [50 * (each["high"] - each["low"]) / each["value"] for each in ratios]
    verdicts = [each["pair"]["verdict"] for each in gates]
    decided = [each != "inconclusive" for each in verdicts]
    told = sum(each == "a" for each in verdicts)
    ended = told if slower else sum(each["code"] == FAILED for each in gates)
    goal = {"least": float(len(gates))} if slower else {"most": 1.0}
    wrong = sum(each == "b" for each in verdicts) if slower else sum(decided)
    minutes = max(each["took_s"] for each in gates) / 60
    cells: dict[str, Content] = {
        "what": what,
        "gates": len(gates),
        "failed": Cell(float(ended)).aiming(goal),
        "wrong": wrong,
        "half": statistics.median(half),
        "minutes": Cell(minutes).aiming({"most": MINUTES_MOST}),
    }
    return Row(slug(what), cells)


def asked_of(folder: Path, asked: argparse.Namespace) -> Iterator[Row]:
    """Mount both, survey both, and yield a row for each kind of gate."""
    (ext4,) = (each for each in SYSTEMS if each.name == "ext4")
    store = folder / "gates.sqlite"
    with contextlib.ExitStack() as stack:
        points = dict[str, Path]()
        for name in ("one", "other"):
            system = replace(ext4, name=name)  # surveyed as one of NAMES
            points[name] = stack.enter_context(mounted(system, folder))
            survey(store, system, points[name], SURVEY_S)
        calm, busy = list[dict[str, Any]](), list[dict[str, Any]]()
        for number in range(asked.itself):
            loaded = number % 2 == 1
            with beside(busy=loaded):
                path = asked.keep / f"itself-{number}.json"
                said = gate(store, path, WORKLOADS[number % len(WORKLOADS)])
            (busy if loaded else calm).append(said)
        for what, gates in (("itself, calm", calm), ("itself, beside a busy loop", busy)):
            if gates:
                yield row_of(what, gates, slower=False)
        found = list[dict[str, Any]]()
        for number in range(asked.throttled):
            of = READS[number % len(READS)]
            path = asked.keep / f"throttled-{number}.json"
            device_mb_s = THROTTLED_TO * device_rate(store, ext4, points["other"], WORKLOADS[of])
            with throttled([points["other"]], device_mb_s):
                found.append(gate(store, path, WORKLOADS[of], "--passes", str(asked.passes)))
        if found:
            yield row_of("throttled to 90%, reads", found, slower=True)


def main() -> None:
    """Measure, print, store."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--folder", type=Path, required=True, help="on the disk to use")
    parser.add_argument("--keep", type=Path, required=True)
    parser.add_argument("--itself", type=int, default=30)
    parser.add_argument("--throttled", type=int, default=6)
    parser.add_argument("--passes", type=int, default=30, help="of a throttled gate")
    add_save_option(parser, "gates")
    asked = parser.parse_args()
    in_own_namespace()
    asked.keep.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="gates-", dir=asked.folder) as folder:
        rows = tuple(asked_of(Path(folder).resolve(), asked))
    print("\n".join(markdown(COLUMNS, rows)))
    save(asked, COLUMNS, rows, directory=asked.folder)


if __name__ == "__main__":
    main()
