"""Where programs are watched in tests, and by whom: root by BPF, somebody else by ptrace."""

from __future__ import annotations

import ctypes
import functools
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from command import environment
from forked_command import run_forked

NOBODY = 65534
LINKS = 5
"""Of BPF to the kernel that a capture cannot do without; a process is watched just after them."""
BEGINNING = 2_000
"""Reads that a process makes while it begins to be watched."""
PYTHON = [sys.executable, "-I", "-S"]
LOOP = """
import os, sys, time
fd = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
os.ftruncate(fd, 1 << 20)
print('ready', flush=True)
number = 0
while True:
    os.pread(fd, 4096, number % 256 * 4096)
    number += 1
    if number % 100 == 0:
        time.sleep(0.002)
"""
READS = """
import os, sys
fd = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
os.ftruncate(fd, 1 << 20)
for number in range(2000):
    os.pread(fd, 4096, number % 256 * 4096)
"""


@dataclass
class Arena:
    """A folder that both may write to, and how somebody runs Leadline in it."""

    folder: Path
    way: str

    @property
    def begin(self) -> list[str]:
        """Words by which somebody runs what follows: root by BPF, who is not root by ptrace.

        He may read all files, since Python itself lies where root alone comes, and nothing else.
        """
        if self.way == "bpf" or os.geteuid() != 0:
            return []
        if shutil.which("setpriv") is None:
            pytest.skip("there is no setpriv here to become somebody else")
        caps = ("--inh-caps=-all,+dac_read_search", "--ambient-caps=-all,+dac_read_search")
        return ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", *caps]

    @property
    def _environment(self) -> dict[str, str]:
        return environment(self.folder / "store.sqlite") | {"HOME": str(self.folder)}

    def run(self, *words: str, **more: Any) -> subprocess.Popen[str]:
        """Start something in the folder, whose two outputs are read."""
        pipe = subprocess.PIPE
        return subprocess.Popen(
            [*self.begin, *words],
            stdout=pipe,
            stderr=pipe,
            text=True,
            cwd=self.folder,
            env=self._environment,
            **more,
        )

    def characterize(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run `leadline characterize` with these words."""
        begin = functools.partial(_begin, self.folder, nobody=bool(self.begin))
        return run_forked(("characterize", *words), self._environment, 120, steer=begin)

    def described(self, *words: str, code: int = 0) -> dict[str, Any]:
        """Return the document of what was run."""
        done = self.characterize("--json", "--keep-paths", *words)
        if done.returncode == 2 and "BPF is refused" in done.stderr:
            pytest.skip(f"no BPF here: {done.stderr.strip()}")
        if done.returncode == 2 and "may not be traced" in done.stderr:
            pytest.skip(f"no ptrace here: {done.stderr.strip()}")
        assert done.returncode == code, (done.stdout[-500:], done.stderr)
        found: dict[str, Any] = json.loads(done.stdout)
        return found


def _begin(folder: Path, *, nobody: bool) -> None:
    """Do in a process that has loaded Leadline what `Arena.begin` does before it starts one."""
    os.chdir(folder)
    if not nobody:
        return
    libc = ctypes.CDLL(None, use_errno=True)
    keep_caps, set_dumpable, ambient, raise_it, dac_read_search = 8, 4, 47, 2, 2
    libc.prctl(keep_caps, 1, 0, 0, 0)
    os.setgroups([])
    os.setresgid(*[NOBODY] * 3)
    os.setresuid(*[NOBODY] * 3)
    version_3, only = 0x20080522, 1 << dac_read_search
    header, sets = (ctypes.c_uint32 * 2)(version_3, 0), (ctypes.c_uint32 * 6)(only, only, only)
    done = (
        libc.capset(header, sets),
        libc.prctl(ambient, raise_it, dac_read_search, 0, 0),
        libc.prctl(set_dumpable, 1, 0, 0, 0),  # as what is started is; else nobody may look at it
    )
    assert done == (0, 0, 0), os.strerror(ctypes.get_errno())


@pytest.fixture(params=["bpf", "ptrace"])
def arena(request: pytest.FixtureRequest) -> Iterator[Arena]:
    if request.param == "bpf" and os.geteuid() != 0:
        pytest.skip("programs of BPF are for root")
    with tempfile.TemporaryDirectory(prefix="leadline-capture-") as text:
        folder = Path(text)
        folder.chmod(0o777)
        yield Arena(folder, request.param)


@pytest.fixture
def any_way(tmp_path: Path) -> Arena:
    """An arena for what does not depend on the way."""
    return Arena(tmp_path, "ptrace" if os.geteuid() else "bpf")


def exact(answer: dict[str, Any]) -> None:
    """Its bytes must be those that the kernel counted, every one, and nothing be lost."""
    capture = answer["capture"]
    assert capture["lost"] == 0
    seen = [sum(capture["read_bytes"]), sum(capture["written_bytes"])]
    assert seen == capture["counted_bytes"], capture
    assert capture["bytes_off"] == 0.0
    assert answer["predictable"] is True


def started(arena: Arena) -> subprocess.Popen[str]:
    """Start the loop, and wait until it reads."""
    loop = arena.run(*PYTHON, "-c", LOOP, "data")
    assert loop.stdout is not None
    assert loop.stdout.readline() == "ready\n"
    return loop


def refused(arena: Arena, said: str, *words: str) -> None:
    """It must end with 2, in one message and without a traceback."""
    done = arena.characterize("--way", arena.way, *words)
    assert done.returncode == 2, (done.stdout, done.stderr)
    assert said in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr


def wait_for_reads(watching: subprocess.Popen[str], pid: int, way: str) -> None:
    """Wait until a process is watched and has made enough reads since to be described.

    Those that it makes while it is being attached to are counted by one side only.
    """
    while not is_watched(watching.pid, pid, way):
        assert watching.poll() is None
        time.sleep(0.02)
    enough = reads_of(pid) + BEGINNING + 20_000
    while reads_of(pid) < enough:
        assert watching.poll() is None
        time.sleep(0.02)


def command_of(pid: int) -> int:
    """The process that Leadline started, by whichever of its threads."""
    tasks = Path(f"/proc/{pid}/task").iterdir()
    (command,) = (child for task in tasks for child in (task / "children").read_text().split())
    return int(command)


def is_watched(by: int, pid: int, way: str) -> bool:
    """Whether a tracer is attached: all links of BPF (crates/capture/src/bpf/mod.rs), or ptrace."""
    if way == "ptrace":
        return "TracerPid:\t0" not in Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    links = 0
    for held in Path(f"/proc/{by}/fdinfo").iterdir():
        with suppress(OSError):
            links += "link_type" in held.read_text(encoding="utf-8")
    return links >= LINKS


def reads_of(pid: int) -> int:
    """Reads that a process has made (proc_pid_io(5))."""
    told = Path(f"/proc/{pid}/io").read_text(encoding="ascii")
    return int(next(line for line in told.splitlines() if line.startswith("syscr")).split()[1])
