"""Charts of experiments say what the records say: rates, responses, times, costs, shapes."""

from __future__ import annotations

import functools
from typing import Any

import msgspec
import pytest

import experiment_fixture as made
from leadline.charts.drawable import Drawn, drawable
from leadline.record import Interval
from leadline.record.workbench import Experiment, Trial, TrialState
from leadline.studies.workbench.loads import percentile_ms
from leadline.studies.workbench.page import experiment_charts

Spec = dict[str, Any]


@functools.cache
def peak() -> Experiment:
    return made.peak_experiment(made.BOTH)


@functools.cache
def drawn() -> dict[str, Drawn]:
    return experiment_charts(peak())


def data(chart: Drawn) -> list[tuple[str, list[Spec]]]:
    """The style of every layer's marks, and its rows: Altair keeps them apart."""
    spec = drawable(chart)
    found = []
    for layer in spec["layer"]:
        held = layer.get("data", spec.get("data"))
        mark = layer["mark"]
        style = mark.get("style", "") if isinstance(mark, dict) else ""
        found.append((style, held.get("values") or spec["datasets"][held["name"]]))
    return found


def rows(chart: Drawn, style: str) -> list[Spec]:
    """The rows of all layers with marks of this style."""
    return [row for own, held in data(chart) if own == style for row in held]


def with_trials(experiment: Experiment, *trials: Trial) -> Experiment:
    own = experiment.peaks[0]
    return msgspec.structs.replace(
        experiment, peaks=(msgspec.structs.replace(own, trials=(*own.trials, *trials)),)
    )


def found_peak(experiment: Experiment) -> Interval:
    found = experiment.peaks[0].peak
    assert found is not None
    assert found.rate_per_s is not None
    return found.rate_per_s


def test_every_trial_is_a_point_on_its_side_of_the_threshold() -> None:
    own = peak().peaks[0]
    shown = rows(drawn()["response"], "reading") + rows(drawn()["response"], "over")
    assert sorted((row["x"], row["y"]) for row in shown) == sorted(
        (trial.request.rate_per_s, trial.measured.response_ms.mean)
        for trial in own.trials
        if trial.measured is not None and trial.measured.response_ms is not None
    )
    for style, saturated in (("reading", False), ("over", True)):
        for row in rows(drawn()["response-percentile"], style):
            assert slow(own.trials[int(row["number"].split()[1]) - 1]) is saturated


def slow(trial: Trial) -> bool:
    """Whether a trial is over either threshold."""
    limit = made.BOTH.threshold
    assert trial.measured is not None
    assert trial.measured.response_ms is not None
    return percentile_ms(limit, trial.measured) > (
        limit.limit_ms or 0
    ) or trial.measured.response_ms.mean > (limit.mean_ms or 0)


def test_a_percentile_has_a_chart_of_its_own_times() -> None:
    shown = rows(drawn()["response-percentile"], "reading")
    trial = peak().peaks[0].trials[0]
    assert trial.measured is not None
    assert (shown[0]["x"], shown[0]["y"]) == (
        trial.request.rate_per_s,
        percentile_ms(made.BOTH.threshold, trial.measured),
    )
    assert "95% of responses" in str(drawable(drawn()["response-percentile"]))


def test_the_peak_and_its_interval_are_where_the_record_has_them() -> None:
    rate = found_peak(peak())
    band = rows(drawn()["response"], "good")
    assert [(row["low"], row["high"]) for row in band] == [(rate.low, rate.high)]
    bounds = [row["x"] for row in rows(drawn()["response"], "bound")]
    found = peak().peaks[0].peak
    assert found is not None
    assert bounds == [found.lower_bound_per_s, found.upper_bound_per_s]
    region = rows(drawn()["response"], "boundary-band")
    assert [(row["low"], row["high"]) for row in region] == [(36.0, pytest.approx(44.0))]


def test_trials_given_up_and_lost_are_marked_as_such() -> None:
    last = peak().peaks[0].trials[-1]
    assert last.measured is not None
    assert last.measured.response_ms is not None
    slow_response = msgspec.structs.replace(last.measured.response_ms, mean=900.0)
    over = msgspec.structs.replace(
        last,
        state=TrialState.ABORTED,
        measured=msgspec.structs.replace(last.measured, aborted=True, response_ms=slow_response),
    )
    request = msgspec.structs.replace(last.request, rate_per_s=5000.0)
    lost = msgspec.structs.replace(
        last, state=TrialState.SERVER_LOST, measured=None, failure="!", request=request
    )
    failed = msgspec.structs.replace(last, state=TrialState.FAILED)
    charts = experiment_charts(with_trials(peak(), over, lost, failed))
    given_up = rows(charts["response"], "given-up")
    assert [(row["y"], row["said"]) for row in given_up] == [(900.0, "at least 900 ms")]
    (cross,) = rows(charts["response"], "lost")
    assert (cross["x"], cross["said"]) == (5000.0, "the server was lost")
    x_scales = [
        layer["encoding"]["x"]["scale"]["domain"]
        for layer in drawable(charts["response"])["layer"]
        if "scale" in layer["encoding"].get("x", {})
    ]
    assert all(domain[0] > 0 and domain[1] > 5000 for domain in x_scales)
    assert "Both axes are logarithmic" in str(drawable(charts["response"])["title"])
    assert "drawn at 2.6" in str(drawable(charts["time"])["title"])
    assert "Both axes" not in str(drawable(drawn()["response"])["title"])
    assert rows(charts["time"], "held-over")[-1]["x"] == 5000.0
    points = rows(charts["response"], "reading") + rows(charts["response"], "over")
    assert len(points) == len(peak().peaks[0].trials)


def test_load_factors_stand_in_time_as_long_as_their_trials_took() -> None:
    own = peak().peaks[0]
    rate = found_peak(peak()).value
    bars = rows(drawn()["time"], "held") + rows(drawn()["time"], "held-over")
    bars.sort(key=lambda row: row["begin"])
    assert len(bars) == len(own.trials)
    at_s = 0.0
    for row, trial in zip(bars, own.trials, strict=True):
        assert row["y"] == pytest.approx(trial.request.rate_per_s / rate)
        assert row["begin"] == pytest.approx(at_s)
        at_s += trial.cost_s
        assert row["to"] == pytest.approx(at_s / _unit_s(own.trials))


def _unit_s(trials: tuple[Trial, ...]) -> float:
    total = sum(trial.cost_s for trial in trials)
    return 1.0 if total < 180 else 60.0 if total < 3 * 3600 else 3600.0


def test_without_a_peak_rate_time_shows_loads_instead_of_factors() -> None:
    own = peak().peaks[0]
    nothing = msgspec.structs.replace(
        peak(), peaks=(msgspec.structs.replace(own, peak=None),), fares=()
    )
    charts = experiment_charts(nothing)
    assert set(charts) == {"response", "response-percentile", "time"}
    loads = [row["y"] for row in rows(charts["time"], "held")]
    assert max(loads) > 100
    assert rows(charts["time"], "good") == []


def test_policies_stand_cheapest_first_with_the_one_used_apart() -> None:
    order = drawable(drawn()["fares"])["layer"][0]["encoding"]["y"]["sort"]
    assert order[:2] == ["curve", "mlrsearch"]
    assert order[-1] == "linear"
    (used,) = rows(drawn()["fares"], "short-gain")
    assert used["policy"] == "binary"
    assert used["said"].endswith("(used)")


@functools.cache
def surface_charts() -> dict[str, Drawn]:
    return experiment_charts(made.partly(made.full_surface()))


def test_the_map_has_every_cell_and_marks_the_measured_and_the_ideal() -> None:
    surface = made.partly(made.full_surface()).surface
    assert surface is not None
    shown = rows(surface_charts()["map"], "cell")
    rates = {(row["x"], row["y"]): row["rate"] for row in shown}
    assert rates == {
        (str(cell.sample["workers"]), str(cell.sample["disks"])): cell.rate_per_s.value
        for cell in surface.cells
        if cell.rate_per_s is not None
    }
    assert len(rates) == 31
    assert len(rows(surface_charts()["map"], "measured-cell")) == 8
    (ideal,) = rows(surface_charts()["map"], "ideal-cell")
    assert {"disks": int(ideal["y"]), "workers": int(ideal["x"])} == surface.ideal
    assert len(rows(surface_charts()["map"], "empty-cell")) == 1


def test_one_factor_is_a_line_and_three_are_planes() -> None:
    assert set(experiment_charts(made.one_factor())) == {"lines"}
    charts = experiment_charts(made.three_factors())
    assert {"map", "map-2", "lines"} == set(charts)
    ideal = made.three_factors().surface
    assert ideal is not None
    assert ideal.ideal is not None
    title = drawable(charts["map"])["title"]["text"]
    assert f"disk_share={ideal.ideal['disk_share']}" in title


def _dearer(factor: float, **start: Any) -> Experiment:
    whole = msgspec.structs.replace(made.full_surface(), peaks=())
    return made.with_costs(whole, factor, **start)


def _goal(*, accuracy: float = 0.9, confidence: float = 0.95, width: float = 0.1) -> Any:
    threshold = msgspec.structs.replace(made.MEAN.threshold, width_frac=width)
    return msgspec.structs.replace(
        made.MEAN, accuracy=accuracy, confidence=confidence, threshold=threshold
    )


def test_costs_by_policy_are_told_as_multiples_of_the_least() -> None:
    several = [
        _dearer(factor, policy=policy, system=name)
        for name, more in (("DB_TP", 1.0), ("web", 2.0))
        for policy, factor in (("linear", 5.0 * more), ("binary", 1.0 * more))
    ]
    charts = experiment_charts(several[0], several[1:])
    assert {"cost-policies"} == {name for name in charts if name.startswith("cost")}
    bars = data(charts["cost-policies"])[0][1]
    times = {(row["workload"], row["policy"]): row["times"] for row in bars}
    assert times == {
        ("DB_TP", "linear"): pytest.approx(5),
        ("DB_TP", "binary"): pytest.approx(1),
        ("web", "linear"): pytest.approx(10),
        ("web", "binary"): pytest.approx(2),
    }


def test_costs_against_the_goal_follow_from_what_the_experiments_differ_in() -> None:
    by_accuracy = [
        _dearer(1 / (1 - a), goal=_goal(accuracy=a, confidence=c))
        for a in (0.8, 0.9)
        for c in (0.9, 0.95)
    ]
    charts = experiment_charts(by_accuracy[0], by_accuracy[1:])
    assert {"cost-accuracy"} == {name for name in charts if name.startswith("cost")}
    points = data(charts["cost-accuracy"])[1][1]
    assert {(row["x"], row["series"], round(row["times"], 6)) for row in points} == {
        (80.0, "90% confidence", 1.0),
        (80.0, "95% confidence", 1.0),
        (90.0, "90% confidence", 2.0),
        (90.0, "95% confidence", 2.0),
    }
    by_width = [
        _dearer(1 / s, goal=_goal(width=s), policy=policy)
        for s in (0.05, 0.1)
        for policy in ("binary", "linear")
    ]
    charts = experiment_charts(by_width[0], by_width[1:])
    assert {"cost-width"} == {name for name in charts if name.startswith("cost")}


def test_searches_beside_each_other_share_one_clock() -> None:
    first = made.peak_experiment(made.BOTH)
    other = made.peak_experiment(made.BOTH, policy="binary-seeded", start_per_s=700)
    points = data(experiment_charts(first, [other])["times"])[-1][1]
    assert {row["search"] for row in points} == {"binary", "binary-seeded"}
    for name, each in (("binary", first), ("binary-seeded", other)):
        own = [row for row in points if row["search"] == name]
        assert len(own) == len(each.peaks[0].trials)
        assert own[-1]["y"] == pytest.approx(
            each.peaks[0].trials[-1].request.rate_per_s / found_peak(each).value
        )
