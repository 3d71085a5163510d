"""NFS servers that Leadline starts as root, and a local user who wants into what they export.

While a peak is searched he asks the servers' addresses for an answer, walks into the exported
folder and joins the namespaces. Killed, a peak leaves what the next one takes away.
"""

from __future__ import annotations

import ctypes
import itertools
import os
import signal
import socket
import struct
import time
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from random import Random

from attacker import attacker
from attempts.outcome import Asked, Attempt
from attempts.scene import GONE_S, Scene, ended, pid_of, scene, wait_or_end, wait_until
from leadline.engine.targets.claim import DIRECTORY, EXPORT
from leadline.servers.ganesha import MOUNT_PORT, NFS_PORT, why_no_ganesha
from leadline.servers.slots import SLOTS
from leadline.servers.striped_disks import why_no_disks

FAMILY = "exports"
EXPERIMENT = """
name = "tried"
policy = "binary"
[server]
kind = "nfs"
directory = "{directory}"
workload = "db_tp"
data = "4MiB"
settings = {{ threads = 8{settings} }}
warm_up = "0.2s"
[threshold]
mean = "40ms"
[goal]
run_length = "0.5s"
rate_start = 50
rate_max = 400
deadline = "12s"
"""
EXPORTS = {"a directory": "", "disks": ", disks = 1"}
NAMESPACES = Path("/run/netns")
PORTS = (NFS_PORT, MOUNT_PORT)
SPAN_S = 6.0
"""A kill or a signal comes within this time of the start."""


def attempts(asked: Asked) -> Iterator[Attempt]:
    """Attack, kill and signal peaks of NFS servers with a directory and with disks of their own."""
    with scene() as place:
        why = why_no_ganesha(place.target) or why_no_disks()
    if why:
        yield Attempt(FAMILY, "all", asked.seed, untried=why)
        return
    for exported in list(EXPORTS)[:1] if asked.short else EXPORTS:
        draws = asked.draws(FAMILY, exported)
        for _ in range(asked.rounds(0.1)):
            yield _attacked(exported, asked.seed)
        for _ in range(asked.rounds(0.3)):
            yield _ended(exported, signal.SIGKILL, asked.seed, draws)
        for number in () if asked.short else (signal.SIGINT, signal.SIGTERM):
            for _ in range(asked.rounds(0.1)):
                yield _ended(exported, number, asked.seed, draws)


def _peak(place: Scene, exported: str) -> tuple[str, ...]:
    path = place.base / "experiment.toml"
    text = EXPERIMENT.format(directory=place.target, settings=EXPORTS[exported])
    path.write_text(text, encoding="utf-8")
    return "peak", str(path), "--no-compare"


def _attacked(exported: str, seed: int) -> Attempt:
    attempt = Attempt(FAMILY, exported, seed, "a local user")
    with scene() as place:
        told = place.base / "told"
        told.touch()
        told.chmod(0o666)
        words = _peak(place, exported)
        with attacker(partial(_attack, place.target, told)), place.start(*words) as child:
            done = ended(child)
        # 1: no rate this low saturates every machine; 3: the deadline came first.
        attempt.expect_code(done.code, 0, 1, 3, said=done.said)
        attempt.lost += sorted(set(told.read_text(encoding="utf-8").splitlines()))
        attempt.left += place.left() + _left_of_servers()
    return attempt


def _attack(target: Path, told: Path) -> None:
    """Try every way in, for ever; what was reached is written down."""
    for number in itertools.count():
        slots = [path.name.rpartition("-")[2] for path in NAMESPACES.glob("leadline-load-*")]
        hosts = itertools.product((f"10.213.{slot}.2" for slot in slots), PORTS)
        reached = [
            f"{host}:{port} answers a local user" for host, port in hosts if _answers(host, port)
        ]
        folder = target / DIRECTORY / EXPORT
        with suppress(OSError):
            next(folder.iterdir(), None)
            reached.append("the exported folder is listed by a local user")
        with suppress(OSError):
            (folder / f"planted-{number}").write_text("planted")
            reached.append("the exported folder is written by a local user")
        for namespace in NAMESPACES.glob("leadline-*"):
            with suppress(OSError), namespace.open() as file:
                if ctypes.CDLL(None).setns(file.fileno(), 0) == 0:
                    reached.append(f"{namespace.name} is entered by a local user")
        with told.open("a", encoding="utf-8") as file:
            file.writelines(f"{each}\n" for each in reached)
        time.sleep(0.05)


def _answers(host: str, port: int) -> bool:
    """Whether a server answers an ONC RPC NULL call (RFC 5531); gateways take any connection."""
    identity = os.urandom(4)
    program, version = (100003, 3) if port == NFS_PORT else (100005, 3)
    call = identity + struct.pack(">9I", 0, 2, program, version, 0, 0, 0, 0, 0)
    with suppress(OSError), socket.create_connection((host, port), timeout=0.2) as connection:
        connection.sendall(struct.pack(">I", 0x80000000 | len(call)) + call)
        connection.settimeout(0.2)
        reply = connection.recv(64)
        return reply[4:8] == identity and reply[8:12] == bytes([0, 0, 0, 1])
    return False


def _ended(exported: str, number: signal.Signals, seed: int, draws: Random) -> Attempt:
    """End a peak at a random moment; the next one goes on, or takes away what is left."""
    attempt = Attempt(FAMILY, exported, seed, number.name)
    with scene() as place:
        words = _peak(place, exported)
        with place.start(*words) as child:
            wait_until((place.target / DIRECTORY).exists, child)
            if wait_or_end(child, draws.uniform(0.0, SPAN_S)):
                os.kill(pid_of(child), number)
            done = ended(child)
        if number is not signal.SIGKILL:
            attempt.expect_code(done.code, 0, 1, 3, said=done.said)
        again = ["--resume"] * (done.code == 3)  # until then the data set stays
        with place.start(*words, *again) as child:
            done = ended(child)
        attempt.expect_code(done.code, 0, 1, 3, said=done.said)
        attempt.left += place.left() + _left_of_servers()
    return attempt


def _left_of_servers() -> list[str]:
    """Say what is left of servers that nobody runs any more."""
    end_s = time.monotonic() + GONE_S
    while (found := _servers()) and time.monotonic() < end_s:
        time.sleep(0.05)
    return found


def _servers() -> list[str]:
    found = [*NAMESPACES.glob("leadline-*"), *Path("/sys/class/net").glob("llnfs*")]
    found += [path for path in SLOTS.glob("*") if path.is_dir()]
    return [str(path) for path in found if not _is_held(path.name)]


def _is_held(name: str) -> bool:
    """Whether somebody runs the server that a name belongs to."""
    number = "".join(filter(str.isdigit, name))
    try:
        inode = (SLOTS / f"{number}.lock").stat().st_ino
    except FileNotFoundError:
        return False
    return f":{inode} " in Path("/proc/locks").read_text()
