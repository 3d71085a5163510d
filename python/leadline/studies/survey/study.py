"""A survey as somebody asks for it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from leadline.engine import Engine, Wear
from leadline.record import Measurement, Survey, SurveyStart
from leadline.record.finding import Finding
from leadline.record.survey import SURVEY
from leadline.store import Store
from leadline.studies.conduct import Begun, OnProgress, PointStudy, Reached
from leadline.studies.survey.begin import Asked, begin_survey, choose_cache_limit
from leadline.studies.survey.run import run_survey
from leadline.studies.survey.stored import wear_before
from leadline.studies.survey.strategy import ResumeMismatch


class SurveyStudy(PointStudy[SurveyStart]):
    """A survey, begun or gone on with."""

    records = SURVEY
    mismatches = (ResumeMismatch,)

    def __init__(self, reached: Reached, asked: Asked, budget_s: float | None) -> None:
        """Take what was asked for; `budget_s` is what was said of it, None where nothing was."""
        self.reached, self.asked, self._budget_s = reached, asked, budget_s
        self.system, self.seed = asked.system, asked.seed
        self.counted = Wear(asked.written_bytes_max)
        """Bytes written so far, those of earlier sittings too."""

    def cache_limit_bytes(self, say: Callable[[str], None]) -> int | None:
        """Cap memory so that the budget reaches the disk."""
        path, limit = self.reached.target.path, self.reached.cache_limit_bytes
        if path is None:
            return limit
        most = self.reached.max_bytes
        return choose_cache_limit(Path(path), limit, self.asked.budget_s, say, max_bytes=most)

    def wear(self, store: Store, earlier: Begun[SurveyStart] | None) -> Wear:
        """Count on from what earlier sittings wrote."""
        if earlier is not None:
            limit = self.asked.written_bytes_max
            self.counted = wear_before(store, earlier.start, limit)
        return self.counted

    def begin(self, opened: Engine, findings: tuple[Finding, ...]) -> SurveyStart:
        """Plan it."""
        return begin_survey(opened, self.reached.target, self.asked, findings=findings)

    def measure(
        self,
        opened: Engine,
        store: Store,
        start: SurveyStart,
        points: Sequence[Measurement],
        on_progress: OnProgress,
    ) -> Survey:
        """Measure the points that are missing, in the budget that was said, or the plan's."""
        return run_survey(
            opened,
            store,
            start,
            points,
            budget_s=self._budget_s,
            wear=self.counted,
            on_progress=on_progress,
        )
