"""Machines made of parts: they are targets like any other, and their generator keeps its word."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from leadline import _engine
from leadline.engine import Limits, Target, machine_names, open_engine, profile_names
from leadline.errors import TargetRefused
from leadline.record import Workload
from leadline.record.survey import SURVEY
from leadline.store import open_store
from leadline.studies.survey.study import SurveyOptions, begin_survey, run_survey
from proving.machine_truth import compute_truth, draw_workloads, truth_key
from proving.machines import KIND_NAMES, draw_machine

SMALL = """
[meta]
name = "small"

[survey]
unique_bytes_max = 134_217_728
size_mean_max = 65_536
process_num_max = 4

[machine.processors]
count = 4
read_overhead_us = 2
copy_mb_s = 8000

[machine.cache]
capacity_bytes = 8_388_608

[machine.station]
capacity_bytes = 1_073_741_824
servers = 2
read_us = 100
write_us = 100
mb_s = 500
"""


@pytest.fixture
def small(tmp_path: Path) -> Target:
    file = tmp_path / "small.toml"
    file.write_text(SMALL, encoding="utf-8")
    return Target.parse(f"sim:{file}")


def test_machines_are_named_apart_from_laws_and_there_are_twelve() -> None:
    assert len(machine_names()) >= 12
    assert not set(machine_names()) & set(profile_names())
    target = Target.parse("sim:board-emmc")
    assert target.profile is not None
    assert "flash" in target.profile["machine"]


def test_an_unknown_name_is_guessed_among_machines_too() -> None:
    with pytest.raises(TargetRefused, match="did you mean sim:laptop-nvme"):
        Target.parse("sim:laptop-nvm")


LIMITS = Limits(
    warm_up_s_max=1.0, measure_s_min=0.5, measure_s_max=1.0, accuracy=0.02, total_s_max=10.0
)


def test_a_machine_has_no_law_to_ask(small: Target) -> None:
    workload = Workload(
        unique_bytes=2**24, size_mean=4096, read_frac=1.0, seq_frac=0.0, process_num=1
    )
    with open_engine(small) as engine:
        result = engine.run(workload, seed=1, limits=LIMITS)
    assert result.simulated is not None
    assert result.simulated.truth_mb_s is None
    with pytest.raises(ValueError, match="no law"):
        _ = result.simulated.law_mb_s
    with pytest.raises(ValueError, match="its truth is a long run"):
        _engine.simulated_boundaries(json.dumps(small.profile))
    # Requests of 512-byte multiples touch two pages; half of the pages are there.
    assert result.cached_share == pytest.approx(0.5, abs=0.03)


def test_reads_among_writes_find_what_the_memory_holds(small: Target) -> None:
    mixed = Workload(unique_bytes=2**22, size_mean=4096, read_frac=0.5, seq_frac=0.0)
    with open_engine(small) as engine:
        provenance = engine.run(mixed, seed=1, limits=LIMITS).provenance
    assert provenance.probed_random > 1000
    assert provenance.found_random_share == 1.0


@pytest.mark.long
def test_a_survey_finds_the_memory_of_a_machine(small: Target) -> None:
    store = open_store("sqlite://")
    with open_engine(small, run_seed=3) as engine:
        start = begin_survey(
            engine,
            small,
            SurveyOptions(small.name, 600.0, None, 3, 0.03, "middle"),
            study_id="small-3",
        )
        store.begin(SURVEY, start)
        survey = run_survey(engine, store, start)
    assert len(survey.boundaries) == 1
    assert survey.boundaries[0].basis == "counted"
    assert survey.boundaries[0].bytes.value == pytest.approx(2**23, rel=0.05)


@pytest.mark.parametrize("kind", KIND_NAMES)
def test_every_machine_that_is_drawn_makes_sense(kind: str) -> None:
    for seed in range(60):
        profile = draw_machine(seed, kind)
        _engine.check_system(json.dumps(profile, allow_nan=False))
        assert profile["meta"]["name"] == f"drawn-{kind}-{seed}"


def test_a_seed_draws_the_same_machine_and_another_seed_another_one() -> None:
    assert draw_machine(5) == draw_machine(5)
    assert draw_machine(5) != draw_machine(12)
    kinds = {draw_machine(seed)["meta"]["name"].split("-")[1] for seed in range(len(KIND_NAMES))}
    assert kinds == set(KIND_NAMES)


def test_a_truth_is_the_mean_of_runs_and_its_error_their_scatter(small: Target) -> None:
    assert small.profile is not None
    profile = json.loads(json.dumps(small.profile))
    profile["survey"]["measure_s_max"] = 2.0
    workload = Workload(
        unique_bytes=2**25,
        size_mean=4096,
        size_dist="fixed",
        read_frac=1.0,
        seq_frac=0.0,
        process_num=4,
    )
    truth = compute_truth(profile, workload, se_frac=0.01)
    assert truth.runs >= 4
    assert 0.0 < truth.se_frac <= 0.01
    # A page in four is there; two servers take 100 us and a page's bytes for each of the others.
    assert truth.cached_share == pytest.approx(0.25, abs=0.02)
    expected = 2 * 4096 / (100 + 4096 / 500) / 0.75
    assert truth.throughput_mb_s == pytest.approx(expected, rel=0.02)
    other = json.loads(json.dumps(profile))
    other["machine"]["station"]["servers"] = 3
    assert truth_key(other, workload) != truth_key(profile, workload)


def test_workloads_are_within_what_a_survey_may_ask() -> None:
    for seed in range(7):
        profile = draw_machine(seed)
        hints = profile["survey"]
        drawn = draw_workloads(profile, 1, 20)
        assert drawn == draw_workloads(profile, 1, 20)
        for workload in drawn:
            assert workload.unique_bytes <= hints["unique_bytes_max"]
            assert workload.size_mean <= hints["size_mean_max"]
            assert workload.process_num <= hints["process_num_max"]
