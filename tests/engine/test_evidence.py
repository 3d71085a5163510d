"""One point on a terminal: where its bytes came from, its spans, and each finding in words."""

from __future__ import annotations

import io
from typing import Any

import msgspec
import pytest
from rich.console import Console

from leadline.record import (
    Arrivals,
    CacheEvents,
    EngineResult,
    Generator,
    LatencyUs,
    Level,
    Measurement,
    MovedBytes,
    Offered,
    OtherLoad,
    Placed,
    Preconditioned,
    Provenance,
    Round,
    SpansUs,
    Stall,
    WrittenBytes,
)
from leadline.record.finding import Finding
from leadline.studies.measurement.text import format_source, marks, render_measurement, span_rows
from proving.samples import sample_point, sample_result

MIB = 2**20


def changed(**changes: Any) -> EngineResult:
    return msgspec.structs.replace(sample_result(), **changes)


def shown(result: EngineResult, **changes: Any) -> str:
    point: Measurement = msgspec.structs.replace(sample_point("p"), result=result, **changes)
    stream = io.StringIO()
    Console(file=stream, width=400, force_terminal=False).print(render_measurement(point))
    return stream.getvalue()


def latency(p99_us: float) -> LatencyUs:
    return LatencyUs(p99_us / 4, p99_us / 5, p99_us / 2, p99_us, 2 * p99_us, 3 * p99_us)


def test_a_share_found_by_looking_says_so() -> None:
    text = format_source(
        changed(
            cached_share=0.86,
            workload_bytes=MovedBytes(1000 * MIB, 0),
            device_bytes=MovedBytes(140 * MIB, 2 * MIB),
            provenance=Provenance(
                process_bytes=MovedBytes(139 * MIB, 0),
                probed=12034,
                found_share=0.86,
                cached_share_from="residency",
            ),
        )
    )
    assert text == (
        "86% of bytes read (page residency looked up before 12,034 reads); 0.977 GiB read and "
        "0 B written; device: 140 MiB and 2 MiB"
    )


def test_a_share_by_counters_alone_says_that() -> None:
    text = format_source(
        changed(
            cached_share=0.5,
            device_bytes=MovedBytes(25 * MIB, 0),
            provenance=Provenance(cached_share_from="device"),
        )
    )
    assert text.startswith("50% of bytes read (device counters)")


def test_others_reads_are_named_and_their_bookkeeping_is_not() -> None:
    def text(device: int, own: int = 100 * MIB) -> str:
        return format_source(
            changed(
                device_bytes=MovedBytes(device, 0),
                provenance=Provenance(process_bytes=MovedBytes(own, 0)),
            )
        )

    assert "Leadline asked for 100 MiB, the other 50 MiB were others' I/O" in text(150 * MIB)
    assert "others" not in text(100 * MIB + 4096)
    assert "others" not in text(102 * MIB), "a few per cent"
    assert "others" not in text(8192, own=0), "a few blocks"
    assert "others" not in text(50 * MIB)


def test_what_could_not_be_checked_is_said() -> None:
    text = format_source(
        changed(
            device_bytes=None,
            cached_share=None,
            findings=(),
            warm_up=msgspec.structs.replace(sample_result().warm_up, steady=None),
            provenance=Provenance(unchecked=("holes: no FIEMAP here", "cachestat is refused")),
        )
    )
    assert "unknown; " in text
    assert "device: counters cannot be read here" in text
    assert text.endswith("not checked: holes: no FIEMAP here; cachestat is refused")


def test_a_closed_loop_has_no_spans_of_its_own() -> None:
    assert span_rows(changed()) == []
    assert span_rows(changed(spans_us=SpansUs(None, latency(900.0), None))) == []
    assert "queueing delay" not in shown(changed(spans_us=SpansUs(None, latency(900.0), None)))


def test_an_open_loop_shows_three_named_spans_and_who_fell_short() -> None:
    offered = Offered(
        rate_per_s=2000.0,
        due=10000,
        late_target=800,
        late_generator=3,
        missed=440,
        completed_per_s=1912.0,
        shortfall_frac=0.044,
        fell_short="target",
    )
    spans = SpansUs(latency(5000.0), latency(900.0), latency(5900.0))
    text = shown(changed(offered=offered, spans_us=spans), arrivals=Arrivals("poisson", 2000.0))
    order = [
        text.index(f"\n{name} ")
        for name in ("queueing delay", "completion latency", "response time")
    ]
    assert order == sorted(order)
    assert "p99 5.9 ms" in text.partition("response time")[2].partition("\n")[0]
    assert "poisson arrivals, 2,000 requests/s, 1,912 completed" in text
    assert "of 10,000 scheduled 800 late by the target, 3 by Leadline, 440 not sent" in text
    assert "the target fell short, by 4.4%" in text


def test_an_offered_rate_that_was_kept_blames_nobody() -> None:
    offered = Offered(
        rate_per_s=2000.0,
        due=10000,
        late_target=0,
        late_generator=0,
        missed=0,
        completed_per_s=1999.0,
        shortfall_frac=0.0005,
        fell_short=None,
    )
    assert "fell short" not in shown(changed(offered=offered))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            {"levels": (Level(0.0, 2.3, 8100.0), Level(2.3, 2.7, 420.0))},
            "8.1 GB/s for 2.3 s, then 420 MB/s for 2.7 s; the mean describes none of them",
        ),
        (
            {"stalls": (Stall(2.31, 1.02, False), Stall(4.0, 0.2, True))},
            (
                "no completions for 1.02 s from 2.31 s on, 200 ms from 4 s on (Leadline itself "
                "did not run)"
            ),
        ),
        (
            {"generator": Generator(3600.0, True)},
            (
                "83% of the null-backend ceiling, 3,600 requests/s: the limit is Leadline, not the "
                "target"
            ),
        ),
        ({"generator": Generator(30000.0, False)}, "10% of the null-backend ceiling, 30,000"),
        ({"placement": Placed(True, (1, 0))}, "each worker on a processor of its own: 1 and 0"),
        ({"placement": Placed(False, ())}, "wherever the kernel put the workers"),
        (
            {
                "precondition": Preconditioned(
                    bytes=2**32,
                    seconds=12.0,
                    plateau=False,
                    rounds=(Round(2**31, 400.0), Round(2**31, 350.0)),
                )
            },
            "4 GiB written in 2 rounds and 12 s, without reaching a plateau, 350 MB/s at the end",
        ),
        (
            {"written_bytes": WrittenBytes(64 * MIB, 0, 32 * MIB)},
            "96 MiB in all: 64 MiB to lay the data out and 32 MiB by the workload",
        ),
        (
            {
                "other_load": OtherLoad(
                    cpu_pressure=0.12, io_pressure=0.5, steal_cpu=0.03, runnable=3
                )
            },
            (
                "steal 3.0%; pressure (PSI some): CPU 12%, I/O (ours included) 50%; 3 tasks "
                "runnable at the end"
            ),
        ),
        ({"clock": "tsc"}, "the processor's time-stamp counter, calibrated"),
        (
            {
                "provenance": Provenance(
                    cache_events=CacheEvents(
                        charged_pages=1234, uncharged_pages=None, refaulted_pages=5, major_faults=0
                    )
                )
            },
            "1,234 pages charged, 5 pages back after an eviction, 0 page faults waited",
        ),
    ],
)
def test_each_finding_is_said(changes: dict[str, Any], said: str) -> None:
    assert said in shown(changed(**changes))


def test_a_point_without_findings_says_nothing_of_them() -> None:
    text = shown(changed(findings=()))
    for name in (
        "levels",
        "stalls",
        "generator",
        "placement",
        "precondition",
        "written",
        "clock",
        "warning",
        "offered",
    ):
        assert f"\n{name} " not in text


def test_warnings_before_and_after_are_shown_as_plain_text() -> None:
    lost = Finding.of("server_lost", why="[red]stall[/red]: late", lost_requests=1)
    text = shown(
        changed(admissible=False, findings=(lost,)), findings=(Finding.of("busy_machine"),)
    )
    assert "host busy:" in text
    assert "[red]stall[/red]: late" in text


def test_a_point_is_marked_in_the_table_by_names() -> None:
    assert marks(changed()) == ""
    found = changed(
        generator=Generator(100.0, True),
        levels=(Level(0.0, 1.0, 5.0), Level(1.0, 1.0, 9.0)),
        stalls=(Stall(0.5, 0.2, False), Stall(1.0, 1.5, False)),
    )
    assert marks(found) == "generator-bound, level shift (2 rates), stall (1.5 s)"
