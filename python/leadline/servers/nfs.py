"""An NFS server per trial: nfs-ganesha configured as the sample says, loaded with SH08 Table 3.

The factors are settings of the server and what is behind it (`NfsSettings`); each trial starts a
server of its own. A data set on the machine's own file system is made once and found again.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Literal, cast

import msgspec

from leadline.engine.child import ENGINE_COMMAND
from leadline.engine.nfs_load import NfsLoad, prepare_data, remove_data, run_nfs_load
from leadline.engine.targets.claim import DIRECTORY, claim
from leadline.engine.targets.dirfd import drop_cached, open_directory, resolved
from leadline.engine.targets.nfs_address import NfsAddress
from leadline.errors import EngineFault, PointFailed, ServerLost, TargetRefused
from leadline.record.jobs.nfs import NfsData, NfsWorkload
from leadline.record.workbench import NfsServer, Sample, Trial, TrialOrder, TrialState
from leadline.servers.ganesha import (
    OWNER,
    STALL_US_MAX,
    THREADS_MIN,
    Ganesha,
    GaneshaSettings,
    ServerFailed,
    ganesha,
    why_no_ganesha,
)
from leadline.servers.striped_disks import DISKS_MAX, striped_disks, why_no_disks
from leadline.servers.verdict import Outcome, state_of, timed_trial
from leadline.units import parse_bytes

_SAID_BYTES = 600


class NfsSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a sample may set, by these names."""

    threads: int = 16
    """RPC_Ioq_ThrdMax; ganesha 4.3 serves with max(3, threads - 4) of them."""
    back_end: Literal["vfs", "mem"] = "vfs"
    """Files of this machine, or the server's memory with a stall for each read and write."""
    disks: int | None = None
    """Throttled disks under `vfs`, striped; none: the file system of the directory."""
    disk_iops: int = 200
    """Requests per second that each of these disks does."""
    stable: Literal["workload", "sync", "unstable"] = "workload"
    """Whether writes ask to be on stable storage."""
    cache_cap: int | str | None = None
    """Memory of the server, its page cache included: a number of bytes, or "128MiB"."""
    link_mbit_s: float | None = None
    """Of the link between load generator and server, in either direction."""
    connections: int = 4
    """Of the load generator."""
    delay_us: int = 100
    """Of the back end in memory: each read and write is answered so much later."""
    stall_us: int = STALL_US_MAX
    """Of the same: and keeps its worker so long."""


_RANGES = {
    "threads": (THREADS_MIN, 10_000),
    "disks": (1, DISKS_MAX),
    "disk_iops": (1, 1_000_000),
    "link_mbit_s": (1, 100_000),
    "connections": (1, 256),
    "delay_us": (0, 1_000_000),
    "stall_us": (0, STALL_US_MAX),
}


_OTHERS = {"vfs": ("delay_us", "stall_us"), "mem": ("disks", "disk_iops", "cache_cap")}
"""Settings of the other back end."""


def run_nfs_trial(order: TrialOrder, server: NfsServer) -> Trial:
    """Start a server as the sample has it, find or make its data, load it, and stop it.

    Raises:
        TargetRefused: a setting makes no sense, this machine cannot run the server (not root,
            packages that are missing), or the directory cannot be used.
        CacheLimitRefused: the server's memory cannot be capped.

    """
    settings = nfs_settings(server, order.sample)
    _require_machine(settings, Path(server.directory))
    return timed_trial(order, lambda: _conduct(order, server, settings))


def release_nfs(server: NfsServer, sample: Sample) -> None:
    """Remove the data set that trials of this server keep in its directory.

    Raises:
        TargetRefused: no server can be started here to do it, or something there is not Leadline's.

    """
    settings = nfs_settings(server, sample)
    directory = Path(server.directory)
    if settings.back_end == "mem" or settings.disks or not (directory / ".leadline").exists():
        return
    _require_machine(settings, directory)
    try:
        with claim(resolved(directory)) as claimed:
            exported = GaneshaSettings(directory=claimed.export_folder(OWNER), owner=OWNER)
            with ganesha(exported) as running:
                address = NfsAddress.parse(running.url())
                remove_data(address, _data(server), running.reaching(ENGINE_COMMAND))
    except ServerFailed as error:
        raise TargetRefused(f"the data set in {directory} stays: {error}") from error


def nfs_settings(server: NfsServer, sample: Sample) -> NfsSettings:
    """Return the settings of a sample: the factors' levels over the experiment's own.

    Raises:
        TargetRefused: one is unknown, of the wrong kind or out of range, or belongs to another
            back end.

    """
    given = dict(server.settings) | dict(sample)
    known = NfsSettings.__struct_fields__
    for name in given:
        if name not in known:
            close = difflib.get_close_matches(name, known, 1)
            hint = f"did you mean {close[0]!r}?" if close else f"there are: {', '.join(known)}"
            raise TargetRefused(f"an NFS server has no setting {name!r}; {hint}")
    try:
        settings = msgspec.convert(given, NfsSettings)
    except msgspec.ValidationError as error:
        raise TargetRefused(f"the NFS server's settings: {error}") from error
    for name, (least, most) in _RANGES.items():
        value = getattr(settings, name)
        if value is not None and not least <= value <= most:
            raise TargetRefused(f"{name} is {value}; it may be from {least} to {most}")
    for name in _OTHERS[settings.back_end]:
        if name in given:
            raise TargetRefused(
                f"{name} changes nothing with back_end = {settings.back_end!r}; leave it out"
            )
    _cache_bytes(settings)
    return settings


def _cache_bytes(settings: NfsSettings) -> int | None:
    cap = settings.cache_cap
    if not isinstance(cap, str):
        return cap
    try:
        return parse_bytes(cap)
    except ValueError as error:
        raise TargetRefused(f"cache_cap is {cap!r}: {error}") from error


def _require_machine(settings: NfsSettings, directory: Path) -> None:
    on_files = settings.back_end == "vfs"
    if on_files and not directory.is_dir():
        raise TargetRefused(f"there is no directory {directory} for the NFS server's data; make it")
    exported = directory if on_files and settings.disks is None else None
    why = why_no_ganesha(exported, settings.back_end)
    if why is None and settings.disks is not None:
        why = why_no_disks()
    if why is not None:
        raise TargetRefused(
            f"no NFS server can be run here: {why}; run as root on Linux with nfs-ganesha, or "
            'measure your own server with kind = "command"'
        )


def _data(server: NfsServer) -> NfsData:
    return NfsData(workload=cast("NfsWorkload", server.workload), data_bytes=server.data_bytes)


def _conduct(order: TrialOrder, server: NfsServer, settings: NfsSettings) -> Outcome:
    running: Ganesha | None = None
    try:
        with _server_with_data(server, settings) as running:
            try:
                load = run_nfs_load(
                    NfsAddress.parse(running.url()),
                    _data(server),
                    order.request,
                    seed=order.seed,
                    warm_up_s=server.warm_up_s,
                    limit_ms=order.threshold.limit_ms,
                    stable={"sync": True, "unstable": False}.get(settings.stable),
                    connections=settings.connections,
                    command=running.reaching(ENGINE_COMMAND),
                )
            except ServerLost as error:
                why = running.why_gone()
                words = f"the NFS server was lost at {order.request.rate_per_s:g} operations/s"
                return Outcome(TrialState.SERVER_LOST, f"{words}: {why or error}")
    except ServerLost as error:
        return Outcome(TrialState.SERVER_LOST, f"the NFS server was lost before the load: {error}")
    except ServerFailed as error:
        return Outcome(TrialState.FAILED, str(error)[-_SAID_BYTES:])
    except (EngineFault, PointFailed) as error:
        return Outcome(TrialState.FAILED, f"the load generator failed: {error}")
    return _judge(order, load)


def _judge(order: TrialOrder, load: NfsLoad) -> Outcome:
    if load.generator.fell_short is not None:
        return Outcome(TrialState.GENERATOR_LIMITED, load.generator.fell_short, load.measured)
    state, failure = state_of(load.measured, order.request, order.threshold)
    if state is TrialState.FAILED and load.generator.first_failure:
        failure = f"{failure}; the first: {load.generator.first_failure}"
    return Outcome(state, failure, load.measured)


@contextmanager
def _server_with_data(server: NfsServer, settings: NfsSettings) -> Iterator[Ganesha]:
    """A running server with its data set, none of it in the page cache that is to be capped."""
    directory = resolved(server.directory)
    with ExitStack() as stack:
        more: dict[str, Any] = {}
        disks = None
        if settings.back_end == "vfs":
            claimed = stack.enter_context(claim(directory))
            more = {"owner": OWNER}
            if settings.disks is None:
                more["directory"] = claimed.export_folder(OWNER)
            else:
                disks = stack.enter_context(
                    striped_disks(claimed.folder, settings.disks, server.data_bytes)
                )
                more |= {"mount": disks.mount, "groups": (disks.group,)}
        configuration = GaneshaSettings(
            back_end=settings.back_end,
            threads=settings.threads,
            delay_us=settings.delay_us,
            stall_us=settings.stall_us,
            **more,
        )
        cache_bytes = _cache_bytes(settings)
        running = stack.enter_context(ganesha(configuration, memory_bytes=cache_bytes))
        address = NfsAddress.parse(running.url())
        prepare_data(address, _data(server), running.reaching(ENGINE_COMMAND))
        if disks is not None:
            running.stop()  # which unmounts, so that the page cache begins empty
            disks.slow_down(settings.disk_iops)
            running.start()
        elif cache_bytes is not None:
            # What an earlier server read is charged to nobody now.
            with open_directory(directory / DIRECTORY) as data:
                drop_cached(data)
        if settings.link_mbit_s is not None:
            running.limit_link(settings.link_mbit_s)
        yield running
