"""What is found in traces of planted streams: their weights, sizes, data, and misses.

Tuned on seeds 1 to 100, of which 99 have every stream within 10%; the seeds here are others.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from application_fixture import Kept, described
from leadline.record.application import Application, Stream
from leadline.stats.reuse_times import Uses, fit_mixture
from leadline.studies.application.characterize import characterize_trace
from planted_traces import PAGE_BYTES, Kind, Planted, Requests, drawn_mixture, mixture

MIB = 2**20
REQUESTS = 120_000


def nearest(planted: Planted, found: Sequence[Stream]) -> Stream:
    """Return the found stream of this kind that is most like the planted one."""

    def apart(stream: Stream) -> float:
        sizes = abs(np.log(stream.size_mean / planted.size))
        data = abs(np.log(stream.unique_bytes / planted.unique_bytes))
        return float(sizes + abs(np.log(stream.weight / planted.weight)) + data)

    return min((stream for stream in found if stream.kind == planted.kind), key=apart)


def assert_found(planted: Planted, streams: Sequence[Stream]) -> None:
    own = nearest(planted, streams)
    assert own.weight == pytest.approx(planted.weight, rel=0.1)
    assert own.size_mean == pytest.approx(planted.size, rel=0.1)
    assert own.read_frac == pytest.approx(planted.read_frac, abs=0.05)
    if planted.kind != "once-only":
        assert own.unique_bytes == pytest.approx(planted.unique_bytes, rel=0.1)


@pytest.mark.parametrize(
    "seed", [8001, 8002, *(pytest.param(seed, marks=pytest.mark.long) for seed in (8003, 8004))]
)
def test_weights_sizes_and_data_of_a_mixture_are_found_within_a_tenth(
    seed: int, tmp_path: Path
) -> None:
    streams = drawn_mixture(seed)
    (phase,) = described(mixture(streams, REQUESTS, seed + 1), tmp_path).phases
    for planted in streams:
        assert_found(planted, phase.streams)
    assert sum(stream.weight for stream in phase.streams) == pytest.approx(1.0)
    assert phase.streams_error is not None
    assert phase.streams_error < 0.02


@pytest.mark.long
@pytest.mark.parametrize("seed", [8011, 8012])
def test_a_trace_made_of_what_was_found_misses_as_the_first_did(seed: int, tmp_path: Path) -> None:
    made = mixture(drawn_mixture(seed), REQUESTS, seed + 1)
    first = described(made, tmp_path)
    (phase,) = first.phases
    again = [
        Planted(
            stream.kind,
            stream.weight,
            int(stream.unique_bytes),
            max(PAGE_BYTES, PAGE_BYTES * round(stream.size_mean / PAGE_BYTES)),
            stream.read_frac,
        )
        for stream in phase.streams
    ]
    second = described(mixture(again, REQUESTS, seed + 500), tmp_path)
    sizes = np.geomspace(MIB, first.found.workload.unique_bytes, 40)
    for size in sizes:
        found = first.found.reuse.lru_misses(size)
        # The step of a loop may lie a little aside.
        most, least = (second.found.reuse.lru_misses(size * way) for way in (0.96, 1.04))
        assert least - 0.01 < found < most + 0.01


def misses_at(study: Application, size_bytes: int) -> tuple[float, float]:
    (point,) = [min(study.found.reuse.points, key=lambda each: abs(each.cache_bytes - size_bytes))]
    assert point.two_lists is not None
    return point.lru, point.two_lists


def test_uniform_use_misses_what_does_not_fit(tmp_path: Path) -> None:
    """By theory: a cache of C of U bytes misses 1 - C / U of what is not a first touch."""
    study = described(mixture([Planted("uniform", 1.0, 16 * MIB, 4096)], 200_000, 7021), tmp_path)
    first = study.found.reuse.first_touches
    assert first == pytest.approx(4096 / 200_000, rel=0.01)
    for share in (0.25, 0.5, 0.75):
        expected = 1 - share
        found = study.found.reuse.lru_misses(share * 16 * MIB)
        # The cache fills once: misses of that time count as if it were smaller.
        assert expected - 0.002 < found < expected + 2 * first


def test_a_loop_that_does_not_fit_misses_always_under_both_policies(tmp_path: Path) -> None:
    study = described(mixture([Planted("loop", 1.0, 16 * MIB, 4096)], 100_000, 7022), tmp_path)
    (phase,) = study.phases
    (stream,) = phase.streams
    assert (stream.kind, stream.seq_frac > 0.99) == ("loop", True)
    assert stream.unique_bytes == pytest.approx(16 * MIB, rel=0.02)
    lru, lists = misses_at(study, 8 * MIB)
    assert lru == 1.0
    assert lists > 0.99
    assert study.found.reuse.lru_misses(17 * MIB) < 0.05


def test_a_scan_beside_a_hot_set_hurts_lru_more_than_the_two_lists(tmp_path: Path) -> None:
    streams = (Planted("uniform", 0.5, 8 * MIB, 4096), Planted("once-only", 0.5, 0, 4096))
    study = described(mixture(streams, 200_000, 7023), tmp_path)
    lru, lists = misses_at(study, 11 * MIB)
    assert lists < lru - 0.05


def test_a_window_that_moves_is_no_standing_set(tmp_path: Path) -> None:
    streams = (Planted("moving", 0.6, 4 * MIB, 4096), Planted("uniform", 0.4, 64 * MIB, 8192))
    (phase,) = described(mixture(streams, 150_000, 7024), tmp_path).phases
    kinds = {stream.kind: stream for stream in phase.streams}
    assert kinds["moving"].weight == pytest.approx(0.6, rel=0.1)
    assert 2 * MIB < kinds["moving"].unique_bytes < 5 * MIB
    assert kinds["uniform"].unique_bytes == pytest.approx(64 * MIB, rel=0.1)


@pytest.mark.parametrize("kind", ["uniform", "loop"])
def test_reads_and_writes_of_the_same_data_are_one_stream_and_of_others_two(
    kind: Kind, tmp_path: Path
) -> None:
    shared = [Planted(kind, 1.0, 8 * MIB, 4096, 0.5)]
    (one,) = described(mixture(shared, 100_000, 7025), tmp_path).phases[0].streams
    assert one.read_frac == pytest.approx(0.5, abs=0.02)
    assert one.unique_bytes == pytest.approx(8 * MIB, rel=0.05)
    apart = [Planted(kind, 0.5, 4 * MIB, 4096, read_frac) for read_frac in (0.0, 1.0)]
    two = described(mixture(apart, 100_000, 7026), tmp_path).phases[0].streams
    assert sorted(stream.read_frac for stream in two) == [0.0, 1.0]


def test_a_random_request_over_few_places_is_not_called_sequential(tmp_path: Path) -> None:
    study = described(mixture([Planted("uniform", 1.0, 60 * 4096, 4096)], 50_000, 7027), tmp_path)
    (stream,) = study.phases[0].streams
    assert study.found.workload.seq_frac > 0.05, "as it looks"
    assert stream.seq_frac < 0.03


def test_phases_are_found_where_they_change_and_nowhere_else(tmp_path: Path) -> None:
    early = mixture([Planted("uniform", 1.0, 16 * MIB, 4096)], 60_000, 7031)
    late = mixture([Planted("uniform", 1.0, 16 * MIB, 16_384, 0.5)], 90_000, 7032)
    study = described(early.then(late), tmp_path)
    assert [phase.order for phase in study.phases] == [0, 1]
    first, second = study.phases
    assert first.requests == pytest.approx(60_000, rel=0.02)
    assert first.workload.size_mean == pytest.approx(4096, rel=0.02)
    assert second.workload.read_frac == pytest.approx(0.5, abs=0.02)
    assert first.to_s is not None
    assert second.from_s is not None
    assert first.to_s == pytest.approx(60.0, rel=0.05)
    assert second.from_s >= first.to_s - 0.01, "but for the last request's time"


def test_the_same_requests_over_more_data_are_another_phase(tmp_path: Path) -> None:
    early = mixture([Planted("uniform", 1.0, 2 * MIB, 4096)], 80_000, 7033)
    late = mixture([Planted("uniform", 1.0, 128 * MIB, 4096)], 80_000, 7034)
    study = described(early.then(late), tmp_path)
    assert len(study.phases) == 2
    assert [each.streams[0].unique_bytes / MIB for each in study.phases] == [
        pytest.approx(2, rel=0.05),
        pytest.approx(128, rel=0.3),
    ]


def queued(requests: int, seed: int, *, closed: bool) -> tuple[Requests, np.ndarray]:
    """Draw requests of 1 ms: of three that wait for themselves, or of Poisson arrivals."""
    draw = np.random.default_rng(seed)
    took = draw.exponential(1e-3, requests)
    if closed:
        free, at = [0.0, 0.0, 0.0], np.zeros(requests)
        for number in range(requests):
            who = int(np.argmin(free))
            at[number] = free[who] + draw.exponential(2e-4)
            free[who] = at[number] + took[number]
    else:
        at = np.cumsum(draw.exponential(4e-4, requests))
    plain = mixture([Planted("uniform", 1.0, 16 * MIB, 4096)], requests, seed)
    return Requests(at, plain.reads, plain.offsets, plain.sizes), took


@pytest.mark.parametrize(("closed", "said"), [(True, "closed"), (False, "open")])
def test_closed_and_open_are_told_by_what_requests_find_on_their_way(
    closed: bool, said: str, tmp_path: Path
) -> None:
    requests, took = queued(20_000, 7041, closed=closed)
    path = tmp_path / "made.csv"
    rows = zip(requests.at_s, requests.offsets, took, strict=True)
    path.write_text(
        "".join(
            f"{1280 * 10**14 + round(at * 1e7)},usr,0,Read,{offset},4096,{round(took_s * 1e7)}\n"
            for at, offset, took_s in sorted(rows)
        ),
        encoding="ascii",
    )
    (phase,) = characterize_trace(str(path), Kept()).phases
    assert phase.loop == said, phase.loop_because
    assert phase.on_their_way is not None
    expected = 3 / 1.2 if closed else 2.5 / (1 - np.exp(-2.5))
    assert phase.on_their_way == pytest.approx(expected, rel=0.15)


def test_a_class_of_one_use_is_a_stream_too() -> None:
    """A mixture of nothing errs nowhere when all come back at one time: it was taken for best."""
    one = np.array([1.0])
    uses = Uses(np.array([True]), 992.0 * one, 1008.0 * one, one, np.array([0]))
    (found,) = fit_mixture(uses, 7.0)
    assert found.share == pytest.approx(1.0)
