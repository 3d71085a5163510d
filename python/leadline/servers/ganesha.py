"""nfs-ganesha on this machine: configured, started in a network namespace of its own, stopped.

Its NFSv3 registers with rpcbind, which binds every interface: so both live in a network namespace,
with a /run of their own, where rpcbind has its socket. The load generator is in a second one, and a
veth pair joins the two (`10.213.K.2`): no program of this machine or of another reaches the server.
It takes calls from privileged ports only, and whoever calls is the owner of what is exported, never
root. Several servers run side by side: each holds a numbered slot, the lock of which ends with
the process that started it. What a killed Leadline left in a slot is removed by the next start; the
server itself dies with its starter.

Two exports of the same files:

`/exp`   as ganesha has it by default: an UNSTABLE write is a `pwritev` into the server's page
         cache and is answered then; a FILE_SYNC write is `pwritev` and `fsync` (seen with strace).
`/sync`  synchronous (`NFS_Commit = true`): every write is `pwritev` and `fsync`, whatever the
         client asks for. A back end in memory has none.

The server's page cache is this kernel's, charged to the server's memory cgroup when it has one. It
outlives the server's process: a restarted server finds it warm.
"""

from __future__ import annotations

import ctypes
import errno
import os
import re
import shlex
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Literal

import msgspec

from leadline.errors import CacheLimitRefused, EngineFault
from leadline.machine.cgroup import MemoryCgroup, memory_cgroup, remove_stale
from leadline.machine.hierarchy import find_hierarchy
from leadline.machine.stop import shielded
from leadline.servers.slots import SLOTS, free_slot, left_slots

NFS_PORT, MOUNT_PORT, RPCBIND_PORT = 2049, 20048, 111
TRANSFER_BYTES_MAX = 256 << 10
"""Most bytes of a READ or WRITE. Ganesha has a buffer for each call: with its own 64 MiB, or with
libntirpc's 1 MiB, the 64 callers of a survey get a server in a small cgroup killed for memory."""
START_S_MAX = 20.0
END_S_MAX = 5.0
"""A SIGTERM lets ganesha remove its registrations; after this it is killed."""
THREADS_MIN = 2
"""Ganesha 4.3 takes no less."""
STALL_US_MAX = 1000
"""The same: no more."""
COMMANDS = {
    "ganesha.nfsd": "nfs-ganesha",
    "rpcbind": "rpcbind",
    "ip": "iproute2",
    "setpriv": "util-linux",
    "nsenter": "util-linux",
}
CAPABILITIES = {"CAP_DAC_READ_SEARCH": 2, "CAP_NET_ADMIN": 12, "CAP_SYS_ADMIN": 21}

OWNER = 65534
"""Who makes the files of a load, whoever calls: nobody, who owns nothing else."""
_ACCESS = """Protocols = 3,4; Access_Type = RW; SecType = sys; PrivilegedPort = true; {squash}
    MaxRead = {most}; MaxWrite = {most}; PrefRead = {most}; PrefWrite = {most};"""
_SERVER = """
NFS_CORE_PARAM {{
    NFS_Port = {nfs}; MNT_Port = {mount}; Protocols = 3,4; mount_path_pseudo = true;
    Enable_NLM = false; Enable_RQUOTA = false; Enable_UDP = false; Clustered = false;
    RPC_Ioq_ThrdMax = {threads};
}}
NFS_KRB5 {{ Active_krb5 = false; }}
NFSv4 {{
    Graceless = true; Minor_Versions = 0,1,2; RecoveryBackend = fs; RecoveryRoot = "/run/rec";
}}
"""
_VFS = """
EXPORT {{
    Export_Id = 1; Path = "{path}"; Pseudo = /exp; FSAL {{ Name = VFS; }}
    {access}
}}
EXPORT {{
    Export_Id = 2; Path = "{path}"; Pseudo = /sync; Tag = sync; NFS_Commit = true;
    FSAL {{ Name = VFS; }}
    {access}
}}
"""
_MEM = """
MEM {{ Async_Threads = {async_threads}; Inode_Size = {inode_bytes}; }}
EXPORT {{
    Export_Id = 1; Path = /exp; Pseudo = /exp;
    FSAL {{
        Name = MEM; Async_Type = fixed; Async_Delay = {delay_us}; Async_Stall_Delay = {stall_us};
    }}
    {access}
}}
"""
_EXPORT = "/run/export"
"""Where the server's own namespace has a file system mounted for it."""
_NAMESPACES = Path("/run/netns")
_LISTENING = "0A"
"""TCP_LISTEN, in /proc/net/tcp."""
_LET_GO = (
    "grep ^/dev/loop /proc/self/mounts | cut -d' ' -f2 | while read -r at; do "
    'case "$EXPORTED/" in "$at"/*) ;; *) umount -l "$at" 2>/dev/null;; esac; done; '
)
"""A new namespace has every mount of this machine: others' loop devices must not wait for it."""
_ASYNC_THREADS = 64
"""What is above it is served at once, without the delay: more than ganesha has workers."""
_INODE_BYTES = 65_536
"""FSAL_MEM keeps so much of each file; what is read beyond it is filler."""


class ServerFailed(Exception):
    """The server did not start; the message has the end of its log."""


class GaneshaSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What one server is made of."""

    directory: Path | None = None
    """Exported by the back end `vfs`; None with `mount`."""
    back_end: Literal["vfs", "mem"] = "vfs"
    threads: int = 16
    """RPC_Ioq_ThrdMax. Ganesha 4.3 keeps some of them for itself: max(3, threads - 4) serve."""
    delay_us: int = 100
    """Of the back end in memory: each read and write is answered so much later,"""
    stall_us: int = STALL_US_MAX
    """and keeps its worker so long."""
    owner: int | None = None
    """As whom every call is done; None: as whom the caller says he is, root too."""
    mount: tuple[str, ...] = ()
    """What `mount` is given to mount the exported file system, in the server's own namespace."""
    groups: tuple[Path, ...] = ()
    """More cgroups for the server."""


def why_no_ganesha(directory: Path | None, back_end: str = "vfs") -> str | None:
    """Say why no server can run here on this directory; None when one can."""
    if os.geteuid() != 0:
        return "not root"
    absent = [package for command, package in COMMANDS.items() if not shutil.which(command)]
    if not any(Path("/usr/lib").glob(f"*/ganesha/libfsal{back_end}.so")):
        absent.append(f"nfs-ganesha-{back_end}")
    if absent:
        return f"missing packages: {' '.join(absent)} (apt-get install them)"
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    effective = int(next(line for line in lines if line.startswith("CapEff:")).split()[1], 16)
    lacking = [name for name, bit in CAPABILITIES.items() if not effective >> bit & 1]
    if lacking:
        return f"root without {', '.join(lacking)}"
    if directory is not None and not _gives_handles(directory):
        return f"the file system of {directory} gives no file handles, so it cannot be exported"
    return None


def _gives_handles(directory: Path) -> bool:
    """Whether name_to_handle_at(2) works: asked with no room, it then answers EOVERFLOW."""
    libc = ctypes.CDLL(None, use_errno=True)
    handle, mount_id = ctypes.create_string_buffer(8), ctypes.c_int()
    libc.name_to_handle_at(-100, os.fsencode(directory), handle, ctypes.byref(mount_id), 0)
    return ctypes.get_errno() == errno.EOVERFLOW


class Ganesha:
    """A running server, and what may be done to it."""

    near_is_here = False
    """Whether this machine's own programs reach it: tests' servers are so, and no others."""

    def __init__(self, number: int, settings: GaneshaSettings) -> None:
        self.settings = settings
        self.group: MemoryCgroup | None = None
        self.state = SLOTS / str(number)
        self.namespace = f"leadline-nfs-{number}"
        self.load_namespace = f"leadline-load-{number}"
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

    def reaching(self, command: Sequence[str]) -> tuple[str, ...]:
        """Return a command that runs where the server can be reached."""
        if self.near_is_here:
            return tuple(command)
        return ("nsenter", f"--net={_NAMESPACES / self.load_namespace}", *command)

    @property
    def _in_near(self) -> tuple[str, ...]:
        return () if self.near_is_here else ("-n", self.load_namespace)

    @property
    def pid(self) -> int:
        """The process of ganesha."""
        if self._ganesha is None:
            raise EngineFault("the NFS server was not started")
        return self._ganesha.pid

    @property
    def log(self) -> Path:
        """Ganesha's own words since its last start."""
        return self.state / "ganesha.log"

    def resident_bytes(self) -> int:
        """What the server's process itself takes of its cgroup's memory."""
        pages = Path(f"/proc/{self.pid}/statm").read_text(encoding="ascii").split()[1]
        return int(pages) * os.sysconf("SC_PAGE_SIZE")

    def limit_link(self, mbit_s: float) -> None:
        """Give the link between here and the server this rate in both directions (tc-tbf)."""
        shape = f"root tbf rate {mbit_s:g}mbit burst 128kb latency 200ms"
        _run("tc", *self._in_near, "qdisc", "replace", "dev", self._link, *shape.split())
        _run(
            "tc", "-n", self.namespace, "qdisc", "replace", "dev", f"{self._link}s", *shape.split()
        )

    def why_gone(self) -> str | None:
        """Say how ganesha ended by itself; None while it runs."""
        if self._ganesha is None or self._ganesha.poll() is None:
            return None
        if self.group is not None and self.group.oom_kills():
            return "its memory cgroup was too small for it, and the kernel killed it"
        return f"it ended by itself ({self._ganesha.returncode})"

    def start(self) -> None:
        """Start ganesha and wait until it answers.

        Raises:
            ServerFailed: it ended, or is silent.

        """
        self.log.unlink(missing_ok=True)
        words = "ganesha.nfsd -F -f /run/ganesha.conf -L /run/ganesha.log -p /run/ganesha.pid"
        groups = (*((self.group.path,) if self.group else ()), *self.settings.groups)
        self._ganesha = self._run(words, groups, self.settings.mount)
        self._wait(self._ganesha, NFS_PORT, "NFS SERVER INITIALIZED")

    def stop(self) -> None:
        """End it in order; the namespace and rpcbind stay for the next start."""
        self._end(signal.SIGTERM)

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
        (self.state / "export").mkdir()
        (self.state / "ganesha.conf").write_text(self._configuration(), encoding="utf-8")
        far = f"{self._link}s"
        _ip("netns", "add", self.namespace)
        if not self.near_is_here:
            _ip("netns", "add", self.load_namespace)
        near, peer = self._in_near, f"peer name {far} netns {self.namespace}"
        _ip(*near, "link", "add", self._link, "type", "veth", *peer.split())
        _ip(*near, "addr", "add", f"{self._near}/30", "dev", self._link)
        _ip(*near, "link", "set", self._link, "up")
        for words in (
            f"addr add {self.address}/30 dev {far}",
            f"link set {far} up",
            "link set lo up",
        ):
            _ip("-n", self.namespace, *words.split())
        self._rpcbind = self._run("rpcbind -f", (), ())
        self._wait(self._rpcbind, RPCBIND_PORT, None)
        self.start()

    def close(self) -> None:
        """End both servers and remove everything."""
        self.stop()
        if self._rpcbind is not None:
            self._rpcbind.kill()
            self._rpcbind.wait()
        self.remove()

    def remove(self) -> None:
        """Remove what this slot has, from this or from a killed process."""
        known = _ip("netns", "list").split()
        for namespace in {self.namespace, self.load_namespace} & set(known):
            end_s = time.monotonic() + END_S_MAX
            while (pids := _ip("netns", "pids", namespace).split()) and time.monotonic() < end_s:
                for pid in pids:
                    with suppress(ProcessLookupError):
                        os.kill(int(pid), signal.SIGKILL)
                time.sleep(0.01)
            _ip("netns", "del", namespace)
        with suppress(ServerFailed):  # it goes with its namespace, if not at once
            _ip("link", "del", self._link)
        shutil.rmtree(self.state, ignore_errors=True)

    def _configuration(self) -> str:
        settings = self.settings
        owner = settings.owner
        squash = f"Squash = all_squash; Anonymous_Uid = {owner}; Anonymous_Gid = {owner};"
        access = _ACCESS.format(
            most=TRANSFER_BYTES_MAX, squash="Squash = no_root_squash;" if owner is None else squash
        )
        server = _SERVER.format(nfs=NFS_PORT, mount=MOUNT_PORT, threads=settings.threads)
        if settings.back_end == "mem":
            return server + _MEM.format(
                access=access,
                async_threads=max(_ASYNC_THREADS, settings.threads),
                inode_bytes=_INODE_BYTES,
                delay_us=settings.delay_us,
                stall_us=settings.stall_us,
            )
        path = _EXPORT if settings.mount else settings.directory
        return server + _VFS.format(access=access, path=path)

    def _run(
        self, command: str, groups: tuple[Path, ...], mount: tuple[str, ...]
    ) -> subprocess.Popen[bytes]:
        """Start a program in namespace and groups; `state` is its /run, and it dies with us."""
        mounts = f"mount {shlex.join(mount)} {_EXPORT} && " if mount else ""
        if mount and self.settings.owner is not None:
            owner = self.settings.owner
            mounts += f"chown {owner}:{owner} {_EXPORT} && chmod 700 {_EXPORT} && "
        inside = f"{_LET_GO}mount --bind {self.state} /run && {mounts}exec {command}"
        outside = shlex.join(["ip", "netns", "exec", self.namespace, "sh", "-c", inside])
        directory = self.settings.directory or ""
        # Before `ip netns exec`, which gives the program another /sys.
        joins = "".join(f"echo $$ >{group}/cgroup.procs && " for group in groups)
        with (self.state / f"{command.split(maxsplit=1)[0]}.out").open("ab") as out:
            return subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", "sh", "-c", f"{joins}exec {outside}"],
                # Else there is an arena for each thread.
                env=os.environ | {"MALLOC_ARENA_MAX": "2", "EXPORTED": str(directory)},
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # Ctrl-C is for the starter, which then ends the server
            )

    def _wait(self, process: subprocess.Popen[bytes], port: int, said: str | None) -> None:
        end_s = time.monotonic() + START_S_MAX
        while time.monotonic() < end_s and process.poll() is None:
            with suppress(OSError):
                says = said is None or said in self.log.read_text("utf-8", errors="replace")
                if says and self._listens(process.pid, port):
                    return
            time.sleep(0.02)
        outs = [*self.state.glob("*.out"), self.log]
        tails = [out.read_text(errors="replace")[-1500:] for out in outs if out.exists()]
        raise ServerFailed(f"no server at port {port}:\n" + "\n".join(tails))

    def _listens(self, pid: int, port: int) -> bool:
        """Whether a process is in the namespace already, and somebody there takes connections."""
        own = Path(f"/proc/{pid}")
        if not (own / "ns/net").samefile(_NAMESPACES / self.namespace):
            return False
        tables = "".join((own / "net" / name).read_text("ascii") for name in ("tcp", "tcp6"))
        return re.search(rf":{port:04X} \S+ {_LISTENING} ", tables) is not None

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
def ganesha(
    settings: GaneshaSettings, *, memory_bytes: int | None = None, kind: type[Ganesha] = Ganesha
) -> Iterator[Ganesha]:
    """Serve until the block ends, under a memory limit when one is given.

    Raises:
        ServerFailed: it did not start; the message has the end of its log.
        CacheLimitRefused: no memory cgroup can be had.

    """
    with ExitStack() as stack:
        number, lock = free_slot()
        stack.enter_context(lock)
        server = kind(number, settings)
        with shielded():
            server.remove()
            _remove_stale()
        if memory_bytes is not None:
            server.group = stack.enter_context(memory_cgroup(memory_bytes))
        stack.callback(_close, server)
        server.open()
        yield server


def _close(server: Ganesha) -> None:
    with shielded():
        server.close()


def _remove_stale() -> None:
    """Remove what killed starters left in other slots, then their groups, empty by now.

    Ganesha died with its starter; rpcbind is there still, since its setuid clears PDEATHSIG.
    """
    for number in left_slots():
        Ganesha(number, GaneshaSettings()).remove()
    with suppress(CacheLimitRefused):
        remove_stale(find_hierarchy().parent)


def _ip(*words: str) -> str:
    return _run("ip", *words)


def _run(*words: str) -> str:
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ServerFailed(f"{' '.join(words)}: {done.stderr.strip()}")
    return done.stdout
