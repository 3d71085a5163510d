"""May the new system replace the old one? A gate for CI that fails only on what is shown.

A workload fails when the ratio new over old is shown to lie below the limit: by itself, when its
95 % interval ends below it; of several workloads, when Holm's procedure over all of them says so,
so that a gate over many workloads fails on equally fast systems in at most 5 % of its runs.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from leadline.compare.ratio import ALPHA, LogRatio, holm
from leadline.errors import LeadlineError
from leadline.record import Workload
from leadline.record.comparison import Gate, GateFailure
from leadline.record.wording import say_workload

_RULE = re.compile(r"\s*slower\s*=\s*([0-9]+(?:\.[0-9]+)?)\s*%\s*\Z")


NOT_TWO = "--fail-if judges a new system against an old one: give exactly two, OLD then NEW"


class GateRefused(LeadlineError):
    """A rule that cannot be read or applied; the message says what to type."""

    exit_code = 2


@dataclass(frozen=True)
class Judged:
    """One workload under the gate: old over new; None when there is no ratio."""

    title: str | None
    workload: Workload
    old_over_new: LogRatio | None
    admissible: bool = True
    """Whether its readings may decide anything."""


def parse_rule(text: str) -> float:
    """Read `slower=5%` as 0.05.

    Raises:
        GateRefused: anything else.

    """
    match = _RULE.match(text)
    if match is None or not 0 <= float(match[1]) < 100:
        raise GateRefused(
            f"--fail-if {text!r} is not a rule this gate knows; write --fail-if slower=5% "
            "(from 0 to less than 100 %)"
        )
    return float(match[1]) / 100


def judge(slower_frac: float, judged: Sequence[Judged]) -> Gate:
    """Apply the rule to every workload. What cannot be told never fails."""
    limit = 1 - slower_frac
    ratios = [
        item.old_over_new.inverse() if item.old_over_new is not None and item.admissible else None
        for item in judged
    ]
    adjusted = iter(holm([r.p_value_below(limit) for r in ratios if r is not None]))
    failures, undecided = [], []
    for item, ratio in zip(judged, ratios, strict=True):
        if ratio is None:
            undecided.append(item.title or say_workload(item.workload))
        elif next(adjusted) < ALPHA:
            failures.append(
                GateFailure(title=item.title, workload=item.workload, new_over_old=ratio.interval())
            )
        elif (ratio.interval().low or 0.0) < limit:
            undecided.append(item.title or say_workload(item.workload))
    return Gate(
        slower_frac=slower_frac,
        failed=bool(failures),
        failures=tuple(failures),
        undecided=tuple(undecided),
    )
