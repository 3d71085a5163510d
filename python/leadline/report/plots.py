"""The charts of any study by name, for Python: those of its page."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from leadline.late import late
from leadline.record.application import APPLICATION
from leadline.record.file_cache import CACHE
from leadline.record.files import FILES
from leadline.record.measurement import MEASUREMENT
from leadline.record.streaming import STREAM
from leadline.record.survey import SURVEY
from leadline.record.validation import VALIDATION
from leadline.record.workbench import EXPERIMENT

balance_of = late("leadline.studies.streaming.answer:balance_of")
stream_charts = late("leadline.report.streaming.catalogue:stream_charts")
survey_charts = late("leadline.report.survey.catalogue:charts")

_CHARTS: dict[str, Callable[[Any], dict[str, Any]]] = {
    SURVEY.kind: lambda study: survey_charts(study.survey),
    VALIDATION.kind: late("leadline.report.validation.charts:validation_charts"),
    CACHE.kind: late("leadline.report.cache.save:cache_charts"),
    FILES.kind: late("leadline.report.files.charts:files_charts"),
    STREAM.kind: lambda study: stream_charts(study, balance_of(study)),
    EXPERIMENT.kind: late("leadline.report.workbench.catalogue:experiment_charts"),
    MEASUREMENT.kind: late("leadline.report.measurement.charts:measurement_charts"),
    APPLICATION.kind: late("leadline.report.application.save:application_charts"),
}
"""Of each kind what draws it; Altair is loaded when one is called."""


def charts_of(kind: str, study: Any) -> dict[str, Any]:
    """Return every chart of a study, by name, the one to look at first before the others.

    Args:
        kind: as `leadline systems` names it.
        study: as its kind loads it.

    """
    return _CHARTS[kind](study)
