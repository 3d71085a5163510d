"""Surveyed systems side by side."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

import msgspec

from leadline.api.frames import chosen, columns, frame, maybe, seconds_of, table, workload_of
from leadline.api.progress import Listener
from leadline.lazy_import import late
from leadline.record import PARAMETERS, Interval, Workload
from leadline.record.comparison import SystemsComparison
from leadline.record.wording import format_rate_ci
from leadline.store import open_store
from leadline.studies.comparison.run import (
    PASSES,
    ComparisonAsked,
    compare_stored,
    named_systems,
    require_sense,
)
from leadline.studies.comparison.text import format_ratio, format_title, format_verdict

comparison_charts = late("leadline.studies.comparison.charts:comparison_charts")
save_comparison = late("leadline.studies.comparison.page:save_comparison")


def compare(
    *systems: str,
    workloads: Sequence[Workload | str] = (),
    named: bool = False,
    model: str | None = None,
    extrapolate: bool = False,
    prices: Sequence[str] = (),
    fail_if: str | Sequence[str] | None = None,
    measure: bool = False,
    passes: int = PASSES,
    seconds: str | float | None = None,
    seed: int = 1,
    store: str | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> ComparedSystems:
    """Compare surveyed systems: ratios with intervals, and a verdict where there is one.

    Args:
        systems: two or more surveys' ids, or systems' names.
        workloads: to compare on; without them and `named` CP94's five and each system's own.
        named: on CP94's five named workloads.
        model: which predicts; the best without it.
        extrapolate: answer beyond the surveyed ranges, marked.
        prices: as `"A=1200 EUR"`, for MB/s per money.
        fail_if: `slower=5%`, and measured also `p99=5%` or `cpu_per_io=5%`, one or several: judge
            whether the second system is worse; `document.gate` tells.
        measure: measure now, interleaved; every target must be here.
        passes: with `measure`: readings of each system.
        seconds: with `measure`: of one reading, at most, as a number or as `"2s"`.
        seed: with `measure`: decides addresses.
        store: a file or URL; by default the one the command line uses.
        say: is told what a person should know, one sentence at a time.

    Raises:
        StoreError: there is no such survey.
        ComparisonRefused: they cannot be compared.
        GateRefused: a rule for other than two systems.

    """
    asked = ComparisonAsked(
        workloads=[workload_of(each) for each in workloads],
        named=named,
        prices=prices,
        fail_if=[fail_if] if isinstance(fail_if, str) else fail_if or (),
        measure=measure,
        passes=passes,
        seconds=maybe(seconds_of, seconds),
        seed=seed,
    )
    require_sense(asked, len(systems))
    with open_store(store, reading=not measure) as kept:
        contenders = named_systems(kept, systems, model=model, extrapolate=extrapolate)
        return ComparedSystems(compare_stored(kept, contenders, asked, Listener(say, shown=False)))


@dataclass(frozen=True, repr=False)
class ComparedSystems:
    """What a comparison found."""

    document: SystemsComparison

    def to_frame(self) -> Any:
        """Return a pandas frame, one row for each workload and pair of systems."""
        nothing = Interval(float("nan"), None, None, 0)
        return frame(
            [
                {"title": pair.title, "a": pair.a, "b": pair.b}
                | {name: getattr(pair.workload, name) for name in PARAMETERS}
                | columns("a_mb_s", pair.a_mb_s or nothing)
                | columns("b_mb_s", pair.b_mb_s or nothing)
                | columns("ratio", pair.ratio or nothing)
                | {"faster": format_verdict(pair)}
                for pair in self.document.pairs
            ]
        )

    def plot(self, name: str | None = None) -> Any:
        """Return a chart of its page for a notebook, an Altair chart: the first, or by name.

        Raises:
            ChartsMissing: Altair is not installed.
            NoChart: none of this name, or nothing to draw.

        """
        return chosen(lambda: comparison_charts(self.document), name)

    def save(self, path: str | Path) -> None:
        """Draw it to a file: .html, .svg, .png or .pdf.

        Raises:
            ReportError: another suffix, or the file cannot be written.

        """
        save_comparison(self.document, Path(path))

    def to_dict(self) -> Any:
        """Return what `leadline compare --json` puts out, as dictionaries and lists."""
        return msgspec.to_builtins(self.document)

    def __repr__(self) -> str:
        rows = (" | ".join(row) for row in self._rows())
        return "\n".join([" against ".join(self._names), *rows])

    def _repr_html_(self) -> str:
        heads = ("systems", "workload", "first", "second", "ratio (95% CI)", "faster")
        return f"<h4>{escape(' against '.join(self._names))}</h4>{table(heads, self._rows())}"

    @property
    def _names(self) -> list[str]:
        return [each.name for each in self.document.contenders]

    def _rows(self) -> list[tuple[str, ...]]:
        return [
            (
                f"{pair.a} / {pair.b}",
                format_title(pair.title, pair.workload),
                format_rate_ci(pair.a_mb_s) if pair.a_mb_s else "not known",
                format_rate_ci(pair.b_mb_s) if pair.b_mb_s else "not known",
                format_ratio(pair.ratio),
                format_verdict(pair),
            )
            for pair in self.document.pairs
        ]
