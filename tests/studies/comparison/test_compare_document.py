"""A comparison says which system is faster for what, how surely, and what it could not compare."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

import survey_fixture as made
from compare_fixture import INSIDE, MIB, atlas, question, quicker, renamed, systems
from leadline.models.predictor import NAMED, Predictor
from leadline.record import Survey, Workload
from leadline.record.comparison import Price, Rule, SystemsComparison
from leadline.record.finding import Finding, within
from leadline.studies.comparison.contenders import Named
from leadline.studies.comparison.document import (
    ComparisonRefused,
    Terms,
    WorkloadReadings,
    compare_systems,
    focal_questions,
    name_systems,
    named_questions,
)
from leadline.studies.comparison.ratio import GateRefused


def test_the_faster_system_is_named_with_the_ratio_and_its_interval() -> None:
    document = compare_systems(systems(atlas(), quicker(2.0)), Terms([question()]))
    (pair,) = document.pairs
    assert (pair.a, pair.b, pair.verdict, pair.source) == ("atlas", "rapid", "b", "predicted")
    assert pair.ratio is not None
    assert pair.ratio.covers(0.5)
    assert pair.a_mb_s is not None
    assert pair.b_mb_s is not None
    assert pair.ratio.value == pytest.approx(pair.a_mb_s.value / pair.b_mb_s.value)


def test_the_order_of_the_systems_turns_the_ratio_around() -> None:
    both = [
        compare_systems(systems(*pair), Terms([question()])).pairs[0]
        for pair in ((atlas(), quicker()), (quicker(), atlas()))
    ]
    ratios = [pair.ratio.value for pair in both if pair.ratio]
    assert ratios[0] == pytest.approx(1 / ratios[1])
    assert [pair.verdict for pair in both] == ["b", "a"]


def test_equally_fast_systems_give_no_verdict() -> None:
    document = compare_systems(systems(atlas(), quicker(1.0)), Terms(named_questions()))
    assert {pair.verdict for pair in document.pairs} == {"inconclusive"}


def test_every_pair_of_several_systems_is_compared_once() -> None:
    three = systems(atlas(), quicker(), quicker(3.0, "cccc0003", "flash"))
    document = compare_systems(three, Terms([question(), question("half", read_frac=0.25)]))
    assert [(pair.a, pair.b) for pair in document.pairs[::2]] == [
        ("atlas", "rapid"),
        ("atlas", "flash"),
        ("rapid", "flash"),
    ]
    assert document.verdicts == 6
    assert document.expected_by_chance == pytest.approx(0.3)


def test_many_questions_take_a_doubtful_verdict_away_and_say_what_it_was_alone() -> None:
    for percent in range(105, 200, 5):
        pair = systems(atlas(), quicker(percent / 100), model="product")
        (alone,) = compare_systems(pair, Terms([question()])).pairs
        if alone.p_value is not None and alone.p_value < 0.04:
            break
    assert alone.p_value is not None
    assert 0.05 / 20 < alone.p_value < 0.04, "no factor left some doubt"
    assert (alone.verdict, alone.verdict_alone) == ("b", "b")
    crowd = [question(size_mean=32768 + 64 * step) for step in range(20)]
    together = compare_systems(pair, Terms(crowd))
    first = together.pairs[0]
    assert (first.verdict, first.verdict_alone) == ("inconclusive", "b")
    assert first.ratio == alone.ratio, "each interval holds 95% by itself"
    assert together.expected_by_chance == pytest.approx(1.0)


def test_what_a_system_was_not_surveyed_for_is_said_and_never_filled_in() -> None:
    beyond = question("beyond", unique_bytes=40 * 2**30)
    document = compare_systems(systems(atlas(), quicker()), Terms([question(), beyond]))
    pair = document.pairs[1]
    assert (pair.ratio, pair.p_value, pair.a_mb_s, pair.verdict) == (
        None,
        None,
        None,
        "inconclusive",
    )
    assert [(each.where, each.code) for each in pair.withheld] == [
        ("atlas", "not_comparable"),
        ("rapid", "not_comparable"),
    ]
    assert "40 GiB" in str(pair.withheld[0].values["why"])
    assert document.verdicts == 1
    with pytest.raises(ComparisonRefused, match="40 GiB"):
        compare_systems(systems(atlas(), quicker()), Terms([beyond]))


def test_an_extrapolated_answer_is_marked_and_less_sure() -> None:
    beyond = question("beyond", unique_bytes=40 * 2**30)
    guessing = systems(atlas(), quicker(), extrapolate=True)
    inside, pair = compare_systems(guessing, Terms([question(), beyond])).pairs
    assert ("atlas", "extrapolated") in [(each.where, each.code) for each in pair.findings]
    assert pair.ratio is not None
    assert inside.ratio is not None
    assert (pair.ratio.half_width_frac or 0) > 2 * (inside.ratio.half_width_frac or 9)


def names_of(*surveys: Survey) -> tuple[str, ...]:
    return name_systems([[survey.start] for survey in surveys])


def test_systems_of_one_name_are_told_apart_by_their_surveys() -> None:
    twice = [renamed(made.two_region(), name) for name in ("aaaa0001", "bbbb0002")]
    assert names_of(*twice) == ("atlas (aaaa0001)", "atlas (bbbb0002)")
    assert names_of(atlas(), quicker()) == ("atlas", "rapid")


def test_one_survey_alone_or_twice_is_refused() -> None:
    with pytest.raises(ComparisonRefused, match="leadline compare S1 S2"):
        names_of(atlas())
    with pytest.raises(ComparisonRefused, match="aaaa0001 is given twice"):
        names_of(atlas(), quicker(), atlas())


def test_the_five_named_workloads_are_the_paper_s() -> None:
    assert {item.title: item.workload for item in named_questions()} == NAMED


def test_focal_points_of_all_systems_are_asked_once_each() -> None:
    questions = focal_questions(systems(atlas(), quicker()))
    assert [item.title for item in questions] == ["page cache of atlas", "disk of atlas"]
    assert questions[0].workload == atlas().regions[0].focal


def test_prices_turn_a_faster_system_into_a_worse_buy() -> None:
    prices = {"atlas": Price(100.0, "EUR"), "rapid": Price(1000.0, "EUR")}
    (pair,) = compare_systems(systems(atlas(), quicker()), Terms([question()], prices)).pairs
    assert pair.ratio is not None
    assert pair.per_price_ratio is not None
    assert pair.verdict == "b"
    assert pair.per_price_ratio.value == pytest.approx(10 * pair.ratio.value)
    assert pair.per_price_ratio.covers(5.0)
    assert pair.a_mb_s is not None
    assert pair.a_mb_s_per_price is not None
    assert pair.a_mb_s_per_price.value == pytest.approx(pair.a_mb_s.value / 100)


def test_the_gate_judges_new_against_old() -> None:
    old_slow = compare_systems(
        systems(atlas(), quicker()), Terms([question()], rules=(Rule("slower", 0.05),))
    )
    assert old_slow.gate is not None
    assert not old_slow.gate.failed
    new_slow = compare_systems(
        systems(quicker(), atlas()), Terms([question()], rules=(Rule("slower", 0.05),))
    )
    assert new_slow.gate is not None
    assert new_slow.gate.failed
    assert new_slow.gate.failures[0].new_over_old.covers(0.5)
    with pytest.raises(GateRefused, match="exactly two"):
        compare_systems(
            systems(atlas(), quicker(), quicker(3.0, "cccc0003", "flash")),
            Terms([question()], rules=(Rule("slower", 0.05),)),
        )


def readings(workload: Workload, **changes: Any) -> WorkloadReadings:
    made_up = WorkloadReadings(
        workload, {"atlas": (10.0, 10.2, 9.9, 10.1), "rapid": (20.1, 19.8, 20.3, 20.0)}, ()
    )
    return WorkloadReadings(**{**made_up.__dict__, **changes})


def measured(found: WorkloadReadings) -> SystemsComparison:
    terms = Terms([question()], measured={INSIDE: found}, rules=(Rule("slower", 0.05),))
    return compare_systems(systems(atlas(), quicker()), terms)


def test_measured_readings_are_compared_in_pairs_and_kept() -> None:
    (pair,) = measured(readings(INSIDE)).pairs
    assert (pair.source, pair.verdict) == ("measured", "b")
    assert pair.readings == ((10.0, 20.1), (10.2, 19.8), (9.9, 20.3), (10.1, 20.0))
    assert pair.ratio is not None
    assert pair.ratio.covers(0.5)
    assert pair.a_mb_s is not None
    assert pair.a_mb_s.covers(10.05)


def test_a_reading_that_is_not_admissible_decides_nothing_but_is_shown() -> None:
    bad = readings(INSIDE, findings=within("rapid", [Finding.of("littles_law", error_frac=0.08)]))
    document = measured(bad)
    (pair,) = document.pairs
    assert pair.verdict == pair.verdict_alone == "inconclusive"
    assert pair.ratio is not None
    assert [(each.where, each.code) for each in pair.withheld] == [("rapid", "littles_law")]
    assert document.gate is not None
    assert not document.gate.failed


def test_a_document_survives_json() -> None:
    document = compare_systems(
        systems(atlas(), quicker()),
        Terms([question()], {"atlas": Price(5.0, None)}, (Rule("slower", 0.05),)),
    )
    text = msgspec.json.encode(document)
    assert msgspec.json.decode(text, type=SystemsComparison) == document


def test_curves_are_brought_to_one_request_size_that_all_systems_were_surveyed_at() -> None:
    document = compare_systems(systems(atlas(), quicker()), Terms([question()]))
    assert document.common_size_bytes == 32 * 1024
    assert {(curve.name, curve.parameter) for curve in document.curves} == {
        (name, parameter)
        for name in ("atlas", "rapid")
        for parameter in ("read_frac", "unique_bytes")
    }
    assert {curve.at.size_mean for curve in document.curves} == {32 * 1024}
    assert {curve.at.process_num for curve in document.curves} == {1}
    rates = {(rate.place, rate.name): rate.throughput_mb_s for rate in document.rates}
    for place in ("disk", "page cache"):
        slow, fast = rates[place, "atlas"], rates[place, "rapid"]
        assert slow is not None
        assert fast is not None
        assert fast.value / slow.value == pytest.approx(2.0, rel=0.15)


def test_a_system_that_knows_no_32_kib_moves_the_common_size() -> None:
    survey = made.one_region()
    family = survey.families[0]
    curves = tuple(
        msgspec.structs.replace(curve, points=curve.points[3:])
        if curve.parameter == "size_mean"
        else curve
        for curve in family.curves
    )
    focal = survey.regions[0].focal.with_value("size_mean", 128 * 1024)
    large = msgspec.structs.replace(
        survey,
        families=(msgspec.structs.replace(family, curves=curves),),
        regions=(msgspec.structs.replace(survey.regions[0], focal=focal),),
    )
    points = [point for point in made.points(survey) if point.workload.size_mean >= 64 * 1024]
    others = (Named("large", Predictor(large, points)),)
    document = compare_systems(
        systems(atlas(), quicker())[:1] + others,
        Terms([question(size_mean=128 * 1024, unique_bytes=600 * MIB)]),
    )
    assert document.common_size_bytes == 64 * 1024


def test_the_cache_is_a_share_of_the_memory_or_of_its_cap() -> None:
    uncapped = renamed(made.two_region(cache_limit_bytes=None), "dddd0004", system="free")
    document = compare_systems(systems(atlas(), uncapped), Terms([question()]))
    capped, free = document.cache_sizes
    assert (capped.memory_bytes, capped.capped) == (512 * MIB, True)
    assert (free.memory_bytes, free.capped) == (8 * 2**30, False)
    assert capped.share is not None
    assert free.share is not None
    assert capped.share.value == pytest.approx(16 * free.share.value)


def test_a_disk_without_a_cache_has_no_cache_to_compare() -> None:
    document = compare_systems(
        systems(atlas(), made.one_region()), Terms([question(unique_bytes=600 * MIB)])
    )
    missing = [rate for rate in document.rates if rate.throughput_mb_s is None]
    assert [(rate.name, rate.place) for rate in missing] == [("bare", "page cache")]
    assert missing[0].missing == "the survey found no page cache apart"
    assert document.cache_sizes[1].bytes is None
