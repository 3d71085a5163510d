"""Writes that wait for the device: how they are spelled, kept, compared, resumed and refused."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from command import leadline
from leadline.engine import Limits, Target, TargetRefused, open_engine
from leadline.record import Access, Workload, parse_sync
from leadline.record.survey import SURVEY
from leadline.store import open_store
from leadline.studies.comparison.facts import differing_facts
from leadline.studies.survey.study import SurveyOptions, begin_survey
from proving.samples import sample_start

WRITES = Workload(unique_bytes=2**20, size_mean=8192, read_frac=0.0)
ASKED = SurveyOptions("mine", 60.0, None, 1, 0.02, "middle", None, 0.0)
LIMITS = Limits(warm_up_s_max=1.0, measure_s_min=1.0, measure_s_max=5.0, accuracy=0.02)


@pytest.mark.parametrize(
    ("text", "kept", "wire", "said"),
    [
        ("none", "none", {"kind": "none"}, "buffered"),
        ("buffered", "none", {"kind": "none"}, "buffered"),
        ("DSYNC", "dsync", {"kind": "dsync"}, "O_DSYNC"),
        ("fsync", "fsync=1", {"kind": "fsync", "each": 1}, "fsync each write"),
        (" fsync=08 ", "fsync=8", {"kind": "fsync", "each": 8}, "fsync each 8"),
    ],
)
def test_a_discipline_has_one_spelling(
    text: str, kept: str, wire: dict[str, object], said: str
) -> None:
    assert parse_sync(text) == kept
    assert parse_sync(kept) == kept
    access = Access(backend="pread", sync=kept)
    sent = {} if kept == "none" else {"sync": wire}
    assert msgspec.to_builtins(access.wire_backend) == {"name": "pread", "direct": False} | sent
    assert access.fsync_each == wire.get("each")
    assert access.discipline == said
    assert Access(direct=True).discipline == "direct"
    assert Access(direct=True, sync="dsync").discipline == "direct, O_DSYNC"


@pytest.mark.parametrize(
    "text", ["", "sync", "fsync=", "fsync=0", "fsync=1e3", "fsync=-1", "dsync=2"]
)
def test_anything_else_is_refused_with_what_to_type(text: str) -> None:
    with pytest.raises(ValueError, match="fsync=8"):
        parse_sync(text)


def test_a_simulated_write_that_waits_costs_what_the_disk_costs() -> None:
    rates = {}
    for sync in ("none", "fsync=16", "dsync"):
        with open_engine(Target.parse("sim:two-level"), Access(sync=sync)) as engine:
            result = engine.run(WRITES, seed=1, limits=LIMITS)
        assert engine.access.sync == sync
        assert result.simulated is not None
        assert result.device_bytes is not None
        rates[sync] = result.throughput_mb_s
        assert result.throughput_mb_s.value == pytest.approx(result.simulated.truth_mb_s, rel=0.1)
        reached = result.device_bytes.write / result.workload_bytes.write
        assert reached == pytest.approx(0.0 if sync == "none" else 1.0, abs=0.02)
    assert rates["none"].value > 5 * rates["dsync"].value
    assert rates["fsync=16"].value == pytest.approx(rates["dsync"].value, rel=0.1)


def test_nothing_that_waits_goes_to_null_or_through_fio(tmp_path: Path) -> None:
    with (
        pytest.raises(TargetRefused, match="null: has none: leave it out"),
        open_engine(Target.parse("null:"), Access(sync="dsync")),
    ):
        pass
    with (
        pytest.raises(TargetRefused, match="leave it or --engine fio out"),
        open_engine(Target.parse(str(tmp_path)), Access(sync="dsync"), engine="fio"),
    ):
        pass
    assert not list(tmp_path.iterdir())


def test_another_discipline_is_another_system_for_a_comparison() -> None:
    buffered = sample_start("survey-a", "disk")
    waiting = msgspec.structs.replace(buffered, sync="dsync")
    [difference] = differing_facts([buffered, waiting])
    assert (difference.name, difference.values) == ("sync", ("none", "dsync"))


def test_a_start_stored_before_there_was_a_choice_waits_for_nothing() -> None:
    document = msgspec.to_builtins(sample_start("survey-a", "disk"))
    del document["sync"]
    assert msgspec.convert(document, type(sample_start("a", "b"))).sync == "none"


def test_a_measurement_says_its_discipline(tmp_path: Path) -> None:
    store = tmp_path / "store.sqlite"
    asked = ["--workload", "unique_bytes=1MiB,size_mean=8KiB,read_frac=0", "--json"]
    done = leadline("measure", "sim:two-level", *asked, "--sync", "fsync=4", store=store)
    assert json.loads(done.stdout)["sync"] == "fsync=4"
    shown = leadline("measure", "sim:two-level", *asked[:2], "--sync", "dsync", store=store)
    assert "O_DSYNC: a write that waits" in " ".join(shown.stdout.split())
    refused = leadline("measure", "sim:two-level", *asked, "--sync", "often", store=store)
    assert refused.returncode == 2
    assert "write dsync, fsync" in " ".join(refused.stderr.replace("│", " ").split())


def begun(store: Path, sync: str) -> None:
    """A survey of a simulated system that was killed before its first point."""
    target = Target.parse("sim:two-level")
    with open_engine(target, Access(sync=sync)) as engine, open_store(str(store)) as opened:
        opened.begin(SURVEY, begin_survey(engine, target, ASKED))


def test_a_resumed_survey_keeps_its_discipline_and_refuses_another(tmp_path: Path) -> None:
    store = tmp_path / "store.sqlite"
    begun(store, "dsync")
    resume = ("survey", "sim:two-level", "--name", "mine", "--resume", "--json")
    refused = leadline(*resume, "--sync", "fsync=8", store=store)
    assert refused.returncode == 2
    assert "has --sync dsync, not fsync=8: leave --sync out" in " ".join(refused.stderr.split())
    past = leadline(*resume, "--direct", store=store)
    assert (past.returncode, "leave --direct out" in past.stderr) == (2, True)
    done = leadline(*resume, store=store)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["sync"] == "dsync"
    with open_store(str(store)) as opened:
        points = opened.items(opened.list()[0].study_id)
    assert {point.sync for point in points} == {"dsync"}
    for result in (point.result for point in points):
        assert result.device_bytes is not None
        assert result.device_bytes.write == pytest.approx(result.write.bytes, rel=0.1, abs=2e6)
