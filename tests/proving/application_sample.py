"""A small, valid description of an application; no trace was read for it."""

from __future__ import annotations

from leadline.record.application import (
    APPLICATION,
    ApplicationFound,
    ApplicationStart,
    FiveParameters,
    PhaseFound,
    SizeCount,
    Stream,
    TraceFacts,
)
from leadline.record.application.reuse import AtDistance, MissRatio, Reuse
from proving.study_sample import StudySample

FIVE = FiveParameters(
    unique_bytes=65536.0, size_mean=4096.0, read_frac=0.75, seq_frac=0.0, process_num=None
)
SIZES = (SizeCount(bytes=4096, requests=1000),)


def sample_application_start() -> ApplicationStart:
    """Return the beginning of one."""
    facts = TraceFacts(
        format="fio iolog v3",
        below_the_cache=False,
        times="known",
        timed=0,
        processes_known=False,
        processes=1,
        files=1,
        requests=1000,
        references=1000,
        lines=1003,
        unread=(0, 0),
        late=0,
        unseen=(),
        unplaced_bytes=0,
    )
    return ApplicationStart(
        study_id="application-a",
        system="program",
        started_at="2026-11-23T12:00:00+00:00",
        trace="program.log",
        facts=facts,
    )


def sample_phase() -> PhaseFound:
    """Return its one phase."""
    stream = Stream(
        kind="uniform",
        weight=1.0,
        bytes_weight=1.0,
        unique_bytes=65536.0,
        size_mean=4096.0,
        read_frac=0.75,
        seq_frac=0.0,
        read_size_mean=4096.0,
        write_size_mean=4096.0,
        sizes=SIZES,
        uses_apart=16.0,
        seen_again=0.98,
    )
    return PhaseFound(
        order=0,
        item_id="phase-0",
        from_s=0.0,
        to_s=1.5,
        requests=1000,
        read_bytes=750 * 4096,
        written_bytes=250 * 4096,
        workload=FIVE,
        read_sizes=(SizeCount(bytes=4096, requests=750),),
        write_sizes=(SizeCount(bytes=4096, requests=250),),
        streams=(stream,),
        streams_error=0.01,
        syncs=0,
        dirty_at_sync_bytes=None,
        sync_s=None,
        calls=(),
        gaps=None,
        loop="inconclusive",
        loop_because="the trace does not say how long requests took",
        read_s=None,
        write_s=None,
        metadata_s=None,
        in_io=None,
        on_their_way=None,
    )


def sample_application_found() -> ApplicationFound:
    """Return what was found of it all."""
    reuse = Reuse(
        page_bytes=4096,
        references=1000,
        rate=1.0,
        two_lists_rate=1.0,
        unique_pages=16.0,
        first_reads=12.0,
        first_writes=4.0,
        distances=(AtDistance(pages=8, reads=738.0, writes=246.0),),
        points=(MissRatio(cache_bytes=32768, lru=0.5, lru_error=None, two_lists=0.45),),
    )
    return ApplicationFound(
        wall_s=0.5,
        seconds=1.5,
        workload=FIVE,
        read_bytes=750 * 4096,
        written_bytes=250 * 4096,
        in_io=None,
        in_calls_s=(),
        reuse=reuse,
        sentences=("It is one phase.",),
        findings=(),
    )


def stored_application() -> StudySample:
    """Return what a store is given of it."""
    return StudySample(
        records=APPLICATION,
        start=sample_application_start(),
        items=(("", sample_phase()),),
        answer=sample_application_found(),
    )
