"""A measurement without a budget is bounded: windows, pauses, layout and a stated grace."""

from __future__ import annotations

import math
from contextlib import nullcontext
from typing import Any, ClassVar
from unittest import mock

import pytest

from leadline.engine import (
    POINT_S_MIN,
    Directory,
    EngineFault,
    Limits,
    NothingCompleted,
    bounded,
    until_completed,
)
from leadline.engine.pace import BOUND_GRACE_S, LAYOUT_BYTES_PER_S_MIN
from leadline.record import Access, EngineResult, Workload
from leadline.record.measurement import MeasurementAsked
from leadline.store import open_store
from leadline.studies.measurement import run as measuring
from leadline.studies.measurement.plan import begin_measurements, plan_workload
from leadline.studies.measurement.run import measure_workloads
from proving.samples import sample_result

LIMITS = Limits(warm_up_s_max=2.0, measure_s_min=0.5, measure_s_max=1.0, accuracy=0.01)
WORKLOAD = Workload(unique_bytes=50_000_000, size_mean=4096)
TARGET = Directory(text="/data", path="/data")


class Engines:
    """An engine on a clock of its own that takes what it is given of every run."""

    virtual = False
    access = Access(backend="pread")
    facts: ClassVar[dict[str, Any]] = {}
    capacity_bytes = 2**40
    memory_bytes = None

    def __init__(self, *, hangs_at: int | None = None, silent: bool = False) -> None:
        self.clock_s = 1000.0
        self.asked: list[Limits] = []
        self._hangs_at = hangs_at
        self._silent = silent

    def prepare(self) -> None:
        """It has no ceiling."""

    def skip_to(self, clock_s: float) -> None:
        """Its clock is real."""

    def run(self, _workload: Workload, *, limits: Limits, **_: Any) -> EngineResult:
        self.asked.append(limits)
        if len(self.asked) - 1 == self._hangs_at:
            self.clock_s += limits.total_s_max
            raise EngineFault("the engine gave no answer in time and was ended")
        self.clock_s += limits.warm_up_s_max + limits.measure_s_max
        if self._silent:
            raise NothingCompleted("no request completed")
        return sample_result("job-1")


@pytest.fixture(autouse=True)
def a_clock_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.sleep", lambda _seconds: None)
    monkeypatch.setattr(measuring, "preflight", lambda *_: ())


def measured(engine: Engines) -> None:
    workload = plan_workload(WORKLOAD, engine.access, seconds=5.0)
    start = begin_measurements(
        TARGET, MeasurementAsked(workloads=(workload,), seed=1, accuracy=0.01)
    )
    with mock.patch.object(measuring, "open_engine", return_value=nullcontext(engine)):
        measure_workloads(TARGET, open_store("sqlite://"), start)


def test_the_bound_is_runs_pauses_layout_and_grace() -> None:
    alone = bounded(LIMITS)
    assert alone.total_s_max == 3.0 + BOUND_GRACE_S
    whole = bounded(
        LIMITS, runs=5, pause_s=2.0, layout_bytes=int(LAYOUT_BYTES_PER_S_MIN), grace_s=7
    )
    assert whole.total_s_max == 5 * 3.0 + 4 * 2.0 + 1.0 + 7.0
    first = bounded(LIMITS, precondition_bytes_max=40_000_000, grace_s=0.0)
    assert first.total_s_max == 3.0 + 2.0


def test_every_run_is_given_what_is_left_of_one_bound() -> None:
    engine = Engines()
    measured(engine)
    bound_s = 5 * 3.0 + 4 * measuring.PAUSE_S + 10.0 + BOUND_GRACE_S
    left = [limits.total_s_max for limits in engine.asked]
    assert left == pytest.approx([bound_s - 3.0 * number for number in range(5)])


@pytest.mark.parametrize("hangs_at", [0, 3])
def test_an_engine_that_stopped_ends_it_at_the_bound(hangs_at: int) -> None:
    engine = Engines(hangs_at=hangs_at)
    began_s = engine.clock_s
    with pytest.raises(EngineFault, match="no answer"):
        measured(engine)
    bound_s = 5 * 3.0 + 4 * measuring.PAUSE_S + 10.0 + BOUND_GRACE_S
    assert engine.clock_s - began_s == pytest.approx(bound_s)


def test_longer_windows_end_at_the_bound_too() -> None:
    engine = Engines(silent=True)
    with pytest.raises(NothingCompleted):
        measured(engine)
    assert [limits.measure_s_max for limits in engine.asked] == [1.0, 4.0, 16.0, 64.0]
    clock = iter([10.0, 5.0, POINT_S_MIN / 2])

    def run(*, limits: Limits) -> EngineResult:
        asked.append(limits.total_s_max)
        raise NothingCompleted("no request completed")

    asked: list[float] = []
    with pytest.raises(NothingCompleted, match="no request completed"):
        until_completed(run, LIMITS, lambda: next(clock))
    assert asked == [10.0, 5.0]
    with pytest.raises(NothingCompleted, match="no time"):
        until_completed(run, LIMITS, lambda: 0.0)
    assert math.isfinite(sum(asked))
