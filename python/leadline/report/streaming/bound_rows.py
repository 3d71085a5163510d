"""Each phase of the last runs beside its bound, for the chart and for the terminal."""

from __future__ import annotations

from typing import Any

from leadline.record.balance import RESOURCE_WORDS, PhaseBound
from leadline.record.streaming import StreamStudy
from leadline.record.wording import say_rate
from leadline.report.streaming.order import group_name
from leadline.stats.arithmetic import inverse, scaled
from leadline.studies.streaming.bounds import bound
from leadline.studies.streaming.use import more_than_all
from leadline.units import format_rate, say_percent


def bound_rows(study: StreamStudy) -> list[dict[str, Any]]:
    """Return each phase of the last run of each kernel, with its bound where it has one."""
    last = {run.options.kernel: run for run in study.runs}
    rows = []
    for run in last.values():
        found = None
        if study.capacities is not None:
            found = bound(run.result, run.options, study.capacities, run.disks)
        bounds = {each.phase: each for each in found.phases} if found else {}
        rows += [
            _row(run.options.kernel, phase.name, phase.mb_s, bounds.get(phase.name))
            for phase in run.result.phases
            if phase.bytes_moved
        ]
    return rows


def _row(kernel: str, phase: str, mb_s: float, limit: PhaseBound | None) -> dict[str, Any]:
    most = limit.mb_s.value if limit else None
    return {
        "group": group_name(kernel, phase),
        "kernel": kernel,
        "phase": phase,
        "y": mb_s,
        "bound": most,
        "achieved": format_rate(mb_s),
        "passed": limit is not None and more_than_all(scaled(inverse(limit.mb_s), mb_s)),
        "share": say_percent(mb_s / most) if most else "",
        "said": say_rate(limit.mb_s) if limit else "no capacities were measured",
        "limit": RESOURCE_WORDS[limit.resource] if limit else "",
    }
