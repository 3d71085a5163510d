"""Traces that strace and fio record of real programs here, against what those programs did."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from application_fixture import Kept
from leadline.record.application import Application
from leadline.studies.application.characterize import characterize_trace

PROGRAM = """
import os, random, sys
random.seed(3)
path, scan = sys.argv[1:]
with open(path, 'wb') as file:
    file.write(os.urandom(1 << 20))
fd = os.open(path, os.O_RDWR)
for number in range(3000):
    place = random.randrange(256) * 4096
    if random.random() < 0.25:
        os.pwrite(fd, b'x' * 4096, place)
    else:
        os.pread(fd, 4096, place)
    if number % 100 == 99:
        os.fdatasync(fd)
if os.fork() == 0:
    out = os.open(scan, os.O_WRONLY | os.O_CREAT)
    for _ in range(500):
        os.write(out, b'y' * 16384)
    os.close(out)
    os._exit(0)
os.wait()
"""


def recorded(folder: Path, *options: str) -> Application:
    """Trace the program above and describe it."""
    if shutil.which("strace") is None:
        pytest.skip("there is no strace here")
    trace = folder / "trace"
    program = [
        sys.executable,
        "-I",
        "-S",
        "-c",
        PROGRAM,
        str(folder / "data"),
        str(folder / "scan"),
    ]
    done = subprocess.run(
        ["strace", *options, "-o", str(trace), *program],
        capture_output=True,
        text=True,
        check=False,
    )
    if "ptrace" in done.stderr and done.returncode != 0:
        pytest.skip(f"strace may not trace here: {done.stderr.strip().splitlines()[-1]}")
    assert done.returncode == 0, done.stderr
    return characterize_trace(str(trace), Kept())


@pytest.mark.parametrize(
    "options",
    [("-f", "-y", "-ttt", "-T"), ("-f", "-tt", "-T"), ("-f", "-r"), ("-f",)],
    ids=" ".join,
)
def test_what_strace_records_is_what_the_program_did(
    options: tuple[str, ...], tmp_path: Path
) -> None:
    study = recorded(tmp_path, *options)
    found, phases = study.found, study.phases
    assert found.written_bytes == pytest.approx((1 << 20) + 750 * 4096 + 500 * 16384, rel=0.02)
    # Python reads a few modules of its own, too.
    assert found.read_bytes == pytest.approx(2250 * 4096, rel=0.1)
    assert sum(phase.syncs for phase in phases) == 30
    random = max(
        (stream for phase in phases for stream in phase.streams if stream.kind == "uniform"),
        key=lambda stream: stream.weight,
    )
    assert random.unique_bytes == pytest.approx(1 << 20, rel=0.1)
    assert random.read_frac == pytest.approx(0.75, abs=0.04)
    assert random.size_mean == pytest.approx(4096, rel=0.05)
    scan = [stream for stream in phases[-1].streams if stream.kind == "once-only"]
    assert scan[0].size_mean == pytest.approx(16384, rel=0.02)
    assert scan[0].seq_frac > 0.95
    timed = "-T" in options
    assert (found.in_io is not None) == timed
    assert study.start.facts.times == ("none" if options == ("-f",) else "known")
    if timed:
        assert dict(found.in_calls_s).keys() == {"reads", "writes", "syncs", "metadata"}
        assert phases[0].loop == "closed"


def test_what_fio_records_is_what_it_did(tmp_path: Path) -> None:
    if shutil.which("fio") is None:
        pytest.skip("there is no fio here")
    log = tmp_path / "io.log"
    subprocess.run(
        [
            *("fio", "--name=a", f"--filename={tmp_path / 'data'}", "--size=2m", "--rw=randrw"),
            *("--rwmixread=70", "--bs=8k", "--ioengine=psync", "--io_size=40m", "--norandommap"),
            *(f"--write_iolog={log}", "--fsync=100", "--randseed=4"),
        ],
        capture_output=True,
        check=True,
    )
    study = characterize_trace(str(log), Kept())
    (phase,) = study.phases
    assert (study.found.read_bytes + study.found.written_bytes) == 40 << 20
    (stream,) = phase.streams
    assert (stream.kind, stream.size_mean) == ("uniform", 8192)
    assert stream.unique_bytes == pytest.approx(2 << 20, rel=0.1)
    assert stream.read_frac == pytest.approx(0.7, abs=0.03)
    written = log.read_text(encoding="ascii").splitlines()
    assert phase.syncs == sum(" sync " in line for line in written) > 10
    three = written[0] == "fio version 3 iolog"
    assert study.start.facts.format == ("fio-iolog3" if three else "fio-iolog2")
    if three:
        last_us = int(written[-1].split()[0])
        assert study.found.seconds == pytest.approx(last_us * 1e-6, rel=0.05)
