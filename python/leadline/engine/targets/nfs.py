"""Ownership of `.leadline/` in a directory of an NFS server, by questions to an engine child.

Nothing in Python speaks NFS. The rules are those of `claim`, kept by the engine
(crates/engine/src/backend/nfs/claim.rs); a server gives no lock that dies with its holder, so the
claim names this process, and the next start on this machine sweeps it when the process is gone.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from msgspec import UNSET, UnsetType

from leadline.engine.child import ENGINE_COMMAND, Child
from leadline.engine.targets.nfs_address import NfsAddress
from leadline.errors import EngineFault, ServerLost, TargetRefused
from leadline.machine.space import USEFUL_BYTES, Space, keep_floor, require_room
from leadline.machine.stop import shielded
from leadline.record.job import AskJob, JobTarget, NfsAsk, NfsQuestion, NfsTarget
from leadline.record.jobs.nfs import NfsAsked, NfsRoom
from leadline.record.workload import Interval

TIMEOUT_S = 10.0
"""Longest silence of a server that owes an answer, as in the engine (SILENCE_S_MAX)."""
TIMEOUT_LOST_S = 2.0
"""The same when it was lost already."""


class NfsPlace:
    """A claimed directory of a server."""

    def __init__(self, address: NfsAddress, command: Sequence[str]) -> None:
        self._address = address
        self._child = Child(command)
        self._run = f"run-{uuid.uuid4().hex}"
        self._asked = 0
        self._held = False
        self.lost = False
        """Set when the server went away, so that nobody waits for it long."""
        self.target: JobTarget = NfsTarget(server=address, run=self._run)
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

    def time_calls(self) -> dict[str, Interval]:
        """Time none: its files are another machine's."""
        return {}

    def require_room(self, unique_bytes: int) -> None:
        """Others write to the export too, so the room is asked for again each time."""
        room = self._ask("nfs_room").room
        if room is not None:
            missing = unique_bytes - room.data_bytes
            require_room(self._address.text, _space(room), max(0, missing))

    def keep_floor(self, unique_bytes: int) -> None:
        """Look at the export as it is now, as far as the server says."""
        with suppress(ServerLost):  # the layout itself will meet it
            room = self._ask("nfs_room").room
            if room is not None:
                keep_floor(self._address.text, _space(room), unique_bytes)

    def release(self) -> None:
        """Remove what was made on the server.

        Raises:
            ServerLost: it is not there to be asked; the next start on this machine sweeps it.

        """
        with shielded():
            if not self._held:
                self._child.close()
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
                self._child.close()

    def _ask(self, kind: NfsAsk, *, process: int | UnsetType = UNSET) -> NfsAsked:
        self._asked += 1
        question = NfsQuestion(
            kind=kind,
            server=self._address,
            run=self._run,
            timeout_s=TIMEOUT_LOST_S if self.lost else TIMEOUT_S,
            process=process,
        )
        return self._child.run(AskJob(job_id=f"ask-{self._asked}", ask=question))


def _space(room: NfsRoom) -> Space:
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
