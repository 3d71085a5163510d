"""What a load generator prints, against numbers worked out by hand."""

from __future__ import annotations

import json
from typing import Any

import pytest

from leadline.record.workbench import Measured, Threshold, TrialRequest
from leadline.servers.load_document import NonsensePrinted, measured_of, read_document

MINUTE = TrialRequest(rate_per_s=10, seconds=60)
LIMIT = Threshold(mean_ms=40, limit_ms=10)


def read(document: dict[str, Any], request: TrialRequest = MINUTE) -> Measured:
    text = json.dumps({"leadline_load": 1} | document)
    return measured_of(read_document(text.encode()), request, LIMIT)


def of_requests(due_s: list[float], response_ms: list[float | None], **more: Any) -> Measured:
    return read({"requests": {"due_s": due_s, "response_ms": response_ms}, **more})


def test_a_request_counts_where_it_was_due_and_where_it_ended() -> None:
    found = of_requests([4.0, 6.0, 6.0, 64.0], [2000, 4, 20, 2000], warm_up_s=5.0)
    assert (found.due, found.unanswered, found.failed, len(found.batches)) == (3, 0, 0, 60)
    assert (found.batches[1].due, found.batches[1].over, found.batches[1].completed) == (2, 1, 3)
    assert found.batches[1].mean_ms == pytest.approx(12.0)
    assert found.batches[59].due == 1
    assert found.completed_per_s == pytest.approx(3 / 60)
    assert found.response_ms is not None
    assert found.response_ms.mean == pytest.approx(2024 / 3)
    assert (found.response_ms.p50, found.response_ms.max) == (20, 2000)
    assert found.warm_up_s == 5.0


def test_percentiles_are_of_the_responses() -> None:
    found = of_requests([0.05 * k for k in range(1000)], [float(k + 1) for k in range(1000)])
    response_ms = found.response_ms
    assert response_ms is not None
    assert (response_ms.p50, response_ms.p90, response_ms.p95) == (500, 900, 950)
    assert (response_ms.p99, response_ms.p99_9) == (990, 999)


def test_a_request_without_an_answer_counts_with_its_age() -> None:
    found = of_requests([10.0], [None], warm_up_s=5.0, ended_s=13.0, failed_due_s=[20.0, 2.0])
    assert (found.due, found.unanswered, found.failed) == (2, 1, 1)
    assert found.response_ms is not None
    assert found.response_ms.mean == pytest.approx(3000)
    assert found.completed_per_s == 0
    assert found.batches[15].due == 1


def test_an_aborted_window_has_only_its_whole_parts() -> None:
    found = of_requests([0.5, 9.7, 12.0], [4, 4, 4], seconds=10.1, aborted=True)
    assert (len(found.batches), found.due, found.aborted) == (10, 2, True)
    assert found.offered_per_s == pytest.approx(2 / 10.1)


def test_how_late_it_sent_is_of_the_window_alone() -> None:
    requests = {"due_s": [1.0, 6.0, 7.0], "response_ms": [1, 1, 1], "sent_late_ms": [90, 1, 2]}
    assert read({"requests": requests, "warm_up_s": 5.0}).sent_late_ms_p99 == 2


def test_a_histogram_has_means_from_its_middles_and_percentiles_from_its_ends() -> None:
    counts = {
        "due": 100,
        "completed_per_s": 1.6,
        "histogram": {"upper_ms": [10, 20, 40], "count": [50, 40, 10]},
    }
    found = read({"counts": counts, "sent_late_ms_p99": 0.1})
    assert found.response_ms is not None
    assert found.response_ms.mean == pytest.approx(0.5 * 5 + 0.4 * 15 + 0.1 * 30)
    assert (found.response_ms.p50, found.response_ms.p90, found.response_ms.p95) == (10, 20, 40)
    assert (found.due, found.sent_late_ms_p99, found.batches) == (100, 0.1, ())


SUMMARY = {"mean": 5, "p50": 4, "p90": 9, "p95": 10, "p99": 11, "p99_9": 12, "max": 13}
REQUESTS = {"due_s": [1.0], "response_ms": [1.0]}


def test_a_summary_is_taken_as_it_is() -> None:
    batch = {"due": 600, "mean_ms": 5, "over": 3, "completed": 599}
    found = read(
        {
            "counts": {
                "due": 600,
                "unanswered": 1,
                "completed_per_s": 9.98,
                "response_ms": SUMMARY,
                "batches": [batch],
            }
        }
    )
    assert found.response_ms is not None
    assert (found.response_ms.p99_9, found.batches[0].over, found.unanswered) == (12, 3, 1)


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ({}, "exactly one of"),
        ({"requests": REQUESTS, "counts": {"due": 1, "completed_per_s": 1}}, "exactly one of"),
        ({"requests": REQUESTS, "latency": 3}, "latency"),
        ({"requests": {"due_s": [1.0], "response_ms": []}}, "1 due_s and 0 response_ms"),
        ({"requests": {"due_s": [1.0], "response_ms": [-1]}}, "negative"),
        ({"requests": {"due_s": [1.0], "response_ms": [None]}}, "ended_s"),
        ({"requests": REQUESTS | {"sent_late_ms": []}}, "sent_late_ms"),
        ({"requests": REQUESTS, "seconds": 30}, "not `aborted`"),
        ({"requests": REQUESTS, "seconds": 91}, "91 s were measured"),
        ({"requests": REQUESTS, "seconds": -1}, "seconds is -1"),
        ({"requests": REQUESTS, "warm_up_s": -1}, "warm_up_s"),
        ({"counts": {"due": 9, "completed_per_s": 1}}, "no response times"),
        ({"counts": {"due": 9, "failed": 10, "completed_per_s": 1}}, "more went wrong"),
        (
            {"counts": {"due": 9, "completed_per_s": 1, "response_ms": SUMMARY | {"p50": 20}}},
            "do not rise",
        ),
        (
            {
                "counts": {
                    "due": 9,
                    "completed_per_s": 1,
                    "histogram": {"upper_ms": [2, 1], "count": [1, 1]},
                }
            },
            "not rise",
        ),
        (
            {
                "counts": {
                    "due": 9,
                    "completed_per_s": 1,
                    "histogram": {"upper_ms": [], "count": []},
                }
            },
            "counts nothing",
        ),
        ({"leadline_load": 2, "requests": REQUESTS}, "leadline_load"),
    ],
    ids=str,
)
def test_nonsense_is_named(document: dict[str, Any], said: str) -> None:
    with pytest.raises(NonsensePrinted, match=said):
        read(document)


def test_what_is_no_json_is_shown() -> None:
    with pytest.raises(NonsensePrinted, match="it begins 'Requests/sec: 312'"):
        read_document(b"Requests/sec: 312\n")


def test_over_counts_the_slower_ones() -> None:
    found = of_requests([6.1, 6.2, 6.3], [4, 20, 30])
    assert (found.batches[6].due, found.batches[6].over) == (3, 2)
