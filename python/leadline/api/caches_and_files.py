"""The file cache of a target, and plain files on drives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from leadline.api.frames import bytes_of, seconds_of
from leadline.api.progress import progress_line
from leadline.api.studies import StoredStudy
from leadline.engine import Target, open_engine, open_file_tests, preflight
from leadline.record import NO_SYNC, Access, parse_sync
from leadline.record.file_cache import CACHE
from leadline.record.files import FILES
from leadline.store import open_store
from leadline.studies.cache import (
    CACHE_LIMIT_MOST,
    CacheAsked,
    begin_study,
    run_study,
    usual_budget_s,
)
from leadline.studies.files import Asked, begin_files, plan_cells, run_files
from leadline.studies.files.plan import CHOICES
from leadline.studies.files.protocol import RUNS
from leadline.studies.survey import choose_cache_limit

FILES_BUDGET_S = 600.0


def cache(
    target: str,
    *,
    budget: str | float | None = None,
    name: str | None = None,
    cache_limit: str | int | None = None,
    max_bytes: str | int | None = None,
    backend: str | None = None,
    direct: bool = False,
    sync: str = NO_SYNC,
    seed: int = 1,
    sizes_only: bool = False,
    store: str | None = None,
    say: Callable[[str], None] = lambda _: None,
    progress: bool | None = None,
) -> StoredStudy:
    """Find the file cache: its size for reads and for writes, and what it does with writes.

    Args:
        target: a directory, a server's, `sim:NAME` or `sim:FILE.toml`.
        budget: a hard cap, in seconds or as `"5min"`; 5 minutes without one.
        name: of the system, to find it again; by default the target's own.
        cache_limit: memory cap, in bytes or as `"512MiB"`; 0 for none, None lets Leadline choose.
        max_bytes: most data to write, in bytes or as `"8GiB"`.
        backend: `pread`, `uring` or `mmap`.
        direct: bypass the file cache.
        sync: which writes wait for the device: `none`, `dsync`, `fsync=8` or `fdatasync=8`.
        seed: decides order, addresses and simulated noise.
        sizes_only: leave out the disciplines of writes and the flusher.
        store: a file or URL; by default the one the command line uses.
        say: is told what a person should know, one sentence at a time.
        progress: shows how far it is; None where it runs in a notebook.

    Raises:
        LeadlineError: the target was refused or failed; the message says what to do.

    """
    chosen = Target.parse(target)
    budget_s = usual_budget_s(chosen) if budget is None else seconds_of(budget)
    limit = None if cache_limit is None else bytes_of(cache_limit)
    if chosen.path is not None:
        path = Path(chosen.path)
        limit = choose_cache_limit(path, limit, budget_s, say, most_bytes=CACHE_LIMIT_MOST)
    access = Access(
        backend=backend or "", direct=direct, sync=parse_sync(sync), cache_limit_bytes=limit or None
    )
    most = None if max_bytes is None else bytes_of(max_bytes)
    asked = CacheAsked(name or chosen.name, budget_s, seed, write_costs=not sizes_only)
    with (
        open_store(store) as kept,
        open_engine(chosen, access, max_bytes=most, run_seed=seed) as engine,
    ):
        findings = preflight(chosen, engine.facts)
        for finding in findings:
            say(str(finding))
        findings = tuple(finding for finding in findings if not finding.is_note)
        start = begin_study(engine, chosen, asked, findings=findings)
        kept.begin(CACHE, start)
        with progress_line(progress, simulated=start.simulated) as told:
            found = run_study(engine, chosen, kept, start, on_progress=told)
        return StoredStudy(CACHE.kind, found, store)


def files(
    *directories: str,
    filesystems: Sequence[str] = CHOICES,
    block_sizes: Sequence[str | int] = (),
    file_size: str | int | None = None,
    paper: bool = False,
    runs: int = RUNS,
    name: str | None = None,
    budget: str | float = FILES_BUDGET_S,
    max_bytes: str | int | None = None,
    seed: int = 1,
    store: str | None = None,
) -> StoredStudy:
    """Time plain files: read, written and rewritten, over file systems, block sizes and drives.

    Args:
        directories: one for each drive.
        filesystems: `existing`, and what is made on loop devices as root.
        block_sizes: of those that are made, in bytes or as `"4KiB"`.
        file_size: in bytes or as `"8MB"`; scaled until it decides nothing without it.
        paper: the paper's protocol to the letter.
        runs: of every program; the first is discarded.
        name: of the system, to find it again.
        budget: a hard cap, in seconds or as `"10min"`.
        max_bytes: most data to write.
        seed: decides the order.
        store: a file or URL; by default the one the command line uses.

    Raises:
        LeadlineError: it was refused or failed; the message says what to do.

    """
    targets = [Target.parse(directory) for directory in directories]
    cells = plan_cells(targets, filesystems, [bytes_of(size) for size in block_sizes])
    asked = Asked(
        system=name or targets[0].name,
        cells=cells,
        paper=paper,
        runs=runs,
        budget_s=seconds_of(budget),
        seed=seed,
    )
    size = None if file_size is None else bytes_of(file_size)
    most = None if max_bytes is None else bytes_of(max_bytes)
    with open_store(store) as kept, open_file_tests(targets, max_bytes=most) as tests:
        start = begin_files(targets, asked)
        found = run_files(tests, kept, start, file_bytes=size)
        return StoredStudy(FILES.kind, found, store)
