"""What an NFS server is asked, and what the engine answers of it."""

from __future__ import annotations

from typing import Literal

import msgspec

from leadline.record.workbench import Measured

NfsWorkload = Literal["specsfs97", "web_server", "db_tp", "mail"]
"""The names of SH08 Table 3."""


class NfsServerAddress(msgspec.Struct, frozen=True, kw_only=True):
    """A directory of a server, as the wire has it."""

    host: str
    port: int | None = None
    """Of the NFS program; None leaves it to the server's port mapper."""
    mount_port: int | None = None
    path: str
    """From / on, the export's own path included; which part is the export the server decides."""


class NfsData(msgspec.Struct, frozen=True, kw_only=True):
    """Which data set."""

    workload: NfsWorkload
    data_bytes: int
    """Of all files together, as near as whole files come."""
    seed: int = 1
    """Decides sizes, and which files are popular."""


class NfsDataFacts(msgspec.Struct, frozen=True, kw_only=True):
    """A data set that is there."""

    directory: str
    files: int
    bytes: int
    made: bool
    """Whether it was made now; else it was found."""
    repaired: int
    """Files that an earlier load had changed and that were put right."""
    seconds: float


class NfsOperation(msgspec.Struct, frozen=True, kw_only=True):
    """What one procedure of NFS was asked in the window."""

    procedure: str
    due: int
    failed: int
    unanswered: int
    mean_ms: float
    bytes: int


class NfsGenerator(msgspec.Struct, frozen=True, kw_only=True):
    """How the generator itself did (crates/wire/src/event/nfs_load.rs)."""

    connections: int
    outstanding_max: int
    held: int
    sent_late_ms_mean: float
    sent_late_ms_max: float
    cpu_frac: float
    fell_short: str | None
    """Why the answer says more of the generator than of the server; None when it does not."""
    first_failure: str | None


class NfsLoadAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The engine's answer, whatever was asked."""

    version: int
    kind: str
    job_id: str
    data: NfsDataFacts | None
    removed: int
    load: Measured | None
    operations: tuple[NfsOperation, ...]
    generator: NfsGenerator | None


class NfsServerFacts(msgspec.Struct, frozen=True):
    """A server whose directory was claimed."""

    address: str
    export: str
    read_bytes_max: int
    write_bytes_max: int
    round_trip_us: float


class NfsRoom(msgspec.Struct, frozen=True):
    """What it has room for."""

    total_bytes: int
    free_bytes: int
    data_bytes: int


class NfsAsked(msgspec.Struct, frozen=True):
    """The answer to a question about a server's directory."""

    server: NfsServerFacts | None = None
    room: NfsRoom | None = None
