"""Real programs watched as they run, by BPF and by ptrace, against what they are known to do."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import captured_program
from command import LEADLINE, environment

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
        return ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", *caps]

    def run(self, *words: str, **more: Any) -> subprocess.Popen[str]:
        """Start something in the folder, whose two outputs are read."""
        own = environment(self.folder / "store.sqlite") | {"HOME": str(self.folder)}
        pipe = subprocess.PIPE
        return subprocess.Popen(
            [*self.begin, *words],
            stdout=pipe,
            stderr=pipe,
            text=True,
            cwd=self.folder,
            env=own,
            **more,
        )

    def characterize(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run `leadline characterize` with these words."""
        with self.run(LEADLINE, "characterize", *words) as running:
            out, error = running.communicate(timeout=120)
        return subprocess.CompletedProcess(words, running.returncode, out, error)

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


@pytest.fixture(params=["bpf", "ptrace"])
def arena(request: pytest.FixtureRequest) -> Iterator[Arena]:
    if request.param == "bpf" and os.geteuid() != 0:
        pytest.skip("programs of BPF are for root")
    with tempfile.TemporaryDirectory(prefix="leadline-capture-") as text:
        folder = Path(text)
        folder.chmod(0o777)
        yield Arena(folder, request.param)


def records(path: Path) -> dict[int, list[tuple[str, int, int]]]:
    """Return what was kept of reads and writes, by their bytes: R or W, file, offset."""
    found: dict[int, list[tuple[str, int, int]]] = {}
    for line in path.read_text(encoding="ascii").splitlines()[1:]:
        sign, _, file, offset, size, *_ = line.split(" ")
        if sign in "RW":
            found.setdefault(int(size), []).append((sign, int(file), int(offset)))
    return found


def exact(answer: dict[str, Any]) -> None:
    """Its bytes must be those that the kernel counted, every one, and nothing be lost."""
    capture = answer["capture"]
    assert capture["lost"] == 0
    seen = [sum(capture["read_bytes"]), sum(capture["written_bytes"])]
    assert seen == capture["counted_bytes"], capture
    assert capture["bytes_off"] == 0.0
    assert answer["predictable"] is True


def test_every_way_to_read_and_write_is_seen_with_its_place(arena: Arena) -> None:
    program = arena.folder / "program.py"
    shutil.copy(captured_program.__file__, program)
    data, kept = arena.folder / "data", arena.folder / "kept"
    command = ("--", *PYTHON, str(program), str(arena.folder))
    answer = arena.described("--way", arena.way, "--keep-trace", str(kept), *command)
    exact(answer)
    assert answer["capture"]["way"] == arena.way
    found = records(kept)
    for size, (signs, offsets) in captured_program.EXPECTED.items():
        told = found[size]
        assert [offset for _, _, offset in told] == offsets, size
        assert "".join(dict.fromkeys(sign for sign, _, _ in told)) == signs
    file_of = {size: told[0][1] for size, told in found.items()}
    for size in (1234, 2345, 1111, 333, 444, 555, 777, 999):
        assert file_of[size] == file_of[4099]
    assert found[888][1][1] == file_of[616] != file_of[4099]
    assert file_of[1010] not in (file_of[616], file_of[4099])  # what was truncated is another
    written = captured_program.MADE + 30 * 2345 + 444
    (used,) = [e for e in answer["capture"]["files"] if e["written_bytes"] == written]
    # By BPF the name is looked for now and then, while the file is open.
    assert used["name"] == str(data) or arena.way == "bpf"
    assert (
        used["read_bytes"]
        == 1000 * 17 + 40 * 1234 + 20 * 1111 + 2 * 333 + 555 + 777 + 888 + 10 * 999
    )
    syncs = {call["name"]: 0 for phase in answer["phases"] for call in phase["calls"]}
    for phase in answer["phases"]:
        for call in phase["calls"]:
            syncs[call["name"]] += call["calls"]
    assert (syncs["fsync"], syncs["fdatasync"], syncs["unlink"]) == (1, 1, 1)


def test_what_was_kept_is_read_again_as_the_same(arena: Arena) -> None:
    kept = arena.folder / "kept"
    words = ("--keep-trace", str(kept), "--", *PYTHON, "-c", READS, "data")
    live = arena.described("--way", arena.way, *words)
    exact(live)
    again = arena.characterize("--json", "--trace", str(kept))
    assert again.returncode == 0, again.stderr
    read = json.loads(again.stdout)
    assert read["capture"] is None
    assert read["facts"]["format"] == "capture"
    for same in ("workload", "miss_ratios", "in_calls_s", "read_bytes", "written_bytes"):
        assert read[same] == live[same]
    refused = arena.characterize(*words)
    assert refused.returncode == 2
    assert "is there already; add --force" in " ".join(refused.stderr.split())


def test_what_real_programs_move_is_what_the_kernel_counted(arena: Arena) -> None:
    made = "dd if=/dev/zero of=a bs=8192 count=1500 2>e && sort -S 1M a >b; cat a | wc -c >c; rm a"
    answer = arena.described("--way", arena.way, "--", "sh", "-c", made)
    exact(answer)
    assert answer["written_bytes"] >= 1500 * 8192
    assert 1500 * 8192 in [each["written_bytes"] for each in answer["capture"]["files"]]


def test_threads_and_children_that_outlive_their_parents_are_counted(arena: Arena) -> None:
    program = """
import os, threading
def work(name):
    fd = os.open(name, os.O_RDWR | os.O_CREAT)
    for number in range(400):
        os.pwrite(fd, b'x' * 100, number * 100)
threads = [threading.Thread(target=work, args=(f't{n}',)) for n in range(4)]
[each.start() for each in threads]
[each.join() for each in threads]
if os.fork() == 0:
    if os.fork() == 0:
        work('orphan')
        os._exit(0)
    os._exit(0)
os.wait()
import time; time.sleep(0.5)
"""
    answer = arena.described("--way", arena.way, "--", *PYTHON, "-c", program)
    exact(answer)
    assert answer["written_bytes"] == 5 * 400 * 100
    assert answer["facts"]["processes"] >= 6


def test_a_command_that_fails_is_described_with_its_code(arena: Arena) -> None:
    answer = arena.described("--way", arena.way, "--", *PYTHON, "-c", READS + "sys.exit(7)", "data")
    assert answer["capture"]["ended"] == {"code": 7, "signal": None}
    assert any("failed, with exit code 7" in warning for warning in answer["warnings"])
    killed = READS + "os.kill(os.getpid(), 9)"
    answer = arena.described("--way", arena.way, "--", *PYTHON, "-c", killed, "data")
    assert answer["capture"]["ended"] == {"code": None, "signal": 9}


def test_paths_are_hashed_unless_they_are_asked_for(arena: Arena) -> None:
    words = ("--way", arena.way, "--json", "--", *PYTHON, "-c", READS, "data")
    done = arena.characterize(*words)
    assert done.returncode == 0, done.stderr
    files = json.loads(done.stdout)["capture"]["files"]
    assert all(re.fullmatch("[0-9a-f]{16}", each["name"]) for each in files)
    assert {each["requests"] for each in files} >= {2000}


def started(arena: Arena) -> subprocess.Popen[str]:
    """Start the loop, and wait until it reads."""
    loop = arena.run(*PYTHON, "-c", LOOP, "data")
    assert loop.stdout is not None
    assert loop.stdout.readline() == "ready\n"
    return loop


def test_a_process_is_watched_for_a_while_and_goes_on(arena: Arena) -> None:
    with started(arena) as loop:
        try:
            answer = arena.described("--way", arena.way, "--pid", str(loop.pid), "--seconds", "1.5")
            assert loop.poll() is None
            tracer = Path(f"/proc/{loop.pid}/status").read_text(encoding="utf-8")
            assert "TracerPid:\t0" in tracer
        finally:
            loop.kill()
    (used,) = answer["capture"]["files"][:1]
    assert used["name"] == str(arena.folder / "data")
    assert used["read_bytes"] == 4096 * used["requests"] > 4096 * 1000
    assert answer["capture"]["bytes_off"] < 0.01
    assert answer["capture"]["ended"] is None
    assert answer["workload"]["unique_bytes"] == 1 << 20


def test_ctrl_c_ends_the_watching_of_a_process_and_describes_it(arena: Arena) -> None:
    with started(arena) as loop:
        try:
            watching = arena.run(
                LEADLINE, "characterize", "--json", "--way", arena.way, "--pid", str(loop.pid)
            )
            time.sleep(4.0)
            watching.send_signal(signal.SIGINT)
            out, error = watching.communicate(timeout=60)
            assert watching.returncode == 0, error
            assert loop.poll() is None
        finally:
            loop.kill()
    assert json.loads(out)["capture"]["stopped"] == signal.SIGINT


def test_a_stop_is_passed_on_to_the_command_and_what_was_seen_is_described(arena: Arena) -> None:
    words = ("--json", "--way", arena.way, "--", *PYTHON, "-c", LOOP, "data")
    watching = arena.run(LEADLINE, "characterize", *words, start_new_session=True)
    assert watching.stdout is not None
    assert watching.stdout.readline() == "ready\n"
    time.sleep(2.0)
    watching.send_signal(signal.SIGTERM)
    out, error = watching.communicate(timeout=60)
    assert watching.returncode == 3, error
    capture = json.loads(out)["capture"]
    assert capture["ended"] == {"code": None, "signal": signal.SIGTERM}
    assert capture["stopped"] == signal.SIGTERM
    assert capture["bytes_off"] == 0.0


def refused(arena: Arena, said: str, *words: str) -> None:
    """It must end with 2, in one message and without a traceback."""
    done = arena.characterize("--way", arena.way, *words)
    assert done.returncode == 2, (done.stdout, done.stderr)
    assert said in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr


def test_what_cannot_be_watched_is_refused_with_what_to_do(arena: Arena) -> None:
    refused(arena, "there is no command nosuch: give its path", "--", "nosuch")
    refused(arena, "is no program that may be run", "--", str(arena.folder))
    refused(arena, "there is no process 4194300 to be watched", "--pid", "4194300")
    refused(arena, "is no control group: give its folder", "--cgroup", str(arena.folder))
    refused(arena, "(exit code 3): it made", "--", "sh", "-c", "exit 3")
    refused(arena, "give one thing to characterise", "--pid", "1", "--", "true")
    refused(arena, "--seconds goes with --pid and --cgroup", "--seconds", "1s", "--", "true")


def test_who_is_not_root_is_told_why_a_process_or_a_setuid_program_is_not_traced() -> None:
    if os.geteuid() != 0:
        pytest.skip("somebody without rights needs root beside him")
    with tempfile.TemporaryDirectory(prefix="leadline-capture-") as text:
        folder = Path(text)
        folder.chmod(0o777)
        arena = Arena(folder, "ptrace")
        refused(arena, "may not be traced", "--pid", str(os.getpid()))
        program = folder / "setuid"
        shutil.copy(shutil.which("true") or "/bin/true", program)
        program.chmod(0o4755)
        refused(arena, "is setuid or setgid", "--", str(program))
        with started(arena) as loop:
            root = Arena(folder, "bpf")
            words = ("--way", "ptrace", "--pid", str(loop.pid))
            tracer = root.run(LEADLINE, "characterize", *words)
            try:
                status = Path(f"/proc/{loop.pid}/status")
                while "TracerPid:\t0" in status.read_text(encoding="utf-8"):
                    assert tracer.poll() is None
                    time.sleep(0.05)
                refused(arena, f"traced already, by process {tracer.pid}", "--pid", str(loop.pid))
            finally:
                tracer.kill()
                tracer.wait()
                loop.kill()


def test_a_control_group_is_watched_also_those_who_come_later() -> None:
    if os.geteuid() != 0:
        pytest.skip("control groups are made by root")
    groups = Path("/proc/self/cgroup").read_text(encoding="ascii").splitlines()
    own = [line.split(":", 2)[2] for line in groups if line.split(":")[1] == "memory"]
    if not own:
        pytest.skip("there is no memory hierarchy of control groups (version 1) here")
    group = Path(f"/sys/fs/cgroup/memory{own[0]}/leadline-capture-{os.getpid()}")
    group.mkdir()
    with tempfile.TemporaryDirectory(prefix="leadline-capture-") as text:
        arena = Arena(Path(text), "bpf")
        words = ("--json", "--keep-paths", "--seconds", "6", "--cgroup", str(group))
        with arena.run(LEADLINE, "characterize", *words) as watching:
            time.sleep(2.5)
            with started(arena) as loop:
                (group / "cgroup.procs").write_text(str(loop.pid), encoding="ascii")
                out, error = watching.communicate(timeout=60)
                loop.kill()
        assert watching.returncode == 0, error
    group.rmdir()
    answer = json.loads(out)
    assert answer["capture"]["files"][0]["name"] == str(Path(text) / "data")
    assert answer["capture"]["bytes_off"] < 0.01


# ---- what a hostile reading found ----------------------------------------------------------------

BLOCKS_ALL = "import signal; signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))\n" + LOOP
DIES_OF_SIGURG = "import os, signal; signal.signal(signal.SIGURG, lambda *_: os._exit(9))\n" + LOOP


def state_of(pid: int) -> str:
    """The letter of proc_pid_stat(5)."""
    return Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rsplit(")", 1)[1].split()[0]


@pytest.mark.parametrize("program", [BLOCKS_ALL, DIES_OF_SIGURG], ids=["blocks", "dies"])
@pytest.mark.parametrize("stop", ["seconds", "ctrl-c"])
def test_the_watched_process_gets_no_signal_by_which_watching_ends(
    arena: Arena, program: str, stop: str
) -> None:
    with arena.run(*PYTHON, "-c", program, "data") as loop:
        try:
            assert loop.stdout is not None
            assert loop.stdout.readline() == "ready\n"
            words = ("--json", "--way", arena.way, "--pid", str(loop.pid))
            more = ("--seconds", "1.5") if stop == "seconds" else ()
            with arena.run(LEADLINE, "characterize", *words, *more) as watching:
                if stop == "ctrl-c":
                    time.sleep(4.0)
                    watching.send_signal(signal.SIGINT)
                _, error = watching.communicate(timeout=60)
            assert watching.returncode == 0, error
            assert loop.poll() is None
            assert state_of(loop.pid) not in "tT"
        finally:
            loop.kill()


def test_a_process_that_is_stopped_stays_so_and_can_be_left(arena: Arena) -> None:
    with started(arena) as loop:
        try:
            loop.send_signal(signal.SIGSTOP)
            words = ("--json", "--way", arena.way, "--pid", str(loop.pid), "--seconds", "1")
            done = arena.characterize(*words)
            assert done.returncode == 2
            assert "it made" in done.stderr
            assert state_of(loop.pid) == "T"
            loop.send_signal(signal.SIGCONT)
            again = arena.described("--way", arena.way, "--pid", str(loop.pid), "--seconds", "1.5")
            assert again["capture"]["calls"] > 1000
        finally:
            loop.kill()


def test_a_process_that_ends_meanwhile_ends_the_watching(arena: Arena) -> None:
    with started(arena) as loop:
        words = ("--json", "--way", arena.way, "--pid", str(loop.pid))
        with arena.run(LEADLINE, "characterize", *words) as watching:
            time.sleep(4.0)
            loop.kill()
            _, error = watching.communicate(timeout=60)
    assert watching.returncode == 0, error


def test_many_short_threads_and_children_leave_nobody_watched(arena: Arena) -> None:
    """Ends come before the beginnings that parents tell of."""
    program = (
        READS
        + """
import threading
for number in range(300):
    each = threading.Thread(target=os.getpid)
    each.start()
    if number % 10 == 0 and os.fork() == 0:
        os._exit(0)
    each.join()
while True:
    try:
        os.wait()
    except ChildProcessError:
        break
"""
    )
    exact(arena.described("--way", arena.way, "--", *PYTHON, "-c", program, "data"))


@pytest.mark.parametrize("after_s", [0.35, 0.45, 0.6, 0.9])
def test_a_killed_watcher_leaves_no_process_stopped(arena: Arena, after_s: float) -> None:
    """Before it ran it is gone with its watcher; later a traced one too, and others go on."""
    marked = f"leadline-orphan-{os.getpid()}-{after_s}"
    words = ("--way", arena.way, "--", *PYTHON, "-c", LOOP, "data", marked)
    with arena.run(LEADLINE, "characterize", *words) as watching:
        time.sleep(after_s)
        watching.kill()
    left = subprocess.run(["pgrep", "-f", marked], capture_output=True, text=True, check=False)
    own = [int(pid) for pid in left.stdout.split() if state_of(int(pid)) != "Z"]
    try:
        assert [state_of(pid) for pid in own if state_of(pid) in "tT"] == []
    finally:
        for pid in own:
            os.kill(pid, signal.SIGKILL)


def setuid_id(folder: Path) -> Path:
    """A program that anybody runs as root, and that says so."""
    program = folder / "id"
    shutil.copy(shutil.which("id") or "/usr/bin/id", program)
    program.chmod(0o4755)
    return program


def test_root_by_ptrace_takes_no_rights_from_the_command(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("root alone may put a filter on a program and leave it its rights")
    tmp_path.chmod(0o755)
    arena = Arena(tmp_path, "bpf")  # begun by root
    become = "setpriv --reuid=65534 --clear-groups"
    for way in ("bpf", "ptrace"):
        script = f"{become} {setuid_id(tmp_path)} -u; head -c 4000000 /dev/zero >f; wc -c f"
        script += "; for n in 1 2 3 4 5 6 7 8 9; do dd if=f of=g bs=4096 2>&1; done"
        done = arena.characterize("--way", way, "--", "sh", "-c", script)
        assert done.returncode == 0, done.stderr
        assert done.stdout.startswith("0\n"), "as root, since it is setuid"
        assert "would have gained rights" not in done.stdout + done.stderr


def test_a_program_that_loses_its_rights_to_the_tracer_is_told_of() -> None:
    if os.geteuid() != 0:
        pytest.skip("a setuid program is made by root")
    with tempfile.TemporaryDirectory(prefix="leadline-capture-") as text:
        folder = Path(text)
        folder.chmod(0o777)
        arena = Arena(folder, "ptrace")
        program = setuid_id(folder)
        answer = arena.described(
            "--way", "ptrace", "--", *PYTHON, "-c", READS + f"os.system('{program} -u >u')", "data"
        )
        assert answer["capture"]["rights_lost"] == 1
        assert any("would have gained rights" in each for each in answer["warnings"])


def test_without_bpf_a_running_process_is_not_stopped_unless_that_is_asked_for() -> None:
    if os.geteuid() != 0:
        pytest.skip("somebody without rights needs root beside him")
    with tempfile.TemporaryDirectory(prefix="leadline-capture-") as text:
        Path(text).chmod(0o777)
        arena = Arena(Path(text), "ptrace")
        with started(arena) as loop:
            done = arena.characterize("--pid", str(loop.pid), "--seconds", "1")
            loop.kill()
    assert done.returncode == 2
    assert "ask for --way ptrace" in " ".join(done.stderr.split())


def test_a_run_that_ends_otherwise_makes_no_ratio(arena: Arena) -> None:
    script = "dd if=/dev/zero of=a bs=4096 count=2000 2>e; mkdir once"
    words = ("--way", arena.way, "--perturbation", "3", "--", "sh", "-c", script)
    done = arena.characterize(*words)
    assert done.returncode == 2
    assert "ended otherwise (exit code 1)" in " ".join(done.stderr.split())


def test_ctrl_c_ends_pairs_of_runs(arena: Arena) -> None:
    script = "dd if=/dev/zero of=a bs=4096 count=2000 2>e; sleep 2"
    words = ("--way", arena.way, "--perturbation", "9", "--", "sh", "-c", script)
    with arena.run(LEADLINE, "characterize", *words, start_new_session=True) as watching:
        time.sleep(4.5)
        watching.send_signal(signal.SIGTERM)
        out, error = watching.communicate(timeout=20)
    assert watching.returncode in (2, 3), "in a run, or between two"
    assert "nothing is kept" in " ".join(error.split())
    assert not out


def test_a_trace_is_kept_whole_or_not_at_all_and_follows_no_link(arena: Arena) -> None:
    kept, victim = arena.folder / "kept", arena.folder / "victim"
    victim.write_text("precious", encoding="ascii")
    words = ("--way", arena.way, "--keep-trace", str(kept), "--force")
    kept.write_text("from before", encoding="ascii")
    assert arena.characterize(*words, "--", "nosuch").returncode == 2
    assert kept.read_text(encoding="ascii") == "from before"
    kept.unlink()
    kept.symlink_to(victim)
    command = ("--", *PYTHON, "-c", READS, "data")
    assert arena.characterize("--keep-trace", str(kept), *command).returncode == 2
    arena.described(*words, *command)
    assert victim.read_text(encoding="ascii") == "precious"
    assert not kept.is_symlink()
    assert kept.stat().st_mode & 0o777 == 0o600
    assert not [*arena.folder.glob(".kept.*")]


def test_a_trace_leaves_the_floor_of_free_space_and_the_description_is_made(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("mounting a tmpfs needs root")
    small = tmp_path / "small"
    small.mkdir()
    made = ["mount", "-t", "tmpfs", "-o", "size=64m", "leadline-test", str(small)]
    if subprocess.run(made, check=False).returncode:
        pytest.skip("this machine does not mount a tmpfs")
    try:
        arena = Arena(tmp_path, "bpf")
        words = ("--keep-trace", str(small / "kept"), "--", *PYTHON, "-c", READS, "data")
        answer = arena.described(*words)
        assert any("trace not kept: the disk has no more room" in w for w in answer["warnings"])
        assert answer["predictable"] is True
        assert not [*small.iterdir()]
    finally:
        subprocess.run(["umount", str(small)], check=True)


def test_the_words_of_a_command_are_not_stored_unless_that_is_asked_for(arena: Arena) -> None:
    command = ("--", *PYTHON, "-c", READS, "data", "--password=hunter2")
    answer = arena.described("--way", arena.way, *command)
    assert "hunter2" not in json.dumps(answer)
    assert answer["facts"]["requests"] >= 2000
    asked = arena.described("--way", arena.way, "--keep-command", *command)
    assert "hunter2" in json.dumps(asked)
    assert b"hunter2" in (arena.folder / "store.sqlite").read_bytes()


OF_32_BITS = (
    READS
    + """
import ctypes, mmap
code = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
code.write(bytes([0xB8, 20, 0, 0, 0, 0xCD, 0x80, 0xC3]))  # mov eax, getpid; int 0x80; ret
ask = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(code)))
for number in range(50):
    assert ask() == os.getpid()
"""
)


def test_calls_of_32_bits_are_counted(arena: Arena) -> None:
    plain = [sys.executable, "-I", "-c", OF_32_BITS, "data"]
    if subprocess.run(plain, cwd=arena.folder, check=False, capture_output=True).returncode:
        pytest.skip("this kernel runs no calls of 32 bits")
    (arena.folder / "data").unlink()
    answer = arena.described("--way", arena.way, "--", *plain)
    assert answer["capture"]["calls_of_32_bits"] == 50
