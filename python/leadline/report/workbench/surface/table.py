"""A response surface as plain rows: what it says, every configuration, what each cost."""

from __future__ import annotations

from typing import Any

from leadline.record.wording import say_level
from leadline.record.workbench import Experiment, Surface
from leadline.report.workbench.words import VERDICTS, say_cost, say_half, say_load, say_peak
from leadline.studies.workbench.answer import say_sample
from leadline.studies.workbench.surface.against import surface_error
from leadline.units import say_percent

CELL_HEADS = ("Peak rate", "Half its interval", "From", "Trials", "Bench time")

MODELS = {
    "quadratic-raw": "a quadratic in the levels",
    "quadratic-log": "a quadratic in their logarithms",
    "soft-min": "a law of bottlenecks",
    "gaussian-process": "a Gaussian process around a law of bottlenecks",
    "full-grid": "none: every configuration was measured",
}


def surface_tiles(experiment: Experiment, surface: Surface) -> list[tuple[str, str]]:
    """Return the figures beside the title: number and what it is."""
    measured = sum(cell.measured for cell in surface.cells)
    tiles = []
    if surface.ideal is not None:
        best = next(cell for cell in surface.cells if cell.sample == surface.ideal)
        if best.rate_per_s is not None:
            rate = f"{say_load(best.rate_per_s.value)}/s {say_half(best.rate_per_s)}"
            tiles.append((rate, f"with the ideal {say_sample(surface.ideal)}"))
    tiles += [
        (f"{measured} of {len(surface.cells)}", "configurations measured"),
        (say_cost(surface.cost_s), "bench time so far"),
    ]
    if surface.error_frac is not None and measured < len(surface.cells):
        asked = experiment.start.surface_error_frac
        more = "" if asked is None else f"; {say_percent(asked)} was asked"
        tiles.append((say_percent(surface.error_frac), f"expected error of the model{more}"))
    error = surface_error(experiment)
    if error is not None:
        what = f"mean absolute error against a measured grid of {error.mape.n}"
        tiles.append((say_percent(error.mape.value), what))
    return tiles


def cell_rows(experiment: Experiment, surface: Surface) -> list[dict[str, Any]]:
    """Return a row for every configuration, in the order of the grid."""
    peaks = {say_sample(peak.sample): peak for peak in experiment.peaks}
    costs = sample_costs(experiment)
    most = max(costs.values(), default=0.0)
    rows = []
    for cell in surface.cells:
        name = say_sample(cell.sample)
        found = peaks.get(name)
        peak = None if found is None else found.peak
        how = "predicted"
        if cell.measured:
            how = (
                "measured" if peak is None else VERDICTS[peak.verdict].replace("found", "measured")
            )
        rows.append(
            {
                "levels": [
                    say_level(factor.name, cell.sample[factor.name])
                    for factor in experiment.start.factors
                ],
                "rate": say_peak(cell.rate_per_s),
                "half": say_half(cell.rate_per_s),
                "how": how,
                "trials": "" if found is None else str(len(found.trials)),
                "cost": say_cost(costs[name]) if name in costs else "",
                "bar": 100 * costs.get(name, 0.0) / most if most > 0 else 0.0,
                "ideal": cell.sample == surface.ideal,
                "measured": cell.measured,
            }
        )
    return rows


def sample_costs(experiment: Experiment) -> dict[str, float]:
    """Return the bench seconds of every sample that was measured, by its words."""
    return {
        say_sample(peak.sample): sum(trial.cost_s for trial in peak.trials)
        for peak in experiment.peaks
        if peak.trials
    }
