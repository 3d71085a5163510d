"""The stored surface that another one is held against."""

from __future__ import annotations

from leadline.record import Status
from leadline.record.workbench import (
    EXPERIMENT,
    Experiment,
    ExperimentStart,
    MeasuredGrid,
    SurfaceCell,
)
from leadline.store import Store
from leadline.studies.workbench.errors import ExperimentRefused
from leadline.studies.workbench.stored import stored_experiment


def measured_grid(store: Store, ref: str, start: ExperimentStart) -> MeasuredGrid:
    """Return the measured cells of a stored surface.

    Args:
        store: where it is kept.
        ref: its id, or its name; by name the one with most cells measured, the newest of them.
        start: of the surface that is to be held against it.

    Raises:
        ExperimentRefused: there is none, it has other factors or another threshold, or none of its
            cells has a measured rate.

    """
    found = [
        stored_experiment(store, item.study_id)
        for item in store.list(EXPERIMENT)
        if item.status is Status.DONE and (item.study_id.startswith(ref) or item.system == ref)
    ]
    surfaces = [each for each in found if each.start.design is not None]
    grid = max(surfaces, key=lambda each: len(_measured(each)), default=None)
    if grid is None or not _measured(grid):
        raise ExperimentRefused(
            f"--against {ref!r}: no finished surface of this id or name is stored; "
            "`leadline surface EXPERIMENT.toml --design full-grid` measures one"
        )
    alike = [(each.name, each.levels) for each in grid.start.factors]
    if alike != [(each.name, each.levels) for each in start.factors]:
        raise ExperimentRefused(
            f"--against {ref!r}: experiment {grid.start.study_id[:8]} varies other factors or "
            "levels, so the two have no cells in common"
        )
    if grid.start.goal.threshold != start.goal.threshold:
        raise ExperimentRefused(
            f"--against {ref!r}: experiment {grid.start.study_id[:8]} was saturated by another "
            "threshold, so its rates are rates of something else"
        )
    return MeasuredGrid(study_id=grid.start.study_id, cells=_measured(grid))


def _measured(experiment: Experiment) -> tuple[SurfaceCell, ...]:
    cells = () if experiment.surface is None else experiment.surface.cells
    return tuple(cell for cell in cells if cell.measured and cell.rate_per_s is not None)
