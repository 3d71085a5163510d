"""The product model on made-up surveys whose truth is known."""

from __future__ import annotations

import itertools
import json
import math
import random
from typing import Any

import msgspec
import numpy as np
import pytest

import survey_fixture
from leadline.models.predictor import Predictor
from leadline.models.product import NoFamilies, ProductModel
from leadline.record import Curve, CurvePoint, Interval, Measurement, Survey, Workload
from survey_fixture import MIB, Level, Machine, build, points, three_region, two_region

DISK = Level("disk", 2**50, 240, 130, 60.0, 800.0, processes=4)


class Multiplied(Machine):
    """A system that obeys the product exactly."""

    def truth_mb_s(self, work: Workload, clock_frac: float = 0.0) -> float:
        return float(
            100.0
            * (work.unique_bytes / MIB) ** -0.2
            * (work.size_mean / 32768) ** 0.6
            * (1 + work.read_frac)
            * (1 + 0.5 * work.seq_frac)
            * work.process_num**0.3
        )


def multiplied(noise: float, seed: int = 1) -> Survey:
    machine = Multiplied((DISK,), noise=noise, rng=np.random.default_rng(seed))
    return _with_focal_on_curves(build(machine, [], top_bytes=2**30))


def _with_focal_on_curves(survey: Survey) -> Survey:
    """Pool the focal point over the curves and the noise over the points, as a survey does."""
    region, family = survey.regions[0], survey.families[0]
    focal = next(p for p in family.curves[1].points if p.x == region.focal.read_frac)
    noise = survey.noise_frac[region.name]

    def pooled(point: CurvePoint) -> CurvePoint:
        mean = math.exp(float(np.mean(np.log(point.readings_mb_s))))
        half = math.exp(1.96 * noise / math.sqrt(len(point.readings_mb_s)))
        interval = Interval(mean, mean / half, mean * half, len(point.readings_mb_s))
        return msgspec.structs.replace(point, throughput_mb_s=interval)

    def shared(curve: Curve) -> Curve:
        at = float(getattr(region.focal, curve.parameter))
        found = [pooled(point) for point in curve.points if point.x != at]
        found.append(msgspec.structs.replace(pooled(focal), x=at))
        return msgspec.structs.replace(curve, points=tuple(sorted(found, key=lambda p: p.x)))

    return msgspec.structs.replace(
        survey,
        unique_bytes_curve=shared(survey.unique_bytes_curve),
        families=(msgspec.structs.replace(family, curves=tuple(shared(c) for c in family.curves)),),
    )


def on_curves(survey: Survey, rng: random.Random) -> Workload:
    """A workload whose every value was measured, each on its own curve."""
    curves = {curve.parameter: curve for curve in survey.families[0].curves}
    curves["unique_bytes"] = survey.unique_bytes_curve
    work = survey.regions[0].focal
    for parameter, curve in curves.items():
        work = work.with_value(parameter, rng.choice(curve.points).x)
    return work


def test_a_system_that_is_a_product_is_predicted_exactly() -> None:
    survey = multiplied(noise=0.0)
    model = ProductModel(survey, points(survey))
    machine = Multiplied((DISK,))
    rng = random.Random(3)
    for work in (on_curves(survey, rng) for _ in range(50)):
        expected = model.expect([work])
        assert math.exp(expected.ln_mb_s[0]) == pytest.approx(machine.truth_mb_s(work), rel=1e-9)


def test_the_focal_point_is_predicted_as_sure_as_it_was_measured() -> None:
    survey = multiplied(noise=0.1)
    region = survey.regions[0]
    model = ProductModel(survey, points(survey))
    found = model.expect([region.focal])
    focal = next(p for p in survey.families[0].curves[0].points if p.x == region.focal.size_mean)
    assert math.exp(found.ln_mb_s[0]) == pytest.approx(focal.throughput_mb_s.value)
    assert found.noise_ln_sd[0] == pytest.approx(0.1, rel=0.2)
    assert found.ln_sd[0] == pytest.approx(found.noise_ln_sd[0] / math.sqrt(4))


@pytest.mark.long
def test_the_stated_deviation_is_the_scatter_over_repeated_surveys() -> None:
    work = on_curves(multiplied(noise=0.0), random.Random(4))
    truth = math.log(Multiplied((DISK,)).truth_mb_s(work))
    errors, stated = [], []
    for seed in range(200):
        survey = multiplied(noise=0.05, seed=seed)
        plain = ProductModel(survey, points(survey)).embedded() | {"interaction": 0.0}
        ln_mb_s, variance, _ = _predict_plainly(plain, work)
        errors.append(ln_mb_s - truth)
        stated.append(variance)
    # Ten means of four readings each, the focal one with weight 4.
    assert math.sqrt(np.mean(stated)) == pytest.approx(float(np.std(errors)), rel=0.15)


def test_between_two_read_shares_times_are_mixed() -> None:
    survey = two_region()
    model = ProductModel(survey, points(survey))
    focal = survey.regions[1].focal
    ln_mb_s = model.expect([focal.with_value("read_frac", x) for x in (0.75, 0.9, 1.0)]).ln_mb_s
    times = np.exp(-ln_mb_s)
    assert times[1] == pytest.approx(0.4 * times[0] + 0.6 * times[2])


def test_between_two_sizes_times_of_a_request_are_mixed() -> None:
    survey = two_region()
    model = ProductModel(survey, points(survey))
    focal = survey.regions[1].focal
    sizes = np.asarray([16384, 40960, 65536])
    ln_mb_s = model.expect([focal.with_value("size_mean", x) for x in sizes]).ln_mb_s
    times = sizes * np.exp(-ln_mb_s)
    assert times[1] == pytest.approx((times[0] + times[2]) / 2)


def _seq_curve(survey: Survey, at_one: float) -> Survey:
    """Make the last reading of the disk's seq_frac curve `at_one` times what it was."""
    family = survey.families[1]
    curves = []
    for curve in family.curves:
        *others, last = curve.points
        rate = last.throughput_mb_s
        changed = msgspec.structs.replace(
            last, throughput_mb_s=msgspec.structs.replace(rate, value=rate.value * at_one)
        )
        keep = curve.parameter != "seq_frac"
        curves.append(curve if keep else msgspec.structs.replace(curve, points=(*others, changed)))
    families = (survey.families[0], msgspec.structs.replace(family, curves=tuple(curves)))
    return msgspec.structs.replace(survey, families=families)


def test_a_whole_pass_scan_that_misses_spoils_only_itself() -> None:
    plain, spoilt = two_region(), _seq_curve(two_region(), 0.4)
    focal = plain.regions[1].focal
    near, one = focal.with_value("seq_frac", 0.99), focal.with_value("seq_frac", 1.0)
    before = ProductModel(plain, points(plain)).expect([near, one]).ln_mb_s
    after = ProductModel(spoilt, points(spoilt)).expect([near, one]).ln_mb_s
    assert after[0] == pytest.approx(before[0], abs=0.1)
    assert after[1] == pytest.approx(before[1] + math.log(0.4), abs=0.01)


def test_a_reading_at_one_that_fits_its_curve_is_used() -> None:
    survey = _seq_curve(two_region(), 1.02)
    one = survey.regions[1].focal.with_value("seq_frac", 1.0)
    nearly = one.with_value("seq_frac", 1.0 - 1e-9)
    found = ProductModel(survey, points(survey)).expect([one, nearly]).ln_mb_s
    assert found[1] == pytest.approx(found[0], abs=1e-6)


def test_two_effects_together_are_less_sure_than_each_alone() -> None:
    survey = two_region()
    model = ProductModel(survey, points(survey))
    focal = survey.regions[1].focal
    size, seq = focal.with_value("size_mean", 1024), focal.with_value("seq_frac", 0.0)
    both = size.with_value("seq_frac", 0.0)
    sds = model.expect([size, seq, both]).ln_sd
    assert sds[2] > 1.5 * max(sds[0], sds[1])


def test_readings_far_off_the_curves_tell_how_far_the_product_is_wrong() -> None:
    survey = two_region()
    known = points(survey)
    focal = survey.regions[1].focal
    far = [
        msgspec.structs.replace(
            focal, size_mean=size, read_frac=read, seq_frac=seq, unique_bytes=2**30
        )
        for size, read, seq in itertools.product((1024, 2**20), (0.1, 0.9), (0.1, 0.9))
    ]
    plain = ProductModel(survey, known)
    expected = plain.expect(far).ln_mb_s

    def told(wrong: float) -> float:
        """The interaction after readings that lie off the product by turns, up and down."""
        extra = [
            _reading(known[0], work, math.exp(ln_mb_s + wrong * (-1) ** index), index)
            for index, (work, ln_mb_s) in enumerate(zip(far, expected, strict=True))
        ]
        return float(ProductModel(survey, [*known, *extra]).embedded()["interaction"])

    usual = plain.embedded()["interaction"]
    assert told(0.0) < usual < told(3.0)


def _reading(like: Measurement, work: Workload, mb_s: float, number: int) -> Measurement:
    result = msgspec.structs.replace(
        like.result, throughput_mb_s=Interval(mb_s, 0.99 * mb_s, 1.01 * mb_s, 10), admissible=True
    )
    return msgspec.structs.replace(
        like, workload=work, result=result, point_id=f"far-{number}", stage="learning"
    )


def test_where_two_families_meet_their_disagreement_is_in_the_interval() -> None:
    survey = two_region()
    model = ProductModel(survey, points(survey))
    low, high = Predictor(survey, points(survey)).ranges.boundary_zones[0]
    work = survey.regions[1].focal.with_value("read_frac", 1.0).with_value("seq_frac", 0.0)
    inside, beyond = model.expect(
        [work.with_value("unique_bytes", x) for x in (high * 0.99, high * 1.01)]
    ).ln_sd
    assert inside > 2 * beyond
    assert low < survey.boundaries[0].bytes.value < high


def test_what_is_embedded_predicts_the_same_as_plain_arithmetic() -> None:
    for survey in (two_region(), three_region(), _seq_curve(two_region(), 0.4)):
        model = ProductModel(survey, points(survey))
        plain = json.loads(json.dumps(model.embedded()))
        rng = random.Random(5)
        low, high = survey.unique_bytes_curve.points[0].x, survey.unique_bytes_curve.points[-1].x
        works = [
            Workload(
                unique_bytes=round(low * (high / low) ** rng.random()),
                size_mean=round(1024 * 1024 ** rng.random()),
                read_frac=rng.random(),
                seq_frac=rng.choice([rng.random(), 1.0]),
                process_num=rng.randint(1, 20),
            )
            for _ in range(60)
        ]
        expected = model.expect(works)
        for index, work in enumerate(works):
            ln_mb_s, variance, noise = _predict_plainly(plain, work)
            assert ln_mb_s == pytest.approx(expected.ln_mb_s[index], abs=1e-9)
            assert math.sqrt(variance) == pytest.approx(expected.ln_sd[index], rel=1e-9)
            assert noise == pytest.approx(expected.noise_ln_sd[index])


def _predict_plainly(plain: dict[str, Any], work: Workload) -> tuple[float, float, float]:
    """The embedded model by its documentation, as a browser would do it."""
    regions = plain["regions"]
    below = [i for i, region in enumerate(regions) if region["low_bytes"] < work.unique_bytes]
    index = max(below, default=0)
    ln_mb_s, variance = _in_region(plain, regions[index], work)
    for zone in plain["boundary_zones"]:
        if zone["low_bytes"] <= work.unique_bytes <= zone["high_bytes"]:
            apart = (
                _in_region(plain, regions[zone["below"]], work)[0]
                - _in_region(plain, regions[zone["above"]], work)[0]
            )
            variance += (plain["boundary"] * apart) ** 2
    return ln_mb_s, variance, regions[index]["noise_ln_sd"]


def _in_region(
    plain: dict[str, Any], region: dict[str, Any], work: Workload
) -> tuple[float, float]:
    node_ln, node_variance = plain["nodes"]["ln_mb_s"], plain["nodes"]["variance"]
    focal = region["focal_node"]
    ln_mb_s, weights, effects = node_ln[focal], {focal: 1.0}, []
    curves = {"unique_bytes": plain["unique_bytes"], **region["curves"]}
    for parameter, curve in curves.items():
        read, own = _read(curve, node_ln, float(getattr(work, parameter)))
        own[focal] = own.get(focal, 0.0) - 1.0
        change = read - node_ln[focal]
        ln_mb_s += change
        for node, weight in own.items():
            weights[node] = weights.get(node, 0.0) + weight
        if parameter != "unique_bytes":
            noise = sum(weight**2 * node_variance[node] for node, weight in own.items())
            effects.append(max(0.0, change**2 - plain["noise_sds"] ** 2 * noise))
    variance = sum(weight**2 * node_variance[node] for node, weight in weights.items())
    together = sum(min(pair) for pair in itertools.combinations(effects, 2))
    return ln_mb_s, variance + plain["interaction"] ** 2 * together


def _read(
    curve: dict[str, Any], node_ln: list[float], value: float
) -> tuple[float, dict[int, float]]:
    if curve["alone"] and value == curve["alone"][0]:
        return node_ln[curve["alone"][1]], {curve["alone"][1]: 1.0}
    xs, nodes = curve["x"], curve["nodes"]
    x = min(max(value, xs[0]), xs[-1])
    right = next((i for i, at in enumerate(xs) if i and at >= x), 0)
    left = max(right - 1, 0)
    if left == right:
        return node_ln[nodes[0]], {nodes[0]: 1.0}
    if curve["between"] == "logarithmic":
        s = math.log(x / xs[left]) / math.log(xs[right] / xs[left])
        ln_mb_s = (1 - s) * node_ln[nodes[left]] + s * node_ln[nodes[right]]
        return ln_mb_s, {nodes[left]: 1 - s, nodes[right]: s}
    s = (x - xs[left]) / (xs[right] - xs[left])
    per_request = curve["between"] == "per request"
    times = [
        share * math.exp(-node_ln[nodes[i]]) * (xs[i] if per_request else 1.0)
        for share, i in ((1 - s, left), (s, right))
    ]
    ln_mb_s = -math.log(sum(times)) + (math.log(x) if per_request else 0.0)
    return ln_mb_s, {nodes[left]: times[0] / sum(times), nodes[right]: times[1] / sum(times)}


def test_a_survey_without_curves_has_nothing_to_multiply() -> None:
    survey = survey_fixture.empty()
    with pytest.raises(NoFamilies, match="--resume"):
        ProductModel(survey, ())
