"""What a hostile reading of live capture found: each was seen to fail before it was mended."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
from capture_arena import LOOP, PYTHON, READS, Arena, exact, started, wait_for_reads

from command import LEADLINE

BLOCKS_ALL = "import signal; signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))\n" + LOOP
REPLACED = (
    "import os, sys, threading, time\n"
    f"NEXT = ['-I', '-S', '-c', {READS!r}, 'data']\n"
    """
def replace():
    while not os.path.exists('go'):
        time.sleep(0.01)
    os.execv(sys.executable, [sys.executable, *NEXT])
threading.Thread(target=replace).start()
""" + LOOP
)
DIES_OF_SIGURG = "import os, signal; signal.signal(signal.SIGURG, lambda *_: os._exit(9))\n" + LOOP


def state_of(pid: int) -> str:
    """The letter of proc_pid_stat(5)."""
    return Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rsplit(")", 1)[1].split()[0]


@pytest.mark.parametrize(
    ("program", "stop"),
    [
        pytest.param(BLOCKS_ALL, "seconds", id="blocks-seconds"),
        pytest.param(DIES_OF_SIGURG, "ctrl-c", id="dies-ctrl-c"),
        pytest.param(BLOCKS_ALL, "ctrl-c", id="blocks-ctrl-c", marks=pytest.mark.long),
        pytest.param(DIES_OF_SIGURG, "seconds", id="dies-seconds", marks=pytest.mark.long),
    ],
)
def test_the_watched_process_gets_no_signal_by_which_watching_ends(
    arena: Arena, program: str, stop: str
) -> None:
    with arena.run(*PYTHON, "-c", program, "data") as loop:
        try:
            assert loop.stdout is not None
            assert loop.stdout.readline() == "ready\n"
            words = ("--json", "--way", arena.way, "--pid", str(loop.pid))
            more = ("--seconds", "3") if stop == "seconds" else ()
            with arena.run(LEADLINE, "characterize", *words, *more) as watching:
                if stop == "ctrl-c":
                    wait_for_reads(watching, loop.pid, arena.way)
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
            again = arena.described("--way", arena.way, "--pid", str(loop.pid), "--seconds", "3")
            assert again["capture"]["calls"] > 1000
        finally:
            loop.kill()


def test_a_process_that_ends_meanwhile_ends_the_watching(arena: Arena) -> None:
    with started(arena) as loop:
        words = ("--json", "--way", arena.way, "--pid", str(loop.pid))
        with arena.run(LEADLINE, "characterize", *words) as watching:
            wait_for_reads(watching, loop.pid, arena.way)
            loop.kill()
            said, error = watching.communicate(timeout=60)
    assert watching.returncode == 0, (said, error)


def test_a_first_thread_that_another_replaces_by_exec_is_counted(arena: Arena) -> None:
    """The kernel tells no end of it, and gives its number to the other."""
    with arena.run(*PYTHON, "-c", REPLACED, "data") as loop:
        assert loop.stdout is not None
        assert loop.stdout.readline() == "ready\n"
        words = ("--json", "--way", arena.way, "--pid", str(loop.pid))
        with arena.run(LEADLINE, "characterize", *words) as watching:
            wait_for_reads(watching, loop.pid, arena.way)
            (arena.folder / "go").touch()
            said, error = watching.communicate(timeout=60)
        loop.wait(timeout=10)
    assert watching.returncode == 0, (said, error)
    capture = json.loads(said)["capture"]
    assert capture["read_bytes"][0] > 20_000 * 4096
    # Exec kills the first thread, perhaps in a read that is counted and that nobody sees end.
    bytes_off = capture["bytes_off"] * sum(capture["counted_bytes"])
    assert bytes_off <= (4096 if arena.way == "ptrace" else 0.01 * 20_000 * 4096), capture


def test_a_process_that_has_ended_and_is_not_reaped_is_not_waited_for(arena: Arena) -> None:
    """Its number and its folder are there, and nobody tells of its end any more."""
    with started(arena) as loop:
        loop.kill()
        while state_of(loop.pid) != "Z":
            time.sleep(0.01)
        done = arena.characterize("--json", "--way", arena.way, "--pid", str(loop.pid))
    assert done.returncode == 2, done.stderr
    assert "Traceback" not in done.stderr


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


@pytest.mark.parametrize("after_s", [0.45, 0.9])
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
        assert "rights_lost" in [each["code"] for each in answer["findings"]]


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


def test_a_run_that_ends_otherwise_makes_no_ratio(any_way: Arena) -> None:
    script = "dd if=/dev/zero of=a bs=4096 count=2000 2>e; mkdir once"
    words = ("--way", any_way.way, "--perturbation", "3", "--", "sh", "-c", script)
    done = any_way.characterize(*words)
    assert done.returncode == 2
    assert "ended otherwise (exit code 1)" in " ".join(done.stderr.split())


def test_ctrl_c_ends_pairs_of_runs(any_way: Arena) -> None:
    script = "dd if=/dev/zero of=a bs=4096 count=2000 2>e; sleep 2"
    words = ("--way", any_way.way, "--perturbation", "9", "--", "sh", "-c", script)
    with any_way.run(LEADLINE, "characterize", *words, start_new_session=True) as watching:
        while not (any_way.folder / "a").exists():  # in the first run
            time.sleep(0.02)
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
        assert any(
            "trace not kept: the disk has no more room" in f["text"] for f in answer["findings"]
        )
        assert answer["predictable"] is True
        assert not [*small.iterdir()]
    finally:
        subprocess.run(["umount", str(small)], check=True)


def test_the_words_of_a_command_are_not_stored_unless_that_is_asked_for(any_way: Arena) -> None:
    command = ("--", *PYTHON, "-c", READS, "data", "--password=hunter2")
    answer = any_way.described("--way", any_way.way, *command)

    def stored() -> bytes:
        return b"".join(each.read_bytes() for each in any_way.folder.glob("store.sqlite*"))

    assert "hunter2" not in json.dumps(answer)
    assert b"hunter2" not in stored()
    assert answer["facts"]["requests"] >= 2000
    asked = any_way.described("--way", any_way.way, "--keep-command", *command)
    assert "hunter2" in json.dumps(asked)
    assert b"hunter2" in stored()


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


BURST = """
import os, sys
fd = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
os.ftruncate(fd, 1 << 20)
def read(times):
    for number in range(times):
        os.pread(fd, 512, number % 256 * 4096)
print('ready', flush=True)
for line in sys.stdin:
    read(int(line))
    print('done', flush=True)
"""


def test_calls_for_which_there_was_no_room_are_told_and_not_predicted_from() -> None:
    """The watcher stands still while a program makes more calls than the kernel keeps for it."""
    if os.geteuid() != 0:
        pytest.skip("programs of BPF are for root")
    with tempfile.TemporaryDirectory(prefix="leadline-lost-") as text:
        arena = Arena(Path(text), "bpf")
        program = arena.run(*PYTHON, "-c", BURST, "data", stdin=subprocess.PIPE)
        assert program.stdin is not None
        assert program.stdout is not None

        def read(times: int) -> None:
            print(times, file=program.stdin, flush=True)
            assert program.stdout is not None
            assert program.stdout.readline() == "done\n"

        with program:
            assert program.stdout.readline() == "ready\n"
            words = ("--json", "--way", "bpf", "--pid", str(program.pid))
            with arena.run(LEADLINE, "characterize", *words) as watching:
                assert watching.stderr is not None
                for line in watching.stderr:
                    if line == f"watching process {program.pid}\n":
                        break
                else:
                    pytest.skip("no BPF here")
                read(2_000)
                watching.send_signal(signal.SIGSTOP)
                read(600_000)
                watching.send_signal(signal.SIGCONT)
                program.stdin.close()  # by which it ends, and the watching with it
                said, error = watching.communicate(timeout=60)
    assert watching.returncode == 3, error
    answer = json.loads(said)
    assert answer["capture"]["lost"] > 1_000
    assert "calls_lost" in [each["code"] for each in answer["findings"]]
    assert answer["predictable"] is False


def test_a_program_that_maps_its_data_is_told_of() -> None:
    """What it reads by touching memory is no request, and more than those move."""
    if os.geteuid() != 0:
        pytest.skip("programs of BPF are for root")
    maps = (
        READS + "import mmap\nwhole = mmap.mmap(os.open('mapped', os.O_RDONLY), 0, prot=1)\n"
        "assert sum(whole[::4096]) == 0\n"
    )
    with tempfile.TemporaryDirectory(prefix="leadline-mapped-") as text:
        arena = Arena(Path(text), "bpf")
        (arena.folder / "mapped").write_bytes(bytes(32 << 20))
        answer = arena.described("--way", "bpf", "--", *PYTHON, "-c", maps, "data")
    if answer["capture"]["mapped_bytes"] is None:
        pytest.skip("this kernel does not tell what mappings use")
    # Neighbours of a touched page are mapped with it and not always told of; Python maps some, too.
    assert 16 << 20 < answer["capture"]["mapped_bytes"] < 48 << 20
    assert "mapped" in [each["code"] for each in answer["findings"]]
