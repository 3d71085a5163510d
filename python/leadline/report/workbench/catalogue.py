"""The charts of an experiment by name: of one search, or of a surface."""

from __future__ import annotations

from collections.abc import Sequence

from leadline.record.workbench import Experiment, StorageServer
from leadline.report.drawing.drawable import Drawn
from leadline.report.workbench.cost_charts import cost_charts
from leadline.report.workbench.fares_chart import fares_chart
from leadline.report.workbench.latency_chart import latency_chart
from leadline.report.workbench.response_chart import response_charts
from leadline.report.workbench.run_length_charts import run_length_charts
from leadline.report.workbench.surface.lines_chart import lines_chart
from leadline.report.workbench.surface.map_chart import map_chart
from leadline.report.workbench.surface.planes import planes
from leadline.report.workbench.surface.table import sample_costs
from leadline.report.workbench.surface.turning_chart import surface_picture
from leadline.report.workbench.time_chart import compared_time_chart, time_chart

_WIDE = ("latency", "response", "response-percentile", "time", "times", "map")


def experiment_charts(
    experiment: Experiment, others: Sequence[Experiment] = ()
) -> dict[str, Drawn]:
    """Return all charts there are, the one to look at first in front; `others` are compared."""
    own = peak_charts(experiment) if experiment.start.design is None else surface_charts(experiment)
    return own | compared_charts([experiment, *others])


def is_wide_chart(name: str) -> bool:
    """Whether a chart wants the whole width of a page."""
    return name in _WIDE


def peak_charts(experiment: Experiment) -> dict[str, Drawn]:
    """Return response against load, load factor against time, and the policies beside it."""
    if not experiment.peaks:
        return {}
    charts: dict[str, Drawn] = {}
    latency = latency_chart(experiment) if experiment.peaks[0].curve else None
    if latency is not None:
        charts["latency"] = latency
    charts |= response_charts(experiment.peaks[0], experiment.start.goal.threshold)
    charts |= run_length_charts(experiment)
    for name, chart in (("fares", fares_chart(experiment)), ("time", time_chart(experiment))):
        if chart is not None:
            charts[name] = chart
    if "latency" not in charts and isinstance(experiment.start.server, StorageServer):
        latency = latency_chart(experiment)
        charts |= {} if latency is None else {"latency": latency}
    return charts


def surface_charts(experiment: Experiment) -> dict[str, Drawn]:
    """Return a map for each plane; lines and the solid for that of the ideal configuration."""
    surface = experiment.surface
    if surface is None or not any(cell.rate_per_s for cell in surface.cells):
        return {}
    charts: dict[str, Drawn] = {}
    costs = sample_costs(experiment)
    cut = planes(experiment.start, surface)
    for number, plane in enumerate(cut):
        name = "map" if number == 0 else f"map-{number + 1}"
        if plane.y is not None:
            charts[name] = map_chart(plane, surface, costs, wide=number == 0)
        if number == 0:
            picture = surface_picture(plane, surface)
            if picture is not None:
                charts["solid"] = picture
            charts["lines"] = lines_chart(plane, surface)
    return charts


def compared_charts(experiments: Sequence[Experiment]) -> dict[str, Drawn]:
    """Return what several experiments say beside each other (SH08 Figs. 7 to 10)."""
    if len(experiments) < 2:
        return {}
    charts: dict[str, Drawn] = {}
    single = [each for each in experiments if each.start.design is None]
    times = compared_time_chart(single)
    if times is not None:
        charts["times"] = times
    charts |= cost_charts(experiments)
    return charts
