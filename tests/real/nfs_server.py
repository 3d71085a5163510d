"""A real NFS server for tests and benchmarks: nfs-ganesha in a network namespace of its own.

Ganesha serves NFSv3 and v4 from a directory of this machine, as its FSAL VFS does for anybody. Its
v3 registers with rpcbind, which binds every interface: so both live in a network namespace, reached
from here over a veth pair (`10.213.K.2`), with a /run of their own, where rpcbind has its socket.
Several servers run side by side: each holds a numbered slot, the lock of which ends with the
process that started it. What a killed test left in a slot is removed by the next to start; the
server itself dies with its starter.

Two exports of the same directory:

`/exp`   as ganesha has it by default: an UNSTABLE write is a `pwritev` into the server's file
         cache and is answered then; a FILE_SYNC write is `pwritev` and `fsync` (seen with strace).
`/sync`  synchronous (`NFS_Commit = true`): every write is `pwritev` and `fsync`, whatever the
         client asks for.

By hand, until Ctrl-C: `python tests/real/nfs_server.py DIR [128MiB]`.

The server's file cache is this kernel's, charged to the server's memory cgroup when it has one. It
outlives the server's process: a restarted server finds it warm.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO

from leadline.engine import CacheLimitRefused, memory_cgroup
from leadline.engine.cgroup import MemoryCgroup, remove_stale
from leadline.engine.hierarchy import find_hierarchy
from leadline.units import parse_bytes

SLOTS = Path("/run/leadline-nfs")
SLOTS_MAX = 250
NFS_PORT, MOUNT_PORT, RPCBIND_PORT = 2049, 20048, 111
TRANSFER_BYTES_MAX = 256 << 10
"""Most bytes of a READ or WRITE. Ganesha has a buffer for each call: with its own 64 MiB, or with
libntirpc's 1 MiB, the 64 callers of a survey get a server in a small cgroup killed for memory."""
START_S_MAX = 20.0
END_S_MAX = 5.0
"""A SIGTERM lets ganesha remove its registrations; after this it is killed."""
CACHESTAT = 451
"""Number of cachestat(2), since Linux 6.5, on every architecture."""
COMMANDS = {
    "ganesha.nfsd": "nfs-ganesha", "rpcbind": "rpcbind", "ip": "iproute2", "setpriv": "util-linux",
}  # fmt: skip
CAPABILITIES = {"CAP_DAC_READ_SEARCH": 2, "CAP_NET_ADMIN": 12, "CAP_SYS_ADMIN": 21}

CONFIGURATION = """
NFS_CORE_PARAM {{
    NFS_Port = {nfs}; MNT_Port = {mount}; Protocols = 3,4; mount_path_pseudo = true;
    Enable_NLM = false; Enable_RQUOTA = false; Enable_UDP = false; Clustered = false;
    RPC_Ioq_ThrdMax = 16;
}}
NFS_KRB5 {{ Active_krb5 = false; }}
NFSv4 {{
    Graceless = true; Minor_Versions = 0,1,2; RecoveryBackend = fs; RecoveryRoot = "/run/rec";
}}
EXPORT {{
    Export_Id = 1; Path = "{directory}"; Pseudo = /exp; Protocols = 3,4; Access_Type = RW;
    Squash = no_root_squash; SecType = sys; MaxRead = {most}; MaxWrite = {most};
    PrefRead = {most}; PrefWrite = {most}; FSAL {{ Name = VFS; }}
}}
EXPORT {{
    Export_Id = 2; Path = "{directory}"; Pseudo = /sync; Tag = sync; Protocols = 3,4;
    Access_Type = RW; Squash = no_root_squash; SecType = sys; NFS_Commit = true;
    MaxRead = {most}; MaxWrite = {most}; PrefRead = {most}; PrefWrite = {most};
    FSAL {{ Name = VFS; }}
}}
"""


class ServerFailed(Exception):
    """The server did not start; the message has the end of its log."""


def why_not(directory: Path) -> str | None:
    """Say why no server can run here on this directory; None when one can."""
    if os.geteuid() != 0:
        return "not root"
    absent = [package for command, package in COMMANDS.items() if not shutil.which(command)]
    if not any(Path("/usr/lib").glob("*/ganesha/libfsalvfs.so")):
        absent.append("nfs-ganesha-vfs")
    if absent:
        return f"missing packages: {' '.join(absent)} (tests/packages installs them)"
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    effective = int(next(line for line in lines if line.startswith("CapEff:")).split()[1], 16)
    lacking = [name for name, bit in CAPABILITIES.items() if not effective >> bit & 1]
    if lacking:
        return f"root without {', '.join(lacking)}"
    if not _gives_handles(directory):
        return f"the file system of {directory} gives no file handles, so it cannot be exported"
    return None


def _gives_handles(directory: Path) -> bool:
    """Whether name_to_handle_at(2) works: asked with no room, it then answers EOVERFLOW."""
    libc = ctypes.CDLL(None, use_errno=True)
    handle, mount_id = ctypes.create_string_buffer(8), ctypes.c_int()
    libc.name_to_handle_at(-100, os.fsencode(directory), handle, ctypes.byref(mount_id), 0)
    return ctypes.get_errno() == errno.EOVERFLOW


class NfsServer:
    """A running server, and what a test may do to it."""

    def __init__(self, number: int, directory: Path, group: MemoryCgroup | None) -> None:
        self.directory = directory
        self.group = group
        self.state = SLOTS / str(number)
        self.namespace = f"leadline-nfs-{number}"
        self.address = f"10.213.{number}.2"
        self._near = f"10.213.{number}.1"
        self._link = f"llnfs{number}"
        self._rpcbind: subprocess.Popen[bytes] | None = None
        self._ganesha: subprocess.Popen[bytes] | None = None

    def url(self, export: str = "exp") -> str:
        """The target, its ports found through rpcbind."""
        return f"nfs://{self.address}/{export}"

    def url_with_ports(self, export: str = "exp") -> str:
        """The target with its ports spelled out."""
        return f"nfs://{self.address}:{NFS_PORT}/{export}?mountport={MOUNT_PORT}"

    @property
    def pid(self) -> int:
        """The process of ganesha."""
        assert self._ganesha is not None
        return self._ganesha.pid

    @property
    def log(self) -> Path:
        """Ganesha's own words since its last start."""
        return self.state / "ganesha.log"

    def resident_bytes(self) -> int:
        """What the server's process itself takes of its cgroup's memory."""
        pages = Path(f"/proc/{self.pid}/statm").read_text(encoding="ascii").split()[1]
        return int(pages) * os.sysconf("SC_PAGE_SIZE")

    def limit_link(self, mbit_s: int) -> None:
        """Give the link between here and the server this rate in both directions (tc-tbf)."""
        shape = f"root tbf rate {mbit_s}mbit burst 128kb latency 200ms"
        _run("tc", "qdisc", "replace", "dev", self._link, *shape.split())
        _run("tc", "-n", self.namespace, "qdisc", "replace", "dev", f"{self._link}s",
             *shape.split())  # fmt: skip

    def dirty_pages(self, path: Path) -> int | None:
        """Pages of a file below `directory` that no disk has yet; None without cachestat(2)."""
        found = (ctypes.c_uint64 * 5)()
        whole = (ctypes.c_uint64 * 2)(0, 0)
        libc = ctypes.CDLL(None, use_errno=True)
        with path.open("rb") as file:
            if libc.syscall(CACHESTAT, file.fileno(), ctypes.byref(whole), ctypes.byref(found), 0):
                return None
        return found[1] + found[2]

    def start(self) -> None:
        """Start ganesha and wait until it answers.

        Raises:
            ServerFailed: it ended, or is silent.

        """
        self.log.unlink(missing_ok=True)
        words = "ganesha.nfsd -F -f /run/ganesha.conf -L /run/ganesha.log -p /run/ganesha.pid"
        self._ganesha = self._run(words, self.group)
        self._wait(self._ganesha, NFS_PORT, "NFS SERVER INITIALIZED")

    def kill(self) -> None:
        """End it as a crash does, without a goodbye: the kernel closes its connections."""
        self._end(signal.SIGKILL)

    def stall(self) -> None:
        """Stop it: connections stay open, nothing is answered."""
        os.kill(self.pid, signal.SIGSTOP)

    def resume(self) -> None:
        """Let it go on after `stall`."""
        os.kill(self.pid, signal.SIGCONT)

    def restart(self) -> None:
        """Kill it and start it again: another write verifier, the same file handles."""
        self.kill()
        self.start()

    def open(self) -> None:
        """Make the namespace and start both servers in it."""
        (self.state / "rec").mkdir(parents=True)
        text = CONFIGURATION.format(
            nfs=NFS_PORT, mount=MOUNT_PORT, directory=self.directory, most=TRANSFER_BYTES_MAX
        )
        (self.state / "ganesha.conf").write_text(text, encoding="utf-8")
        far = f"{self._link}s"
        _ip("netns", "add", self.namespace)
        _ip("link", "add", self._link, "type", "veth", "peer", "name", far)
        _ip("link", "set", far, "netns", self.namespace)
        _ip("addr", "add", f"{self._near}/30", "dev", self._link)
        _ip("link", "set", self._link, "up")
        for words in (f"addr add {self.address}/30 dev {far}", f"link set {far} up",
                      "link set lo up"):  # fmt: skip
            _ip("-n", self.namespace, *words.split())
        self._rpcbind = self._run("rpcbind -f", None)
        self._wait(self._rpcbind, RPCBIND_PORT, None)
        self.start()

    def close(self) -> None:
        """End both servers and remove everything."""
        self._end(signal.SIGTERM)
        if self._rpcbind is not None:
            self._rpcbind.kill()
            self._rpcbind.wait()
        self.remove()

    def remove(self) -> None:
        """Remove what this slot has, from this or from a killed process."""
        known = _ip("netns", "list").split()
        if self.namespace in known:
            end_s = time.monotonic() + END_S_MAX
            while (pids := _ip("netns", "pids", self.namespace).split()) and (
                time.monotonic() < end_s
            ):
                for pid in pids:
                    with suppress(ProcessLookupError):
                        os.kill(int(pid), signal.SIGKILL)
                time.sleep(0.01)
            _ip("netns", "del", self.namespace)
        with suppress(ServerFailed):  # it goes with its namespace, if not at once
            _ip("link", "del", self._link)
        shutil.rmtree(self.state, ignore_errors=True)

    def _run(self, command: str, group: MemoryCgroup | None) -> subprocess.Popen[bytes]:
        """Start a program in namespace and group; `state` is its /run, and it dies with us."""
        inside = f"mount --bind {self.state} /run && exec {command}"
        outside = shlex.join(["ip", "netns", "exec", self.namespace, "sh", "-c", inside])
        # Before `ip netns exec`, which gives the program another /sys.
        joins = f"echo $$ >{group.path}/cgroup.procs && " if group else ""
        with (self.state / f"{command.split(maxsplit=1)[0]}.out").open("ab") as out:
            return subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", "sh", "-c", f"{joins}exec {outside}"],
                env=os.environ | {"MALLOC_ARENA_MAX": "2"},  # else an arena for each thread
                stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT,
                start_new_session=True,  # Ctrl-C is for the test, which then ends the server
            )  # fmt: skip

    def _wait(self, process: subprocess.Popen[bytes], port: int, said: str | None) -> None:
        end_s = time.monotonic() + START_S_MAX
        while time.monotonic() < end_s and process.poll() is None:
            with suppress(OSError):
                if said is None or said in self.log.read_text(encoding="utf-8", errors="replace"):
                    socket.create_connection((self.address, port), timeout=1).close()
                    return
            time.sleep(0.02)
        outs = [*self.state.glob("*.out"), self.log]
        tails = [out.read_text(errors="replace")[-1500:] for out in outs if out.exists()]
        raise ServerFailed(f"no server at port {port}:\n" + "\n".join(tails))

    def _end(self, how: signal.Signals) -> None:
        if self._ganesha is None:
            return
        self._ganesha.send_signal(how)
        self._ganesha.send_signal(signal.SIGCONT)  # a stopped process keeps SIGTERM for later
        try:
            self._ganesha.wait(END_S_MAX)
        except subprocess.TimeoutExpired:
            self._ganesha.kill()
            self._ganesha.wait()
        self._ganesha = None


@contextmanager
def nfs_server(directory: Path, *, memory_bytes: int | None = None) -> Iterator[NfsServer]:
    """Serve a directory until the block ends, under a memory limit when one is given.

    Raises:
        ServerFailed: it did not start; the message has the end of its log.
        CacheLimitRefused: no memory cgroup can be had.

    """
    with ExitStack() as stack:
        number, lock = _slot()
        stack.enter_context(lock)
        server = NfsServer(number, directory.resolve(), None)
        server.remove()
        _remove_stale()
        if memory_bytes is not None:
            server.group = stack.enter_context(memory_cgroup(memory_bytes))
        stack.callback(server.close)
        server.open()
        yield server


def _slot() -> tuple[int, IO[bytes]]:
    """Return the first number that nobody holds, with the file that holds it."""
    SLOTS.mkdir(exist_ok=True)
    for number in range(1, SLOTS_MAX):
        lock = _hold(number)
        if lock is not None:
            return number, lock
    raise ServerFailed(f"all {SLOTS_MAX} slots in {SLOTS} are held")


def _hold(number: int) -> IO[bytes] | None:
    lock = (SLOTS / f"{number}.lock").open("ab")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.close()
        return None
    return lock


def _remove_stale() -> None:
    """Remove what killed tests left in other slots, then their groups, empty by now.

    Ganesha died with its starter; rpcbind is there still, since its setuid clears PDEATHSIG.
    """
    for folder in SLOTS.iterdir():
        if folder.is_dir() and (lock := _hold(int(folder.name))) is not None:
            with lock:
                NfsServer(int(folder.name), folder, None).remove()
    with suppress(CacheLimitRefused):
        remove_stale(find_hierarchy().parent)


def _ip(*words: str) -> str:
    return _run("ip", *words)


def _run(*words: str) -> str:
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ServerFailed(f"{' '.join(words)}: {done.stderr.strip()}")
    return done.stdout


def main() -> None:
    """Serve a directory until Ctrl-C."""
    directory = Path(sys.argv[1])
    memory_bytes = parse_bytes(sys.argv[2]) if len(sys.argv) > 2 else None
    if reason := why_not(directory):
        sys.exit(f"no NFS server here: {reason}")
    for number in (signal.SIGINT, signal.SIGTERM):  # a shell's background job ignores the first
        signal.signal(number, signal.default_int_handler)
    with nfs_server(directory, memory_bytes=memory_bytes) as server:
        print(
            f"{server.url()}  {server.url('sync')}  pid {server.pid}  log {server.log}", flush=True
        )
        with suppress(KeyboardInterrupt):
            signal.pause()


if __name__ == "__main__":
    main()
