"""Ownership of `.leadline/` in a directory of an NFS server, by questions to an engine child.

Nothing in Python speaks NFS. The rules are those of `claim`, kept by the engine
(crates/engine/src/backend/nfs/claim.rs); a server gives no lock that dies with its holder, so the
claim names this process, and the next start on this machine sweeps it when the process is gone.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import msgspec

from leadline.engine.child import ENGINE_COMMAND, EngineChild
from leadline.engine.jobs import WIRE_VERSION
from leadline.engine.targets.nfs_address import NfsAddress
from leadline.errors import EngineFault, ServerLost, TargetRefused
from leadline.machine.space import USEFUL_BYTES, Space, require_room
from leadline.machine.stop import shielded

PATIENCE_S = 10.0
"""Longest silence of a server that owes an answer, as in the engine (SILENCE_S_MAX)."""
PATIENCE_LOST_S = 2.0
"""The same when it was lost already."""
ANSWER_S = 60.0
"""A question is several calls, each with its own patience."""


class _ServerFacts(msgspec.Struct, frozen=True):
    address: str
    export: str
    read_bytes_max: int
    write_bytes_max: int
    round_trip_us: float


class _Room(msgspec.Struct, frozen=True):
    total_bytes: int
    free_bytes: int
    data_bytes: int


class _Answer(msgspec.Struct, frozen=True):
    server: _ServerFacts | None = None
    room: _Room | None = None


class NfsPlace:
    """A claimed directory of a server."""

    def __init__(self, address: NfsAddress, command: Sequence[str]) -> None:
        self._address = address
        self._command = command
        self._child: EngineChild | None = None
        self._run = f"run-{uuid.uuid4().hex}"
        self._asked = 0
        self._held = False
        self.lost = False
        """Set when the server went away, so that nobody waits for it long."""
        self.target = {"kind": "nfs", "server": address.document(), "run": self._run}
        self.cached_here = False
        self.facts: dict[str, Any] = {}
        self.capacity_bytes = 0

    def claim(self) -> None:
        """Own the directory.

        Raises:
            TargetRefused: the server cannot be reached or refuses, something there is not
                Leadline's, another Leadline is using it, or there is too little room.

        """
        try:
            answer = self._ask("nfs_claim", process=os.getpid())
        except (ServerLost, TargetRefused) as error:
            raise TargetRefused(f"{self._address.text}: {error}") from error
        server, room = answer.server, answer.room
        if server is None or room is None:
            raise EngineFault("the engine claimed a directory and did not say of which server")
        self._held = True
        require_room(self._address.text, _space(room), USEFUL_BYTES)
        self.capacity_bytes = _space(room).capacity_bytes
        self.facts = {
            "filesystem_type": "nfs3",
            "filesystem_bytes": room.total_bytes,
            "free_bytes": room.free_bytes,
            "nfs_server": server.address,
            "nfs_export": server.export,
            "nfs_read_bytes_max": server.read_bytes_max,
            "nfs_write_bytes_max": server.write_bytes_max,
            "nfs_round_trip_us": round(server.round_trip_us, 1),
        }

    def require_room(self, unique_bytes: int) -> None:
        """Others write to the export too, so the room is asked for again each time."""
        room = self._ask("nfs_room").room
        if room is not None:
            missing = unique_bytes - room.data_bytes
            require_room(self._address.text, _space(room), max(0, missing))

    def release(self) -> None:
        """Remove what was made on the server.

        Raises:
            ServerLost: it is not there to be asked; the next start on this machine sweeps it.

        """
        with shielded():
            if not self._held:
                self._close()
                return
            self._held = False
            try:
                self._ask("nfs_release")
            except ServerLost as error:
                raise ServerLost(
                    f"{self._address.text}: .leadline/{self._run} could not be removed, because "
                    f"the server is gone ({error}); the next start on this target removes it"
                ) from error
            finally:
                self._close()

    def _ask(self, kind: str, **more: Any) -> _Answer:
        if self._child is None or not self._child.alive:
            self._close()
            self._child = EngineChild(self._command)
        self._asked += 1
        question = {
            "kind": kind,
            "server": self._address.document(),
            "run": self._run,
            "patience_s": PATIENCE_LOST_S if self.lost else PATIENCE_S,
            **more,
        }
        document = {"version": WIRE_VERSION, "job_id": f"ask-{self._asked}", "ask": question}
        event = self._child.run(document, total_s_max=ANSWER_S)
        try:
            return msgspec.convert(event, _Answer)
        except msgspec.ValidationError as error:
            raise EngineFault(f"the engine's answer does not fit: {error}") from error

    def _close(self) -> None:
        if self._child is not None:
            child, self._child = self._child, None
            child.close()


def _space(room: _Room) -> Space:
    return Space(room.total_bytes, room.free_bytes)


@contextmanager
def claim_on_server(
    address: NfsAddress, command: Sequence[str] = ENGINE_COMMAND
) -> Iterator[NfsPlace]:
    """Own `.leadline` in a server's directory until the block ends, in whatever way.

    Raises:
        TargetRefused: see `NfsPlace.claim`.
        ServerLost: the block ended well and the server is gone, so that nothing was removed.

    """
    place = NfsPlace(address, command)
    try:
        with shielded():
            place.claim()
        yield place
    except BaseException as reason:
        place.lost = place.lost or isinstance(reason, ServerLost)
        try:
            place.release()
        except ServerLost as error:
            reason.add_note(str(error))
        raise
    place.release()
