"""Where the engine keeps its data file: what an opened engine must know of a target with room."""

from __future__ import annotations

from typing import Any, Protocol

from leadline.engine.targets.calls import time_calls
from leadline.engine.targets.claim import Claim
from leadline.machine.facts import target_facts
from leadline.machine.mounts import is_in_memory
from leadline.machine.space import USEFUL_BYTES, capacity_bytes, keep_floor, require_space, room_of
from leadline.record.job import DirectoryTarget, JobTarget
from leadline.record.workload import Interval


class Place(Protocol):
    """A claimed place; whoever claimed it releases it."""

    target: JobTarget
    """What a job says of it."""
    capacity_bytes: int
    """What may be written there without touching the floor of free space, when it was opened."""
    facts: dict[str, Any]
    cached_here: bool
    """Whether this machine's memory is a cache before it; not before files that are memory."""
    lost: bool
    """Set when its server went away."""

    def time_calls(self) -> dict[str, Interval]:
        """Return what calls about files take, in us; nothing where they cannot be made."""

    def require_room(self, unique_bytes: int) -> None:
        """Refuse when a data file of this size would touch the floor.

        Raises:
            TargetRefused: how much is free and how much is needed.

        """

    def keep_floor(self, unique_bytes: int) -> None:
        """Refuse to go on with the layout of a data file of this size below the floor.

        Raises:
            TargetRefused: how much is free and what stays free.

        """


class DirectoryPlace:
    """A claimed directory of this machine."""

    def __init__(self, claimed: Claim) -> None:
        # After the claim, because it removed what a killed run may have left.
        require_space(claimed.folder.fd, str(claimed.directory), USEFUL_BYTES)
        self.capacity_bytes = capacity_bytes(claimed.folder.fd)
        self.facts = target_facts(claimed.directory)
        self.target: JobTarget = DirectoryTarget(str(claimed.run_directory))
        self.cached_here = not is_in_memory(claimed.directory)
        self.lost = False
        self._claim = claimed

    def time_calls(self) -> dict[str, Interval]:
        """Time them on files of Leadline's own."""
        return time_calls(self._claim.folder)

    def require_room(self, unique_bytes: int) -> None:
        """Others write to the file system too, so the room is looked at again each time."""
        missing = unique_bytes - self._claim.data_bytes()
        shown = str(self._claim.directory)
        require_space(self._claim.folder.fd, shown, max(0, missing))

    def keep_floor(self, unique_bytes: int) -> None:
        """Look at the file system as it is now."""
        shown = str(self._claim.directory)
        keep_floor(shown, room_of(self._claim.folder.fd, shown), unique_bytes)
