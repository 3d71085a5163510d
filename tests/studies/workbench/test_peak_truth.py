"""The truth of simulated servers, against closed forms; and the population they are drawn from."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import msgspec
import pytest

from leadline.engine.simulated import run_here
from leadline.record.job import Offer, TrialJob
from leadline.record.workbench import Goal, SimulatedServer, Threshold
from proving import peak_truth
from proving.peak_truth import keep_truth, known_truth
from proving.servers import (
    GOAL,
    RANGES,
    WORKERS,
    Kind,
    NoPeak,
    Truth,
    compute_truth,
    population,
    truth,
    truth_key,
)

MM1 = {"workers": 1, "service_ms": 5.0, "service": {"kind": "exponential"}, "warm_up_s": 30.0}
"""200 requests per second."""
LONG = Goal(threshold=Threshold(mean_ms=40.0), run_length_s=300.0)


def found(system: dict[str, object], goal: Goal = LONG) -> Truth:
    return compute_truth(system, goal, 0.004)


def close(item: Truth, expected: float) -> None:
    """Within three standard errors, and 0.4% for the queue the warm-up did not build."""
    assert item.rate_per_s == pytest.approx(expected, rel=3 * item.se_frac + 0.004)
    assert item.se_frac <= 0.004


def test_the_truth_of_m_m_1_is_where_its_response_is_40_ms() -> None:
    item = found(MM1)
    close(item, 200.0 - 1 / 0.040)
    assert item.exceeding == pytest.approx(0.48, abs=0.12)
    assert item.slope == pytest.approx(175.0 / 25.0, rel=0.15)  # λ / (μ - λ)


def test_the_truth_of_a_percentile_is_where_that_share_is_late() -> None:
    goal = Goal(threshold=Threshold(percentile=0.95, limit_ms=100.0), run_length_s=300.0)
    close(found(MM1, goal), 200.0 - 2.9957 / 0.1)  # responses of M/M/1 are exponential


def test_of_two_thresholds_the_lower_counts() -> None:
    both = Threshold(mean_ms=40.0, percentile=0.95, limit_ms=100.0)
    close(found(MM1, Goal(threshold=both, run_length_s=300.0)), 170.04)


def test_two_modes_have_the_root_of_the_mixture() -> None:
    modes = MM1 | {"slow_mode_share": 0.5, "slow_mode_factor": 200 / 150}
    item = found(modes)
    # 0.5 / (150 - λ) + 0.5 / (200 - λ) = 0.04 s: neither mode's own peak, which are 125 and 175.
    close(item, 134.46)
    assert item.exceeding == pytest.approx(0.5, abs=0.1)


def test_short_trials_read_the_peak_higher() -> None:
    cold = MM1 | {"warm_up_s": 0.0}
    short = Goal(threshold=Threshold(mean_ms=40.0), run_length_s=3.0)
    assert found(cold, short).rate_per_s > 1.015 * found(MM1).rate_per_s


def test_a_server_without_a_peak_is_said_to_have_none() -> None:
    with pytest.raises(NoPeak, match="without any load"):
        compute_truth(MM1 | {"service_ms": 60.0}, GOAL)


def test_a_truth_is_kept_by_what_decides_it(tmp_path: Path) -> None:
    server = SimulatedServer(system=dict(MM1))
    kept = Truth(rate_per_s=7.0, se_frac=0.1, slope=1, noise_frac=1, exceeding=0.5, trials=1)
    (tmp_path / f"{truth_key(server, LONG)}.json").write_bytes(msgspec.json.encode(kept))
    rough = msgspec.structs.replace(LONG, accuracy=0.5, rate_start_per_s=1.0)
    assert truth(server, rough, cache=tmp_path) == kept
    other = Goal(threshold=Threshold(mean_ms=40.0), run_length_s=180.0)
    keys = {
        truth_key(server, LONG),
        truth_key(server, other),
        truth_key(server, LONG, {"workers": 2}),
        truth_key(server, Goal(threshold=Threshold(mean_ms=41.0), run_length_s=300.0)),
    }
    assert len(keys) == 4


def test_the_better_of_two_known_truths_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rough = Truth(rate_per_s=7.0, se_frac=0.1, slope=1, noise_frac=1, exceeding=0.5, trials=1)
    fine = msgspec.structs.replace(rough, rate_per_s=8.0, se_frac=0.01)
    keep_truth("k", fine, tmp_path)
    monkeypatch.setattr(peak_truth, "_published", lambda: {"k": rough, "other": rough})
    assert known_truth("k", tmp_path) == fine
    assert known_truth("other", tmp_path) == rough
    assert known_truth("k", None) == rough
    assert known_truth("none", tmp_path) is None


def test_a_truth_found_is_kept(tmp_path: Path) -> None:
    server = SimulatedServer(system=MM1 | {"service_ms": 30.0})
    goal = Goal(threshold=Threshold(mean_ms=40.0), run_length_s=60.0)
    first = truth(server, goal, cache=tmp_path, se_frac=0.02)
    (kept,) = tmp_path.iterdir()
    assert msgspec.json.decode(kept.read_bytes(), type=Truth) == first


def test_the_population_is_always_the_same_and_holds_every_kind() -> None:
    servers = population()
    assert servers == population()
    assert servers[:20] == population(20)
    assert servers[3].server != population(20, seed=2)[3].server
    kinds = Counter(item.kind for item in servers)
    assert kinds == {Kind.PLAIN: 80} | {kind: 30 for kind in Kind if kind is not Kind.PLAIN}
    systems = [item.server.system for item in servers]
    assert {system["workers"] for system in systems} == set(WORKERS)
    services = Counter(system["service"]["kind"] for system in systems)
    assert min(services.values()) >= 30
    assert len(services) == 4


def test_every_server_is_within_the_stated_ranges_and_answers_below_r_sat() -> None:
    for item in population():
        system = item.server.system
        prefix = f"{item.kind.value.replace(' ', '_')}."
        for name, (low, high) in RANGES.items():
            field = name.removeprefix(prefix)
            if "." not in name and prefix + name in RANGES:
                continue
            if field in system:
                assert low <= system[field] <= high, (item.name, field)
        offer = Offer(rate_per_s=2.0, seconds=300.0, seed=1, limit_ms=None)
        measured = run_here(TrialJob(server=system, order=offer))
        assert measured.response_ms is not None
        assert measured.response_ms.mean < 0.75 * (GOAL.threshold.mean_ms or 0.0), item.name
