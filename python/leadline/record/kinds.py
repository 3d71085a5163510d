"""Every kind of study that there is; a new one is a line here."""

from __future__ import annotations

from typing import Any

from leadline.record.application import APPLICATION
from leadline.record.file_cache import CACHE
from leadline.record.files import FILES
from leadline.record.measurement import MEASUREMENT
from leadline.record.streaming import STREAM
from leadline.record.study import Records
from leadline.record.survey import SURVEY
from leadline.record.validation import VALIDATION
from leadline.record.workbench import EXPERIMENT

KINDS: tuple[Records[Any, Any], ...] = (
    SURVEY,
    VALIDATION,
    CACHE,
    FILES,
    STREAM,
    EXPERIMENT,
    MEASUREMENT,
    APPLICATION,
)
