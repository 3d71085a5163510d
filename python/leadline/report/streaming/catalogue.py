"""All charts of a streaming study, by name, in the order in which a page shows them."""

from __future__ import annotations

import altair as alt

from leadline.record.balance import StreamBalance
from leadline.record.streaming import StreamStudy
from leadline.report.streaming.bound_chart import bound_chart
from leadline.report.streaming.ratio_chart import ratio_chart
from leadline.report.streaming.scaling_chart import scaling_chart
from leadline.report.streaming.use_chart import use_chart


def stream_charts(study: StreamStudy, said: StreamBalance) -> dict[str, alt.LayerChart]:
    """Return the charts that the study has numbers for.

    `scaling` (AD98 Fig. 3), or `bound` for runs on one number of disks; `io-bus` and `memory-bus`
    (Figs. 4 and 6); `use-<kernel>-<phase>` (Figs. 5 and 7). Several platforms in one study have a
    set each, named `scaling-<platform>` and so on.
    """
    platforms = list(dict.fromkeys(run.options.platform for run in study.runs))
    found: dict[str, alt.LayerChart] = {}
    for platform in platforms:
        end = f"-{platform}" if len(platforms) > 1 else ""
        scaling = [each for each in said.scaling if each.platform == platform]
        ratios = [each for each in said.ratios if each.platform == platform]
        charts = {
            "scaling": scaling_chart(scaling),
            "io-bus": ratio_chart(ratios, "io"),
            "memory-bus": ratio_chart(ratios, "memory"),
        }
        charts |= {
            f"use-{each.kernel}-{each.phase}": use_chart(each, said.costs) for each in scaling
        }
        found |= {f"{name}{end}": chart for name, chart in charts.items() if chart is not None}
    if not any(name.startswith("scaling") for name in found):
        bounded = bound_chart(study)
        found = ({"bound": bounded} if bounded is not None else {}) | found
    return found


def is_wide(name: str) -> bool:
    """Whether a chart is of all phases and takes a page's whole width."""
    return name.startswith(("scaling", "io-bus", "memory-bus"))
