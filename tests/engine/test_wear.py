"""`--max-written`: what is counted, when nothing more begins, and how a study goes on."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import msgspec
import pytest

from command import leadline
from leadline.engine import Limits, Target, TargetRefused, Wear, WrittenSpent, open_engine
from leadline.machine.process_io import written_bytes
from leadline.record import EngineResult, MovedBytes, Workload, WrittenBytes
from leadline.store import open_store
from leadline.studies.survey.study import load_survey
from places import TESTS
from proving.samples import sample_result

MIB = 2**20
WORKLOAD = Workload(unique_bytes=64 * MIB, size_mean=4096, read_frac=0.5)
READS = Workload(unique_bytes=64 * MIB, size_mean=4096, read_frac=1.0)
FAKE = TESTS / "fake_child.py"


def wrote(layout: int, requests: int, window: int = 0) -> EngineResult:
    return msgspec.structs.replace(
        sample_result("job-1"),
        written_bytes=WrittenBytes(layout=layout, precondition=MIB, workload=requests),
        workload_bytes=MovedBytes(read=0, write=window),
    )


def test_a_run_begins_while_the_most_that_one_wrote_would_fit() -> None:
    wear = Wear(100 * MIB)
    wear.begin(WORKLOAD)
    wear.add(WORKLOAD, wrote(64 * MIB, 10 * MIB))
    assert wear.written_bytes == 75 * MIB
    wear.begin(WORKLOAD)  # 10 MiB more; its data are there already
    with pytest.raises(WrittenSpent, match="the next run may write 42 MiB more"):
        wear.begin(WORKLOAD.with_value("unique_bytes", 96 * MIB))
    wear.add(WORKLOAD, wrote(0, 18 * MIB))
    with pytest.raises(WrittenSpent, match="--max-written 100 MiB: 94 MiB are written"):
        wear.begin(WORKLOAD)
    wear.begin(READS)
    with pytest.raises(WrittenSpent):
        wear.again().begin(READS)  # opened again, it is laid out again


def test_without_a_limit_it_counts_alone() -> None:
    wear = Wear()
    wear.add(WORKLOAD, wrote(64 * MIB, 0, window=5 * MIB))
    assert wear.written_bytes == 70 * MIB
    wear.begin(WORKLOAD)
    wear.look(os.getpid())


def test_a_run_that_told_nothing_counts_its_layout() -> None:
    wear = Wear(100 * MIB)
    wear.watch(None)
    wear.add_failed(WORKLOAD, None)
    assert wear.written_bytes == 64 * MIB


def test_what_could_not_be_laid_out_is_refused() -> None:
    Wear(80 * MIB).require_layout(64 * MIB, 16 * MIB)
    with pytest.raises(TargetRefused, match=r"laying out the data alone writes 64 MiB: give"):
        Wear(80 * MIB, 17 * MIB).require_layout(64 * MIB)


def test_the_kernels_count_of_a_process(tmp_path: Path) -> None:
    before = written_bytes(os.getpid())
    (tmp_path / "some").write_bytes(bytes(3 * MIB))
    after = written_bytes(os.getpid())
    assert before is not None
    assert after is not None
    assert after - before >= 3 * MIB
    assert written_bytes(2**22 + 1) is None


def test_a_run_on_a_directory_is_ended_at_the_limit(tmp_path: Path) -> None:
    wear = Wear(40 * MIB)
    command = [sys.executable, str(FAKE), "goes-on"]
    with (
        open_engine(Target.parse(str(tmp_path)), wear=wear, command=command) as engine,
        pytest.raises(WrittenSpent, match="was ended, and is no part of the answer"),
    ):
        engine.run(READS.with_value("unique_bytes", MIB), seed=1, limits=Limits(total_s_max=60))
    assert wear.written_bytes > 0
    assert list(tmp_path.iterdir()) == []


def test_a_survey_ends_at_the_limit_and_goes_on_with_a_larger_one(tmp_path: Path) -> None:
    store, whole = tmp_path / "cut.sqlite", tmp_path / "whole.sqlite"
    survey = ("survey", "sim:two-level", "--budget", "60s", "--json")
    expected = json.loads(leadline(*survey, store=whole).stdout)
    with open_store(str(whole)) as opened:
        written = load_survey(opened, expected["survey"])[0].written_bytes
    half = str(written // 2)
    cut = leadline(*survey, "--max-written", half, store=store)
    assert cut.returncode == 3
    assert f"of {expected['points']} points still to measure: --max-written" in cut.stderr
    assert "with --resume and a larger --max-written goes on" in cut.stderr
    with open_store(str(store)) as opened:
        kept = opened.list()[0].items
    assert 0 < kept < expected["points"]
    again = leadline(*survey, "--resume", store=store)
    assert (again.returncode, "--max-written" in again.stderr) == (3, True)  # its limit holds on
    done = leadline(*survey, "--resume", "--max-written", "1000GiB", store=store)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    for key in ("points", "regions", "curves", "sentences"):
        assert found[key] == expected[key], key
    with open_store(str(store)) as opened:
        assert load_survey(opened, found["survey"])[0].written_bytes == written


def test_a_measurement_ends_at_the_limit_and_goes_on_with_a_larger_one(tmp_path: Path) -> None:
    store, whole = tmp_path / "cut.sqlite", tmp_path / "whole.sqlite"
    measure = ("measure", "sim:two-level", "--workload", "read_frac=0", "--json")
    expected = json.loads(leadline(*measure, store=whole).stdout)
    cut = leadline(*measure, "--max-written", "40MiB", store=store)
    assert cut.returncode == 3
    assert "with --resume and a larger --max-written goes on" in cut.stderr
    again = ("measure", "sim:two-level", "--resume", "--max-written", "1000GiB", "--json")
    done = leadline(*again, store=store)
    assert done.returncode == 0, done.stderr
    rate = "throughput_mb_s"
    assert json.loads(done.stdout)[rate] == expected[rate]


@pytest.mark.parametrize(
    "command",
    [
        ("survey", "sim:two-level", "--budget", "20s"),
        pytest.param(("cache", "sim:two-level", "--sizes-only"), marks=pytest.mark.long),
        ("measure", "sim:two-level"),
    ],
)
def test_more_than_the_target_takes_is_said(tmp_path: Path, command: tuple[str, ...]) -> None:
    done = leadline(*command, "--max-bytes", "9000GiB", store=tmp_path / "store.sqlite")
    assert "note: less room than --max-bytes: 8.79 TiB allowed, 16 GiB used" in done.stderr
    less = leadline(*command, "--max-bytes", "64MiB", store=tmp_path / "store.sqlite")
    assert "less room" not in less.stderr
