"""How a survey learns, with a model in place of the predictor's: what is fitted, asked and ended.

What a real model chooses is held by test_learning.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from leadline.models.learning import Box
from leadline.record import Measurement, PlanStage, Workload
from leadline.studies.survey import middle
from leadline.studies.survey.boundaries import SurveyReadings
from leadline.studies.survey.middle import MiddleStrategy
from proving.samples import sample_point
from simulated_answers import MIB, plan

BEFORE = 20
SEED = 7
PROCESSORS = 2.0


def point(order: int, stage: str, workload: Workload | None = None) -> Measurement:
    asked = workload or Workload(unique_bytes=(100 + order) * MIB, size_mean=4096)
    made = sample_point(f"p{order}", mb_s=100.0)
    return msgspec.structs.replace(made, order=order, stage=stage, workload=asked)


CURVES = [point(order, "families") for order in range(BEFORE)]


class Model:
    """Stands for the predictor: remembers what it was fitted to, asked and told."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, enough_at: int | None = None) -> None:
        self.fits: list[tuple[int, int | None]] = []
        self.enough_asked: list[tuple[int, int]] = []
        self.batches: list[tuple[int, int, int, int]] = []
        self.boxes: set[Box] = set()
        self._enough_at = enough_at
        monkeypatch.setattr(middle, "sample_of", self._sample)
        monkeypatch.setattr(middle, "fit_joint", self._fit)
        monkeypatch.setattr(middle, "enough", self._enough)
        monkeypatch.setattr(middle, "next_points", self._next)

    def _sample(
        self,
        points: Sequence[Measurement],
        boundaries: list[Any],
        processors: float,
        *,
        paged: bool,
    ) -> tuple[int, list[Any]]:
        assert processors == PROCESSORS
        assert not paged, "nobody said that there is a page cache"
        return len(points), boundaries

    def _fit(self, sample: tuple[int, list[Any]], before: int | None) -> int:
        assert len(sample[1]) == 0
        self.fits.append((sample[0], before))
        return sample[0]

    def _enough(self, model: int, box: Box, seed: int) -> bool:
        self.boxes.add(box)
        self.enough_asked.append((model, seed))
        return model == self._enough_at

    def _next(
        self,
        model: int,
        points: Sequence[Measurement],
        box: Box,
        size: int,
        seed: int,
        *,
        needed: Sequence[Workload],
    ) -> list[Workload]:
        assert not needed
        self.boxes.add(box)
        self.batches.append((model, len(points), size, seed))
        return [chosen(len(points), each) for each in range(size)]


def chosen(before: int, each: int) -> Workload:
    """The choice of a batch that begins after so many points."""
    return Workload(unique_bytes=(1000 + 10 * before + each) * MIB, size_mean=4096)


def learn(total: int, recorded: Sequence[Measurement] = ()) -> list[Workload | None]:
    """What the script says, None where it thinks; every point is measured as it is asked."""
    readings = SurveyReadings(CURVES[:])
    whole = msgspec.structs.replace(plan(), stages=(PlanStage("learning", total, ""),))
    strategy = MiddleStrategy(whole, SEED, readings, recorded, processors=PROCESSORS)
    said: list[Workload | None] = []
    for step in strategy._learning():
        said.append(step and step[1])
        if step is not None:
            assert step[0] == "learning"
            readings.add(point(len(readings.all), *step))
    return said


def test_batches_of_six_each_by_a_model_of_all_before_that_starts_from_the_last(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = Model(monkeypatch)
    wanted = [None, *(chosen(20, each) for each in range(6))]
    wanted += [None, *(chosen(26, each) for each in range(6))]
    wanted += [None, *(chosen(32, each) for each in range(2))]
    assert learn(14) == wanted
    assert model.fits == [(20, None), (26, 20), (32, 26)]
    assert model.enough_asked == [(20, 27), (26, 33), (32, 39)]
    assert model.batches == [(20, 20, 6, 27), (26, 26, 6, 33), (32, 32, 2, 39)]
    assert model.boxes == {Box((64 * MIB, 3072 * MIB), (4096, 2.0 * MIB), (1.0, 16.0))}


def test_learning_ends_when_the_model_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    model = Model(monkeypatch, enough_at=26)
    assert len(learn(14)) == 1 + 6 + 1
    assert len(model.batches) == 1
    assert learn(0) == []


def recorded_of(count: int) -> list[Measurement]:
    """The curves and so many points that a survey learned, some by other arithmetic."""
    orders = range(BEFORE, BEFORE + count)
    return CURVES + [point(order, "learning") for order in orders]


def test_whole_batches_of_the_record_need_no_model_until_a_point_is_wanted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = Model(monkeypatch)
    told = recorded_of(12)
    wanted: list[Workload | None] = [each.workload for each in told[BEFORE:]]
    assert learn(14, told) == [*wanted, None, chosen(32, 0), chosen(32, 1)]
    assert model.fits == [(20, None), (26, 20), (32, 26)], "all that were owed, in their order"
    assert model.enough_asked == [(32, 39)]
    assert learn(12, told) == wanted
    assert len(model.fits) == 3


def test_a_batch_begun_is_ended_by_its_own_model_even_where_that_is_enough(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = Model(monkeypatch, enough_at=26)
    told = recorded_of(8)
    wanted: list[Workload | None] = [each.workload for each in told[BEFORE:]]
    rest = [chosen(26, each) for each in range(2, 6)]
    assert learn(12, told) == [*wanted, None, *rest]
    assert model.fits == [(20, None), (26, 20)]
    assert model.batches == [(26, 26, 6, 33)]


@pytest.mark.parametrize(
    "foreign",
    [
        point(22, "closing"),
        point(22, "learning", Workload(unique_bytes=4096 * MIB, size_mean=4096)),
    ],
)
def test_a_record_that_goes_on_otherwise_ends_learning_without_a_thought(
    monkeypatch: pytest.MonkeyPatch, foreign: Measurement
) -> None:
    """What comes next is told to whoever asks then, and refused if it is not that."""
    model = Model(monkeypatch)
    told = [*recorded_of(2), foreign, *(point(order, "learning") for order in (23, 24))]
    assert learn(12, told) == [each.workload for each in told[BEFORE:22]]
    assert model.fits == []
