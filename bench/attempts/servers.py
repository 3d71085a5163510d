"""NFS servers that die, stand still, drip, cut the line, or lie."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from random import Random

from attempts.kinds import POINT_S
from attempts.outcome import Asked, Attempt
from attempts.scene import ended, scene, wait_or_end
from memfs_server import PLACES, TREE, MemfsServer

FAMILY = "servers"
BOUND_S = 100.0
"""A command on a server that is lost ends within its own bound, which is less."""
DRIP_BYTES, DRIP_S = 16, 0.01
Spoil = Callable[[bytes, Random], bytes | None]
"""What becomes of a piece of a reply; None cuts the line."""


def _flipped(piece: bytes, draws: Random) -> bytes:
    """One bit is another."""
    spoiled = bytearray(piece)
    spoiled[draws.randrange(len(spoiled))] ^= 1 << draws.randrange(8)
    return bytes(spoiled)


def _other_id(piece: bytes, draws: Random) -> bytes:
    """The reply is to a call that nobody made (RFC 5531: the id follows the record mark)."""
    return piece[:4] + draws.randbytes(4) + piece[8:]


def _endless(piece: bytes, _draws: Random) -> bytes:
    """The record is said to be 2 GiB long (RFC 5531, record marking)."""
    return b"\xff\xff\xff\xff" + piece[4:]


def _noise(piece: bytes, draws: Random) -> bytes:
    return draws.randbytes(len(piece))


def _cut_short(piece: bytes, draws: Random) -> bytes:
    return piece[: draws.randrange(1, len(piece) + 1)]


def _twice(piece: bytes, _draws: Random) -> bytes:
    return piece + piece


LIES: dict[str, Spoil] = {
    "flips a bit": _flipped,
    "answers other calls": _other_id,
    "says it is endless": _endless,
    "says noise": _noise,
    "leaves out the end": _cut_short,
    "answers twice": _twice,
    "cuts the line": lambda _piece, _draws: None,
}


class Wire:
    """Passes bytes on to a server and back; told to, it spoils what comes back."""

    def __init__(self, port: int, draws: Random) -> None:
        self._to, self._draws = port, draws
        self._spoil: Spoil | None = None
        self.drips = False
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._open: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def spoil(self, how: Spoil) -> None:
        """Spoil about one piece in four from now on, and the next one in any case."""
        self._spoil = how

    def close(self) -> None:
        """Cut every line."""
        for each in (self._listener, *self._open):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection(("127.0.0.1", self._to))
                self._open += [client, server]
                for ends in ((client, server, False), (server, client, True)):
                    threading.Thread(target=self._pass, args=ends, daemon=True).start()

    def _pass(self, source: socket.socket, sink: socket.socket, back: bool) -> None:
        first = True
        with suppress(OSError):
            while piece := source.recv(65536):
                spoiled: bytes | None = piece
                if back and self._spoil is not None and (first or self._draws.random() < 0.25):
                    spoiled, first = self._spoil(piece, self._draws), False
                if spoiled is None:
                    break
                self._send(sink, spoiled, slow=back and self.drips)
        for each in (source, sink):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    @staticmethod
    def _send(sink: socket.socket, piece: bytes, *, slow: bool) -> None:
        if not slow:
            sink.sendall(piece)
            return
        for start in range(0, len(piece), DRIP_BYTES):
            sink.sendall(piece[start : start + DRIP_BYTES])
            threading.Event().wait(DRIP_S)


Harm = Callable[[MemfsServer, Wire], None]


def _drip(_server: MemfsServer, wire: Wire) -> None:
    wire.drips = True


def _lie(how: Spoil, _server: MemfsServer, wire: Wire) -> None:
    wire.spoil(how)


HARMS: dict[str, Harm] = {
    "dies": lambda server, _wire: server.kill(),
    "stands still": lambda server, _wire: server.stall(),
    "drips": _drip,
} | {name: partial(_lie, how) for name, how in LIES.items()}
COMMANDS = {
    "measure": [
        *("--workload", "unique_bytes=1MiB,size_mean=8KiB,read_frac=0.5"),
        *("--runs", "2", "--seconds", "2"),
    ],
    "survey": ["--max-bytes", "2MiB", "--budget", "30s"],
}


@contextmanager
def _served(draws: Random) -> Iterator[tuple[MemfsServer, Wire]]:
    program = next(TREE / place for place in PLACES if (TREE / place).exists())
    server = MemfsServer(program)
    wire = Wire(server.port, draws)
    try:
        yield server, wire
    finally:
        wire.close()
        server.close()


def attempts(asked: Asked) -> Iterator[Attempt]:
    """Have a server go wrong in every way, at a random moment of a run."""
    if not any((TREE / place).exists() for place in PLACES):
        why = "no NFS server is built: cargo build -p leadline-engine --example memfs"
        yield Attempt(FAMILY, "all", asked.seed, untried=why)
        return
    for command in COMMANDS:
        for name in ("dies",) if asked.short else HARMS:
            if asked.short and command != "measure":
                continue
            for number in range(asked.rounds(0.2)):
                yield _tried(command, name, asked.seed, asked.draws(FAMILY, command, name, number))


def _tried(command: str, name: str, seed: int, draws: Random) -> Attempt:
    attempt = Attempt(FAMILY, command, seed, f"the server {name}")
    with scene() as place, _served(draws) as (server, wire):
        words = [command, f"nfs://127.0.0.1:{wire.port}/x", *COMMANDS[command]]
        with place.start(*words, point_s=POINT_S * (command == "survey")) as child:
            wait_or_end(child, draws.uniform(0.0, 3.0))
            before = place.kept()
            HARMS[name](server, wire)
            done = ended(child, BOUND_S)
        attempt.expect_code(done.code, 0, 1, 2, 3, 5, said=done.said)
        after = place.kept()
        attempt.lost += before.lost_in(after)
        attempt.left += place.left()
        if done.code == 0 and name in ("dies", "stands still"):
            newest = after.newest("survey" if command == "survey" else "measurement")
            if newest is None or newest.status != "done":
                attempt.wrong.append("it says that all is well")
    return attempt
