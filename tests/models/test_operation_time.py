"""The mean of the joint model: a sum of times, and its derivatives."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from leadline.models.operation_time import BOUNDARY, OVERLAP, PLACE, OperationTime, Requests
from leadline.record import Workload

BOUNDARIES_LN = (17.0, 19.0)


def workloads(count: int, seed: int) -> list[Workload]:
    random = np.random.default_rng(seed)
    return [
        Workload(
            unique_bytes=int(math.exp(random.uniform(13, 21))),
            size_mean=int(math.exp(random.uniform(8, 13))),
            read_frac=float(random.random()),
            seq_frac=float(random.random()),
            process_num=int(random.integers(1, 33)),
        )
        for _ in range(count)
    ]


def parameters(mean: OperationTime, seed: int) -> np.ndarray:
    theta = np.random.default_rng(seed).normal(0, 0.7, mean.parameters)
    for index in range(len(mean.smeared)):
        at = mean.boundary(index)
        theta[at : at + BOUNDARY] = (BOUNDARIES_LN[index], -1.5, 0.1)
    return theta


@pytest.mark.parametrize("paged", [False, True])
@pytest.mark.parametrize("boundaries", [0, 1, 2])
def test_derivatives_are_those_of_the_formula(boundaries: int, *, paged: bool) -> None:
    shapes = itertools.product((True, False), repeat=boundaries)
    for smeared, of_writes in itertools.product(shapes, (False, True)):
        mean = OperationTime(smeared, 17.5, (of_writes, False)[:boundaries])
        theta, requests = parameters(mean, 1), Requests.of(workloads(60, 2), paged=paged)
        _, jacobian = mean.ln_mb_s(requests, theta)
        for index in range(mean.parameters):
            step = np.zeros_like(theta)
            step[index] = 1e-6
            up, down = (mean.ln_mb_s(requests, theta + sign * step)[0] for sign in (1, -1))
            assert np.allclose((up - down) / 2e-6, jacobian[:, index], atol=2e-5), index


def test_one_request_at_a_time_pays_its_own_costs_and_nothing_else() -> None:
    mean = OperationTime((), 17.5)
    theta = np.zeros(mean.parameters)
    theta[0], theta[1], theta[2] = math.log(2e-3), math.log(0.25), math.log(1e-3)
    theta[10] = 30.0  # no stripes
    alone = Workload(unique_bytes=2**24, size_mean=65536, read_frac=1.0, seq_frac=0.5)
    seconds = 0.5 * 2e-3 + 0.5 * 0.5e-3 + 2 * 1e-3
    ln_mb_s, _ = mean.ln_mb_s(Requests.of([alone]), theta)
    assert math.exp(ln_mb_s[0]) == pytest.approx(65536e-6 / seconds)


def test_n_requests_at_g_channels_have_the_balanced_networks_throughput() -> None:
    mean = OperationTime((), 17.5)
    theta = np.zeros(mean.parameters)
    channels = 4
    theta[6] = math.log((1 / channels) / (2 - 1 / channels))
    theta[8], theta[10] = -40.0, 30.0
    one, many = (
        Workload(unique_bytes=2**24, size_mean=4096, process_num=n, read_frac=1.0) for n in (1, 16)
    )
    ln_mb_s, _ = mean.ln_mb_s(Requests.of([one, many]), theta)
    gain = channels * 16 / (16 + channels - 1)
    assert math.exp(ln_mb_s[1] - ln_mb_s[0]) == pytest.approx(gain)


def test_a_uniform_cache_keeps_all_below_its_boundary_and_c_over_u_beyond() -> None:
    mean = OperationTime((False,), 17.0)
    theta = np.zeros(mean.parameters)
    theta[0] = theta[2] = -9.0
    theta[PLACE] = -3.0
    theta[10] = theta[PLACE + 10] = 30.0
    theta[mean.boundary(0)] = math.log(2**24)
    asked = [
        Workload(unique_bytes=u, size_mean=4096, read_frac=1.0, seq_frac=0.0)
        for u in (2**22, 2**24, 2**25, 2**26)
    ]
    times = np.exp(-mean.ln_mb_s(Requests.of(asked), theta)[0])
    assert times[0] == pytest.approx(times[1])
    slow = times - times[0]
    assert slow[3] / slow[2] == pytest.approx(0.75 / 0.5)


def test_writes_behind_a_cache_wait_for_it_or_go_on_while_it_is_used() -> None:
    """Reads notice no limit of dirty data; of the cache and the drive the slower one decides."""
    mean = OperationTime((False,), 17.0, (True,))
    theta = np.zeros(mean.parameters)
    theta[0], theta[2], theta[PLACE] = math.log(1e-4), -40.0, -40.0
    theta[PLACE + 2], theta[PLACE + 3] = -40.0, 40.0 + math.log(1e-2)
    theta[10] = theta[PLACE + 10] = 30.0
    theta[mean.boundary(0)] = math.log(2**20)

    def seconds(read_frac: float, ln_over_one: float) -> float:
        theta[OVERLAP] = ln_over_one
        asked = Workload(unique_bytes=2**30, size_mean=4096, read_frac=read_frac, seq_frac=0.0)
        return float(4096e-6 / np.exp(mean.ln_mb_s(Requests.of([asked]), theta)[0][0]))

    waits, goes_on = -40.0, 3.0
    assert seconds(1.0, goes_on) == pytest.approx(1e-4, rel=1e-3)
    assert seconds(0.99, goes_on) == pytest.approx(1e-4, rel=4e-2), "the drive keeps up"
    assert seconds(0.99, waits) == pytest.approx(2e-4, rel=1e-2), "and is waited for"
    assert seconds(0.5, goes_on) == pytest.approx(0.5e-2, rel=1e-2), "writes wait for the drive"
    assert seconds(0.5, waits) == pytest.approx(0.51e-2, rel=1e-2)


def test_a_scan_over_all_of_a_too_large_file_finds_nothing() -> None:
    mean = OperationTime((False,), 17.0)
    theta = parameters(mean, 3)
    theta[mean.boundary(0) : mean.boundary(0) + BOUNDARY] = (math.log(2**24), -2.0, 0.0)
    for place in (0, PLACE):  # sequential requests cost what random ones do, in runs too
        theta[place + 1] = theta[place + 11] = 0.0
    random, scan = (
        Workload(unique_bytes=2**25, size_mean=4096, read_frac=1.0, seq_frac=q) for q in (0.0, 1.0)
    )
    far = random.with_value("unique_bytes", 2**40)
    theta[9] = theta[PLACE + 9] = 0.0
    ln_mb_s, _ = mean.ln_mb_s(Requests.of([random, scan, far]), theta)
    assert ln_mb_s[1] < ln_mb_s[0]
    assert ln_mb_s[1] == pytest.approx(ln_mb_s[2], abs=1e-4)


@pytest.mark.parametrize("size_bytes", [512, 2048, 4096, 16384, 70144])
def test_pages_touched_and_torn_are_those_of_requests_drawn_one_by_one(size_bytes: int) -> None:
    """At random: every place in a page that a granule may have. In order: one behind another."""
    granules = size_bytes // 512
    first = np.arange(8)
    touched = (first + granules - 1) // 8 + 1
    whole = np.maximum((first + granules) // 8 - (first + 7) // 8, 0)
    at_random, in_order = (
        Workload(2**30, size_bytes, read_frac=0.0, seq_frac=q) for q in (0.0, 1.0)
    )
    found = Requests.of([at_random, in_order], paged=True)
    assert np.exp(found.ln_moved[1, 1]) / 4096 == pytest.approx([touched.mean(), granules / 8])
    ends = first[:, None] + granules * np.arange(1, 9)  # eight in order from each such place
    begun: list[set[int]] = [{begin // 8} if begin % 8 else set() for begin in first.tolist()]
    new = [{end // 8 for end in row.tolist() if end % 8} for row in ends]
    torn = sum(len(pages - before) for pages, before in zip(new, begun, strict=True)) / 64
    assert found.share[2] == pytest.approx([(touched - whole).mean(), torn])


def test_a_torn_page_is_read_and_one_written_whole_is_not() -> None:
    mean = OperationTime((False,), 17.0)
    theta = np.zeros(mean.parameters)
    theta[0] = theta[2] = theta[PLACE + 2] = -40.0
    theta[PLACE], theta[PLACE + 3], theta[10], theta[PLACE + 10] = math.log(1e-3), -40.0, 30.0, 30.0
    theta[mean.boundary(0)] = math.log(2**29)
    scattered = Workload(2**30, 16384, read_frac=0.0, seq_frac=0.0)
    whole = Workload(2**30, 16384, read_frac=0.0, seq_frac=0.0, size_dist="fixed")
    rates = np.exp(mean.ln_mb_s(Requests.of([scattered, whole], paged=True), theta)[0])
    assert 16384e-6 / rates[0] == pytest.approx(1.75 * 0.5 * 1e-3), (
        "1.75 pages, half of them missed"
    )
    assert 16384e-6 / rates[1] < 1e-9
    unpaged = np.exp(mean.ln_mb_s(Requests.of([scattered, whole]), theta)[0])
    assert unpaged[0] == unpaged[1]


def test_of_no_workloads_nothing_is_expected() -> None:
    for smeared, paged in itertools.product(((), (True, False)), (False, True)):
        mean = OperationTime(smeared, 17.5)
        requests = Requests.of([], paged=paged)
        ln_mb_s, jacobian = mean.ln_mb_s(requests, parameters(mean, 1))
        assert ln_mb_s.shape == (0,)
        assert jacobian.shape == (0, mean.parameters)
