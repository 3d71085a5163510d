"""Systems measured now are read interleaved, and every reading is kept before the next."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from leadline.engine import Limits, Target, open_engine
from leadline.record import Measurement, Workload
from leadline.store import Store, open_store
from leadline.studies.comparison.ratio import paired_ratio
from leadline.studies.comparison.run import STAGE, MeasureOptions, measure_in_turns
from leadline.studies.diary import Opened
from proving.comparison import true_mb_s

LIMITS = Limits(
    warm_up_s_max=30.0, measure_s_min=30.0, measure_s_max=60.0, accuracy=0.005, total_s_max=3600.0
)
IN_CACHE = Workload(unique_bytes=2**20, size_mean=16384, read_frac=0.8, seq_frac=0.5)
ON_DISK = Workload(unique_bytes=40 * 2**20, size_mean=16384, read_frac=0.8, seq_frac=0.5)


def asked(passes: int = 4) -> MeasureOptions:
    return MeasureOptions(passes, LIMITS, lambda number: 1000 + number)


@pytest.fixture
def store() -> Store:
    return open_store("sqlite://")


@pytest.fixture
def three() -> Iterator[tuple[Opened, ...]]:
    with ExitStack() as stack:
        yield tuple(
            Opened(
                name,
                f"sim:{name}",
                stack.enter_context(open_engine(Target.parse(f"sim:{name}"), run_seed=i)),
            )
            for i, name in enumerate(("hp-730", "convex-c240", "solbourne-5e905"))
        )


def test_turns_go_forth_and_back_so_that_drift_changes_sign(
    three: tuple[Opened, ...], store: Store
) -> None:
    order: list[tuple[int, str]] = []
    measure_in_turns(
        three,
        [IN_CACHE],
        asked(3),
        store,
        on_reading=lambda name, _, turn: order.append((turn, name)),
    )
    hp, convex, solbourne = (system.name for system in three)
    forth, back = [hp, convex, solbourne], [solbourne, convex, hp]
    assert order == [
        *((0, name) for name in forth),
        *((1, name) for name in back),
        *((2, name) for name in forth),
    ]


def test_the_systems_of_one_pass_meet_the_same_addresses(
    three: tuple[Opened, ...], store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept: list[Measurement] = []
    monkeypatch.setattr(store, "add", lambda _, point: kept.append(point))
    measure_in_turns(three[:2], [IN_CACHE, ON_DISK], asked(2), store)
    seeds = [point.seed for point in kept]
    assert seeds == [1000, 1000, 1001, 1001, 1002, 1002, 1003, 1003]


def test_every_reading_is_stored_before_the_next_starts(
    three: tuple[Opened, ...], store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept: list[str] = []
    add = store.add

    def add_and_note(study_id: str, point: Measurement) -> None:
        add(study_id, point)
        kept.append(point.point_id)

    monkeypatch.setattr(store, "add", add_and_note)
    seen: list[int] = []
    measure_in_turns(
        three[:2], [IN_CACHE], asked(2), store, on_reading=lambda *_: seen.append(len(kept))
    )
    assert seen == [0, 1, 2, 3]
    item = store.item(kept[0])
    point: Measurement = item.document
    assert (item.kind, point.stage, point.workload) == ("measurement", STAGE, IN_CACHE)
    assert point.facts["simulated_system"] == "hp-730"


def test_the_ratio_of_what_was_read_is_near_the_truth(
    three: tuple[Opened, ...], store: Store
) -> None:
    found = measure_in_turns(three[:2], [IN_CACHE, ON_DISK], asked(6), store)
    for readings in found:
        ratio = paired_ratio(
            list(zip(readings.mb_s["hp-730"], readings.mb_s["convex-c240"], strict=True))
        )
        assert ratio is not None
        truth = true_mb_s("hp-730", readings.workload) / true_mb_s("convex-c240", readings.workload)
        assert ratio.interval().value == pytest.approx(truth, rel=0.06)
        assert (ratio.interval().half_width_frac or 9) < 0.15


def test_a_workload_that_a_system_cannot_take_is_measured_on_the_others_only(
    three: tuple[Opened, ...], store: Store
) -> None:
    large = Workload(unique_bytes=250 * 2**20, size_mean=65536)
    (readings,) = measure_in_turns(three, [large], asked(2), store)
    (refused,) = readings.findings
    assert (refused.where, refused.code) == ("hp-730", "not_comparable")
    assert "250 MiB" in str(refused)
    assert {name: len(read) for name, read in readings.mb_s.items()} == {
        "convex-c240": 2,
        "solbourne-5e905": 2,
    }
    (lonely,) = measure_in_turns(three[:2], [large], asked(2), store)
    assert lonely.mb_s == {"convex-c240": ()}
