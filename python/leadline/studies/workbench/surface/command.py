"""`leadline surface EXPERIMENT.toml`: how much load over which configurations?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from leadline.studies.workbench.command_run import (
    Deadline,
    ExperimentPath,
    InsecureScheduler,
    OwnSeed,
    PolicyName,
    Resume,
    Scheduler,
    Shown,
    Vary,
    require_one,
    run_and_tell,
    run_varied,
    with_page,
)
from leadline.studies.workbench.experiments.read import load_experiment
from leadline.studies.workbench.study import Where, surface_of
from leadline.terminal.context import Context
from leadline.terminal.options import Json


@with_page
def command(
    context: typer.Context,
    *,
    experiment: ExperimentPath,
    design: Annotated[
        str | None,
        typer.Option(
            metavar="D",
            show_default=False,
            help="How samples are chosen: sequential, full-grid, d-optimal-raw:8 and others.",
        ),
    ] = None,
    policy: PolicyName = None,
    deadline: Deadline = None,
    seed: OwnSeed = None,
    resume: Resume = False,
    vary: Vary = None,
    against: Annotated[
        str | None,
        typer.Option(
            metavar="ID",
            show_default=False,
            help="A stored surface whose measured cells it is held against, by id or name: its "
            "mean absolute percentage error.  [default: none]",
        ),
    ] = None,
    scheduler: Scheduler = None,
    insecure_scheduler: InsecureScheduler = False,
    at_once: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            help="Most samples measured at the same time. "
            "[default: the file's, or one on each machine]",
        ),
    ] = None,
    output: Path | None = None,
    json: Json = False,
) -> None:
    """Find the peak rate over all configurations, measuring some of them.

    Example: leadline surface workloads/simulated-server.toml
    """
    require_one(vary, resumed=resume)
    if against is not None and resume:
        raise typer.BadParameter("--resume keeps what it was begun against; leave out --against")
    file = load_experiment(experiment)
    own: Context = context.obj
    decided = {"design": design, "policy": policy, "seed": seed, "deadline_s": deadline}
    where = Where(scheduler=scheduler, insecure=insecure_scheduler, at_once=at_once)
    study = surface_of(file, where, decided, against)
    shown = Shown(json=json, output=output)
    if vary:
        run_varied(own, study.decide(own.open_store()), vary, shown, where=study.where)
        return
    run_and_tell(own, study, shown, resume=resume)
