"""Servers under test: simulated, NFS, storage, any command. Each answers an order with a trial."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext

from leadline.errors import TargetRefused
from leadline.record.workbench import (
    CommandServer,
    NfsServer,
    Sample,
    ServerSpec,
    SimulatedServer,
    StorageServer,
    Trial,
    TrialOrder,
)
from leadline.servers.command import run_command_trial
from leadline.servers.nfs import release_nfs, run_nfs_trial
from leadline.servers.sample_state import remove_state
from leadline.servers.simulated import run_simulated_trial
from leadline.servers.storage import check_storage, hold_storage, run_storage_trial


def run_trial(order: TrialOrder) -> Trial:
    """Run one trial on this machine, from set-up to tear-down; it leaves nothing running.

    What befalls the server or the generator is a state of the trial, never an exception.

    Raises:
        TargetRefused: the experiment itself makes no sense here; nothing was started.

    """
    if isinstance(order.server, SimulatedServer):
        return run_simulated_trial(order, order.server)
    if isinstance(order.server, CommandServer):
        return run_command_trial(order, order.server)
    if isinstance(order.server, NfsServer):
        return run_nfs_trial(order, order.server)
    if isinstance(order.server, StorageServer):
        return run_storage_trial(order, order.server)
    raise TargetRefused(f"there is no server of kind {type(order.server).__name__}")


def held_open(server: ServerSpec) -> AbstractContextManager[None]:
    """Keep what trials of the server need from one to the next, until the block ends."""
    return hold_storage() if isinstance(server, StorageServer) else nullcontext()


def check_server(server: ServerSpec, samples: Iterable[Sample]) -> None:
    """Refuse what could not be run before a first trial, as far as a look tells; nothing starts.

    Raises:
        TargetRefused: a trial of one of the samples could not be run here.

    """
    if isinstance(server, StorageServer):
        for sample in samples:
            check_storage(server, sample)


def release_server(server: ServerSpec, samples: Iterable[Sample]) -> None:
    """Remove what trials of these samples keep on this machine for each other.

    For whoever knows that no more of them will come.

    Raises:
        TargetRefused: it cannot be removed; the message says why.

    """
    for sample in samples:
        if isinstance(server, CommandServer):
            remove_state(server, sample)
        elif isinstance(server, NfsServer):
            release_nfs(server, sample)
