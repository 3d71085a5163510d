"""Explain a stored survey: charts, the page, image files, the terminal. Reads records only.

Names are resolved on first use: Altair and vl-convert take a second to load, and printing a survey
on a terminal needs neither. No module here has the name of a function that the package offers: an
imported module would take the function's place.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from leadline.report.balance_chart import balance_charts
    from leadline.report.balance_page import render_balance_html
    from leadline.report.balance_terminal import render_balance
    from leadline.report.catalogue import charts, not_measured, summary_chart
    from leadline.report.comparison_files import require_format, save_comparison
    from leadline.report.comparison_page import render_comparison_html
    from leadline.report.comparison_terminal import render_comparison
    from leadline.report.experiment_catalogue import experiment_charts
    from leadline.report.experiment_file import require_experiment_format, save_experiment
    from leadline.report.experiment_page import render_experiment_html
    from leadline.report.file_cache_chart import cache_chart, save_cache_chart
    from leadline.report.file_cache_terminal import render_cache_study
    from leadline.report.files_chart import files_charts
    from leadline.report.files_file import require_files_format, save_files
    from leadline.report.files_page import render_files_html
    from leadline.report.files_terminal import render_files
    from leadline.report.images import ReportError, save_all_charts, save_chart, save_report
    from leadline.report.measured import render_measurement
    from leadline.report.page import render_html
    from leadline.report.peak_terminal import render_experiment
    from leadline.report.predicted import render_predictions
    from leadline.report.stream_catalogue import stream_charts
    from leadline.report.stream_file import require_stream_format, save_balance, save_stream
    from leadline.report.stream_page import render_stream_html
    from leadline.report.stream_terminal import render_stream
    from leadline.report.systems_charts import comparison_charts
    from leadline.report.terminal import render_terminal
    from leadline.report.validation import validation_charts

_HOMES = {
    "charts": "leadline.report.catalogue",
    "not_measured": "leadline.report.catalogue",
    "summary_chart": "leadline.report.catalogue",
    "comparison_charts": "leadline.report.systems_charts",
    "require_format": "leadline.report.comparison_files",
    "save_comparison": "leadline.report.comparison_files",
    "render_comparison_html": "leadline.report.comparison_page",
    "render_comparison": "leadline.report.comparison_terminal",
    "cache_chart": "leadline.report.file_cache_chart",
    "save_cache_chart": "leadline.report.file_cache_chart",
    "render_cache_study": "leadline.report.file_cache_terminal",
    "files_charts": "leadline.report.files_chart",
    "require_files_format": "leadline.report.files_file",
    "save_files": "leadline.report.files_file",
    "render_files_html": "leadline.report.files_page",
    "render_files": "leadline.report.files_terminal",
    "ReportError": "leadline.report.images",
    "save_all_charts": "leadline.report.images",
    "save_chart": "leadline.report.images",
    "save_report": "leadline.report.images",
    "render_measurement": "leadline.report.measured",
    "render_html": "leadline.report.page",
    "render_predictions": "leadline.report.predicted",
    "render_balance": "leadline.report.balance_terminal",
    "render_balance_html": "leadline.report.balance_page",
    "balance_charts": "leadline.report.balance_chart",
    "stream_charts": "leadline.report.stream_catalogue",
    "save_balance": "leadline.report.stream_file",
    "save_stream": "leadline.report.stream_file",
    "require_stream_format": "leadline.report.stream_file",
    "render_stream": "leadline.report.stream_terminal",
    "render_stream_html": "leadline.report.stream_page",
    "experiment_charts": "leadline.report.experiment_catalogue",
    "require_experiment_format": "leadline.report.experiment_file",
    "save_experiment": "leadline.report.experiment_file",
    "render_experiment_html": "leadline.report.experiment_page",
    "render_experiment": "leadline.report.peak_terminal",
    "render_terminal": "leadline.report.terminal",
    "validation_charts": "leadline.report.validation",
}

__all__ = [
    "ReportError",
    "balance_charts",
    "cache_chart",
    "charts",
    "comparison_charts",
    "experiment_charts",
    "files_charts",
    "not_measured",
    "render_balance",
    "render_balance_html",
    "render_cache_study",
    "render_comparison",
    "render_comparison_html",
    "render_experiment",
    "render_experiment_html",
    "render_files",
    "render_files_html",
    "render_html",
    "render_measurement",
    "render_predictions",
    "render_stream",
    "render_stream_html",
    "render_terminal",
    "require_experiment_format",
    "require_files_format",
    "require_format",
    "require_stream_format",
    "save_all_charts",
    "save_balance",
    "save_cache_chart",
    "save_chart",
    "save_comparison",
    "save_experiment",
    "save_files",
    "save_report",
    "save_stream",
    "stream_charts",
    "summary_chart",
    "validation_charts",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)
