"""Studies that come as they are stored: validations, the page cache, plain files on drives."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from leadline.api.frames import bytes_of, maybe, seconds_of
from leadline.api.progress import Listener
from leadline.api.studies import StoredStudy
from leadline.engine import Target
from leadline.record import Access
from leadline.record.file_cache import CACHE
from leadline.record.files import FILES
from leadline.record.validation import VALIDATION
from leadline.store import open_store
from leadline.studies.cache.study import CacheOptions, FileCacheStudy, usual_budget_s
from leadline.studies.conduct import Reached, conduct
from leadline.studies.files.plan import CHOICES, plan_cells
from leadline.studies.files.run import RUNS, FilesOptions, PlainFiles
from leadline.studies.survey.study import load_survey, surveyed_target
from leadline.studies.validation.plan import ValidationOptions
from leadline.studies.validation.run import ValidationStudy

FILES_BUDGET_S = 600.0


def validate(
    system: str,
    *,
    count: int = 100,
    seconds: str | float | None = None,
    budget: str | float | None = None,
    rivals: bool | None = None,
    model: str | None = None,
    seed: int = 1,
    resume: bool = False,
    store: str | None = None,
    say: Callable[[str], None] = lambda _: None,
    progress: bool | None = None,
) -> StoredStudy:
    """Measure random workloads and hold them against what a survey's models predict (CP94 §9).

    Args:
        system: a survey's id or the first letters of it, or a system's name.
        count: random workloads; each is measured twice.
        seconds: of one reading, at most, as a number or as `"2s"`; as the survey's points had.
        budget: a hard cap, in seconds or as `"10min"`; what all readings need, and a tenth.
        rivals: measure orthogonal samples as well; None only on a simulated system.
        model: of the headline; the best without it.
        seed: decides the workloads.
        resume: go on with this survey's unfinished validation.
        store: a file or URL; by default the one the command line uses.
        say: is told what a person should know, one sentence at a time.
        progress: shows how far it is; None where it runs in a notebook.

    Raises:
        LeadlineError: the survey or its target was refused, or a reading failed; the message says
            what to do.

    """
    with open_store(store) as kept:
        survey, points = load_survey(kept, system)
        beside = surveyed_target(survey).virtual_time if rivals is None else rivals
        limits = maybe(seconds_of, seconds), maybe(seconds_of, budget)
        asked = ValidationOptions(count, seed, *limits, rivals=beside)
        study = ValidationStudy(survey, points, asked, model)
        found = conduct(study, kept, Listener(say, progress), resume=resume)
    return StoredStudy(VALIDATION.kind, found, store)


def cache(
    target: str,
    *,
    budget: str | float | None = None,
    name: str | None = None,
    cache_limit: str | int | None = None,
    max_bytes: str | int | None = None,
    access: Access = Access(),  # noqa: B008 - frozen
    seed: int = 1,
    sizes_only: bool = False,
    resume: bool = False,
    store: str | None = None,
    say: Callable[[str], None] = lambda _: None,
    progress: bool | None = None,
) -> StoredStudy:
    """Find the page cache: its size for reads and for writes, and what it does with writes.

    Args:
        target: a directory, a server's, `sim:NAME` or `sim:FILE.toml`.
        budget: a hard cap, in seconds or as `"5min"`; 5 minutes without one.
        name: of the system, to find it again; by default the target's own.
        cache_limit: memory cap, in bytes or as `"512MiB"`; 0 for none, None lets Leadline choose.
        max_bytes: most data to write, in bytes or as `"8GiB"`.
        access: how the target is reached, and what data it holds.
        seed: decides order, addresses and simulated noise.
        sizes_only: leave out the write modes and writeback.
        resume: go on with this system's unfinished study.
        store: a file or URL; by default the one the command line uses.
        say: is told what a person should know, one sentence at a time.
        progress: shows how far it is; None where it runs in a notebook.

    Raises:
        LeadlineError: the target was refused or failed; the message says what to do.

    """
    chosen = Target.parse(target)
    budget_s = usual_budget_s(chosen) if budget is None else seconds_of(budget)
    reached = Reached(
        target=chosen,
        access=access,
        cache_limit_bytes=maybe(bytes_of, cache_limit),
        max_bytes=maybe(bytes_of, max_bytes),
    )
    asked = CacheOptions(name or chosen.name, budget_s, seed, write_costs=not sizes_only)
    study = FileCacheStudy(reached, asked, maybe(seconds_of, budget))
    with open_store(store) as kept:
        found = conduct(study, kept, Listener(say, progress), resume=resume)
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
    resume: bool = False,
    store: str | None = None,
    say: Callable[[str], None] = lambda _: None,
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
        resume: go on with the unfinished study of these directories as it was begun.
        store: a file or URL; by default the one the command line uses.
        say: is told what may disturb it.

    Raises:
        LeadlineError: it was refused or failed; the message says what to do.

    """
    targets = [Target.parse(directory) for directory in directories]
    cells = plan_cells(targets, filesystems, [bytes_of(size) for size in block_sizes])
    asked = FilesOptions(
        system=name or targets[0].name,
        cells=cells,
        paper=paper,
        runs=runs,
        budget_s=seconds_of(budget),
        seed=seed,
    )
    study = PlainFiles(
        targets, asked, file_bytes=maybe(bytes_of, file_size), max_bytes=maybe(bytes_of, max_bytes)
    )
    with open_store(store) as kept:
        found = conduct(study, kept, Listener(say, shown=False), resume=resume)
    return StoredStudy(FILES.kind, found, store)
