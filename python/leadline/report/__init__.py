"""Explain a stored survey: charts, the page, image files, the terminal. Reads records only.

Names are resolved on first use: Altair and vl-convert take a second to load, and printing a survey
on a terminal needs neither. No module here has the name of a function that the package offers: an
imported module would take the function's place.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from leadline.late import names_from

if TYPE_CHECKING:
    from leadline.report.balance.chart import balance_charts
    from leadline.report.balance.page import render_balance_html
    from leadline.report.balance.terminal import render_balance
    from leadline.report.cache.chart import cache_chart
    from leadline.report.cache.save import save_cache
    from leadline.report.cache.terminal import render_cache_study
    from leadline.report.comparison.charts import comparison_charts
    from leadline.report.comparison.page import render_comparison_html
    from leadline.report.comparison.save import require_format, save_comparison
    from leadline.report.comparison.terminal import render_comparison
    from leadline.report.drawing.images import ReportError, save_chart
    from leadline.report.files.charts import files_charts
    from leadline.report.files.page import render_files_html
    from leadline.report.files.save import require_files_format, save_files
    from leadline.report.files.terminal import render_files
    from leadline.report.measurement.save import save_measurement
    from leadline.report.measurement.terminal import render_measurement
    from leadline.report.prediction.terminal import render_predictions
    from leadline.report.streaming.catalogue import stream_charts
    from leadline.report.streaming.page import render_stream_html
    from leadline.report.streaming.save import require_stream_format, save_balance, save_stream
    from leadline.report.streaming.terminal import render_stream
    from leadline.report.survey.catalogue import charts, not_measured, summary_chart
    from leadline.report.survey.page import render_html
    from leadline.report.survey.save import save_all_charts, save_report
    from leadline.report.survey.terminal import render_terminal
    from leadline.report.validation.charts import validation_charts
    from leadline.report.validation.terminal import render_validation
    from leadline.report.workbench.catalogue import experiment_charts
    from leadline.report.workbench.page import render_experiment_html
    from leadline.report.workbench.save import require_experiment_format, save_experiment
    from leadline.report.workbench.terminal import render_experiment

_HOMES = {
    "charts": "leadline.report.survey.catalogue",
    "not_measured": "leadline.report.survey.catalogue",
    "summary_chart": "leadline.report.survey.catalogue",
    "comparison_charts": "leadline.report.comparison.charts",
    "require_format": "leadline.report.comparison.save",
    "save_comparison": "leadline.report.comparison.save",
    "render_comparison_html": "leadline.report.comparison.page",
    "render_comparison": "leadline.report.comparison.terminal",
    "cache_chart": "leadline.report.cache.chart",
    "save_cache": "leadline.report.cache.save",
    "render_cache_study": "leadline.report.cache.terminal",
    "files_charts": "leadline.report.files.charts",
    "require_files_format": "leadline.report.files.save",
    "save_files": "leadline.report.files.save",
    "render_files_html": "leadline.report.files.page",
    "render_files": "leadline.report.files.terminal",
    "ReportError": "leadline.report.drawing.images",
    "save_all_charts": "leadline.report.survey.save",
    "save_chart": "leadline.report.drawing.images",
    "save_report": "leadline.report.survey.save",
    "render_measurement": "leadline.report.measurement.terminal",
    "save_measurement": "leadline.report.measurement.save",
    "render_html": "leadline.report.survey.page",
    "render_predictions": "leadline.report.prediction.terminal",
    "render_balance": "leadline.report.balance.terminal",
    "render_balance_html": "leadline.report.balance.page",
    "balance_charts": "leadline.report.balance.chart",
    "stream_charts": "leadline.report.streaming.catalogue",
    "save_balance": "leadline.report.streaming.save",
    "save_stream": "leadline.report.streaming.save",
    "require_stream_format": "leadline.report.streaming.save",
    "render_stream": "leadline.report.streaming.terminal",
    "render_stream_html": "leadline.report.streaming.page",
    "experiment_charts": "leadline.report.workbench.catalogue",
    "require_experiment_format": "leadline.report.workbench.save",
    "save_experiment": "leadline.report.workbench.save",
    "render_experiment_html": "leadline.report.workbench.page",
    "render_experiment": "leadline.report.workbench.terminal",
    "render_terminal": "leadline.report.survey.terminal",
    "validation_charts": "leadline.report.validation.charts",
    "render_validation": "leadline.report.validation.terminal",
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
    "render_validation",
    "require_experiment_format",
    "require_files_format",
    "require_format",
    "require_stream_format",
    "save_all_charts",
    "save_balance",
    "save_cache",
    "save_chart",
    "save_comparison",
    "save_experiment",
    "save_files",
    "save_measurement",
    "save_report",
    "save_stream",
    "stream_charts",
    "summary_chart",
    "validation_charts",
]


__getattr__ = names_from(__name__, _HOMES)
