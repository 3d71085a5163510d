"""How a validation is run: what is slow gets longer, and nobody else's points are resumed."""

from __future__ import annotations

from typing import Any, cast

import msgspec
import pytest
from test_validation_draw import made_start

from leadline.engine import Engine, Limits, NothingCompleted, PointFailed
from leadline.record import EngineResult, Measurement, Workload
from leadline.record.survey import SURVEY
from leadline.record.validation import VALIDATION
from leadline.store import open_store
from leadline.studies.validation.plan import ValidationRefused, requests
from leadline.studies.validation.run import measure_validation
from proving.samples import sample_point, sample_start

RESULT = sample_point("any").result
LOST_S = 7.0


class Reluctant:
    """An engine whose first `failures` attempts last LOST_S each and fail; the clock is its own."""

    def __init__(self, failures: int, kind: type[PointFailed] = NothingCompleted) -> None:
        self.clock_s = 0.0
        self.failures = failures
        self.kind = kind
        self.limits: list[Limits] = []

    def skip_to(self, clock_s: float) -> None:
        self.clock_s = clock_s

    def run(self, workload: Workload, *, seed: int, limits: Limits, **_: Any) -> EngineResult:
        self.limits.append(limits)
        failed = len(self.limits) <= self.failures
        self.clock_s += LOST_S if failed else RESULT.total_s
        if failed:
            raise self.kind(f"no request completed of {workload} with {seed}")
        return RESULT


def measure(engine: Reluctant, points: tuple[Measurement, ...] = ()) -> tuple[Measurement, ...]:
    start = made_start(count=4)
    with open_store("sqlite://") as store:
        store.begin(SURVEY, sample_start())
        store.begin(VALIDATION, start)
        for point in points:
            store.add(start.study_id, point)
        return measure_validation(cast(Engine, engine), store, start, points, budget_s=10_000.0)


@pytest.mark.parametrize("failures", [0, 1, 2, 3])
def test_what_is_too_slow_gets_longer_and_is_timed_from_the_attempt_that_counts(
    failures: int,
) -> None:
    engine = Reluctant(failures)
    first, second, *_ = measure(engine)
    own = engine.limits[: failures + 1]
    assert [round(item.measure_s_max / own[0].measure_s_max) for item in own] == [1, 4, 16, 64][
        : failures + 1
    ]
    assert [own[0].total_s_max - item.total_s_max for item in own] == pytest.approx(
        [LOST_S * at for at in range(failures + 1)]
    )
    assert first.clock_s == LOST_S * failures
    assert second.clock_s == pytest.approx(first.clock_s + RESULT.total_s)


def test_what_never_measures_fails_with_its_place_in_the_plan() -> None:
    with pytest.raises(PointFailed, match=r"point 1 \(anchors\): no request completed"):
        measure(Reluctant(4))


def test_storage_that_fails_is_not_asked_again_for_longer() -> None:
    engine = Reluctant(3, PointFailed)
    with pytest.raises(PointFailed, match=r"point 1 \(anchors\)"):
        measure(engine)
    assert len(engine.limits) == 1


def test_the_points_of_another_script_are_not_resumed() -> None:
    engine = Reluctant(0)
    item = requests(made_start(count=4))[0]
    own = msgspec.structs.replace(sample_point("point-1"), workload=item.workload, stage=item.stage)
    assert len(measure(engine, (own,))) == made_start(count=4).plan.points
    other = msgspec.structs.replace(own, workload=item.workload.with_value("read_frac", 0.123))
    with pytest.raises(ValidationRefused, match="start a new validation"):
        measure(engine, (other,))
