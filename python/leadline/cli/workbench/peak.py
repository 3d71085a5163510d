"""`leadline peak`: how much load can this server, or this storage, take?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from leadline.cli.context import Context
from leadline.cli.options import Json, with_access, with_group
from leadline.cli.workbench.lengths import LENGTH_OPTIONS, lengths_of
from leadline.cli.workbench.run import (
    Deadline,
    InsecureScheduler,
    OwnSeed,
    PolicyName,
    Resume,
    Scheduler,
    Shown,
    run_and_tell,
    with_page,
)
from leadline.cli.workbench.targets import TARGET_OPTIONS, StorageAsked, experiment_of, is_file
from leadline.cli.workbench.varied import Vary, require_one, run_varied
from leadline.errors import LeadlineError
from leadline.record import Access
from leadline.record.workbench import Level, PeakRate, PeakVerdict, RunLengths, Sample
from leadline.studies.workbench.asked import Where, peak_of

CurvePoints = Annotated[
    int,
    typer.Option(
        min=0,
        max=100,
        metavar="N",
        help="Then so many trials at even parts of the peak: the load-latency curve. They "
        "come on top of the deadline.  [default: none]",
        show_default=False,
    ),
]


class TrialsFailed(LeadlineError):
    """Trials failed again and again; what was measured is kept."""

    exit_code = 3


class PolicyGaveUp(LeadlineError):
    """The accuracy that was asked for was not reached, and more trials were not expected to."""

    exit_code = 3


@with_page
@with_access
@with_group("asked", TARGET_OPTIONS, StorageAsked.of)
@with_group("run_lengths", LENGTH_OPTIONS, lengths_of)
def command(
    context: typer.Context,
    *,
    experiment: Annotated[
        str,
        typer.Argument(
            metavar="EXPERIMENT.toml|TARGET",
            help="A server's file (docs/reference/experiment.md), or storage with a latency "
            "target: DIR, nfs://HOST/PATH, sim:NAME.",
        ),
    ],
    asked: StorageAsked,
    access: Access,
    curve: CurvePoints = 0,
    run_lengths: RunLengths | None,
    policy: PolicyName = None,
    at: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=LEVEL", help="Level of a factor; the file's [sample] without."),
    ] = None,
    deadline: Deadline = None,
    seed: OwnSeed = None,
    resume: Resume = False,
    vary: Vary = None,
    scheduler: Scheduler = None,
    insecure_scheduler: InsecureScheduler = False,
    output: Path | None = None,
    compare: Annotated[
        bool | None,
        typer.Option(
            "--compare/--no-compare",
            show_default=False,
            help="Say how the other policies would have fared; takes some seconds.  [default: "
            "of a file, not of a target]",
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Find the highest load a server takes before it is too slow, at a stated confidence.

    Example: leadline peak /data --p99 2ms --workload bs=4k,rw=randread,direct=1,size=2g
    """
    require_one(vary, resumed=resume)
    file = experiment_of(experiment, asked, access)
    own: Context = context.obj
    decided: dict[str, Any] = {
        "sample": _sample(at or ()),
        "policy": policy,
        "seed": seed,
        "deadline_s": deadline,
        "curve_points": curve,
        "run_lengths": run_lengths,
    }
    where = Where(scheduler=scheduler, insecure=insecure_scheduler)
    beside = is_file(experiment) if compare is None else compare
    study = peak_of(file, where, decided, compare=beside)
    shown = Shown(json=json, output=output)
    if vary:
        run_varied(own, study.decide(own.open_store()), vary, shown, where=study.where)
        return
    found = run_and_tell(own, study, shown, resume=resume)
    _require_answer(found.peaks[0].peak)


def _require_answer(peak: PeakRate | None) -> None:
    """Leave with 3 where the search did not come to what was asked."""
    if peak is not None and peak.verdict is PeakVerdict.FAILED:
        raise TrialsFailed("trials failed again and again; `leadline show` tells how each ended")
    if peak is not None and peak.verdict is PeakVerdict.GAVE_UP:
        raise PolicyGaveUp(
            "the policy gave up before it knew the rate as well as was asked; what "
            "it reached is kept"
        )


def _sample(texts: list[str] | tuple[()]) -> Sample:
    sample: Sample = {}
    for text in texts:
        name, equals, level = text.partition("=")
        if not equals or not name.strip() or not level.strip():
            raise typer.BadParameter(f"--at {text!r} is not NAME=LEVEL, for example threads=8")
        sample[name.strip()] = _level(level.strip())
    return sample


def _level(text: str) -> Level:
    for read in (int, float):
        try:
            return read(text)
        except ValueError:
            continue
    return text
