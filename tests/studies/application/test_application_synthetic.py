"""An application's phase as streams of the engine, and what the engine then does."""

from __future__ import annotations

import configparser

import msgspec
import pytest
from test_application_prediction import traced

from leadline.engine import Limits, Simulated, Target, open_engine
from leadline.errors import TargetRefused
from leadline.fio import FioJobRefused, FioRun
from leadline.fio.write_streams import write_streams
from leadline.record import Arrivals, Workload
from leadline.record.application import Application, PhaseFound, SizeCount
from leadline.record.jobs.streams import Loop, Moving, Once, Pieces, SizeShare, StreamAsked, Uniform
from leadline.stats import pooled_result
from leadline.studies.application.synthetic import SyntheticRefused, synthetic_of
from planted_traces import Planted, mixture

KIB, MIB = 2**10, 2**20
STREAMS = (
    Planted("uniform", 0.6, 32 * MIB, 4 * KIB, 0.8),
    Planted("loop", 0.3, 16 * MIB, 64 * KIB),
    Planted("once-only", 0.1, 0, 8 * KIB, 0.0),
)
LIMITS = Limits(warm_up_s_max=1.0, measure_s_min=1.0, measure_s_max=2.0, accuracy=0.0)


@pytest.fixture(scope="module")
def application(tmp_path_factory: pytest.TempPathFactory) -> Application:
    folder = tmp_path_factory.mktemp("program")
    requests = mixture(STREAMS, 20_000, 3)
    return traced(requests, folder, sync_every=20, think_s=1e-4, stats=5)


def changed(application: Application, **fields: object) -> Application:
    """Return it with other fields of its phase."""
    (phase,) = application.phases
    return msgspec.structs.replace(application, phases=(msgspec.structs.replace(phase, **fields),))


def test_streams_have_the_weights_places_and_data_that_were_found(application: Application) -> None:
    found = synthetic_of(application)
    uniform, loop, once = found.streams
    assert [round(each.weight, 2) for each in found.streams] == [0.6, 0.3, 0.1]
    assert isinstance(uniform.places, Uniform)
    assert loop.places == Loop(scattered=False)
    assert once.places == Once(scattered=False)
    assert uniform.unique_bytes == pytest.approx(32 * MIB, rel=0.1)
    assert loop.unique_bytes == pytest.approx(16 * MIB, rel=0.05)
    assert loop.sizes == (SizeShare(64 * KIB, loop.sizes[0].weight),)
    assert uniform.read_frac == pytest.approx(0.8, abs=0.02)
    ends = [each.from_bytes + each.unique_bytes for each in found.streams]
    assert [each.from_bytes for each in found.streams] == [0, *ends[:-1]]
    assert found.workload.unique_bytes == ends[-1]
    (phase,) = application.phases
    length = (phase.to_s or 0.0) - (phase.from_s or 0.0)
    assert phase.in_io is not None
    pause_s = length * (1 - phase.in_io) / phase.requests
    assert found.workload.think_time_s == pytest.approx(pause_s)
    assert found.sync == "fdatasync=20"
    said = " ".join(map(str, found.losses))
    assert "5 metadata calls" in said
    assert "when a sync comes" in said


def test_an_open_phase_comes_by_a_clock_at_its_rate(application: Application) -> None:
    found = synthetic_of(changed(application, loop="open", from_s=0.0, to_s=10.0))
    assert found.arrivals == Arrivals("poisson", 2000.0)
    assert found.workload.think_time_s == 0.0


def test_a_stream_whose_reads_and_writes_differ_becomes_two(application: Application) -> None:
    uniform = msgspec.structs.replace(
        application.phases[0].streams[0],
        read_size_mean=4096.0,
        write_size_mean=16384.0,
        read_frac=0.75,
    )
    reads, writes = synthetic_of(changed(application, streams=(uniform,))).streams
    assert reads.weight == pytest.approx(3 * writes.weight)
    assert (reads.read_frac, writes.read_frac) == (1.0, 0.0)
    assert (reads.sizes, writes.sizes) == ((SizeShare(4096, 1.0),), (SizeShare(16384, 1.0),))
    assert reads.from_bytes == writes.from_bytes == 0


def test_a_moving_stream_is_a_window_that_goes_on(application: Application) -> None:
    moving = msgspec.structs.replace(
        application.phases[0].streams[0], kind="moving", unique_bytes=float(MIB), seen_again=0.75
    )
    (stream,) = synthetic_of(changed(application, streams=(moving,))).streams
    assert stream.places == Moving(MIB, 0.25)
    assert stream.unique_bytes > 4 * MIB


def test_what_is_written_once_is_whole_pages_with_their_mean(application: Application) -> None:
    once = msgspec.structs.replace(
        application.phases[0].streams[2],
        size_mean=10_240.0,
        write_size_mean=10_240.0,
        read_size_mean=None,
        sizes=(SizeCount(bytes=8192, requests=2000),),
    )
    found = synthetic_of(changed(application, streams=(once,)))
    (stream,) = found.streams
    assert [each.bytes for each in stream.sizes] == [8192, 12_288]
    total = sum(each.weight for each in stream.sizes)
    assert sum(each.bytes * each.weight for each in stream.sizes) / total == pytest.approx(10_240)
    assert "not mapped: where a file ends" in " ".join(map(str, found.losses))
    small = msgspec.structs.replace(once, size_mean=600.0, write_size_mean=600.0, sizes=())
    (stream,) = synthetic_of(changed(application, streams=(small,))).streams
    assert stream.sizes == (SizeShare(512, 1.0),)


@pytest.mark.parametrize(
    ("seq_frac", "by_turns", "pieces"),
    [(1.0, 1.0, None), (0.95, 1.0, Pieces(163_840, 1)), (1.0, 4.2, Pieces(4_096_000, 4))],
)
def test_what_is_read_once_lies_in_pieces_as_its_files_do(
    application: Application, seq_frac: float, by_turns: float, pieces: Pieces | None
) -> None:
    (phase,) = application.phases
    once = msgspec.structs.replace(
        phase.streams[2],
        weight=2000 / phase.requests,
        unique_bytes=16.0 * MIB,
        size_mean=8192.0,
        read_frac=1.0,
        seq_frac=seq_frac,
        begins_frac=1.0 - seq_frac,
        by_turns=by_turns,
    )
    (stream,) = synthetic_of(changed(application, streams=(once,))).streams
    assert stream.places == Once(scattered=False, pieces=pieces)
    assert stream.unique_bytes == pytest.approx(
        16 * MIB * (1.0 if pieces is None else 1.1), rel=1e-3
    )


def test_a_whole_phase_begins_nothing_again_and_a_later_one_misses_what_was_left(
    application: Application,
) -> None:
    first = synthetic_of(application)
    assert "begin again" in " ".join(map(str, first.losses_of(whole=False)))
    assert "begin again" not in " ".join(map(str, first.losses_of(whole=True)))
    later = synthetic_of(changed(application, order=1), 2)
    assert "earlier phases left" in " ".join(map(str, later.losses_of(whole=True)))


@pytest.mark.parametrize(("used_before", "cold"), [(0.9, False), (0.4, True), (0.0, True)])
def test_a_phase_begins_with_what_earlier_ones_used(
    application: Application, used_before: float, cold: bool
) -> None:
    assert synthetic_of(changed(application, used_before=used_before)).begins_cold is cold


def test_small_requests_become_a_sector_and_it_is_said(application: Application) -> None:
    uniform = msgspec.structs.replace(
        application.phases[0].streams[0],
        size_mean=100.0,
        read_size_mean=100.0,
        write_size_mean=100.0,
        sizes=(),
    )
    found = synthetic_of(changed(application, streams=(uniform,)))
    assert found.streams[0].sizes == (SizeShare(512, 1.0),)


def test_a_phase_that_is_not_there_is_refused(application: Application) -> None:
    with pytest.raises(SyntheticRefused, match="no phase 2: it has 1 phase"):
        synthetic_of(application, 2)
    with pytest.raises(SyntheticRefused, match="no streams"):
        synthetic_of(changed(application, streams=()))
    assert isinstance(synthetic_of(application, 1).phase, PhaseFound)


def test_what_is_issued_is_what_was_asked(application: Application) -> None:
    """On the null backend, and on a machine made of parts: counts within their own scatter."""
    found = synthetic_of(application)
    workload = msgspec.structs.replace(found.workload, think_time_s=0.0)
    for target in ("null:", "sim:sata-ssd-cliff"):
        with open_engine(Target.parse(target), run_seed=4) as engine:
            runs = [
                engine.run(workload, seed=seed, limits=LIMITS, streams=found.streams)
                for seed in (1, 2)
            ]
        result = pooled_result(runs)
        total = sum(count.operations for count in result.streams)
        assert total == result.read.operations + result.write.operations
        assert sum(count.reads for count in result.streams) == result.read.operations
        for asked, count in zip(found.streams, result.streams, strict=True):
            share = asked.weight / sum(each.weight for each in found.streams)
            error = (share * (1 - share) / total) ** 0.5
            assert abs(count.operations / total - share) < 6 * error
            mean = sum(each.bytes * each.weight for each in asked.sizes)
            mean /= sum(each.weight for each in asked.sizes)
            assert count.bytes / count.operations == pytest.approx(mean, rel=0.02)
            assert count.reads / count.operations == pytest.approx(asked.read_frac, abs=0.03)
            assert count.response_s > 0
        assert result.streams[1].rounds > 0


def test_a_loop_larger_than_the_memory_is_missed_beside_one_that_fits() -> None:
    """On a machine whose page cache is an LRU the hits are known."""
    capacity = 64 * MIB
    machine = {
        "processors": {"read_overhead_us": 2, "copy_mb_s": 8000},
        "cache": {"capacity_bytes": capacity, "policy": "lru"},
        "station": {
            "capacity_bytes": 2**40,
            "servers": 4,
            "read_us": 100,
            "write_us": 100,
            "mb_s": 500,
        },
    }
    profile = {"meta": {"name": "lru"}, "survey": {"unique_bytes_max": 2**33}, "machine": machine}

    def asked(weight: float, from_bytes: int, unique: int) -> StreamAsked:
        return StreamAsked(
            weight=weight,
            read_frac=1.0,
            from_bytes=from_bytes,
            unique_bytes=unique // MIB * MIB,
            sizes=(SizeShare(1 * MIB, 1.0),),
            places=Loop(scattered=True),
        )

    large = asked(1.0, 0, 2 * capacity)
    workload = Workload(large.unique_bytes + 4 * MIB, MIB, 1.0, 0.0, size_dist="fixed")
    small = asked(1.0, large.unique_bytes, 4 * MIB)
    target = Simulated(text="sim:lru", profile=profile)
    with open_engine(target, run_seed=4) as engine:
        result = engine.run(workload, seed=1, limits=LIMITS, streams=(large, small))
    assert result.cached_share == pytest.approx(0.5, abs=0.05)
    missed, held = result.streams
    assert missed.response_s / missed.operations > 3 * held.response_s / held.operations


def test_a_law_and_fio_refuse_streams(application: Application) -> None:
    found = synthetic_of(application)
    with (
        open_engine(Target.parse("sim:two-level"), run_seed=4) as engine,
        pytest.raises(TargetRefused, match="machine made of parts"),
    ):
        engine.run(found.workload, seed=1, limits=LIMITS, streams=found.streams)


def test_streams_are_written_as_fio_jobs_and_every_loss_is_said(application: Application) -> None:
    found = synthetic_of(application)
    text = write_streams(
        found.workload, found.streams, FioRun(sync="fsync=20"), losses=found.losses
    )
    jobs = configparser.ConfigParser(allow_no_value=True, interpolation=None)
    jobs.read_string(text)
    assert jobs.sections() == ["global", "stream-1", "stream-2", "stream-3"]
    assert jobs["global"]["fsync"] == "20"
    assert int(jobs["global"]["filesize"]) == found.workload.unique_bytes
    assert [jobs[f"stream-{n}"]["rw"] for n in (1, 2, 3)] == ["randrw", "read", "write"]
    flows = [int(jobs[f"stream-{n}"]["flow"]) for n in (1, 2, 3)]
    assert [round(flow / sum(flows), 2) for flow in flows] == [0.6, 0.3, 0.1]
    for stream, number in zip(found.streams, (1, 2, 3), strict=True):
        assert int(jobs[f"stream-{number}"]["offset"]) == stream.from_bytes
        assert int(jobs[f"stream-{number}"]["size"]) == stream.unique_bytes
    head = " ".join(line.lstrip("#- ") for line in text.splitlines() if line.startswith("#"))
    losses = ("metadata calls", "kept by flow", "sync comes after", "begin again", "pause")
    for loss in (*losses, "3 jobs have a request outstanding each"):
        assert loss in head, loss


def test_what_fio_cannot_say_of_streams_is_said_or_refused() -> None:
    def asked(places: Uniform | Loop | Moving) -> StreamAsked:
        sizes = (SizeShare(4096, 0.997), SizeShare(8192, 0.003))
        return StreamAsked(
            weight=1.0, read_frac=0.333, from_bytes=0, unique_bytes=MIB, sizes=sizes, places=places
        )

    workload = Workload(MIB, 4096)
    streams = (asked(Moving(64 * KIB, 0.1)), asked(Loop(scattered=True)), asked(Uniform(0.25)))
    run = FioRun(arrivals=Arrivals("poisson", 300.0))
    text = write_streams(workload, streams, run)
    for said in ("window that moves", "another random order", "1 rare sizes", "whole percent"):
        assert said in " ".join(text.split()), said
    assert "percentage_random=75" in text
    assert text.count("rate_iops=33,67") == 3
    assert "norandommap=0" in text
    with pytest.raises(FioJobRefused, match="no equal in fio"):
        write_streams(workload, streams, FioRun(backend="nfs"))
