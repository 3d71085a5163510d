"""How long traces take to describe, and how often planted streams are found.

    .venv/bin/python bench/characterize.py [--requests 100000000] [--seeds 9001:9101] [--save]

Speed: a trace of Alibaba's format, in which a third of the requests follow Zipf's law and the
others are uniform over 64 GiB, comes through a pipe from a process that repeats its lines with
later times, so that neither a disk nor 6 GB of text are needed; the peak is of the process that
reads. Planted: mixtures of two to four streams drawn by tests/planted_traces.py, which shares no
code with the analysis; found means that every stream's weight, mean size and data are within 10%.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from application_fixture import Kept, described
from figures import Cell, Column, Row, add_save_option, save, share
from leadline.record.application import Stream
from leadline.studies.application.characterize import characterize_trace
from planted_traces import Planted, drawn_mixture, mixture

MEASURES = (
    "crates/trace/src",
    "python/leadline/studies/application",
    "python/leadline/stats/reuse_times.py",
)
FORMS = ("{value:.4g}{unit} [{low:.3g}, {high:.3g}] of {n}", "{value:.4g}{unit}")
COLUMNS = (Column("what", "what"), Column("figure", "figure", FORMS))
SECONDS_MOST, MIB_MOST = 120.0, 1024.0
"""What issue 18 allows for 10^8 requests."""
REQUESTS = 120_000
"""Of a planted mixture."""
CHUNK = 200_000


def chunk(seed: int) -> list[str]:
    """Draw lines without their times."""
    draw = np.random.default_rng(seed)
    kind = draw.integers(0, 3, CHUNK)
    skewed = draw.zipf(1.2, CHUNK) % 4_000_000
    uniform = draw.integers(0, 16_777_216, CHUNK)
    places = np.where(kind == 0, skewed, uniform) * 4096
    sizes = draw.choice([4096, 8192, 16384, 65536], CHUNK, p=[0.6, 0.2, 0.1, 0.1])
    reads = np.where(draw.random(CHUNK) < 0.6, "R", "W")
    rows = zip(kind.tolist(), reads.tolist(), places.tolist(), sizes.tolist(), strict=True)
    return [f"{device},{deed},{place},{size}," for device, deed, place, size in rows]


def large_trace(requests: int) -> tuple[float, ...]:
    """Describe so many requests; seconds, processor seconds, MiB, requests, rate, largest error."""
    command = [sys.executable, __file__, "--reader"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as reader:
        assert reader.stdin is not None
        assert reader.stdout is not None
        chunks, at_us = [chunk(seed) for seed in range(8)], 1577808000000000
        for number in range(requests // CHUNK):
            lines = chunks[number % len(chunks)]
            times = range(at_us, at_us + 50 * CHUNK, 50)
            reader.stdin.write(
                "".join(f"{line}{at}\n" for line, at in zip(lines, times, strict=True))
            )
            at_us += 50 * CHUNK
        reader.stdin.close()
        return tuple(json.loads(reader.stdout.read()))


def describe_standard_input() -> None:
    """Describe the trace on standard input, and print what `large_trace` returns."""
    began_s = time.monotonic()
    study = characterize_trace("-", Kept(), name="large")
    took_s, used = time.monotonic() - began_s, resource.getrusage(resource.RUSAGE_SELF)
    reuse = study.found.reuse
    error = max(point.lru_error or 0.0 for point in reuse.points)
    processor_s, mib = used.ru_utime + used.ru_stime, used.ru_maxrss / 1024
    print(json.dumps([took_s, processor_s, mib, study.start.facts.requests, reuse.rate, error]))


def is_found(planted: Planted, streams: tuple[Stream, ...]) -> bool:
    """Whether a stream of this kind is there, within 10%."""
    for stream in streams:
        same = stream.kind == planted.kind and abs(stream.read_frac - planted.read_frac) < 0.1
        near = abs(stream.weight / planted.weight - 1) < 0.1
        near = near and abs(stream.size_mean / planted.size - 1) < 0.1
        data = planted.kind == "once-only" or (
            abs(stream.unique_bytes / planted.unique_bytes - 1) < 0.1
        )
        if same and near and data:
            return True
    return False


def mixtures_found(first: int, end: int) -> tuple[list[bool], list[float]]:
    """Return whether each mixture was found whole, and how long each took to describe."""
    found, took_s = list[bool](), list[float]()
    for seed in range(first, end):
        streams = drawn_mixture(seed)
        with tempfile.TemporaryDirectory() as folder:
            study = described(mixture(streams, REQUESTS, seed + 1), Path(folder))
        took_s.append(study.found.wall_s)
        one = len(study.phases) == 1
        found.append(one and all(is_found(each, study.phases[0].streams) for each in streams))
        if not found[-1]:
            print(f"seed {seed}: not all of {streams}")
    return found, took_s


def main() -> None:
    """Print and store what was found."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--requests", type=int, default=100_000_000)
    parser.add_argument("--seeds", default="9001:9101")
    add_save_option(parser, "characterize")
    parser.add_argument("--reader", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.reader:
        describe_standard_input()
        return
    first, end = map(int, asked.seeds.split(":"))
    found, took_s = mixtures_found(first, end)
    print(f"{sum(found)} of {len(found)} mixtures, {np.median(took_s):.2f} s each")
    began = time.monotonic()
    seconds, processor_s, mib, requests, rate, error = large_trace(asked.requests)
    all_s = time.monotonic() - began
    print(
        f"{requests:,.0f} requests: {seconds:.1f} s ({processor_s:.1f} s of processor), {mib:.0f} "
        f"MiB; {100 * rate:.2g}% of the pages, largest error {error:.4f}; in all {all_s:.0f} s"
    )
    rows = [
        Row("found", {"what": "planted mixtures found, %", "figure": share(found)}),
        Row(
            "wall",
            {
                "what": f"{requests / 1e6:.0f} million requests through a pipe",
                "figure": Cell(seconds, most=SECONDS_MOST, unit=" s"),
            },
        ),
        Row(
            "processor", {"what": "processor time of that", "figure": Cell(processor_s, unit=" s")}
        ),
        Row(
            "memory",
            {"what": "most memory of that", "figure": Cell(mib, most=MIB_MOST, unit=" MiB")},
        ),
        Row(
            "error", {"what": "largest standard error of an LRU ratio there", "figure": Cell(error)}
        ),
    ]
    load = f"Load average {os.getloadavg()[0]:.1f}."
    save(asked, COLUMNS, rows, directory=Path(), rounds=1, note=load)


if __name__ == "__main__":
    main()
