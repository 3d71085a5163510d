"""Balance as a page (AD98 Fig. 9): what gives out first, a panel for each phase, every number."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from leadline.record.balance import StreamBalance
from leadline.report.balance import table
from leadline.report.balance.chart import balance_charts
from leadline.report.drawing.embedding import page_parts, render_page
from leadline.report.streaming.table import not_counted_lines
from leadline.studies.streaming.answer import compared


def render_balance_html(systems: Sequence[StreamBalance]) -> str:
    """Render the page; like the survey's, it holds its own data and asks nothing of the network."""
    charts = balance_charts(systems)
    names = list(dict.fromkeys(each.system for each in systems))
    several = len(systems) > 1
    beside = compared(systems)
    told = beside or [text for each in systems for text in each.sentences]
    warnings = [
        msgspec.structs.replace(found, where=each.system) if several else found
        for each in systems
        for found in each.findings
    ]
    return render_page(
        "balance.html.j2",
        title=f"Balance of {' and '.join(names)}",
        several=several,
        systems=table.say_systems(systems),
        lead=told[0] if told else "Nothing was measured.",
        compared=beside[1:],
        sentences=[(each.system, each.sentences) for each in systems],
        heads=table.SATURATION_HEADS,
        rows=table.saturation_rows(systems),
        what_if=table.what_if_rows(systems),
        amdahl=table.amdahl_rows(systems),
        cost_heads=table.COST_HEADS,
        costs=table.cost_rows(systems),
        ratio_heads=table.RATIO_HEADS,
        ratios=table.ratio_rows(systems),
        not_counted=[
            f"{each.system}: {line}" if several else line
            for each in systems
            for line in not_counted_lines(each.not_measurable)
        ],
        **page_parts(charts, list(systems), warnings=warnings),
    )
