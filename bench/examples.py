"""Run the commands that README and docs/ show, and store what they print.

    .venv/bin/python bench/examples.py --save                   on simulated systems, with seeds
    .venv/bin/python bench/examples.py --streams [--directory DIR] --save examples_streams

What simulated systems answer is the same each time, so `make test` runs those commands again and
holds the stored text against what they print. Streams move real data: their rates are those of one
moment on one machine, and only `make figures-stale` says when they are old.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from figures import Column, Row, add_save_option, save
from figures.stored import ROOT

MEASURES = (
    "crates/kernels/src",
    "python/leadline/engine/streams",
    "python/leadline/studies/streaming",
)
"""Of the streams; the others are run by `make test`."""

SERVER = "workloads/simulated-server.toml"
READS = "unique_bytes=2GiB,size_mean=4KiB,read_frac=1"
VOLUME = "bs=16k,rw=randread,size=8g"
SIMULATED = {
    "survey": "leadline survey sim:hp-730 --budget 30m",
    "measure": "leadline measure sim:two-level bs=4k rw=randread size=2g",
    "peak": f"leadline peak {SERVER} --at workers=64",
    "policies": f"leadline --verbose peak {SERVER} --at workers=64",
    "surface": f"leadline surface {SERVER}",
    "application": "leadline compare hp-730 decstation-5000-ultrix --application lookups",
    "latency-target": f"leadline peak sim:cloud-gp3 --p99 5ms --workload {VOLUME} --curve 5",
    "open-loop": f"leadline measure sim:two-level --workload {READS} --rate 9000",
}
BEFORE = {
    "application": (
        "leadline characterize --trace workloads/traces/lookups.trace",
        "leadline survey sim:hp-730 --budget 60m",
        "leadline survey sim:decstation-5000-ultrix --budget 60m",
    )
}
"""What an example needs in its store; what these print is not shown."""
STREAMS = {
    "generate": "leadline stream generate blocks --records 262144 --seed 2",
    "sort": "leadline stream sort records sorted --memory 96MiB --threads 2 --name guide",
    "stripes": (
        "leadline stream sort records striped --stripe disk1,disk2 --memory 256MiB --no-bound "
        "--name stripes"
    ),
    "listed": "ls disk1 disk2",
    "check-striped": "leadline stream check striped --against records",
    "check-damaged": "leadline stream check damaged --against records",
    "ranks": "mpirun -np 2 leadline stream sort records cluster --memory 256MiB --name two-ranks",
}
"""In the order in which they need each other's files."""
RECORDS = 2_000_000
WIDTH = 140
LEADLINE = "from leadline.app import main; main()"
IDS = re.compile(r"\b(?:survey|experiment|measurement|stream|point) +([0-9a-f]{8})")
BOLD = re.compile(r"\x1b\[[0-9;]*m")
"""What `mpirun`, which gives its ranks a terminal, has them print."""
INSTANT = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d UTC")
COLUMNS = (Column("command", "command"), Column("text", "what it printed"))


def printed(command: str, folder: Path, store: Path) -> str:
    """Return what a command prints, both streams as they come, without what is chance.

    Args:
        command: as a person types it.
        folder: where.
        store: a store for it.

    """
    words = shlex.split(command)
    at = words.index("leadline") if "leadline" in words else None
    if at is not None:
        words[at : at + 1] = [sys.executable, "-c", LEADLINE]
    environment = os.environ | {
        "COLUMNS": str(WIDTH),
        "LEADLINE_STORE": str(store),
        "NO_COLOR": "1",
        "OMP_NUM_THREADS": "1",
        "PYTHONUNBUFFERED": "1",
    }
    done = subprocess.run(
        words,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        cwd=folder,
        env=environment,
    )
    if "Traceback" in done.stdout:
        raise SystemExit(f"{command}:\n{done.stdout}")
    return settled(command, done.stdout.replace(f"{folder}/", "").replace(str(folder), "."))


def settled(command: str, text: str) -> str:
    """Give a text ids that follow from the command, and no instant."""
    text = BOLD.sub("", text)
    for number, found in enumerate(dict.fromkeys(IDS.findall(text))):
        made = hashlib.sha256(f"{number} {command}".encode()).hexdigest()
        text = re.sub(rf"\b{found}[0-9a-f]{{24}}\b", made[:32], text).replace(found, made[:8])
    return "\n".join(line.rstrip() for line in INSTANT.sub("…", text).strip().splitlines())


def example(key: str, store: Path) -> str:
    """Return what an example on simulated systems prints."""
    for command in BEFORE.get(key, ()):
        printed(command, ROOT, store)
    return printed(SIMULATED[key], ROOT, store)


def simulated() -> Iterator[Row]:
    """Run the commands that always answer the same."""
    with tempfile.TemporaryDirectory() as folder:
        for key, command in SIMULATED.items():
            text = example(key, Path(folder, f"{key}.sqlite"))
            yield Row(key, {"command": command, "text": text})


def streams(directory: Path) -> Iterator[Row]:
    """Run the commands of docs/guide/streaming.md on real files."""
    with tempfile.TemporaryDirectory(dir=directory, prefix="leadline-examples-") as name:
        folder = Path(name).resolve()
        store = folder / "store.sqlite"
        printed(f"leadline stream generate records --records {RECORDS} --seed 1", folder, store)
        (folder / "disk1").mkdir()
        (folder / "disk2").mkdir()
        for key, command in STREAMS.items():
            if key == "check-damaged":
                damage(folder / "sorted", folder / "damaged")
            yield Row(key, {"command": command, "text": printed(command, folder, store)})


def damage(whole: Path, damaged: Path) -> None:
    """Copy records with the eleventh and the twelfth exchanged."""
    data = whole.read_bytes()
    damaged.write_bytes(data[:1000] + data[1100:1200] + data[1000:1100] + data[1200:])


def main() -> None:
    """Run them, print what they print, and store it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--streams", action="store_true", help="those on real files")
    parser.add_argument("--directory", type=Path, default=Path("/var/tmp"))  # noqa: S108
    add_save_option(parser, "examples")
    asked = parser.parse_args()
    rows = list(streams(asked.directory) if asked.streams else simulated())
    for row in rows:
        print(f"$ {row.cells['command']}\n{row.cells['text']}\n")
    save(asked, COLUMNS, rows, directory=asked.directory if asked.streams else None)


if __name__ == "__main__":
    main()
