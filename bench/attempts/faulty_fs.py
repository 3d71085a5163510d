"""A file system in memory, through FUSE, that fails when it is told to.

The kernel's protocol (linux/fuse.h, version 7.31) is spoken directly: this needs root and /dev/fuse
and no library. One process serves all requests, one after another. What fails, and from when on, is
told through shared memory; only regular files fail, so that a claim can be looked at and left.
"""

from __future__ import annotations

import ctypes
import errno
import mmap
import os
import signal
import stat
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from attempts.disks import unmount

ROOT = 1
FREE_BLOCKS = 64 << 18
"""Of 4 KiB: 64 GiB, which nobody fills."""
WRITE_BYTES_MAX = 128 << 10
_HEADER = struct.Struct("<IIQQIIIHH")
_ATTRIBUTES = struct.Struct("<6Q10I")
_ENTRY = struct.Struct("<4Q2I")
_OPENED = struct.Struct("<QII")
_PART = struct.Struct("<QQI")
_WRITTEN_AT = 40
"""Where what is written begins, in a request."""
_BIG = 1 << 5 | 1 << 22
"""Requests of more than a page (FUSE_BIG_WRITES, FUSE_MAX_PAGES)."""
READ, WRITE, FSYNC, UNLINK, CREATE, OPEN = 15, 16, 20, 10, 35, 14
FAULTS = {"read": READ, "write": WRITE, "fsync": FSYNC, "unlink": UNLINK, "create": CREATE}
"""What can be made to fail, and the request's number."""


class Failed(Exception):
    """A request is answered with an error number."""


@dataclass
class Node:
    """A file or a directory."""

    number: int
    mode: int
    uid: int
    gid: int
    content: bytearray = field(default_factory=bytearray)
    names: dict[bytes, int] = field(default_factory=dict)
    links: int = 1

    def attributes(self) -> bytes:
        """Return what stat tells."""
        size = len(self.content)
        return _ATTRIBUTES.pack(
            *(self.number, size, -(-size // 512), 0, 0, 0),
            *(0, 0, 0, self.mode, self.links, self.uid, self.gid, 0, 4096, 0),
        )


class Switch:
    """Tells the serving process what to fail from now on."""

    def __init__(self) -> None:
        self._shared = mmap.mmap(-1, mmap.PAGESIZE)

    def fail(self, *what: str) -> None:
        """Fail these of FAULTS from now on; nothing of them ends it."""
        chosen = [FAULTS[name] for name in what]
        self._shared[:64] = bytes(int(number in chosen) for number in range(64))

    def fails(self, opcode: int) -> bool:
        """Whether a request is to fail."""
        return opcode < 64 and self._shared[opcode] == 1


class Server:
    """The file system's nodes, and an answer to every request."""

    def __init__(self, switch: Switch) -> None:
        self._switch = switch
        self._nodes = {ROOT: Node(ROOT, stat.S_IFDIR | 0o755, 0, 0, links=2)}
        self._last = ROOT
        self._answers: dict[int, Callable[[Node, bytes, tuple[int, int]], bytes]] = {
            1: self._look_up,
            3: lambda node, *_: self._told(node),
            4: self._set,
            9: self._make_directory,
            UNLINK: self._remove,
            11: self._remove,
            OPEN: lambda *_: _OPENED.pack(0, 0, 0),
            READ: self._read,
            WRITE: self._write,
            17: lambda *_: _room(),
            26: lambda _node, data, _who: _first(data),
            27: lambda *_: _OPENED.pack(0, 0, 0),
            28: self._list,
            CREATE: self._create,
            43: self._reserve,
        }
        self._answers |= dict.fromkeys((18, FSYNC, 25, 29, 30, 34), lambda *_: b"")

    def serve(self, device: int) -> None:
        """Answer until the file system is unmounted."""
        while True:
            try:
                request = os.read(device, WRITE_BYTES_MAX + 2 * mmap.PAGESIZE)
            except OSError as error:
                if error.errno in (errno.EINTR, errno.ENOENT, errno.EAGAIN):
                    continue
                return
            _, opcode, unique, number, uid, gid, *_ = _HEADER.unpack_from(request)
            if opcode in (2, 36, 42):  # FORGET, INTERRUPT and BATCH_FORGET have no answer
                continue
            code, answer = self._answer(opcode, number, request[_HEADER.size :], (uid, gid))
            with suppress(OSError):  # its asker was killed
                os.write(device, struct.pack("<IiQ", 16 + len(answer), -code, unique) + answer)

    def _answer(
        self, opcode: int, number: int, data: bytes, who: tuple[int, int]
    ) -> tuple[int, bytes]:
        node = self._nodes.get(number, self._nodes[ROOT])
        known = self._answers.get(opcode)
        if known is None:
            return errno.ENOSYS, b""
        try:
            if self._switch.fails(opcode) and self._is_data(opcode, node, data):
                return errno.EIO, b""
            return 0, known(node, data, who)
        except Failed as failed:
            return int(failed.args[0]), b""

    @staticmethod
    def _is_data(opcode: int, node: Node, data: bytes) -> bool:
        """Whether a request is about a data file, and not about what marks a claim."""
        if opcode in (UNLINK, CREATE):
            return b".bin" in data or b"stream-" in data
        if opcode == WRITE:
            return len(data) - _WRITTEN_AT >= 512
        return len(node.content) > mmap.PAGESIZE

    def _told(self, node: Node) -> bytes:
        return struct.pack("<QII", 0, 0, 0) + node.attributes()

    def _entry(self, node: Node) -> bytes:
        return _ENTRY.pack(node.number, 0, 0, 0, 0, 0) + node.attributes()

    def _look_up(self, node: Node, data: bytes, _who: tuple[int, int]) -> bytes:
        return self._entry(self._child(node, data[:-1]))

    def _child(self, node: Node, name: bytes) -> Node:
        number = node.names.get(name)
        if number is None:
            raise Failed(errno.ENOENT)
        return self._nodes[number]

    def _new(self, parent: Node, name: bytes, mode: int, who: tuple[int, int]) -> Node:
        if name in parent.names:
            raise Failed(errno.EEXIST)
        self._last += 1
        links = 2 if stat.S_ISDIR(mode) else 1
        made = self._nodes[self._last] = Node(self._last, mode, *who, links=links)
        parent.names[name] = made.number
        return made

    def _set(self, node: Node, data: bytes, _who: tuple[int, int]) -> bytes:
        valid, _, _, size = struct.unpack_from("<IIQQ", data)
        mode, _, uid, gid = struct.unpack_from("<IIII", data, 68)
        if valid & 1:
            node.mode = stat.S_IFMT(node.mode) | stat.S_IMODE(mode)
        node.uid = uid if valid & 2 else node.uid
        node.gid = gid if valid & 4 else node.gid
        if valid & 8:
            _resize(node, size)
        return self._told(node)

    def _make_directory(self, node: Node, data: bytes, who: tuple[int, int]) -> bytes:
        mode, _ = struct.unpack_from("<II", data)
        return self._entry(self._new(node, data[8:-1], stat.S_IFDIR | mode, who))

    def _create(self, node: Node, data: bytes, who: tuple[int, int]) -> bytes:
        _, mode, _, _ = struct.unpack_from("<IIII", data)
        made = self._new(node, data[16:-1], stat.S_IFREG | stat.S_IMODE(mode), who)
        return self._entry(made) + _OPENED.pack(0, 0, 0)

    def _remove(self, node: Node, data: bytes, _who: tuple[int, int]) -> bytes:
        child = self._child(node, data[:-1])
        if child.names:
            raise Failed(errno.ENOTEMPTY)
        del node.names[data[:-1]]
        child.links = 0
        return b""

    @staticmethod
    def _read(node: Node, data: bytes, _who: tuple[int, int]) -> bytes:
        _, offset, size = _PART.unpack_from(data)
        return bytes(node.content[offset : offset + size])

    @staticmethod
    def _write(node: Node, data: bytes, _who: tuple[int, int]) -> bytes:
        _, offset, size = _PART.unpack_from(data)
        _resize(node, max(len(node.content), offset + size))
        node.content[offset : offset + size] = data[_WRITTEN_AT : _WRITTEN_AT + size]
        return struct.pack("<II", size, 0)

    @staticmethod
    def _reserve(node: Node, data: bytes, _who: tuple[int, int]) -> bytes:
        _, offset, length, mode = struct.unpack_from("<QQQI", data)
        if mode:
            raise Failed(errno.EOPNOTSUPP)
        _resize(node, max(len(node.content), offset + length))
        return b""

    def _list(self, node: Node, data: bytes, _who: tuple[int, int]) -> bytes:
        _, offset, size = _PART.unpack_from(data)
        found = b""
        names = [(b".", node.number), (b"..", ROOT), *node.names.items()]
        for place, (name, number) in enumerate(names[offset:], offset + 1):
            kind = self._nodes[number].mode >> 12
            entry = struct.pack("<QQII", number, place, len(name), kind) + name
            entry += bytes(-len(entry) % 8)
            if len(found) + len(entry) > size:
                break
            found += entry
        return found


def _resize(node: Node, size: int) -> None:
    if size < len(node.content):
        del node.content[size:]
    else:
        node.content.extend(bytes(size - len(node.content)))


def _first(data: bytes) -> bytes:
    _, minor, ahead, flags = struct.unpack_from("<4I", data)
    pages = WRITE_BYTES_MAX // mmap.PAGESIZE
    answer = (7, min(minor, 31), ahead, flags & _BIG, 12, 9, WRITE_BYTES_MAX, 1, pages, 0)
    return struct.pack("<4I2H2I2H", *answer) + bytes(32)


def _room() -> bytes:
    blocks, files = (FREE_BLOCKS,) * 3, (1 << 20,) * 2
    return struct.pack("<5Q4I", *blocks, *files, 4096, 255, 4096, 0) + bytes(24)


def why_no_fuse() -> str:
    """Say why no file system can be served here; nothing when one can."""
    try:
        os.close(os.open("/dev/fuse", os.O_RDWR))
    except OSError as error:
        return f"/dev/fuse cannot be opened: {error.strerror}"
    return "" if os.geteuid() == 0 else "only root may mount"


@dataclass(frozen=True)
class Faulty:
    """A mounted file system, and the process that serves it."""

    switch: Switch
    server: int

    def kill(self) -> None:
        """End the server: every request from now on fails, as on a device that was pulled out."""
        os.kill(self.server, signal.SIGKILL)

    def stand_still(self) -> None:
        """Answer nothing from now on."""
        os.kill(self.server, signal.SIGSTOP)


@contextmanager
def faulty(at: Path) -> Iterator[Faulty]:
    """Mount a file system until the block ends."""
    switch = Switch()
    device = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
    told = f"fd={device},rootmode=40000,user_id=0,group_id=0,allow_other,default_permissions"
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mount(b"leadline-fault", bytes(at), b"fuse", 6, told.encode()):  # nosuid, nodev
        number = ctypes.get_errno()
        os.close(device)
        raise OSError(number, os.strerror(number), str(at))
    child = os.fork()
    if not child:
        try:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            Server(switch).serve(device)
        finally:
            os._exit(0)
    os.close(device)
    try:
        yield Faulty(switch, child)
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        unmount(at)
