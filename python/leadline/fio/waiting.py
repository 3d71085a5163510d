"""Which writes of a fio job wait for the device."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from leadline.fio.errors import FioJobRefused
from leadline.fio.quantities import read_whole
from leadline.record.access import FSYNC_EACH_MAX, NO_SYNC

_OPENED = {"0": NO_SYNC, "none": NO_SYNC, "1": "dsync", "sync": "dsync", "dsync": "dsync"}
"""What the file is opened with."""


def read_sync(
    options: Mapping[str, str], read_frac: float, tell: Callable[[str, str], None]
) -> str:
    """Return how the writes of a job wait, as `--sync` spells it.

    Args:
        options: of the job.
        read_frac: read fraction; where all are, nothing waits.
        tell: is given what differs, by the code of a finding.

    Raises:
        FioJobRefused: a value that fio does not take.

    """
    opened = _opened(options.get("sync", "0"))
    called = _called(options)
    if read_frac == 1:
        return NO_SYNC
    if opened != NO_SYNC:
        if options["sync"] != "dsync":
            tell(
                "approximated",
                f"sync={options['sync']} is O_SYNC in fio; here O_DSYNC, which "
                "leaves the times of the file for later",
            )
        if called:
            tell("approximated", f"{' and '.join(called)} beside sync; sync is kept")
        return opened
    if not called:
        return NO_SYNC
    every = min(called.values())
    if len(called) > 1:
        tell("approximated", "fsync beside fdatasync; the more frequent one is kept")
    # Of two that are as frequent the one that does more; it is read first.
    name = next(name for name, each in called.items() if each == every)
    return f"{name}={every}"


def _opened(value: str) -> str:
    if value.strip() not in _OPENED:
        raise FioJobRefused(f"sync={value}: not one of none, sync, dsync, 0, 1")
    return _OPENED[value.strip()]


def _called(options: Mapping[str, str]) -> dict[str, int]:
    """Return after how many writes each call comes."""
    read = {
        key: read_whole(key, options[key], 0, FSYNC_EACH_MAX)
        for key in ("fsync", "fdatasync")
        if key in options
    }
    return {key: every for key, every in read.items() if every}
