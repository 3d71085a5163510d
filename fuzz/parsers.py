"""Fuzzes Leadline's Python parsers: seeds are harmed by chance, and parsed.

usage: fuzz/parsers.py [--seconds S | --inputs N] [--seed N] [TARGET ...]

A parser returns, or refuses with its own error, within a second of processor time and a GiB of
memory beside what it found. What does otherwise is a finding: it is kept under
build/fuzz/findings, and put into fuzz/corpus/TARGET once it is mended;
`tests/house/test_parsers.py` and every later run begin with the corpus. Exit code 1 when something
was found.
"""

from __future__ import annotations

import argparse
import hashlib
import random
import resource
import signal
import sys
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

from mutating import mutated
from parser_targets import ROOT, TARGETS

CORPUS = ROOT / "fuzz" / "corpus"
FINDINGS = ROOT / "build" / "fuzz" / "findings"
CPU_S_MAX = 1.0
"""For one input. Of the processor, not of the wall: a host busy is no finding."""
MEMORY_BYTES_MAX = 1 << 30
"""More than the process had when it began."""
DIFFERENT_MOST = 20
"""Findings of one target; then it has told enough."""


_ASKED_TO_END: list[int] = []
"""Signals that came: a run then ends with what it has."""


class TooLong(BaseException):
    """An input took more than its time; not an Exception, which a parser might catch."""


@dataclass
class Found:
    """What a target did."""

    inputs: int = 0
    refused: int = 0
    findings: dict[str, bytes] = field(default_factory=dict)
    """An input for each, by what went wrong and where."""


def corpus_of(name: str) -> list[bytes]:
    """Return what was found before and is mended."""
    return [path.read_bytes() for path in sorted((CORPUS / name).glob("*"))]


def tried(name: str, data: bytes) -> str | None:
    """Parse one input; return what is wrong with how it went.

    Returns:
        None when it was parsed or refused, else the error and the innermost place in Leadline.

    """
    found = Found()
    _try(name, data, found)
    return next(iter(found.findings), None)


def run(name: str, seed: int, inputs: int, until_s: float = float("inf")) -> Found:
    """Try the corpus, the seeds and harmed ones.

    Args:
        name: of the target.
        seed: decides the harm.
        inputs: how many harmed ones at most.
        until_s: of the monotonic clock, when it ends.

    """
    target, found = TARGETS[name], Found()
    seeds = [*target.seeds(), *corpus_of(name)]
    chance = random.Random(f"{name} {seed}")
    for data in seeds:
        _try(name, data, found)
    while inputs and len(found.findings) < DIFFERENT_MOST and time.monotonic() < until_s:
        if _ASKED_TO_END:
            break
        for _ in range(min(inputs, 100)):
            _try(name, mutated(chance, seeds), found)
        inputs -= min(inputs, 100)
    return found


def _try(name: str, data: bytes, found: Found) -> None:
    target = TARGETS[name]
    found.inputs += 1
    try:
        signal.setitimer(signal.ITIMER_PROF, CPU_S_MAX)
        try:
            target.parse(data)
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
    except target.refuses:
        found.refused += 1
    except (Exception, TooLong) as error:
        found.findings.setdefault(_said(error), data)


def _said(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if "leadline" in frame.filename] or frames
    where = f"{Path(own[-1].filename).name}:{own[-1].lineno}"
    return f"{type(error).__name__} at {where}"


@contextmanager
def watched() -> Iterator[None]:
    """Hold inputs to their time and memory, in the block."""

    def too_long(_number: int, _frame: FrameType | None) -> None:
        raise TooLong

    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    before = signal.signal(signal.SIGPROF, too_long)
    resource.setrlimit(
        resource.RLIMIT_AS, (pages * resource.getpagesize() + MEMORY_BYTES_MAX, hard)
    )
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
        signal.signal(signal.SIGPROF, before)


def keep(name: str, found: Found) -> list[Path]:
    """Write findings down."""
    FINDINGS.mkdir(parents=True, exist_ok=True)
    kept = []
    for data in found.findings.values():
        path = FINDINGS / f"{name}-{hashlib.sha256(data).hexdigest()[:16]}"
        path.write_bytes(data)
        kept.append(path)
    return kept


def main() -> int:
    """Run the targets one after the other."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("targets", nargs="*", default=[*TARGETS])
    parser.add_argument("--seconds", type=float, default=10.0, help="of each target")
    parser.add_argument("--inputs", type=int, help="of each target, instead of seconds")
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    bad = False
    signal.signal(signal.SIGUSR1, lambda number, _frame: _ASKED_TO_END.append(number))
    for name in asked.targets:
        until_s = float("inf") if asked.inputs else time.monotonic() + asked.seconds
        with watched():
            found = run(name, asked.seed, asked.inputs or sys.maxsize, until_s)
        said = f"{found.inputs} inputs, {found.refused} refused, {len(found.findings)} findings"
        print(f"parsers: {name} {said}", flush=True)
        for what, path in zip(found.findings, keep(name, found), strict=True):
            print(f"  {what}: {path}", flush=True)
        bad = bad or bool(found.findings)
    return int(bad)


if __name__ == "__main__":
    sys.exit(main())
