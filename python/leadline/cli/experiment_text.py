"""An experiment on a terminal: its sentences, and a table of its loads or its samples."""

from __future__ import annotations

from rich.console import Group
from rich.table import Table

from leadline.record import Interval
from leadline.record.workbench import Experiment, Load, PeakRate
from leadline.workbench.answer import say_peak, say_sample


def experiment_text(experiment: Experiment) -> Group:
    """Return what a person reads of an experiment."""
    parts: list[str | Table] = [*experiment.sentences]
    parts += [f"warning: {warning}" for warning in experiment.warnings]
    if experiment.start.design is not None:
        return Group(*parts, _samples(experiment))
    peak = experiment.peaks[0].peak if experiment.peaks else None
    if peak is not None and peak.loads:
        parts.append(_loads(peak))
    return Group(*parts)


def _loads(peak: PeakRate) -> Table:
    table = Table(box=None)
    for name in ("requests/s", "trials", "mean, ms", "percentile, ms", "saturated"):
        table.add_column(name, justify="right")
    for load in sorted(peak.loads, key=lambda load: load.rate_per_s):
        table.add_row(f"{load.rate_per_s:.4g}", str(load.trials), _number(load.response_ms),
                      _number(load.percentile_ms), _saturated(load))  # fmt: skip
    return table


def _saturated(load: Load) -> str:
    return {True: "yes", False: "no", None: "cannot tell"}[load.saturated]


def _number(interval: Interval | None) -> str:
    if interval is None:
        return ""
    if interval.low is None or interval.high is None:
        return f"{interval.value:.3g}"
    return f"{interval.value:.3g} ({interval.low:.3g} to {interval.high:.3g})"


def _samples(experiment: Experiment) -> Table:
    table = Table(box=None)
    for name in ("sample", "peak rate", "verdict", "trials"):
        table.add_column(name)
    for own in experiment.peaks:
        peak = own.peak
        rate = peak.rate_per_s if peak is not None else None
        table.add_row(
            say_sample(own.sample),
            "" if peak is None or rate is None else say_peak(rate, peak.confidence),
            "" if peak is None else peak.verdict.value,
            str(len(own.trials)),
        )
    return table
