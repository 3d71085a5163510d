"""Every kernel on every platform, within memory and beyond it: verified, and its buses as modelled.

Runs the command as a user does: one process, two threads, four MPI ranks, each on `--small` bytes
in as much memory as they need and on `--large` bytes in `--memory`. Of every phase the block
layer's bytes stand beside the kernel's own, and what ranks exchanged beside 2(P-1)/P (AD98 Fig. 2).

    .venv/bin/python bench/stream_platforms.py [--small 2GiB] [--large 4GiB] [--memory 1GiB]

Ends with 1 when an output is not verified, or bytes differ by more than 5% from the model.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from figures import Cell, Column, Content, Row, add_save_option, save
from leadline.units import parse_bytes

MEASURES = (
    "crates/kernels/src",
    "python/leadline/engine/streams",
    "python/leadline/studies/streaming",
)
OFF = ("{value:.1f} {unit}",)
COLUMNS = (
    Column("kernel", "seconds: in memory, then in less"),
    Column("one", "1 process", ("{value:.2f}, {large:.2f}", "{value:.2f}")),
    Column("two", "2 threads", ("{value:.2f}, {large:.2f}", "{value:.2f}")),
    Column("ranks", "4 ranks", ("{value:.2f}, {large:.2f}", "{value:.2f}")),
    Column("block_off", "block layer off by at most", OFF, "%"),
    Column("mpi_off", "MPI off by at most", OFF, "%"),
)
CELLS = {"1 process": "one", "2 threads": "two", "4 ranks": "ranks"}
COMMAND = str(Path(sys.executable).parent / "leadline")
KERNELS = ("scan", "sort", "transpose")
RANKS = 4
PLATFORMS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "1 process": ((), ("--threads", "1")),
    "2 threads": ((), ("--threads", "2")),
    "4 ranks": (("mpirun", "--allow-run-as-root", "--oversubscribe", "-np", str(RANKS)), ()),
}
ROOM_SHARE = 1.5
"""Of the data: memory that holds it with its entries and buffers."""
OFF_FRAC_MAX = 0.05
SQUARE_BYTES = 64 * 4096 * 100
"""Whole records, and rows of 64 blocks."""


def run(launcher: Sequence[str], words: Sequence[str], folder: Path) -> dict[str, Any]:
    """Run a command of Leadline, and return its document."""
    store = f"sqlite:///{folder}/store.db"
    line = [*launcher, COMMAND, "--store", store, *words]
    done = subprocess.run(line, capture_output=True, text=True, check=False, cwd=folder)
    if done.returncode:
        raise SystemExit(f"{' '.join(line)}: {done.stderr[-2000:]}")
    found: dict[str, Any] = json.loads(done.stdout) if done.stdout.startswith("{") else {}
    return found


def kernel_words(kernel: str, memory_bytes: int) -> list[str]:
    """Return the words behind `leadline stream`."""
    words = ["stream", kernel, "records", "output", "--replace", "--no-bound", "--json"]
    rows = ["--rows", "64"] if kernel == "transpose" else []
    return [*words, "--memory", str(memory_bytes), *rows]


def phase_row(phase: dict[str, Any], ranks: int) -> tuple[str, list[float]]:
    """Return a phase's cell, and how far its bytes are from the model, as fractions."""
    moved = phase["bytes_read"] + phase["bytes_written"]
    off = [(phase["block_read_bytes"] + phase["block_written_bytes"]) / moved - 1]
    said = f"{phase['name']} {phase['mb_s']:.0f} MB/s, block layer {off[0]:+.1%}"
    sent = phase["network_sent_bytes"] + phase["network_received_bytes"]
    if sent:
        off.append(sent / phase["bytes_read"] / (2 * (ranks - 1) / ranks) - 1)
        said += f", MPI {off[1]:+.1%}"
    return said, off


def main() -> None:
    """Run everything and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--small", default="2GiB")
    parser.add_argument("--large", default="4GiB")
    parser.add_argument("--memory", default="1GiB")
    parser.add_argument("--directory", default=".")
    add_save_option(parser, "stream_platforms")
    asked = parser.parse_args()
    wrong = False
    seconds: dict[tuple[str, str], list[float]] = {}
    offs: list[list[float]] = []
    print("| data | kernel | platform | passes | seconds | phases | peak MiB | verified |")
    print("|---|---|---|---|---|---|---|---|")
    for size, limit in ((asked.small, None), (asked.large, asked.memory)):
        data = parse_bytes(size) // SQUARE_BYTES * SQUARE_BYTES
        memory = parse_bytes(limit) if limit else int(data * ROOM_SHARE)
        with tempfile.TemporaryDirectory(dir=asked.directory) as name:
            folder = Path(name).resolve()
            make = ["stream", "generate", "records", "--records", str(data // 100)]
            run((), make, folder)
            for kernel in KERNELS:
                for platform, (launcher, threads) in PLATFORMS.items():
                    words = [*kernel_words(kernel, memory), *threads]
                    if limit is None:
                        # Not counted: the host lends a virtual machine memory as it is touched.
                        run(launcher, words, folder)
                    found = run(launcher, words, folder)
                    rows = [phase_row(phase, found["ranks"]) for phase in found["phases"]]
                    off = max(abs(each) for _, row in rows for each in row)
                    seconds.setdefault((kernel, platform), []).append(found["seconds"])
                    offs += [row for _, row in rows]
                    wrong |= not found["verified"] or off > OFF_FRAC_MAX
                    cells = (
                        size,
                        kernel,
                        platform,
                        str(found["passes"]),
                        f"{found['seconds']:.2f}",
                        "; ".join(said for said, _ in rows),
                        f"{found['memory_peak_bytes'] / 2**20:.0f}",
                        "yes" if found["verified"] else "NO",
                    )
                    print(f"| {' | '.join(cells)} |", flush=True)
    save(asked, COLUMNS, rows_of(seconds, offs), directory=Path(asked.directory))
    sys.exit(1 if wrong else 0)


def rows_of(seconds: dict[tuple[str, str], list[float]], offs: list[list[float]]) -> list[Row]:
    """Return what is stored: seconds by kernel and platform, and how far bytes were off."""
    rows = []
    for kernel in KERNELS:
        cells: dict[str, Content] = {"kernel": kernel}
        for platform, key in CELLS.items():
            small, large = seconds[kernel, platform]
            cells[key] = Cell(small, also={"large": large})
        rows.append(Row(kernel, cells))
    worst = 100 * max(abs(off[0]) for off in offs)
    of_ranks = 100 * max(abs(off[1]) for off in offs if len(off) > 1)
    return [*rows, Row("all", {"kernel": "all", "block_off": worst, "mpi_off": of_ranks})]


if __name__ == "__main__":
    main()
