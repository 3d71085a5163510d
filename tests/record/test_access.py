"""How storage is reached: what is said of it, and what gives way to what."""

from __future__ import annotations

import msgspec
import pytest

from leadline.errors import WorkloadError
from leadline.record.access import Access
from leadline.terminal.tell import format_study
from proving.samples import sample_start


def test_what_one_access_leaves_open_is_taken_from_the_other() -> None:
    asked = Access(sync="fsync=8", cache_limit_bytes=2**20)
    job = Access(backend="uring", direct=True, sync="dsync", compress=2.0)
    both = asked.over(job)
    assert (both.backend, both.direct, both.compress) == ("uring", True, 2.0)
    assert (both.sync, both.cache_limit_bytes) == ("fsync=8", 2**20)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"compress": 0.5}, "it is 1 to 10"),
        ({"compress": 11.0}, "it is 1 to 10"),
        ({"compress": float("nan")}, "it is 1 to 10"),
        ({"dedup": 1.5}, "it is 0 to 1"),
        ({"sync": "sometimes"}, "no way to wait"),
    ],
)
def test_what_no_access_can_be_is_refused(given: dict[str, float], said: str) -> None:
    with pytest.raises(WorkloadError, match=said):
        Access(**given)  # type: ignore[arg-type]


def test_the_heading_of_a_study_says_what_is_not_as_usual() -> None:
    start = sample_start()
    assert f"({start.target})" in format_study("survey", start)
    other = msgspec.structs.replace(start, direct=True, compress=4.0)
    assert f"({start.target}, direct, compress 4)" in format_study("survey", other)
