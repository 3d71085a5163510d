"""Real programs watched as they run, by BPF and by ptrace, against what they are known to do."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import tempfile
import time
from pathlib import Path

import pytest
from capture_arena import (
    LOOP,
    PYTHON,
    READS,
    Arena,
    command_of,
    exact,
    refused,
    started,
    wait_for_reads,
)

import captured_program
from command import LEADLINE


def records(path: Path) -> dict[int, list[tuple[str, int, int]]]:
    """Return what was kept of reads and writes, by their bytes: R or W, file, offset."""
    found: dict[int, list[tuple[str, int, int]]] = {}
    for line in path.read_text(encoding="ascii").splitlines()[1:]:
        sign, _, file, offset, size, *_ = line.split(" ")
        if sign in "RW":
            found.setdefault(int(size), []).append((sign, int(file), int(offset)))
    return found


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


INTO_NEW_MEMORY = """
import mmap, os, sys
file = os.open(sys.argv[1], os.O_RDONLY)
for number in range(2000):
    os.pread(file, 17, number)
memory = mmap.mmap(-1, 1 << 20)
for _ in range(2):
    os.preadv(file, [memory], 0)
"""


def test_how_long_a_file_was_and_into_what_memory_it_was_read_is_told(arena: Arena) -> None:
    data, kept = arena.folder / "megabyte", arena.folder / "kept"
    data.write_bytes(bytes(1 << 20))
    command = ("--", *PYTHON, "-c", INTO_NEW_MEMORY, str(data))
    arena.described("--way", arena.way, "--keep-trace", str(kept), *command)
    lines = [line.split(" ") for line in kept.read_text(encoding="ascii").splitlines()[1:]]
    file, *_ = {line[2] for line in lines if line[0] == "R" and line[4] == "17"}
    own = [line for line in lines if line[2] == file]
    assert [(line[0], line[4]) for line in own[:2]] == [("L", str(1 << 20)), ("R", "17")]
    faults = [int(line[7]) for line in own if line[0] == "R" and line[4] == str(1 << 20)]
    if arena.way == "bpf":
        assert faults[0] > faults[1] == 0, "the memory came once, in pages of whatever size"
    else:
        assert faults == [0, 0], "nobody counts them"


REMOVES = f"""{READS}
def make(name, size):
    file = os.open(name, os.O_RDWR | os.O_CREAT)
    os.pwrite(file, bytes(size), 0)
    return file
os.mkdir("below")
os.close(make("below/plain", 101))
os.unlink("below/plain")
os.close(make("twice", 102))
os.link("twice", "another name")
os.unlink("twice")
kept = make("open", 103)
os.unlink(os.path.abspath("open"))
os.pwrite(kept, bytes(104), 0)
os.close(make("below/within", 105))
os.unlink("within", dir_fd=os.open("below", os.O_RDONLY))
os.close(make("cut", 106))
os.open("cut", os.O_RDWR | os.O_TRUNC)
os.mkdir("below/folder")
os.close(make("below/folder/stays", 107))
try:
    os.unlink("below/folder")
except IsADirectoryError:
    pass
"""


def test_a_file_that_loses_its_last_name_or_its_data_is_told(arena: Arena) -> None:
    kept = arena.folder / "kept"
    words = ("--way", arena.way, "--keep-trace", str(kept), "--", *PYTHON, "-c", REMOVES, "data")
    arena.described(*words)
    lines = [line.split(" ") for line in kept.read_text(encoding="ascii").splitlines()[1:]]
    sizes = {line[2]: int(line[4]) for line in lines if line[0] == "W" and line[4] != "104"}
    assert set(sizes.values()) == set(range(101, 108)) - {104}
    assert [sizes[line[2]] for line in lines if line[0] == "D"] == [101, 103, 105, 106]


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
    assert any("failed, with exit code 7" in each["text"] for each in answer["findings"])
    killed = READS + "os.kill(os.getpid(), 9)"
    answer = arena.described("--way", arena.way, "--", *PYTHON, "-c", killed, "data")
    assert answer["capture"]["ended"] == {"code": None, "signal": 9}


def test_paths_are_hashed_unless_they_are_asked_for(any_way: Arena) -> None:
    words = ("--way", any_way.way, "--json", "--", *PYTHON, "-c", READS, "data")
    done = any_way.characterize(*words)
    assert done.returncode == 0, done.stderr
    files = json.loads(done.stdout)["capture"]["files"]
    assert all(re.fullmatch("[0-9a-f]{16}", each["name"]) for each in files)
    assert {each["requests"] for each in files} >= {2000}


def test_a_process_is_watched_for_a_while_and_goes_on(arena: Arena) -> None:
    with started(arena) as loop:
        try:
            words = ("--json", "--keep-paths", "--way", arena.way, "--pid", str(loop.pid))
            done = arena.characterize(*words, "--seconds", "3")
            assert done.returncode == 0, done.stderr
            answer = json.loads(done.stdout)
            assert loop.poll() is None
            tracer = Path(f"/proc/{loop.pid}/status").read_text(encoding="utf-8")
            assert "TracerPid:\t0" in tracer
        finally:
            loop.kill()
    (used,) = answer["capture"]["files"][:1]
    assert used["name"] == str(arena.folder / "data")
    assert used["read_bytes"] == 4096 * used["requests"] > 4096 * 1000
    assert answer["capture"]["bytes_off"] <= (0.0 if arena.way == "ptrace" else 0.01)
    assert answer["capture"]["ended"] is None
    assert answer["workload"]["unique_bytes"] == 1 << 20


def test_ctrl_c_ends_the_watching_of_a_process_and_describes_it(arena: Arena) -> None:
    with started(arena) as loop:
        try:
            watching = arena.run(
                LEADLINE, "characterize", "--json", "--way", arena.way, "--pid", str(loop.pid)
            )
            wait_for_reads(watching, loop.pid, arena.way)
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
    wait_for_reads(watching, command_of(watching.pid), arena.way)
    watching.send_signal(signal.SIGTERM)
    out, error = watching.communicate(timeout=60)
    assert watching.returncode == 3, error
    capture = json.loads(out)["capture"]
    assert capture["ended"] == {"code": None, "signal": signal.SIGTERM}
    assert capture["stopped"] == signal.SIGTERM
    assert capture["bytes_off"] == 0.0


def test_what_cannot_be_watched_is_refused_with_what_to_do(arena: Arena) -> None:
    refused(arena, "there is no command nosuch: give its path", "--", "nosuch")
    refused(arena, "is no program that may be run", "--", str(arena.folder))
    refused(arena, "there is no process 4194300 to be watched", "--pid", "4194300")
    refused(arena, "(exit code 3): it made", "--", "sh", "-c", "exit 3")


def test_what_goes_with_nothing_is_refused_by_either_way(tmp_path: Path) -> None:
    arena = Arena(tmp_path, "ptrace" if os.geteuid() else "bpf")
    refused(arena, "is no control group: give its folder", "--cgroup", str(arena.folder))
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
