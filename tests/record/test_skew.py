"""Sizes with a CV of 1, histograms of sizes and skewed places: as typed, as fio says them, as asked
of a simulated system, and where a survey says nothing of them.
"""

from __future__ import annotations

import math
from pathlib import Path

import msgspec
import pytest

import leadline
from leadline.fio import FioJobRefused, read_job, write_job
from leadline.fio.sizes import law_split
from leadline.fio.words import USUAL, read_words
from leadline.models.model import PredictionRefused
from leadline.models.predictor import Predictor
from leadline.record import Workload, WorkloadError
from leadline.record.jobs.skew import Zipf, Zone, Zoned
from leadline.record.wording import format_workload
from leadline.store.export import rows
from survey_fixture import MIB, points, two_region

GIB = 2**30
ZONES = "zoned:60/10:30/20:10/70"
SPLIT = "4KiB/60:64KiB/40"


def asked(words: str) -> Workload:
    return Workload.parse(f"unique_bytes=1GiB,seq_frac=0,{words}")


# ---- as it is typed -----------------------------------------------------------------------------


def test_places_are_typed_as_fio_types_them() -> None:
    assert asked("size_mean=4KiB,access=zipf:1.1").access == Zipf(1.1)
    zones = asked(f"size_mean=4KiB,access={ZONES}").access
    assert isinstance(zones, Zoned)
    assert zones.zones[0] == Zone(0.6, 0.1)
    assert str(zones) == ZONES
    assert asked("size_mean=4KiB,access=uniform") == asked("size_mean=4KiB")


def test_fios_word_for_places_needs_random_requests() -> None:
    typed = read_words(["bs=4k", "rw=randread", f"random_distribution={ZONES}"], USUAL)
    assert str(typed.workload.access) == ZONES
    with pytest.raises(WorkloadError, match="say rw=randread too"):
        read_words(["bs=4k", "random_distribution=zipf:1.1"], USUAL)


def test_a_histogram_brings_its_mean() -> None:
    work = asked(f"size_dist={SPLIT}")
    assert work.size_mean == 28672
    assert str(work.size_dist) == "4096/60:65536/40"
    assert read_words([f"size_dist={SPLIT}"], USUAL).workload.size_mean == 28672
    assert Workload("1GiB", 28672, size_dist=SPLIT).size_dist == work.size_dist  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "words",
    ["size_mean=4KiB", f"size_dist={SPLIT},access={ZONES}", "size_mean=4KiB,access=zipf:0.9"],
)
def test_a_workload_is_the_same_after_it_was_stored(words: str) -> None:
    work = asked(words)
    stored = msgspec.json.encode(work)
    assert msgspec.json.decode(stored, type=Workload) == work
    assert (b"access" in stored) == ("access" in words), "what is usual is stored as it ever was"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("size_mean=4KiB,access=zipf:11", "between 0 and 10"),
        ("size_mean=4KiB,access=zipf:", "zipf:1.1"),
        ("size_mean=4KiB,access=pareto:0.2", "none of uniform, zipf:THETA"),
        ("size_mean=4KiB,access=zoned:60/10:30/20", "requests add up to 90, they must be 100"),
        ("size_mean=4KiB,access=zoned:60/10:40/80", "data add up to 90, they must be 100"),
        ("size_mean=4KiB,access=zoned:60", "like 60/10"),
        ("size_mean=4KiB,access=zoned:0/50:100/50", "above 0"),
        ("size_mean=4KiB,size_dist=pareto", "none of normal, fixed, exponential, lognormal"),
        ("size_dist=4KiB/60:1000/40", "multiple of 512"),
        ("size_dist=4KiB/60:64KiB", "a size and its share"),
        (f"size_mean=4KiB,size_dist={SPLIT}", "28672; leave it out"),
    ],
)
def test_what_cannot_be_is_refused_with_what_to_write(words: str, said: str) -> None:
    with pytest.raises(WorkloadError, match=said):
        asked(words)


def test_what_is_unusual_is_said_and_exported() -> None:
    work = asked(f"size_dist={SPLIT},access=zipf:1.1")
    assert format_workload(work).endswith("sizes 4096/60:65536/40, places zipf:1.1")
    survey = two_region()
    point = msgspec.structs.replace(points(survey)[0], workload=work)
    (row,) = rows([point], "survey", "s")
    assert (row["size_dist"], row["access"]) == ("4096/60:65536/40", "zipf:1.1")
    (usual,) = rows(points(survey)[:1], "survey", "s")
    assert (usual["size_dist"], usual["access"]) == ("normal", "uniform")


# ---- as fio says it -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "words",
    [
        "size_mean=4KiB,size_dist=fixed,access=zipf:1.2",
        f"size_mean=4KiB,size_dist=fixed,access={ZONES}",
        f"size_dist={SPLIT},access={ZONES}",
        f"size_dist={SPLIT}",
    ],
)
def test_what_is_written_for_fio_is_read_back(words: str) -> None:
    (job,) = read_job(write_job(asked(words)))
    assert job.workload == asked(words)
    assert job.findings == ()


def test_what_fio_does_otherwise_with_ranks_is_said_both_ways() -> None:
    odd = "size_mean=4KiB,size_dist=fixed,access=zipf:0.9"
    text = write_job(msgspec.structs.replace(asked(odd), unique_bytes=1000 * 4096))
    assert "1000 places, which are no" in text
    (job,) = read_job(text)
    assert any("no power of two" in str(each) for each in job.findings)
    varied = write_job(asked("size_mean=64KiB,size_dist=exponential,access=zipf:0.9"))
    assert "ranks are of places of 512 bytes" in varied


@pytest.mark.parametrize(
    ("access", "said"),
    [("zipf:1", "no exponent of 1"), ("zoned:60.5/10:39.5/90", "whole percents")],
)
def test_what_fio_cannot_say_is_refused(access: str, said: str) -> None:
    with pytest.raises(FioJobRefused, match=said):
        write_job(asked(f"size_mean=4KiB,access={access}"))


def test_zones_that_are_not_all_of_a_file_are_refused() -> None:
    with pytest.raises(FioJobRefused, match="add up to 90"):
        read_job("[a]\nsize=1m\nrw=randread\nrandom_distribution=zoned:60/10:30/20\n")


@pytest.mark.parametrize(
    ("law", "cv"), [("normal", 0.614), ("exponential", 0.99), ("lognormal", 0.97)]
)
def test_sizes_for_fio_have_the_laws_mean_and_nearly_its_cv(law: str, cv: float) -> None:
    split = law_split(law, 65536, GIB, 512)
    assert sum(percent for _, percent in split) == 100
    assert len(split) <= 64
    mean = sum(size * percent for size, percent in split) / 100
    square = sum(size**2 * percent for size, percent in split) / 100
    assert mean == pytest.approx(65536, abs=6)
    assert math.sqrt(square / mean**2 - 1) == pytest.approx(cv, abs=0.005)


# ---- as it is asked -----------------------------------------------------------------------------


def che(shares: list[float], held: float) -> float:
    """Share of requests that an LRU cache of so many blocks finds (Che, Tung and Wang 2002)."""
    low, high = 0.0, 60.0
    for _ in range(80):
        middle = (low + high) / 2
        there = sum(-math.expm1(-share * math.exp(middle)) for share in shares)
        low, high = (middle, high) if there < held else (low, middle)
    return sum(-share * math.expm1(-share * math.exp(low)) for share in shares)


def zipf(theta: float, blocks: int) -> list[float]:
    weights = [rank**-theta for rank in range(1, blocks + 1)]
    return [weight / sum(weights) for weight in weights]


def test_a_simulated_cache_finds_of_zipf_what_che_says(tmp_path: Path) -> None:
    found = {}
    for access in ("uniform", "zipf:1.1"):
        work = f"unique_bytes=4GiB,size_mean=1MiB,read_frac=1,seq_frac=0,access={access}"
        answer = leadline.measure("sim:two-level", work, seconds=10, store=str(tmp_path / "s"))
        result = answer.study.points[0].result
        simulated = result.simulated
        assert simulated is not None
        assert simulated.truth_mb_s is not None
        assert result.throughput_mb_s.value == pytest.approx(simulated.truth_mb_s, rel=0.15)
        found[access] = result.cached_share
    assert found["uniform"] == pytest.approx(0.25, abs=0.03)
    assert found["zipf:1.1"] == pytest.approx(che(zipf(1.1, 4096), 1024), abs=0.03)


@pytest.mark.parametrize("law", ["exponential", "lognormal"])
def test_sizes_of_a_simulated_run_have_a_cv_of_one(law: str, tmp_path: Path) -> None:
    work = f"unique_bytes=1GiB,size_mean=64KiB,size_dist={law},read_frac=1,seq_frac=0"
    answer = leadline.measure("sim:two-level", work, seconds=10, store=str(tmp_path / "s"))
    realised = answer.study.points[0].result.realised
    assert realised.size_cv == pytest.approx(1.0, abs=0.06)
    assert realised.size_mean == pytest.approx(65536, rel=0.03)


def test_a_simulated_law_refuses_skew_among_sequential_requests(tmp_path: Path) -> None:
    work = "unique_bytes=4GiB,size_mean=16KiB,seq_frac=0.5,access=zipf:1.1"
    with pytest.raises(leadline.LeadlineError, match="write seq_frac=0, or take a machine made of"):
        leadline.measure("sim:two-level", work, seconds=1, store=str(tmp_path / "s"))


# ---- what a survey says of it -------------------------------------------------------------------


def test_a_prediction_refuses_skewed_places() -> None:
    survey = two_region()
    predictor = Predictor(survey, points(survey), model="product", extrapolate=True)
    work = Workload(unique_bytes=64 * MIB, size_mean=65536, access="zipf:1.1")  # type: ignore[arg-type]
    with pytest.raises(PredictionRefused, match="asks for every place alike"):
        predictor.predict(work)


@pytest.mark.parametrize("sizes", ["exponential", "lognormal", "64KiB/50:128KiB/50"])
def test_a_prediction_of_other_sizes_is_marked_and_of_their_mean(sizes: str) -> None:
    survey = two_region()
    predictor = Predictor(survey, points(survey), model="product")
    usual = Workload(unique_bytes=64 * MIB, size_mean=98304)
    other = msgspec.structs.replace(usual, size_dist=sizes)
    found = predictor.predict(other)
    assert any("size_dist" in each.values for each in found.findings)
    assert found.throughput_mb_s == predictor.predict(usual).throughput_mb_s
