"""The write policy: what each observation says, when it cannot, and what together they decide."""

from __future__ import annotations

import msgspec
import pytest

from cache_fixture import MIB, cache_point
from leadline.record import Evidence, Interval, MovedBytes, Provenance, WritePolicy
from leadline.studies.cache.sizes import Rates, judge, tally

CANCELLING, THROUGH, UNKNOWN = WritePolicy


def near(mb_s: float, width: float = 0.03) -> Interval:
    return Interval(mb_s, mb_s * (1 - width), mb_s * (1 + width), 3)


def rates(write: float, disk_write: float, width: float = 0.03) -> Rates:
    return Rates(near(1000.0), near(write, width), near(50.0), near(disk_write, width))


def bytes_evidence(
    missed: float | None, *, unique_bytes: int = 16 * MIB, asked_bytes: int = 4096 * MIB
) -> Evidence:
    point = cache_point(unique_bytes, 0.0, missed=missed, asked_bytes=asked_bytes)
    return judge(Rates(), tally([point]), beyond=False)[1][0]


@pytest.mark.parametrize(
    ("missed", "says"), [(0.0, CANCELLING), (0.3, CANCELLING), (0.97, THROUGH), (1.02, THROUGH)]
)
def test_bytes_at_the_device_prove_the_policy(missed: float, says: WritePolicy) -> None:
    assert bytes_evidence(missed).says is says


def test_bytes_that_may_still_wait_in_a_buffer_prove_nothing() -> None:
    """A write-through cache with a buffer as large as the data would look the same."""
    assert bytes_evidence(0.0, asked_bytes=16 * MIB).says is UNKNOWN
    assert bytes_evidence(0.0, asked_bytes=24 * MIB).says is UNKNOWN
    assert bytes_evidence(0.0, asked_bytes=40 * MIB).says is CANCELLING


def test_between_the_two_the_bytes_cannot_tell() -> None:
    found = bytes_evidence(0.7)
    assert found.says is UNKNOWN
    assert found.value is not None
    assert found.value.value == pytest.approx(0.3)


def test_a_device_out_of_sight_is_said_not_filled_in() -> None:
    found = bytes_evidence(None)
    assert (found.says, found.value) == (UNKNOWN, None)
    assert found.sentence.startswith("n.m.")


def test_what_others_wrote_to_the_device_does_not_count() -> None:
    """A cancelling cache on a busy disk: the process made little dirty, others wrote the rest."""
    point = cache_point(16 * MIB, 0.0, missed=1.0)
    own = Provenance(process_bytes=MovedBytes(0, 16 * MIB))
    own_result = msgspec.structs.replace(point.result, provenance=own)
    point = msgspec.structs.replace(point, result=own_result)
    assert judge(Rates(), tally([point]), beyond=False)[1][0].says is CANCELLING


@pytest.mark.parametrize(
    ("write", "says"), [(900.0, CANCELLING), (120.0, CANCELLING), (85.0, UNKNOWN), (51.0, THROUGH)]
)
def test_writes_against_the_disk(write: float, says: WritePolicy) -> None:
    policy, evidence = judge(rates(write, 50.0), None, beyond=True)
    assert evidence[1].says is says
    assert policy is says


def test_a_ratio_whose_interval_is_wide_cannot_tell() -> None:
    assert judge(rates(120.0, 50.0, width=0.4), None, beyond=True)[0] is UNKNOWN
    assert judge(rates(51.0, 50.0, width=0.6), None, beyond=True)[0] is UNKNOWN


def test_without_a_boundary_the_disk_is_not_known_apart() -> None:
    policy, evidence = judge(rates(51.0, 50.0), None, beyond=False)
    assert policy is UNKNOWN
    assert "no boundary was found" in evidence[1].sentence


def test_a_flusher_that_slows_writes_does_not_make_the_cache_write_through() -> None:
    """CP93's HP 730: writes at a quarter of the reads' rate, and both faster than the disk."""
    moved = tally([cache_point(16 * MIB, 0.0, missed=0.05)])
    policy, evidence = judge(rates(250.0, 50.0), moved, beyond=True)
    assert policy is CANCELLING
    assert evidence[2].says is UNKNOWN
    assert "writeback" in evidence[2].sentence


def test_observations_that_contradict_each_other_cannot_tell() -> None:
    through = tally([cache_point(16 * MIB, 0.0, missed=1.0)])
    policy, evidence = judge(rates(900.0, 50.0), through, beyond=True)
    assert policy is UNKNOWN
    assert {item.says for item in evidence[:2]} == {CANCELLING, THROUGH}
