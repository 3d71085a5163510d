"""Where a survey measures next: inside its ranges, at boundaries too, and only while it helps."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import msgspec
import numpy as np
import pytest

from leadline.models import learning as learning_module
from leadline.models.joint import JointModel, fit_joint
from leadline.models.learning import (
    BATCH,
    BOUNDARY_SHARE,
    BOUNDARY_ZONE,
    Box,
    enough,
    next_points,
    spread_out,
)
from leadline.models.model import sample_of
from leadline.record import Measurement, Status, Workload
from leadline.studies.survey import middle
from leadline.studies.survey.explain import explain
from leadline.studies.survey.plan import make_plan
from leadline.studies.survey.strategy import ResumeMismatch, Surveyor
from leadline.studies.survey.study import LEARN_FRAC
from proving.simulation import SimulatedSurvey
from shared_surveys import surveyed

PROFILE = "sparcstation-1plus"


@pytest.fixture(scope="module")
def learned() -> SimulatedSurvey:
    return surveyed(PROFILE, learn_frac=LEARN_FRAC)


@pytest.fixture(scope="module")
def before(learned: SimulatedSurvey) -> tuple[JointModel, list[Measurement], Box]:
    """The model as it was before the first learning point."""
    points = [p for p in learned.points if p.stage not in ("learning", "closing")]
    plan = learned.survey.start.plan
    box = Box(
        (plan.unique_bytes_min, plan.unique_bytes_max),
        (plan.size_mean_min, plan.size_mean_max),
        (1.0, float(plan.process_num_max)),
    )
    return fit_joint(sample_of(points, learned.survey.boundaries)), points, box


def test_workloads_of_a_design_fill_the_box_and_stay_inside() -> None:
    box = Box((2.0**20, 2.0**34), (4096.0, 2.0**22), (1.0, 64.0))
    drawn = spread_out(box, 256, 3)
    assert drawn == spread_out(box, 256, 3) != spread_out(box, 256, 4)
    for workload in drawn:
        assert 2**20 <= workload.unique_bytes <= 2**34
        assert 4096 <= workload.size_mean <= max(4096, workload.unique_bytes // 4 + 512)
        assert 1 <= workload.process_num <= 64
    low = sum(workload.unique_bytes < 2**27 for workload in drawn)
    assert 120 <= low <= 136
    numbers = [workload.process_num for workload in drawn]
    assert min(numbers) == 1
    assert max(numbers) > 48


def test_where_pages_are_cached_half_are_of_whole_ones_and_runs_are_of_any_length() -> None:
    box = Box((2.0**20, 2.0**34), (512.0, 2.0**22), (1.0, 64.0), paged=True)
    drawn = spread_out(box, 256, 3)
    whole = [each for each in drawn if each.size_dist == "fixed"]
    assert len(whole) == 128
    assert all(each.size_mean % 4096 == 0 and box.holds(each) for each in whole)
    assert all(box.nearest(each) == each for each in whole)
    assert not any(replace(box, paged=False).holds(each) for each in whole)
    shares = [sum(w.seq_frac > 1 - 1 / run for w in drawn) / 256 for run in (2, 10, 50)]
    in_runs = [0.9 * (0.5 / run + 0.5 * (1 - math.log(run, 100))) for run in (2, 10, 50)]
    assert shares == pytest.approx([0.1 + share for share in in_runs], abs=0.02)
    assert sum(w.seq_frac == 1.0 for w in drawn) == pytest.approx(25.6, abs=3)


def test_requests_of_all_processes_fit_a_memory_cap() -> None:
    most = 2.0**22
    free = Box((2.0**20, 2.0**34), (4096.0, 2.0**22), (1.0, 64.0))
    capped = replace(free, at_once_bytes=most)
    drawn = spread_out(capped, 256, 3)
    assert all(
        each.process_num == 1 or each.process_num * each.size_mean <= most + each.size_mean
        for each in drawn
    )
    beyond = [each for each in spread_out(free, 256, 3) if each.process_num * each.size_mean > most]
    assert len(beyond) > 20, "without a cap many would not fit"
    assert [capped.nearest(each).process_num for each in beyond] == [
        max(1, round(most / each.size_mean)) for each in beyond
    ]
    alike = zip(drawn, spread_out(free, 256, 3), strict=True)
    assert sum(one == other for one, other in alike) > 100, "what fits stays as it was"


def test_next_points_lie_inside_and_a_share_of_them_at_boundaries(
    before: tuple[JointModel, list[Measurement], Box], monkeypatch: pytest.MonkeyPatch
) -> None:
    model, points, box = before
    low, high = (factor * math.exp(model.sample.boundaries[0][0]) for factor in BOUNDARY_ZONE)
    at_boundary = {}
    for share in (0.0, BOUNDARY_SHARE, 1.0):
        monkeypatch.setattr(learning_module, "BOUNDARY_SHARE", share)
        chosen = next_points(model, points, box, 8, 5)
        assert len(set(chosen)) == 8
        assert all(box.holds(workload) for workload in chosen)
        at_boundary[share] = sum(low <= w.unique_bytes <= high for w in chosen)
    assert chosen == next_points(model, points, box, 8, 5), "by the seed alone"
    assert at_boundary[1.0] == 8, "all are forced"
    assert at_boundary[0.0] < 8, "none is, and most lie elsewhere"
    assert at_boundary[BOUNDARY_SHARE] >= 2


def test_a_share_of_the_points_goes_to_what_is_needed_and_the_rest_helps_it(
    before: tuple[JointModel, list[Measurement], Box],
) -> None:
    model, points, box = before
    far = Workload(unique_bytes=10**15, size_mean=8192, read_frac=0.0, seq_frac=1.0)
    needed = [box.nearest(far), box.nearest(msgspec.structs.replace(far, unique_bytes=8192))]
    assert all(box.holds(each) for each in needed)
    assert [each.read_frac for each in needed] == [0.0, 0.0]

    def doubt(chosen: list[Workload]) -> float:
        covariance = model.covariance([*chosen, *needed])
        own = covariance[: len(chosen), : len(chosen)] + np.diag(model.noise_at(chosen) ** 2)
        cross = covariance[len(chosen) :, : len(chosen)]
        gained = np.einsum("ij,ij->i", cross @ np.linalg.inv(own), cross)
        return float(np.mean(np.diag(covariance)[len(chosen) :] - gained))

    for count in (6, 12):
        chosen = next_points(model, points, box, count, 5, needed=needed)
        assert len(set(chosen)) == count
        assert sum(each in needed for each in chosen) >= count // 6
        assert doubt(chosen) < doubt(next_points(model, points, box, count, 5))


def test_chosen_points_take_more_doubt_away_than_points_at_random(
    before: tuple[JointModel, list[Measurement], Box],
) -> None:
    model, points, box = before
    helped = spread_out(box, 128, 77)

    def left(extra: list) -> float:  # type: ignore[type-arg]
        covariance = model.covariance([*extra, *helped])
        own = covariance[: len(extra), : len(extra)] + np.diag(model.noise_at(extra) ** 2)
        cross = covariance[len(extra) :, : len(extra)]
        gained = np.einsum("ij,ij->i", cross @ np.linalg.inv(own), cross)
        return float(np.mean(np.diag(covariance)[len(extra) :] - gained))

    chosen = left(next_points(model, points, box, BATCH, 5))
    at_random = [left(spread_out(box, BATCH, seed)) for seed in range(10, 20)]
    assert chosen < min(at_random)


def test_a_slow_point_is_chosen_only_when_it_is_worth_its_seconds(
    before: tuple[JointModel, list[Measurement], Box],
) -> None:
    model, points, box = before
    middle = math.sqrt(box.unique_bytes[0] * box.unique_bytes[1])
    dear = [
        msgspec.structs.replace(
            point,
            result=msgspec.structs.replace(
                point.result, total_s=100.0 if point.workload.unique_bytes > middle else 1.0
            ),
        )
        for point in points
    ]
    cheap = next_points(model, dear, box, 12, 5)
    plain = next_points(model, points, box, 12, 5)
    count = [sum(w.unique_bytes > middle for w in chosen) for chosen in (cheap, plain)]
    assert count[0] < count[1], count


def test_more_points_go_to_the_level_whose_readings_scatter(
    learned: SimulatedSurvey, before: tuple[JointModel, list[Measurement], Box]
) -> None:
    """A level whose readings differ by half is known worse, and learning is what is left for it."""
    model, points, box = before
    boundary = math.exp(model.sample.boundaries[0].ln_bytes)

    def chosen_beyond(*, noisy_beyond: bool) -> int:
        random = np.random.default_rng(3)
        scattered = []
        for point in points:
            noisy = (point.workload.unique_bytes > boundary) == noisy_beyond
            rate = point.result.throughput_mb_s
            rate = msgspec.structs.replace(
                rate, value=rate.value * math.exp(0.4 * noisy * random.normal())
            )
            result = msgspec.structs.replace(point.result, throughput_mb_s=rate)
            scattered.append(msgspec.structs.replace(point, result=result))
        noisy_model = fit_joint(sample_of(scattered, learned.survey.boundaries))
        return sum(w.unique_bytes > boundary for w in next_points(noisy_model, points, box, 24, 5))

    assert chosen_beyond(noisy_beyond=True) > chosen_beyond(noisy_beyond=False)


@pytest.mark.long
def test_learning_ends_when_predictions_are_as_good_as_a_run() -> None:
    learned = surveyed(PROFILE, learn_frac=0.6, accuracy=0.04)
    stages = {stage.name: stage.points for stage in learned.survey.start.plan.stages}
    ran = sum(point.stage == "learning" for point in learned.points)
    assert 0 < ran < stages["learning"]
    assert learned.points[-1].stage == "closing"
    start, told = learned.survey.start, learned.points[:-2]
    surveyor = Surveyor(start)
    for point in told:
        surveyor.tell(point)
    strategy = surveyor.strategy
    assert isinstance(strategy, middle.MiddleStrategy)
    assert strategy.decided is not None
    boundaries = strategy.decided.boundaries
    judged, model = [], None
    for count in range(len(told) - ran, len(told) + 1, BATCH):
        model = fit_joint(sample_of(told[:count], boundaries), model)
        judged.append(enough(model, strategy._box(), start.seed + count))
    assert judged == [False] * (len(judged) - 1) + [True]


def test_a_survey_that_learns_asks_the_same_again(learned: SimulatedSurvey) -> None:
    surveyor = Surveyor(learned.survey.start)
    for point in learned.points:
        asked = surveyor.ask()
        assert asked is not None
        assert asked.workload == point.workload
        surveyor.tell(point)
    assert surveyor.ask() is None


@pytest.fixture
def no_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> JointModel:
        raise AssertionError("a model was fitted")

    monkeypatch.setattr(middle, "fit_joint", refuse)


def learning_at(points: Sequence[Measurement]) -> int:
    return next(index for index, point in enumerate(points) if point.stage == "learning")


@pytest.mark.usefixtures("no_fit")
def test_a_stored_survey_is_explained_without_fitting_a_model(learned: SimulatedSurvey) -> None:
    start, points = learned.survey.start, learned.points
    first = learning_at(points)
    assert explain(start, points).status is Status.DONE
    for kept in (first, first + 2, first + BATCH, len(points) - 1):
        survey = explain(start, points[:kept])
        assert survey.status is Status.STOPPED
        assert len(survey.regions) == len(learned.survey.regions)


def test_a_survey_resumed_while_it_learns_goes_on_as_it_would_have(
    learned: SimulatedSurvey,
) -> None:
    for kept in (learning_at(learned.points) + 2, learning_at(learned.points) + BATCH + 1):
        request = Surveyor(learned.survey.start, learned.points[:kept]).ask()
        assert request is not None
        assert request.workload == learned.points[kept].workload
        assert request.seed == learned.points[kept].seed


def moved(points: Sequence[Measurement], index: int, read_frac: float) -> list[Measurement]:
    """Points of which one measured another read fraction."""
    changed = list(points)
    other = points[index].workload.with_value("read_frac", read_frac)
    changed[index] = msgspec.structs.replace(points[index], workload=other)
    return changed


@pytest.mark.usefixtures("no_fit")
def test_a_point_learned_by_other_arithmetic_is_its_own_decision(learned: SimulatedSurvey) -> None:
    index = learning_at(learned.points) + 1
    foreign = moved(learned.points, index, 0.123)
    assert Surveyor(learned.survey.start, foreign).points == foreign
    assert explain(learned.survey.start, foreign[: index + 1]).points == index + 1


@pytest.mark.usefixtures("no_fit")
@pytest.mark.parametrize("fault", ["families", "outside", "swapped", "seed"])
def test_points_that_this_survey_would_not_have_asked_for_are_refused(
    learned: SimulatedSurvey, fault: str
) -> None:
    start, points = learned.survey.start, list(learned.points)
    at = learning_at(points)
    if fault == "families":
        points = moved(points, at - 1, 0.123)
    elif fault == "outside":
        vast = points[at].workload.with_value("unique_bytes", 2 * start.plan.unique_bytes_max)
        points[at] = msgspec.structs.replace(points[at], workload=vast)
    elif fault == "swapped":
        points[at : at + 2] = [points[at + 1], points[at]]
    else:
        start = msgspec.structs.replace(start, seed=start.seed + 1)
    with pytest.raises(ResumeMismatch):
        Surveyor(start, points)


def test_small_plans_keep_their_points_for_the_curves() -> None:
    def plan(  # type: ignore[no-untyped-def]
        budget_s: float, *, virtual: bool = False, learn_frac: float = 0.4
    ):
        return make_plan(
            budget_s=budget_s,
            capacity_bytes=2**34,
            max_bytes=2**31,
            memory_bytes=2**29,
            l3_cache_bytes=2**20,
            process_num_max=16,
            virtual=virtual,
            learn_frac=learn_frac,
        )

    def counts(made) -> tuple[int, int]:  # type: ignore[no-untyped-def]
        learning = sum(s.points for s in made.stages if s.name == "learning")
        return made.points - learning, learning

    assert counts(plan(120.0))[1] == 0
    on_curves, learning = counts(plan(600.0))
    assert on_curves <= 84
    assert learning >= 40
    assert counts(plan(3600.0)) == (84, 56)
    assert counts(plan(3600.0, learn_frac=0.1)) == (84, 14), "no more than its share of 140"
    assert counts(plan(3600.0, learn_frac=0.9)) == (46, 94), "curves keep their least"
    assert sum(counts(plan(14 * 3600.0, virtual=True))) == 84
