"""`leadline files DIR…`: how fast are plain files read, written and rewritten (KM83)?"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import typer

from leadline.engine import Target
from leadline.record.files import FILES, FilesCell, FilesStart, FilesStudy
from leadline.record.job import TEST_RUNS_MAX
from leadline.record.jobs.file_test import KBYTE
from leadline.record.wording import format_count
from leadline.store import Store, StoreError
from leadline.studies.conduct import conduct
from leadline.studies.files.plan import CHOICES, FilesRefused, plan_cells
from leadline.studies.files.run import RUNS, CellDone, FilesOptions, PlainFiles, load_files
from leadline.studies.registry import KINDS
from leadline.studies.resume import format_kept
from leadline.terminal.context import Context
from leadline.terminal.options import (
    Json,
    MaxBytes,
    Name,
    Seed,
    positive_bytes,
    positive_seconds,
    print_ignored_options,
    reader,
    with_output,
)
from leadline.terminal.talk import talk
from leadline.terminal.tell import draw, require_output, tell
from leadline.terminal.watch import Teller
from leadline.units import format_bytes, format_rate, format_seconds

BUDGET_S = 600.0
_GRANULE_BYTES = 8192


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]


def _block_sizes(text: str) -> list[int]:
    sizes = [positive_bytes(word) for word in _words(text)]
    if not sizes:
        raise ValueError(f"{text!r} names no size; write for example 1KiB,4KiB")
    return sizes


def _file_bytes(text: str) -> int:
    size = positive_bytes(text)
    if size % _GRANULE_BYTES:
        raise ValueError(f"{text!r} is no multiple of 8 KiB, the programs' request")
    return size


_Directories = Annotated[
    list[str], typer.Argument(metavar="DIR…", help="One directory for each drive.")
]
_FileSystems = Annotated[
    Any,
    typer.Option(
        "--filesystems",
        parser=reader(_words),
        metavar="F,…",
        help="existing (what is there), and what is made on loop devices as root: ext4, xfs, "
        "btrfs.  [default: all]",
    ),
]
_BlockSizes = Annotated[
    Any,
    typer.Option(
        parser=reader(_block_sizes),
        metavar="SIZE,…",
        help="Blocks of the file systems that are made.  [default: ext4 1, 2 and 4 KiB, others "
        "4 KiB]",
    ),
]
_FileSize = Annotated[
    int | None,
    typer.Option(
        parser=reader(_file_bytes),
        metavar="SIZE",
        help="The files' size, e.g. 8MB.  [default: scaled until it decides nothing]",
    ),
]
_Paper = Annotated[
    bool,
    typer.Option("--paper", help="The paper's protocol to the letter: 8 MB, the cache left alone."),
]
_Budget = Annotated[
    float,
    typer.Option(parser=reader(positive_seconds), metavar="TIME", help="Ends within this time."),
]


@with_output("Also as .html, .csv, .txt, .svg, .png")
def command(
    context: typer.Context,
    *,
    directories: _Directories,
    filesystems: _FileSystems = None,
    block_sizes: _BlockSizes = None,
    file_size: _FileSize = None,
    paper: _Paper = False,
    runs: Annotated[
        int | None,
        typer.Option(
            min=2,
            max=TEST_RUNS_MAX,
            help="Of every program, one discarded.  [default: 3, more while the budget lasts]",
        ),
    ] = None,
    name: Name = None,
    budget: _Budget = BUDGET_S,
    max_bytes: MaxBytes = None,
    seed: Seed = 1,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with the unfinished study as it was begun.")
    ] = False,
    output: Path | None = None,
    json: Json = False,
) -> None:
    """Test plain files over file systems: read, write and rewrite.

    Example: leadline files /data --filesystems existing
    """
    if paper and file_size is not None:
        raise FilesRefused("--paper is 8 MB by itself: leave --file-size or --paper out")
    kind = KINDS[FILES.kind]
    require_output(output, kind)
    targets = [Target.parse(directory) for directory in directories]
    cells = plan_cells(targets, CHOICES if filesystems is None else filesystems, block_sizes or ())
    asked = FilesOptions(
        system=name or targets[0].name,
        cells=cells,
        budget_s=budget,
        paper=paper,
        runs=runs or RUNS,
        fill=runs is None and not paper,
        seed=seed,
    )
    own: Context = context.obj
    store = own.open_store()

    def begun(start: FilesStart, stored: FilesStudy | None) -> None:
        if stored is not None:
            print_ignored_options(context, _kept_options(stored, asked, file_size))
        _tell_plan(start, 0 if stored is None else stored.cells_done)

    asked_for = PlainFiles(targets, asked, file_bytes=file_size, max_bytes=max_bytes)
    study = conduct(asked_for, store, _Teller(begun), resume=resume)
    tell(study, kind, json=json)
    if output is not None:
        draw(store, study, kind, output, ())


class _Teller(Teller):
    """Tells of every column."""

    def ended(self, item: CellDone | FilesStudy) -> None:
        if isinstance(item, CellDone):
            _tell_cell(item)
        else:
            talk(f"files of {format_bytes(item.file_bytes or 0)}: {item.size_reason}")

    def stopped(self, store: Store, start: FilesStart, error: BaseException) -> None:
        with suppress(StoreError):  # refused before anything was kept
            done = load_files(store, start.study_id).cells_done
            if done:
                talk(format_kept(done, len(start.cells), start.study_id, what="columns"))


def _kept_options(
    stored: FilesStudy, asked: FilesOptions, file_bytes: int | None
) -> dict[str, tuple[bool, str]]:
    start, size = stored.start, stored.file_bytes
    asked_columns, columns = (
        [(cell.system, cell.drives) for cell in each.cells] for each in (asked, start)
    )
    among, said = asked_columns == columns, f"its {len(columns)} columns"
    return {
        "filesystems": (among, said),
        "block_sizes": (among, said),
        "file_size": (size in {None, file_bytes}, format_bytes(size or 0)),
        "paper": (asked.paper == start.paper, "with it" if start.paper else "without it"),
        "runs": (asked.runs == start.runs, str(start.runs)),
        "budget": (asked.budget_s == start.budget_s, format_seconds(start.budget_s)),
        "seed": (asked.seed == start.seed, str(start.seed)),
    }


def _tell_plan(start: FilesStart, done: int) -> None:
    able = [cell for cell in start.cells if cell.missing is None]
    kept = f", {done} kept from before" if done else ""
    talk(
        f"files {start.study_id[:8]} of {start.system}: {len(able)} of {len(start.cells)} columns "
        f"can be measured{kept}; ends within {format_seconds(start.budget_s)}"
    )
    for why in dict.fromkeys(cell.missing for cell in start.cells if cell.missing):
        columns = [_format_cell(cell) for cell in start.cells if cell.missing == why]
        talk(f"  n.m. {'; '.join(columns)}: {why}")


def _tell_cell(done: CellDone) -> None:
    if done.cell.missing is not None:
        return
    said = [
        f"{row.test} {format_rate(row.kbytes_s.value * KBYTE / 1e6)}"
        for row in done.rows
        if row.kbytes_s is not None
    ]
    why = next((row.missing for row in done.rows if row.missing), "")
    talk(f"  {done.done:>2} of {done.of}  {_format_cell(done.cell)}: {', '.join(said) or why}")


def _format_cell(cell: FilesCell) -> str:
    system = cell.system
    block = f" {format_bytes(system.block_bytes)}" if system.block_bytes else ""
    made = "" if system.made else "existing "
    return f"{made}{system.fs}{block}, {format_count(cell.drives, 'drive')}"
