"""Servers made of parts: what is drawn, what the engine makes of it, and their truth."""

from __future__ import annotations

import json
import math
from collections import Counter
from typing import Any

import pytest

from leadline.engine.simulated import run_here
from leadline.errors import TargetRefused
from leadline.record.job import Offer, TrialJob
from leadline.record.workbench import Goal, Measured, Threshold
from proving.parts_servers import ORDER, RANGES, Mechanism, draw_server, draw_servers
from proving.peak_truth import compute_truth

POOL = {
    "family": "parts",
    "workers": 512,
    "cores": {"count": 64, "work_ms": 0, "work": {"kind": "constant"}},
    "pool": {"connections": 2, "query_ms": 10, "query": {"kind": "exponential"}},
    "warm_up_s": 30.0,
}
"""200 requests per second."""


def measured(system: dict[str, Any], rate_per_s: float, seconds: float) -> Measured:
    order = Offer(rate_per_s=rate_per_s, seconds=seconds, seed=1)
    return run_here(TrialJob(server=system, order=order))


def test_a_seed_draws_the_same_server_and_every_eighth_is_of_its_class() -> None:
    servers = draw_servers(8, 40)
    assert servers == draw_servers(8, 40)
    assert servers[4] == draw_server(12)
    assert Counter(item.kind for item in servers) == dict.fromkeys(Mechanism, 5)
    assert [item.kind for item in servers[:8]] == list(ORDER)
    assert len({json.dumps(item.server.system) for item in servers}) == 40


def numbers(table: dict[str, Any]) -> dict[str, float]:
    """All numbers of a table by name, those of inner tables too."""
    found: dict[str, float] = {}
    for name, value in table.items():
        if isinstance(value, dict):
            found |= {f"{name}.{inner}": number for inner, number in numbers(value).items()}
        elif isinstance(value, int | float):
            found[name] = value
    return found


def test_what_is_drawn_is_within_the_stated_ranges() -> None:
    seen = set[str]()
    for item in draw_servers(0, 200):
        drawn = numbers(item.server.system)
        # What a class, or the bottleneck, has of its own comes before what all have.
        own = f"{item.kind.value.replace(' ', '_')}."
        by = "by_lock." if "lock" in item.server.system else "by_storage."
        for path, value in drawn.items():
            field = path.rpartition(".")[2]
            known = [RANGES[name + field] for name in (own, by, "") if name + field in RANGES]
            if known and (field, value) != ("backoff_ms", 0.0):  # at once
                low, high = min(low for low, _ in known), max(high for _, high in known)
                assert low <= value <= high, (item.name, path)
                seen.add(field)
    assert len(seen) > 15, seen


def test_every_class_has_its_mechanism_and_answers_at_once_when_nobody_else_asks() -> None:
    has = {
        Mechanism.POOL: "pool",
        Mechanism.LOCK: "lock",
        Mechanism.COLLECTOR: "collector",
        Mechanism.RETRIES: "clients",
        Mechanism.BATCH: "batch",
    }
    for item in draw_servers(0, 48):
        system = item.server.system
        assert has.get(Mechanism(item.kind), "cores") in system
        if item.kind is Mechanism.TWO_MODES:
            shares = (system["cache"].get("cold_share"), system["storage"].get("degraded_share"))
            assert sum(share is not None for share in shares) == 1
        alone = measured(system, 2.0, 200.0)
        assert alone.response_ms is not None
        assert alone.response_ms.mean < 30.0, item.name


def erlang_ms(servers: int, service_ms: float, rate_per_s: float) -> float:
    """Mean response of M/M/c."""
    load = rate_per_s * service_ms / 1e3
    terms = [load**busy / math.factorial(busy) for busy in range(servers + 1)]
    waiting = terms[-1] * servers / (servers - load)
    wait_ms = service_ms / (servers - load)
    return service_ms + waiting / (sum(terms[:-1]) + waiting) * wait_ms


def test_the_truth_of_a_pool_is_where_m_m_c_is_at_the_threshold() -> None:
    goal = Goal(threshold=Threshold(mean_ms=40.0), run_length_s=300.0)
    found = compute_truth(POOL, goal, 0.004)
    # 2 of 10 ms: s/(1 - rho²) = 40 ms at rho = √0.75.
    expected = 200.0 * math.sqrt(0.75)
    assert erlang_ms(2, 10.0, expected) == pytest.approx(40.0)
    assert found.rate_per_s == pytest.approx(expected, rel=3 * found.se_frac + 0.004)


def test_a_field_that_no_part_has_is_refused_by_name() -> None:
    with pytest.raises(TargetRefused, match="conections"):
        measured(POOL | {"pool": {"conections": 2}}, 1.0, 1.0)
    with pytest.raises(TargetRefused, match=r"cores\.count is 0; it must be between 1 and 4096"):
        measured(POOL | {"cores": POOL["cores"] | {"count": 0}}, 1.0, 1.0)  # type: ignore[operator]
    with pytest.raises(TargetRefused, match='family is "trees"'):
        measured(POOL | {"family": "trees"}, 1.0, 1.0)
