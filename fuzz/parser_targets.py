"""Everything in Leadline's Python that reads what others wrote: what it is given, how it refuses.

A target takes bytes. It returns, or raises what the parser promises for input that makes no sense;
any other exception is a finding, and so is what it asserts.
"""

from __future__ import annotations

import functools
import json
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec

from leadline.engine import fio
from leadline.engine.child import EngineChild, answer, read_answer
from leadline.engine.streams.places import find_data_set
from leadline.engine.targets import claim, profiles
from leadline.engine.targets.nfs_address import NfsAddress
from leadline.engine.targets.target import Target
from leadline.errors import LeadlineError, TargetRefused, WorkloadError
from leadline.fio import FioJobRefused, read_job
from leadline.inputs import parse_toml
from leadline.machine import dirty_limits, mounts
from leadline.record import Workload
from leadline.record.access import parse_sync
from leadline.record.job import AskJob, FileTestJob, MeasureJob, NfsLoadJob, StreamJob, TrialJob
from leadline.record.kinds import KINDS
from leadline.record.workbench import Measured, Threshold, TrialRequest
from leadline.servers.load_document import NonsensePrinted, measured_of, read_document
from leadline.store import StoreError, open_store
from leadline.store._database import encode
from leadline.store._place import masked
from leadline.studies.comparison.ratio import GateRefused, PriceRefused, parse_prices, parse_rules
from leadline.studies.streaming.balance import WhatIfRefused, parse_changes
from leadline.studies.workbench import pool as answers
from leadline.studies.workbench.conversation import ExperimentRefused
from leadline.studies.workbench.experiments.read import read_experiment
from leadline.units import parse_bytes, parse_seconds
from proving.published import FiguresError, read_figures
from proving.samples import sample_result, sample_studies

ROOT = Path(__file__).resolve().parent.parent
Parse = Callable[[bytes], object]


@dataclass(frozen=True)
class Parser:
    """A parser, with what makes sense to it."""

    parse: Parse
    seeds: Callable[[], list[bytes]]
    refuses: tuple[type[Exception], ...]


def text_of(data: bytes) -> str:
    """Text as it comes from a command line or a file: anything but halves of surrogates."""
    return data.decode("utf-8", "replace")


def _files(*patterns: str) -> Callable[[], list[bytes]]:
    def read() -> list[bytes]:
        return [path.read_bytes() for pattern in patterns for path in sorted(ROOT.glob(pattern))]

    return read


def _words(*words: str) -> Callable[[], list[bytes]]:
    return lambda: [word.encode() for word in words]


# ---- files that people write ---------------------------------------------------------------------


def _experiment(data: bytes) -> object:
    return read_experiment(text_of(data), "experiment.toml")


def _toml(data: bytes) -> object:
    return parse_toml(text_of(data))


def _profile(data: bytes) -> object:
    return profiles._read(text_of(data), "system.toml", "sim:system.toml")


def _fio_job(data: bytes) -> object:
    text = text_of(data)
    return [read_job(text, direct=direct) for direct in (False, True)] if "[" in text else None


def _published(data: bytes) -> object:
    return read_figures(SimpleNamespace(read_text=lambda **_: text_of(data)))  # type: ignore[arg-type]


def _layout(data: bytes) -> object:
    _layout_file().write_bytes(data)
    return find_data_set(str(_layout_file()).removesuffix(".layout"))


@functools.cache
def _layout_file() -> Path:
    memory = Path("/dev/shm")  # noqa: S108 - a folder of its own in it
    folder = tempfile.mkdtemp(prefix="leadline-fuzz-", dir=memory if memory.is_dir() else None)
    (Path(folder) / "stripe").touch()
    return Path(folder) / "set.layout"


def _layout_seeds() -> list[bytes]:
    part = {"files": [str(_layout_file().with_name("stripe"))], "bytes": 7, "stripe_bytes": 65536}
    return [json.dumps({"version": 1, "parts": parts}).encode() for parts in ([part], [part, part])]


# ---- what programs print -------------------------------------------------------------------------

_WORK = Workload(unique_bytes=2**20, size_mean=4096)


def _fio_answer(data: bytes) -> object:
    said = fio._answer(text_of(data), "", 0)
    return fio.read_result(said, _WORK, "fio-1", ramp_s=1.0)


def _fio_seeds() -> list[bytes]:
    percentiles = {f"{share:.6f}": 1000 for share in (50, 90, 99, 99.9)}
    latency = {"N": 9, "mean": 1e3, "max": 1000, "percentile": percentiles, "bins": {"1000": 9}}
    part = {"total_ios": 9, "io_bytes": 36864, "runtime": 500, "lat_ns": latency}
    job = {"read": part, "write": part, "mixed": part, "error": 0, "job_runtime": 500}
    job |= {"usr_cpu": 1.0, "sys_cpu": 1.0}
    return [b"fio: note\n" + json.dumps({"jobs": [job]}).encode()]


def _load(data: bytes) -> object:
    asked, document = TrialRequest(rate_per_s=10, seconds=60), read_document(data)
    if document.server_lost is not None:
        return None
    measured = measured_of(document, asked, Threshold(mean_ms=40, limit_ms=10))
    return encode(measured)  # what a store would refuse is no measurement


def _load_seeds() -> list[bytes]:
    requests = {
        "due_s": [4.0, 6.0, 64.0],
        "response_ms": [20.0, None, 4],
        "sent_late_ms": [0, 1, 2],
    }
    counts = {"due": 9, "answered": 9, "response_ms": {"mean": 1.0}}
    return [
        json.dumps({"leadline_load": 1} | more).encode()
        for more in (
            {"requests": requests, "warm_up_s": 5.0, "ended_s": 70.0, "failed_due_s": [7.0]},
            {"requests": requests, "aborted": True, "seconds": 9.5, "ended_s": 70},
            {"counts": counts, "seconds": 60},
            {"server_lost": "it died"},
        )
    ]


_JOBS: tuple[Any, ...] = (MeasureJob, TrialJob, FileTestJob, NfsLoadJob, StreamJob, AskJob)


def _event(data: bytes) -> object:
    """A line of the engine child, as the answer to a job of every kind."""
    child: Any = SimpleNamespace(_nonsense=lambda line: f"nonsense: {line[:9]!r}")
    event = EngineChild._event(child, data, "j")
    told = answer(event)
    found: list[object] = []
    for kind in _JOBS:
        try:
            job: Any = SimpleNamespace(read=functools.partial(kind.read, _Any()))
            found.append(read_answer(job, told))
        except LeadlineError as error:
            found.append(error)
    return found


class _Any:
    """A job of which nothing is asked but to read its answer."""

    def __getattr__(self, name: str) -> Any:
        return {"about": "claim"}.get(name, _WORK)


def _event_seeds() -> list[bytes]:
    examples = ROOT.glob("protocol/examples/**/*.json")
    found = [json.loads(path.read_bytes()) for path in sorted(examples)]
    events = [event | {"job_id": "j"} for event in found if "event" in event]
    result = msgspec.to_builtins(sample_result("j")) | {"event": "result", "kind": "measure"}
    return [json.dumps(event).encode() for event in (*events, result)]


def _worker(data: bytes) -> object:
    def trial() -> Measured:
        raise NotImplementedError

    return answers.read_answer(data, _typed(trial))


def _typed(call: Callable[[], Measured]) -> Callable[[], Measured]:
    call.__annotations__["return"] = Measured
    return call


def _worker_seeds() -> list[bytes]:
    measured = measured_of(
        read_document(_load_seeds()[0]),
        TrialRequest(rate_per_s=10, seconds=60),
        Threshold(mean_ms=40),
    )

    def fails() -> None:
        raise TargetRefused("no")

    return [
        answers.encoded(lambda: measured),
        answers.encoded(fails),
        answers.encoded(lambda: 1 / 0),
    ]


# ---- what Leadline and the kernel keep -----------------------------------------------------------


@functools.cache
def _store() -> Any:
    return open_store("sqlite://")


_ROWS: dict[str, Any] = {
    f"{kind.kind} {what}": getattr(kind, what)
    for kind in KINDS
    for what in ("start", "item", "answer")
}


def _row(data: bytes) -> object:
    """A document of the store; its first line says what it should be."""
    name, _, document = text_of(data).partition("\n")
    return _store()._decode(document, _ROWS.get(name, _ROWS["survey item"]))


def _row_seeds() -> list[bytes]:
    found = []
    for study in sample_studies():
        parts = {"start": study.start, "answer": study.answer, "item": study.items[0][1]}
        last = {"item": study.items[-1][1]}
        for what, document in [*parts.items(), *last.items()]:
            head = f"{study.records.kind} {what}\n".encode()
            found.append(head + msgspec.json.encode(document))
    return found


def _marker(data: bytes) -> object:
    return claim._is_marker(data)


def _limits(data: bytes) -> object:
    record: Any = SimpleNamespace(read_text=lambda: text_of(data))
    found = dirty_limits._read(record)
    assert found is None or isinstance(found["before"], dict)
    return dirty_limits._owner_lives(record)


def _mount(data: bytes) -> object:
    return [mounts._parse(line) for line in text_of(data).splitlines()]


# ---- what people type ----------------------------------------------------------------------------


def _nfs(data: bytes) -> object:
    address = NfsAddress.parse(text_of(data))
    again = NfsAddress.parse(address.text)
    assert again == address, f"{address} is written as {again}"
    return address


def _target(data: bytes) -> object:
    return Target.parse(text_of(data))


def _workload(data: bytes) -> object:
    return Workload.parse(text_of(data))


def _bytes(data: bytes) -> object:
    size = parse_bytes(text_of(data))
    assert 0 <= size < 2**63
    return size


def _seconds(data: bytes) -> object:
    seconds = parse_seconds(text_of(data))
    assert 0 <= seconds <= 1e9
    return seconds


def _sync(data: bytes) -> object:
    sync = parse_sync(text_of(data))
    assert parse_sync(sync) == sync
    return sync


def _prices(data: bytes) -> object:
    return parse_prices([text_of(data)], ("atlas", "boreas"))


def _rule(data: bytes) -> object:
    (rule,) = parse_rules([text_of(data)])
    assert 0 <= rule.worse_frac < 1
    return rule


def _changes(data: bytes) -> object:
    return parse_changes(text_of(data))


def _masked(data: bytes) -> object:
    """No password of an address is told, whatever stands beside it."""
    return masked(text_of(data))


_TREES = ("workloads/*.toml", "workloads/*/*.toml", "tests/golden/server.toml")
_PROFILES = ("python/leadline/profiles/*.toml", "python/leadline/profiles/machines/*.toml")

TARGETS: dict[str, Parser] = {
    "experiment": Parser(_experiment, _files(*_TREES), (ExperimentRefused,)),
    "toml": Parser(_toml, _files(*_TREES), (ValueError,)),
    "system": Parser(_profile, _files(*_PROFILES), (TargetRefused,)),
    "published": Parser(_published, _files("bench/published.toml"), (FiguresError,)),
    "fio_job": Parser(_fio_job, _files("workloads/*.fio", "tests/**/*.fio"), (FioJobRefused,)),
    "stripes": Parser(_layout, _layout_seeds, (TargetRefused,)),
    "fio_answer": Parser(_fio_answer, _fio_seeds, (LeadlineError,)),
    "load": Parser(_load, _load_seeds, (NonsensePrinted,)),
    "event": Parser(_event, _event_seeds, (LeadlineError,)),
    "worker": Parser(_worker, _worker_seeds, (LeadlineError,)),
    "row": Parser(_row, _row_seeds, (StoreError,)),
    "marker": Parser(_marker, _words('{"made_by":"leadline","version":1,"id":"a-b"}\n', ""), ()),
    "limits": Parser(
        _limits,
        _words('{"version": 1, "pid": 12, "boot_id": "a", "before": {"dirty_bytes": 5}}'),
        (),
    ),
    "mounts": Parser(_mount, lambda: [Path("/proc/self/mountinfo").read_bytes()[:2000]], ()),
    "nfs_url": Parser(
        _nfs,
        _words("nfs://host/a/b", "nfs://[::1]:2049/x?mountport=7&nfsport=3", "nfs://h:1/%20%25"),
        (TargetRefused,),
    ),
    "target": Parser(
        _target,
        _words("sim:two-level", "null:", "nfs://host/export", "/usr", "~root", "./a", "sim:a.toml"),
        (TargetRefused,),
    ),
    "workload": Parser(
        _workload,
        _words(
            "unique_bytes=2GiB,size_mean=32KiB,read_frac=0.8,seq_frac=0.1,process_num=4",
            "unique_bytes=1M,size_mean=4k,size_dist=fixed,queue_depth=4,think_time=5ms",
        ),
        (WorkloadError,),
    ),
    "size": Parser(_bytes, _words("512MiB", "3GB", "4k", "1.5e3 KiB", "0"), (ValueError,)),
    "duration": Parser(_seconds, _words("10m", "90s", "250ms", "1.5 h", "0"), (ValueError,)),
    "sync": Parser(_sync, _words("none", "dsync", "fsync=8", "buffered", "fsync"), (ValueError,)),
    "prices": Parser(
        _prices, _words("atlas=1200 EUR,boreas=800 EUR", "atlas=3,boreas=4.5"), (PriceRefused,)
    ),
    "rule": Parser(_rule, _words("slower=5%", "slower=0.5%"), (GateRefused,)),
    "changes": Parser(_changes, _words("cores=2,disks=2,memory=1.5,network=10"), (WhatIfRefused,)),
    "secrets": Parser(
        _masked,
        _words(
            "postgresql://u:secret@h/db?password=secret", "could not: password='secret' token=x"
        ),
        (),
    ),
}
"""By the names of their folders in `corpus/`."""
