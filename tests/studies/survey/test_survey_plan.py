"""A plan is arithmetic on the budget and the room: worked by hand."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path

import pytest

from leadline.record import PROCESSES_MAX, Plan
from leadline.studies.memory import advised_cache_limit, choose_cache_limit
from leadline.studies.survey.explain import region_names
from leadline.studies.survey.plan import PlanRefused, curve_shares, make_plan

MIB, GIB = 2**20, 2**30
ASKED = {
    "budget_s": 400.0,
    "capacity_bytes": 4 * GIB,
    "max_bytes": 3 * GIB,
    "memory_bytes": 512 * MIB,
    "l3_cache_bytes": 32 * MIB,
    "process_num_max": 16,
    "virtual": False,
}


def planned(**changes: object) -> Plan:
    return make_plan(**(ASKED | changes))  # type: ignore[arg-type]


def stages(plan: Plan) -> dict[str, int]:
    return {stage.name: stage.points for stage in plan.stages}


def test_the_papers_own_curves() -> None:
    """CP94 footnote 6: 20 points over unique_bytes, 10 on six curves, 2 on two; 12 scout."""
    found = planned(curves="paper", learn_frac=0.4)
    assert stages(found) == {
        "scout": 12,
        "ends": 4,
        "unique_bytes": 16,
        "families": 58,
        "closing": 2,
    }
    assert curve_shares(58 // 2, "paper") == {
        "focal": 1,
        "size_mean": 9,
        "read_frac": 9,
        "seq_frac": 9,
        "process_num": 1,
    }
    planned(budget_s=60.0)
    with pytest.raises(PlanRefused, match="measuring 92 points"):
        planned(budget_s=60.0, curves="paper")


def test_a_small_budget_learns_what_an_application_needs() -> None:
    asked = {"budget_s": 150.0, "max_bytes": GIB, "learn_frac": 0.3}
    plain, own = (stages(planned(**asked, needed=needed)) for needed in (False, True))
    assert "learning" not in plain
    assert own["learning"] >= 10
    assert sum(own.values()) == sum(plain.values())
    least = stages(planned(**(asked | {"budget_s": 70.0}), needed=True))
    assert "learning" not in least, "curves come first"


def test_a_plan_on_a_real_target_by_hand() -> None:
    plan = planned()
    layout_s = 3 * GIB / 300e6
    measuring_s = 0.97 * 400 - layout_s
    assert stages(plan) == {
        "scout": 12,
        "ends": 4,
        "unique_bytes": 16,
        "families": 50,
        "closing": 2,
    }
    assert list(stages(plan))[-1] == "closing"
    assert plan.point_s == pytest.approx(measuring_s / 84)
    assert plan.expected_s == pytest.approx(0.97 * 400)
    assert (plan.budget_s, plan.layout_bytes) == (400.0, 3 * GIB)
    assert (plan.unique_bytes_min, plan.unique_bytes_max) == (64 * MIB, 3 * GIB)
    assert (plan.size_mean_min, plan.size_mean_max) == (4096, 2 * MIB)
    assert (plan.process_num_max, planned(process_num_max=10**6).process_num_max) == (
        16,
        PROCESSES_MAX,
    )


def test_virtual_time_writes_no_data() -> None:
    plan = planned(virtual=True, budget_s=100.0)
    assert plan.layout_bytes == 0
    assert plan.point_s == pytest.approx(97 / plan.points)
    assert plan.expected_s == pytest.approx(97.0)


@pytest.mark.parametrize(
    ("budget_s", "scout", "curve", "families"),
    [
        (50.0, 8, 7, 13),
        (108.0, 8, 8, 18),
        (120.0, 8, 9, 21),
        (121.0, 12, 9, 18),
        (187.0, 12, 15, 36),
        (188.0, 18, 15, 31),
        (1000.0, 12, 16, 50),
    ],
)
def test_a_point_is_wanted_for_every_two_point_six_seconds_of_measuring(
    budget_s: float, scout: int, curve: int, families: int
) -> None:
    found = stages(planned(budget_s=budget_s, virtual=True))
    assert found == {
        "scout": scout,
        "ends": 4,
        "unique_bytes": curve,
        "families": families,
        "closing": 2,
    }


@pytest.mark.parametrize(
    ("budget_s", "virtual", "share", "curves", "learning"),
    [
        (400.0, True, 0.25, 63, 21),
        (400.0, True, 0.9, 46, 38),
        (210.0, True, 0.25, 78, 0),
        (215.0, True, 0.25, 46, 6),
        (1000.0, False, 0.25, 84, 35),
        (1000.0, False, 0.6, 56, 84),
        (1000.0, False, 0.0, 84, 0),
    ],
)
def test_learning_takes_its_share_of_longer_readings_and_leaves_the_curves_theirs(
    budget_s: float, virtual: bool, share: float, curves: int, learning: int
) -> None:
    found = stages(planned(budget_s=budget_s, virtual=virtual, learn_frac=share))
    assert found.pop("learning", 0) == learning
    assert sum(found.values()) == curves


def test_points_of_both_kinds_share_the_time_there_is() -> None:
    plan = planned(budget_s=1000.0, virtual=True, learn_frac=0.25)
    assert plan.points == 84
    assert plan.point_s == pytest.approx(970.0 / 84)
    assert plan.expected_s == pytest.approx(970.0)


def test_the_75_percent_point_keeps_points_for_its_five_curves_and_never_learns() -> None:
    assert stages(planned(focal_mode="75%", learn_frac=0.5)) == {
        "75% point": 56,
        "final curves": 28,
    }
    small = stages(planned(focal_mode="75%", budget_s=50.0))
    assert small == {"75% point": 23, "final curves": 11}


def test_a_budget_must_hold_34_points_of_eight_tenths_of_a_second_beside_the_data() -> None:
    least_s = 34 * 0.8 / (0.97 - 0.2)
    assert planned(budget_s=least_s).points == 34
    with pytest.raises(PlanRefused, match=r"--budget 42s or more") as refused:
        planned(budget_s=least_s - 0.001)
    assert refused.value.exit_code == 2


def test_data_written_takes_a_fifth_of_the_budget_at_300_megabytes_a_second() -> None:
    plan = planned(budget_s=40.0, max_bytes=None, memory_bytes=None, l3_cache_bytes=None)
    assert plan.unique_bytes_max == int(0.2 * 40 * 300e6) // 4096 * 4096
    assert (
        planned(budget_s=40.0, max_bytes=None, memory_bytes=None, virtual=True).unique_bytes_max
        == 4 * GIB
    )


def test_the_range_is_whole_blocks_within_what_was_given() -> None:
    plan = planned(l3_cache_bytes=1_000_001, max_bytes=100_000_001)
    assert (plan.unique_bytes_min, plan.unique_bytes_max) == (489 * 4096, 24414 * 4096)
    assert planned(l3_cache_bytes=None).unique_bytes_min == 256 * 1024
    assert planned(capacity_bytes=GIB).unique_bytes_max == GIB
    assert planned(memory_bytes=256 * MIB).unique_bytes_max == 6 * 256 * MIB


def test_a_small_room_leaves_a_plateau_above_the_processors_cache() -> None:
    assert planned(memory_bytes=128 * MIB).unique_bytes_min == 16 * MIB
    alone = planned(memory_bytes=None, max_bytes=256 * MIB)
    assert (alone.unique_bytes_min, alone.unique_bytes_max) == (32 * MIB, 256 * MIB)


def test_a_range_spans_a_factor_of_eight_or_is_refused() -> None:
    small = {"l3_cache_bytes": None, "memory_bytes": None}
    assert planned(max_bytes=2 * MIB, **small).unique_bytes_max == 2 * MIB
    with pytest.raises(PlanRefused, match="--max-bytes 2 MiB"):
        planned(max_bytes=2 * MIB - 1, **small)


def test_the_memory_cap_that_is_advised_can_be_outgrown_within_the_budget() -> None:
    assert advised_cache_limit(100.0, 10**9) is None, "six times the memory is written in time"
    assert advised_cache_limit(100.0, 10**9 + 1) == 10**9
    assert advised_cache_limit(1000.0, 64 * GIB) == GIB
    assert advised_cache_limit(1.0, 64 * GIB) == 64 * MIB
    assert advised_cache_limit(1000.0, 64 * GIB, 3 * GIB) == GIB // 2, "of the room, too"


@pytest.mark.parametrize(("max_bytes", "said"), [(GIB, False), (255 * MIB, True), (None, False)])
def test_a_room_of_less_than_four_times_the_cap_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, max_bytes: int | None, said: bool
) -> None:
    monkeypatch.setattr("leadline.studies.memory.memory_cgroup", lambda _: nullcontext())
    monkeypatch.setattr("leadline.studies.memory.available_memory_bytes", lambda: 64 * GIB)
    told: list[str] = []
    chosen = choose_cache_limit(tmp_path, None, 60.0, told.append, max_bytes=max_bytes)
    assert chosen is not None
    assert chosen >= 64 * MIB
    assert any("partly hit the page cache" in each for each in told) is said


@pytest.mark.parametrize(
    ("cached", "name"), [(0.0, "disk"), (0.5, "disk"), (0.73, "partly cached disk")]
)
def test_a_last_level_read_from_the_cache_is_called_no_disk(cached: float, name: str) -> None:
    assert region_names([1.0, cached], [1.0, 1.0]) == ["page cache", name]
    assert region_names([1.0, 0.95], [1.0, 1.0])[1] == "second level"
