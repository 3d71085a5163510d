"""Applications predicted on surveyed systems, held against what their requests truly cost there."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

import shared_surveys
import survey_fixture
from application_fixture import Kept
from leadline.engine import Target, open_engine
from leadline.models.application.levels import Levels, RequestKind
from leadline.models.application.misses import misses_at, moved, uses_of
from leadline.models.application.predicted import needed_of, predict_application
from leadline.models.model import PredictionRefused
from leadline.models.predictor import Predictor
from leadline.record import Access, Interval, Measurement, Workload
from leadline.record.application import Application
from leadline.record.finding import Finding
from leadline.record.job import Limits
from leadline.record.survey import SURVEY
from leadline.store import open_store
from leadline.studies.application.characterize import characterize_trace
from leadline.studies.comparison.contenders import Disturbance, Named
from leadline.studies.comparison.document import compare_application
from leadline.studies.survey.study import SurveyOptions, begin_survey, run_survey
from planted_traces import Planted, Requests, mixture
from proving.simulation import simulate_survey
from traced_programs import each_s, lru_misses, seconds_of, write_strace

KIB, MIB, GIB = 2**10, 2**20, 2**30
SIZE = 64 * KIB
CACHE_BYTES = GIB
"""Of `sim:two-level`."""
REQUESTS = 60_000
SHOOK = Finding.of("survey_disturbed", lost_frac=0.5)
PROGRAMS = {
    "uniform and loop": (
        Planted("uniform", 0.6, 2 * GIB, SIZE, 0.5),
        Planted("loop", 0.4, 256 * MIB, SIZE),
    ),
    "uniform and written once": (
        Planted("uniform", 0.7, 1536 * MIB, SIZE, 0.8),
        Planted("once-only", 0.3, 0, SIZE, 0.0),
    ),
    "a loop too large": (
        Planted("uniform", 0.5, 512 * MIB, SIZE),
        Planted("loop", 0.5, 1200 * MIB, SIZE),
    ),
}
OTHERS = ("uniform and loop", "a loop too large")


def traced(requests: Requests, folder: Path, **how: Any) -> Application:
    """Describe a program's trace."""
    return characterize_trace(str(write_strace(requests, folder / "program.strace", **how)), Kept())


@pytest.fixture(scope="module")
def predictor() -> Predictor:
    run = shared_surveys.surveyed("two-level")
    return Predictor(run.survey, run.points)


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Application:
    """One that syncs every ten writes, and asks for what a file is."""
    requests = mixture((Planted("uniform", 1.0, 2 * GIB, 4 * KIB, 0.5),), 8000, 3)
    folder = tmp_path_factory.mktemp("small")
    return traced(requests, folder, sync_every=10, stats=50)


def costs(
    access: Access = Access(),  # noqa: B008
    size: int = SIZE,
    system: str = "two-level",
) -> list[tuple[float, float]]:
    """Seconds that the simulated law says of reads and of writes, found and missed."""
    found = []
    with open_engine(Target.parse(f"sim:{system}"), access, run_seed=5) as engine:
        for read_frac in (1.0, 0.0):
            few, many = (
                size / 1e6 / result.simulated.law_mb_s
                for unique_bytes in (64 * MIB, 16 * GIB)
                for result in [
                    engine.run(
                        Workload(unique_bytes, size, read_frac, 0.0, size_dist="fixed"),
                        seed=3,
                        limits=Limits(measure_s_max=1.0),
                    )
                ]
                if result.simulated is not None
            )
            found.append((few, few + (many - few) / (1 - CACHE_BYTES / (16 * GIB))))
    return found


@pytest.mark.parametrize(
    "name", ["uniform and written once", *(pytest.param(n, marks=pytest.mark.long) for n in OTHERS)]
)
def test_the_time_is_that_of_the_requests_through_an_lru_cache(
    name: str, predictor: Predictor, tmp_path: Path
) -> None:
    requests = mixture(PROGRAMS[name], REQUESTS, 7)
    truth_s = seconds_of(requests, lru_misses(requests, CACHE_BYTES), costs())
    described = traced(requests, tmp_path, think_s=0.0)
    found = predict_application(described, predictor)
    assert found.io_s.value == pytest.approx(truth_s, rel=0.08)
    assert found.io_s.covers(truth_s)
    assert not found.io_at_least
    assert found.elapsed_s is not None
    assert found.elapsed_s.covers(truth_s)


def test_memory_that_the_program_holds_is_no_cache(predictor: Predictor, tmp_path: Path) -> None:
    requests = mixture(PROGRAMS["uniform and written once"], REQUESTS, 7)
    described = traced(requests, tmp_path, think_s=0.0)
    facts = msgspec.structs.replace(described.start.facts, memory_bytes=512 * MIB)
    start = msgspec.structs.replace(described.start, facts=facts)
    whole, less = (
        predict_application(each, predictor).io_s
        for each in (described, msgspec.structs.replace(described, start=start))
    )
    truth_s = seconds_of(requests, lru_misses(requests, CACHE_BYTES - 512 * MIB), costs())
    assert less.value == pytest.approx(truth_s, rel=0.08)
    assert less.covers(truth_s)
    assert whole.value < 0.9 * truth_s


@pytest.mark.parametrize("think_s", [2e-5, 2e-4])
def test_what_nobody_waits_for_goes_on_behind_the_program(
    think_s: float, predictor: Predictor, tmp_path: Path
) -> None:
    """Data written reach the disk while the program thinks; 50 ms of that work are held for it."""
    requests = mixture(PROGRAMS["uniform and written once"], REQUESTS, 7)
    missed, own = lru_misses(requests, CACHE_BYTES), costs()
    took = each_s(requests, missed, own)
    within = each_s(requests, np.zeros_like(missed), own)
    truth_s = held_s = 0.0
    for read, all_s, found_s in zip(requests.reads, took, within, strict=True):
        held_s = max(0.0, held_s - think_s)
        if read:
            truth_s += all_s
        else:
            held_s += all_s - found_s
            waits_s = max(0.0, held_s - 0.05)
            held_s -= waits_s
            truth_s += found_s + waits_s
    found = predict_application(traced(requests, tmp_path, think_s=think_s), predictor)
    assert found.io_s.value == pytest.approx(truth_s, rel=0.08)
    assert found.io_s.value < 0.95 * took.sum()
    assert found.elapsed_s is not None
    assert found.elapsed_s.covers(truth_s + REQUESTS * think_s)


def with_cpu(predictor: Predictor, request_s: float, byte_s: float) -> Predictor:
    """Its points took so much of a processor: a byte beyond the cache twice, half in order."""
    planted = list[Measurement]()
    for point in predictor.points:
        work, far = point.workload, 1 + (point.workload.unique_bytes > CACHE_BYTES)
        cpu_s = request_s + far * byte_s * work.size_mean * (1 - work.seq_frac / 2)
        used = 1e6 * point.result.throughput_mb_s.value / work.size_mean * cpu_s
        result = msgspec.structs.replace(point.result, cpu_user=0.0, cpu_system=used)
        planted.append(msgspec.structs.replace(point, result=result))
    return Predictor(predictor.survey, planted)


@pytest.mark.parametrize("boundary", [0, 1])
def test_a_request_takes_the_processor_that_the_points_took(
    boundary: int, predictor: Predictor
) -> None:
    levels = Levels(with_cpu(predictor, 1e-7, 1e-10), 4.0 * CACHE_BYTES)
    (cost,) = levels.costs([RequestKind(8192.0, write=False, seq_frac=0.5, at_once=1.0)])
    expected_s = 1e-7 + (1 + boundary) * 1e-10 * 8192 * 0.75
    assert cost.cpu_s[boundary] == pytest.approx(expected_s, rel=0.05)
    missed = np.array([0.5])
    assert cost.cpu_at(missed) <= cost.at(missed)[0]


def test_nobody_else_does_what_a_processor_does_for_a_request(
    predictor: Predictor, tmp_path: Path
) -> None:
    """All of a disk's time is behind the program, and none of the processor's."""
    requests = mixture(PROGRAMS["uniform and written once"], REQUESTS, 7)
    described = traced(requests, tmp_path, think_s=2e-2)
    idle, own = (
        {term.name: term.seconds for term in predict_application(described, each).terms}
        for each in (predictor, with_cpu(predictor, 1e-6, 1e-9))
    )
    assert idle["writes"] is not None
    assert own["writes"] is not None
    assert own["writes"].value > 2 * idle["writes"].value


def with_streams(described: Application, **how: Any) -> Application:
    """Replace something of every stream."""
    phases = [
        msgspec.structs.replace(
            phase, streams=tuple(msgspec.structs.replace(each, **how) for each in phase.streams)
        )
        for phase in described.phases
    ]
    return msgspec.structs.replace(described, phases=tuple(phases))


def test_whole_files_are_read_in_order_and_found_page_by_page(small: Application) -> None:
    """Each read begins a file; the next one lies behind it."""
    begun = needed_of(with_streams(small, begins_frac=1.0))
    ordered = needed_of(with_streams(small, seq_frac=1.0, begins_frac=0.0))
    assert set(ordered) < set(begun)
    assert {each.size_dist for each in begun} == {"fixed"}  # each request is of whole pages
    (found,) = set(begun) - set(ordered)
    assert (found.size_mean, found.seq_frac, found.read_frac) == (4096, 0.0, 1.0)
    odd = needed_of(with_streams(small, begins_frac=1.0, read_size_mean=5000.0))
    assert {each.size_dist for each in odd if each.read_frac} == {"normal", "fixed"}


def test_writes_of_whole_pages_past_a_page_cache_read_none_first() -> None:
    surveyed = survey_fixture.two_region()
    levels = Levels(Predictor(surveyed, survey_fixture.points(surveyed)), 2 * GIB)
    sizes = (8 * KIB, 8 * KIB + 512)
    kinds = [RequestKind(size, write=True, seq_frac=0.0, at_once=1.0) for size in sizes]
    whole, torn = (cost.seconds[-1] for cost in levels.costs(kinds))
    assert torn / whole > sizes[1] / sizes[0]  # more than its bytes take


def test_a_file_that_is_found_takes_a_page_at_random(tmp_path: Path) -> None:
    """On a disk that seeks, what a program reads in order is found file by file."""
    system = "sim:sparcstation-1plus"
    requests = mixture((Planted("once-only", 1.0, 0, 8 * KIB, 1.0),), 4000, 7)
    described = traced(requests, tmp_path, think_s=0.0)
    ways = ({"seq_frac": 0.0, "begins_frac": 1.0}, {"seq_frac": 1.0, "begins_frac": 0.0})
    files, one_file = (with_streams(described, **how) for how in ways)
    asked = SurveyOptions("for", 50_000.0, None, 3, learn_frac=0.4, needed=needed_of(files))
    seeking = simulate(system, asked)
    with open_engine(Target.parse(system), Access(), run_seed=5) as engine:
        random_s, in_order_s = (
            4 * KIB / 1e6 / engine.run(asked, seed=3, limits=Limits()).throughput_mb_s.value
            for seq in (0.0, 1.0)
            for asked in [Workload(60_000_000, 4 * KIB, 1.0, seq, size_dist="fixed")]
        )
    begun, ordered = (predict_application(each, seeking).io_s.value for each in (files, one_file))
    found_s = random_s / (1 - 21 / 60) - in_order_s
    assert begun - ordered == pytest.approx(4000 * found_s, rel=0.3)


def test_each_stream_misses_what_it_misses_beside_the_others(tmp_path: Path) -> None:
    requests = mixture(PROGRAMS["a loop too large"], REQUESTS, 7)
    described, missed = traced(requests, tmp_path), lru_misses(requests, CACHE_BYTES)
    uses = uses_of(described.phases)
    found = misses_at(uses, described.found.reuse, CACHE_BYTES).lru
    looped = requests.offsets >= requests.offsets.max() // 2
    for use, ratio in zip(uses, found, strict=True):
        own = looped if use.stream.kind == "loop" else ~looped
        assert ratio == pytest.approx(missed[own].mean(), abs=0.03), use.stream.kind
    weights = np.array([use.references for use in uses])
    counted = described.found.reuse.lru_misses(CACHE_BYTES)
    assert np.average(found, weights=weights) == pytest.approx(counted, abs=1e-3)


def test_a_hot_stream_and_a_cold_one_share_a_cache(tmp_path: Path) -> None:
    hot_and_cold = (
        Planted("uniform", 0.5, 64 * MIB, SIZE),
        Planted("uniform", 0.5, 256 * MIB, SIZE),
    )
    requests = mixture(hot_and_cold, REQUESTS, 9)
    described, missed = traced(requests, tmp_path), lru_misses(requests, 128 * MIB)
    uses = uses_of(described.phases)
    found = misses_at(uses, described.found.reuse, 128 * MIB).lru
    cold = requests.offsets >= requests.offsets.max() // 2
    for use, ratio in zip(uses, found, strict=True):
        own = cold if use.stream.unique_bytes > 128 * MIB else ~cold
        assert ratio == pytest.approx(missed[own].mean(), abs=0.03)


def test_ratios_are_moved_to_what_was_counted() -> None:
    ratios, weights = np.array([0.1, 0.5, 1.0]), np.array([5.0, 3.0, 2.0])
    for wanted in (0.01, 0.3, 0.9):
        found = moved(ratios, weights, wanted)
        assert np.average(found, weights=weights) == pytest.approx(wanted, abs=1e-6)
        assert (np.diff(found) > 0).all()
    assert (moved(ratios, weights, 1.0) == 1.0).all()


def test_the_miss_ratios_of_reads_and_writes_are_those_of_all(small: Application) -> None:
    reuse = small.found.reuse
    reads, writes = reuse.lru_misses_apart(64 * MIB)
    share = sum(use.references for use in uses_of(small.phases) if not use.write)
    share /= sum(use.references for use in uses_of(small.phases))
    assert share * reads + (1 - share) * writes == pytest.approx(
        reuse.lru_misses(64 * MIB), abs=0.01
    )
    assert reuse.two_lists_misses(100 * GIB) == reuse.first_touches
    assert reuse.two_lists_misses(1) is None


def test_what_was_not_surveyed_makes_a_lower_bound(
    small: Application, predictor: Predictor
) -> None:
    found = predict_application(small, predictor)
    terms = {term.name: term for term in found.terms}
    assert found.io_at_least
    assert terms["syncs"].seconds is None
    assert terms["syncs"].because is not None
    assert "--sync fsync" in terms["syncs"].because
    assert terms["syncs"].calls == small.phases[0].syncs > 300
    assert terms["metadata"].calls == 50
    assert terms["metadata"].seconds is None
    known = terms["reads"].seconds, terms["writes"].seconds
    assert found.io_s.value == pytest.approx(sum(each.value for each in known if each is not None))
    assert found.in_io is None


def simulate(system: str, asked: SurveyOptions, access: Access = Access()) -> Predictor:  # noqa: B008
    """Survey a simulated system."""
    target, store = Target.parse(system), open_store("sqlite://")
    with open_engine(target, access, run_seed=3) as engine:
        start = begin_survey(engine, target, asked, study_id="own")
        store.begin(SURVEY, start)
        survey = run_survey(engine, store, start)
    return Predictor(survey, store.items("own"))


def simulate_synced() -> Predictor:
    """Survey `sim:two-level` with a sync after each ten writes."""
    asked = SurveyOptions("synced", 120.0, None, 3)
    return simulate("sim:two-level", asked, Access(sync="fsync=10"))


def test_a_survey_that_synced_knows_what_syncs_take(small: Application) -> None:
    access = Access(sync="fsync=10")
    found = predict_application(small, simulate_synced())
    terms = {term.name: term for term in found.terms}
    ((copied_s, _), _), (_, (synced_s, _)) = costs(size=4 * KIB), costs(access, 4 * KIB)
    truth_s = terms["syncs"].calls * 10 * (synced_s - copied_s)
    seconds = terms["syncs"].seconds
    assert seconds is not None
    assert seconds.value == pytest.approx(truth_s, rel=0.25)
    assert terms["writes"].seconds is not None
    assert terms["writes"].seconds.value == pytest.approx(
        terms["writes"].calls * copied_s, abs=0.05 * found.io_s.value
    )
    assert terms["metadata"].seconds is None


def test_where_it_was_traced_says_how_far_a_survey_is_off(
    predictor: Predictor, tmp_path: Path
) -> None:
    """Its requests take 1.6 times as long as the survey's, there as here."""
    requests = mixture(PROGRAMS["uniform and written once"], REQUESTS, 7)
    there, here = (lru_misses(requests, cache_bytes) for cache_bytes in (CACHE_BYTES, 512 * MIB))
    described = traced(requests, tmp_path, took_s=1.6 * each_s(requests, there, costs()))
    profile = tmp_path / "less.toml"
    shipped = (files("leadline") / "profiles/two-level.toml").read_text(encoding="utf-8")
    profile.write_text(shipped.replace("1_073_741_824", "536_870_912"), encoding="utf-8")
    run = simulate_survey(str(profile), 5, budget_s=300.0)
    less = Predictor(run.survey, run.points)
    truth_s = 1.6 * seconds_of(requests, here, costs())
    alone, scaled = (predict_application(described, less, of) for of in (None, predictor))
    assert alone.io_s.value < 0.75 * truth_s
    assert scaled.traced_on == "two-level"
    off, left = (abs(np.log(each.io_s.value / truth_s)) for each in (alone, scaled))
    assert left < 0.6 * off
    assert scaled.io_s.covers(truth_s)
    assert scaled.ln_sd < alone.ln_sd
    assert sum(each.seconds for each in scaled.streams) == pytest.approx(scaled.io_s.value)


def test_what_no_survey_measures_is_added_and_grows_with_no_disk(
    predictor: Predictor, tmp_path: Path
) -> None:
    """A request takes 60 us more than the survey's, there and behind a disk five times as slow."""
    requests = mixture(PROGRAMS["uniform and written once"], REQUESTS, 7)
    missed, more_s = lru_misses(requests, CACHE_BYTES), 6e-5
    described = traced(requests, tmp_path, took_s=more_s + each_s(requests, missed, costs()))
    profile = tmp_path / "slow.toml"
    shipped = (files("leadline") / "profiles/two-level.toml").read_text(encoding="utf-8")
    slower = shipped.replace("read_mb_s = 500.0", "read_mb_s = 100.0")
    slower = slower.replace("_overhead_us = 90.0", "_overhead_us = 450.0")
    profile.write_text(slower.replace("_overhead_us = 120.0", "_overhead_us = 600.0"))
    run = simulate_survey(str(profile), 5, budget_s=300.0)
    slow = Predictor(run.survey, run.points)
    own = costs(system=str(profile))
    truth_s = REQUESTS * more_s + seconds_of(requests, missed, own)
    found = predict_application(described, slow, predictor)
    assert found.io_s.value == pytest.approx(truth_s, rel=0.12)
    assert found.io_s.covers(truth_s)


def test_what_cannot_be_scaled_is_as_wide_as_alone(
    small: Application, predictor: Predictor
) -> None:
    """The survey of where it was traced knows no syncs."""
    run = simulate_synced()
    alone, scaled = (predict_application(small, run, of) for of in (None, predictor))
    one, other = ({t.name: t.seconds for t in each.terms} for each in (alone, scaled))
    assert one["syncs"] is not None
    assert one["syncs"] == other["syncs"]


def timed(calls: dict[str, float]) -> Predictor:
    """The survey had it timed these calls about files, in us, each within a tenth."""
    call_us = {name: Interval(us, us / 1.1, us * 1.1, 12) for name, us in calls.items()}
    run = shared_surveys.surveyed("two-level")
    start = msgspec.structs.replace(run.survey.start, call_us=call_us)
    return Predictor(msgspec.structs.replace(run.survey, start=start), run.points)


def test_calls_about_files_take_as_much_longer_as_those_of_the_surveys(small: Application) -> None:
    traced_s = 50 * 1e-4
    here, there = (timed({"stat": each}) for each in (30.0, 10.0))
    terms = {term.name: term for term in predict_application(small, here, there).terms}
    found = terms["metadata"].seconds
    assert found is not None
    assert found.value == pytest.approx(3 * traced_s)
    assert found.covers(2 * traced_s)
    assert not found.covers(traced_s)
    for calls in ({}, {"unlink": 5.0}):
        unlike = predict_application(small, here, timed(calls))
        terms = {term.name: term for term in unlike.terms}
        assert terms["metadata"].seconds is None
        assert terms["metadata"].because is not None


def test_what_the_trace_cannot_tell_is_said(tmp_path: Path, predictor: Predictor) -> None:
    log = tmp_path / "program.log"
    lines = ["fio version 3 iolog\n", "0 /f add\n", "0 /f open\n"]
    lines += [f"{n} /f read {n % 700 * 4096} 4096\n" for n in range(2000)]
    log.write_text("".join(lines), encoding="ascii")
    found = predict_application(characterize_trace(str(log), Kept()), predictor)
    assert found.elapsed_s is None
    assert found.elapsed_because is not None
    assert "how long requests took" in found.elapsed_because
    with pytest.raises(PredictionRefused, match="leave it out"):
        predict_application(characterize_trace(str(log), Kept()), predictor, predictor)
    assert any(each.code == "depth_unknown" for each in found.findings)


def test_an_application_is_compared_by_its_time_in_io(tmp_path: Path) -> None:
    runs = [shared_surveys.surveyed(name) for name in ("two-level", "no-cache")]
    named = [Named(run.survey.start.system, Predictor(run.survey, run.points)) for run in runs]
    within = (Planted("uniform", 1.0, 64 * MIB, SIZE, 0.5),)
    plain = traced(mixture(within, 20_000, 5), tmp_path)
    (pair,) = compare_application(named, plain).pairs
    times = [predict_application(plain, each.predictor).io_s.value for each in named]
    assert pair.io_ratio.value == pytest.approx(times[1] / times[0])
    assert (pair.verdict, pair.findings) == ("a", ())
    synced = traced(mixture(within, 20_000, 5), tmp_path, sync_every=10)
    (kept_back,) = compare_application(named, synced).pairs
    assert kept_back.io_ratio.value == pytest.approx(pair.io_ratio.value)
    assert kept_back.verdict == "inconclusive"
    unknown = kept_back.findings[0]
    assert (unknown.where, unknown.code) == ("two-level", "terms_not_surveyed")
    assert unknown.values["terms"] == "syncs"
    doubted = [Named(each.name, each.predictor, None, Disturbance(9.0, (SHOOK,))) for each in named]
    withheld, *shaken = compare_application(doubted, plain).pairs[0].findings
    assert withheld.code == "verdict_withheld"
    assert {(each.where, each.code) for each in shaken} == {
        (each.name, SHOOK.code) for each in doubted
    }
    facts = msgspec.structs.replace(plain.start.facts, below_the_cache=True)
    below = msgspec.structs.replace(plain, start=msgspec.structs.replace(plain.start, facts=facts))
    (unsound,) = compare_application(named, below).pairs
    assert (unsound.verdict, unsound.io_ratio) == ("inconclusive", pair.io_ratio)
    assert [(each.where, each.code) for each in unsound.findings] == [("", "predicted_below_cache")]
