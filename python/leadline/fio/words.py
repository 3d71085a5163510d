"""A workload typed in words: Leadline's (`size_mean=4KiB`), fio's (`bs=4k`), or both.

What fio's words mean is asked of the reader of job files, so that it is written once. Three things
are as who types expects and not as in a job file: sizes are read as everywhere here (`1.5g` is
that, `4KiB` is 4096 bytes), a depth without an engine is io_uring's, and places are drawn with
norandommap, from a file that stays in the cache as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from leadline.fio.errors import FioJobRefused
from leadline.fio.options import ALIASES
from leadline.fio.read import FioWorkload, read_job
from leadline.record import Arrivals, Workload, WorkloadError
from leadline.record.access import Access
from leadline.record.finding import Finding
from leadline.record.job import CLOSED
from leadline.record.workload import KEYS, PARAMETERS, read_values
from leadline.units import parse_bytes

USUAL = Workload(unique_bytes=256 * 2**20, size_mean=32 * 2**10)
"""What `measure` takes where nothing was said of a parameter."""

_FIELDS: dict[str, tuple[str, ...]] = {
    "bs": ("size_mean", "size_dist"),
    "bssplit": ("size_mean", "size_dist"),
    "bsrange": ("size_mean", "size_dist"),
    "rw": ("read_frac", "seq_frac"),
    "rwmixread": ("read_frac",),
    "rwmixwrite": ("read_frac",),
    "percentage_random": ("seq_frac",),
    "random_distribution": ("access",),
    "size": ("unique_bytes",),
    "filesize": ("unique_bytes",),
    "numjobs": ("process_num",),
    "iodepth": ("queue_depth",),
    "thinktime": ("think_time_s",),
    "direct": (),
    "buffered": (),
    "ioengine": (),
    "sync": (),
    "fsync": (),
    "fdatasync": (),
    "buffer_compress_percentage": (),
    "dedupe_percentage": (),
    "rate": (),
    "rate_iops": (),
    "rate_process": (),
    "runtime": (),
    "time_based": (),
    "norandommap": (),
    "invalidate": (),
    "name": (),
    "group_reporting": (),
}
"""fio's words that are taken, each with the parameters that it decides."""
_SIZES = ("bs", "size", "filesize")
_SETTLED = {"norandommap": "1", "invalidate": "0", "fadvise_hint": "0", "time_based": "1"}
_NEEDED = {"size": str(USUAL.unique_bytes), "bs": "4096"}
"""What a job must have; a parameter that nobody named is not taken from it."""


class Typed(msgspec.Struct, frozen=True, kw_only=True):
    """A workload as it was typed, and how fio's words among them reach the storage."""

    workload: Workload
    usual: tuple[str, ...] = ()
    """The five parameters of which nothing was said."""
    access: Access = Access()
    """Without a backend that nobody named."""
    arrivals: Arrivals = CLOSED
    seconds: float | None = None
    findings: tuple[Finding, ...] = ()
    """What of fio's words differs here."""

    @property
    def beyond(self) -> tuple[str, ...]:
        """What was said that is not of the workload: how it is reached, when, and for how long."""
        when = {"rate": self.arrivals != CLOSED, "runtime": self.seconds is not None}
        return (*self.access.beyond(), *(word for word, given in when.items() if given))


def read_words(words: Sequence[str], usual: Workload | None = None) -> Typed:
    """Read `bs=4k rw=randread size_mean=…`, each text one word or several.

    Args:
        words: as typed.
        usual: what a parameter is that nobody named; without it the working set and the size
            must be said.

    Raises:
        WorkloadError: an unknown word, one given twice, or a value that cannot be read.

    """
    parts = [part for text in words for part in text.replace(",", " ").split()]
    fio = {_name(part.partition("=")[0]): part for part in parts if _is_fio(part)}
    own = [part for part in parts if not _is_fio(part)]
    if len(fio) + len(own) < len(parts):
        raise WorkloadError("one of fio's words is given twice; leave one out")
    values = read_values(own)
    job, found = _of_fio(fio)
    for name in found:
        if name in values:
            raise WorkloadError(f"{name} is given twice, once in fio's words; leave one out")
    values |= found
    if usual is not None:
        left = tuple(name for name in PARAMETERS if name not in values)
        return _typed(msgspec.structs.replace(usual, **values), fio, job, left)
    return _typed(Workload.of(values), fio, job, ())


def read_alone(text: str) -> Typed:
    """Read a workload whose way to the storage is decided elsewhere.

    Raises:
        WorkloadError: as `read_words`, or some of the words say how storage is reached, or when.

    """
    typed = read_words([text])
    if typed.beyond:
        raise WorkloadError(
            f"{', '.join(typed.beyond)} is not of the workload: how storage is reached, and when, "
            "is decided elsewhere; leave it out"
        )
    return typed


def _typed(
    workload: Workload, fio: dict[str, str], job: FioWorkload | None, usual: tuple[str, ...]
) -> Typed:
    workload = msgspec.structs.replace(workload)  # its ranges, once more
    if job is None:
        return Typed(workload=workload, usual=usual)
    named = "ioengine" in fio or job.access.backend == "uring"
    return Typed(
        workload=workload,
        usual=usual,
        access=job.access if named else msgspec.structs.replace(job.access, backend=""),
        arrivals=job.arrivals,
        seconds=job.seconds,
        findings=job.findings,
    )


def _name(key: str) -> str:
    return ALIASES.get(key.strip().lower(), key.strip().lower())


def _is_fio(part: str) -> bool:
    key, equals, _ = part.partition("=")
    return bool(equals) and _name(key) in _FIELDS and key.strip() not in KEYS


def _of_fio(words: dict[str, str]) -> tuple[FioWorkload | None, dict[str, Any]]:
    """Return what fio's words make, and of it the values of the parameters that they name."""
    if not words:
        return None, {}
    options = {key: _plain(key, part.partition("=")[2].strip()) for key, part in words.items()}
    if "random_distribution" in options and "rw" not in options:
        raise WorkloadError(
            "random_distribution is of random requests: say rw=randread too, or write access=… "
            "in its place"
        )
    if "iodepth" in options and "ioengine" not in options:
        options["ioengine"] = "io_uring"
    lines = [f"{key}={value}" for key, value in (_SETTLED | _NEEDED | options).items()]
    try:
        (job,) = read_job("\n".join(["[words]", *lines, ""]))
    except FioJobRefused as error:
        raise WorkloadError(str(error).removeprefix("[words]: ")) from error
    named = dict.fromkeys(name for key in words for name in _FIELDS[key])
    if "size" not in words and "filesize" not in words:
        job = msgspec.structs.replace(
            job, findings=tuple(each for each in job.findings if each.code != "own_files")
        )
    return job, {name: getattr(job.workload, name) for name in named}


def _plain(key: str, value: str) -> str:
    """Return a size in bytes, without the units that mean something else to fio."""
    if key not in _SIZES or any(sign in value for sign in "-:/%"):
        return value
    try:
        return str(parse_bytes(value))
    except ValueError as error:
        raise WorkloadError(f"{key}: {error}") from error
