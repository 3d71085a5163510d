"""Buffered, O_DSYNC, fsync each n and direct writes, compared on a known truth."""

from __future__ import annotations

import msgspec
import pytest

from leadline.engine import Target, open_engine
from leadline.record import Access, Workload
from leadline.record.writes import WriteDisciplines
from leadline.studies.cache.write_costs import (
    BUFFERED,
    HEADS,
    Taken,
    compare_disciplines,
    discipline_rows,
    measure_disciplines,
    plan_disciplines,
)

WRITES = Workload(unique_bytes=2**20, size_mean=8192, read_frac=0.0, size_dist="fixed")
FOUR = ["buffered", "O_DSYNC", "fsync each 8", "direct"]


def measured(target: str, passes: int = 3) -> tuple[WriteDisciplines, tuple[Taken, ...]]:
    with open_engine(Target.parse(target)) as engine:
        found = measure_disciplines(engine, WRITES, passes=passes)
        assert engine.access.buffered, "left as it was"
    return found


def test_the_plan_has_the_four_and_buffered_first() -> None:
    assert [each.discipline for each in plan_disciplines()] == FOUR
    assert plan_disciplines(3)[2] == Access(sync="fsync=3")
    assert plan_disciplines()[0] == BUFFERED


def test_each_discipline_has_its_rate_and_its_ratio_to_buffered() -> None:
    found, taken = measured("sim:two-level")
    rates = {rate.name: rate for rate in found.rates}
    assert list(rates) == FOUR
    for each in taken[:3]:
        rate = rates[each.discipline.discipline]
        truths = [result.simulated.law_mb_s for result in each.results if result.simulated]
        assert rate.throughput_mb_s is not None
        assert rate.throughput_mb_s.n == 3
        assert rate.throughput_mb_s.value == pytest.approx(sum(truths) / 3, rel=0.1)
    truth = [each.results[0].simulated for each in taken[:2]]
    ratio = rates["O_DSYNC"].against_buffered
    assert truth[0] is not None
    assert truth[1] is not None
    assert ratio is not None
    assert ratio.value == pytest.approx(truth[1].law_mb_s / truth[0].law_mb_s, rel=0.05)
    assert rates["buffered"].against_buffered is None
    assert rates["buffered"].device_reach == 0.0
    assert rates["O_DSYNC"].device_reach == pytest.approx(1.0)
    assert "100% of the bytes reached the device" in found.sentences[0]


def test_what_cannot_be_measured_is_said_with_the_reason_and_fills_nothing_in() -> None:
    found, taken = measured("sim:two-level")
    direct = found.rates[3]
    assert direct.throughput_mb_s is None
    assert taken[3].results == ()
    assert direct.reasons == ("a simulated system has no file that could be opened O_DIRECT",)
    assert found.sentences[-1].startswith("direct: n.m.: a simulated system has no file")
    assert discipline_rows(found)[3][1] == "n.m."


def test_equal_disciplines_show_no_difference_and_one_pass_shows_nothing() -> None:
    _, taken = measured("sim:two-level")
    same = (taken[0], Taken(taken[1].discipline, taken[0].results))
    found = compare_disciplines(WRITES, same)
    assert "no significant difference from buffered" in found.sentences[0]
    once = tuple(Taken(each.discipline, each.results[:1]) for each in taken)
    alone = compare_disciplines(WRITES, once)
    assert all(rate.against_buffered is None for rate in alone.rates)


def test_the_record_survives_being_written_and_the_table_has_all_columns() -> None:
    found, _ = measured("sim:two-level")
    assert msgspec.json.decode(msgspec.json.encode(found), type=WriteDisciplines) == found
    rows = discipline_rows(found)
    assert [row[0] for row in rows] == FOUR
    assert {len(row) for row in rows} == {len(HEADS)}


def test_null_has_nothing_but_buffered() -> None:
    found, _ = measured("null:", passes=1)
    assert [rate.throughput_mb_s is None for rate in found.rates] == [False, True, True, True]
    assert "null: has no device to wait for" in found.rates[1].reasons[0]
