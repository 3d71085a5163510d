"""What this machine can measure: each ability, whether it is here, and what would bring it."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from typing import Any

import msgspec

from leadline.engine.fio import fio_version
from leadline.errors import CacheLimitRefused, TargetRefused
from leadline.machine.build import EXTRAS
from leadline.machine.cgroup import LIMIT_MIN_BYTES, memory_cgroup
from leadline.machine.dirty_limits import why_not
from leadline.machine.file_systems import why_not_made
from leadline.machine.loop_devices import why_no_loop_devices
from leadline.machine.resources import why_no_io_uring
from leadline.servers.ganesha import why_no_ganesha

_USUAL_BLOCK_BYTES = 4096


class Ability(msgspec.Struct, frozen=True, kw_only=True):
    """Something that can be done here, or not."""

    name: str
    what_for: str
    why_not: str | None = None
    """Why it cannot; None when it can."""


def abilities() -> Iterator[Ability]:
    """Look for everything that is not on every machine; nothing is left behind."""
    yield Ability(
        name="io_uring",
        what_for="--backend uring, iodepth; without it Linux AIO (direct) or threads",
        why_not=why_no_io_uring(),
    )
    yield Ability(
        name="memory cgroup",
        what_for="--cache-limit, the size of the page cache",
        why_not=_refusal(_cap),
    )
    yield Ability(
        name="dirty limits", what_for="what `leadline cache` asks of writes", why_not=why_not()
    )
    yield Ability(
        name="BPF",
        what_for="`leadline characterize` at little cost; without it ptrace",
        why_not=_refusal(_watch_nothing),
    )
    yield Ability(name="loop devices", what_for="`leadline files`", why_not=why_no_loop_devices())
    for kind in ("ext4", "xfs", "btrfs"):
        yield Ability(
            name=f"mkfs of {kind}",
            what_for="`leadline files`",
            why_not=why_not_made(kind, _USUAL_BLOCK_BYTES),
        )
    yield Ability(name="fio", what_for="--engine fio", why_not=_refusal(fio_version))
    yield Ability(name="NFS server", what_for="servers under test", why_not=why_no_ganesha(None))
    yield Ability(
        name="mpirun",
        what_for="streams on several ranks",
        why_not=None if shutil.which("mpirun") else "not installed: apt-get install openmpi-bin",
    )
    for extra, what_for, modules in EXTRAS:
        yield Ability(name=f"leadline[{extra}]", what_for=what_for, why_not=_absent(extra, modules))


def _cap() -> None:
    with memory_cgroup(LIMIT_MIN_BYTES):
        pass


def _watch_nothing() -> None:
    from leadline import _engine  # noqa: PLC0415 - most commands do without it

    try:
        _engine.capture(
            ["true"],
            None,
            None,
            way="bpf",
            seconds=None,
            keep_paths=False,
            keep=None,
            hear=lambda *_: None,
        )
    except ValueError as error:
        raise TargetRefused(str(error)) from None


def _refusal(attempt: Callable[[], Any]) -> str | None:
    try:
        attempt()
    except (TargetRefused, CacheLimitRefused) as refusal:
        return str(refusal)
    return None


def _absent(extra: str, modules: tuple[str, ...]) -> str | None:
    missing = [name for name in modules if find_spec(name) is None]
    if not missing:
        return None
    return f"{', '.join(missing)} not installed: pip install 'leadline[{extra}]'"
