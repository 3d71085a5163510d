"""Claims about servers: what limits them, how fast they are lost, where their peaks lie."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from nfs_server import nfs_server, why_not
from server_examples import EXAMPLES, Example, at_words, example_trial, released, short_form, why_no

from check_caches import near_boundary
from check_claims import MIB, BrokenError, Claim, Found, cannot_if, new_directory, told_by
from leadline.engine import ServerLost
from leadline.engine.nfs_load import prepare_data, remove_data, run_nfs_load
from leadline.engine.targets.nfs_address import NfsAddress
from leadline.record import workbench as asked
from leadline.record.jobs.nfs import NfsData
from leadline.record.workbench import (
    Measured,
    Threshold,
    Trial,
    TrialOrder,
    TrialRequest,
    TrialState,
)
from leadline.servers import release_server, run_trial
from leadline.servers.ganesha import why_no_ganesha
from leadline.servers.striped_disks import why_no_disks

CACHE_MIB = 128
END_S_MAX = 15.0
"""A run that loses its server ends within this (issue 5)."""
KILLED_END_S_MAX = 4.0


def boundary_of_server(folder: Path) -> Found:
    """Survey a server whose cache is capped."""
    cannot_if(why_not(folder))
    served = new_directory(folder, "served")
    with nfs_server(served, memory_bytes=CACHE_MIB * MIB) as server:
        answer = told_by(
            "survey",
            server.url(),
            "--budget",
            "45s",
            "--max-bytes",
            f"{5 * CACHE_MIB}MiB",
            folder=folder,
        )
        room = CACHE_MIB * MIB - server.resident_bytes()
    return near_boundary(answer["boundaries_bytes"], room)


def load_as_offered(folder: Path) -> Found:
    """Offer what a server can easily do."""
    cannot_if(why_not(folder))
    with nfs_server(new_directory(folder, "served")) as server:
        address = NfsAddress.parse(server.url_with_ports())
        data = NfsData(workload="db_tp", data_bytes=16 * MIB)
        prepare_data(address, data)
        found = run_nfs_load(
            address, data, TrialRequest(rate_per_s=600.0, seconds=3.0), seed=2, warm_up_s=0.5
        ).measured
        remove_data(address, data)
    offered = found.due / 3.0
    return Found(
        abs(found.completed_per_s / offered - 1) <= 0.05,
        f"{found.completed_per_s:.0f}/s of {offered:.0f}/s",
    )


def ends_soon(harm: str, seconds_max: float, folder: Path) -> Found:
    """Take a server away in the middle of a load."""
    cannot_if(why_not(folder))
    harmed_s: list[float] = []
    with nfs_server(new_directory(folder, "served")) as server:
        address = NfsAddress.parse(server.url_with_ports())
        data = NfsData(workload="db_tp", data_bytes=16 * MIB)
        prepare_data(address, data)

        def on_event(event: dict[str, object]) -> None:
            if event.get("phase") == "measure" and not harmed_s:
                getattr(server, harm)()
                harmed_s.append(time.monotonic())

        try:
            run_nfs_load(
                address,
                data,
                TrialRequest(rate_per_s=300.0, seconds=60.0),
                seed=1,
                warm_up_s=0.2,
                on_event=on_event,
            )
        except ServerLost:
            passed_s = time.monotonic() - harmed_s[0]
            return Found(passed_s <= seconds_max, f"{passed_s:.1f} s")
    return Found(False, "it never ended")


def nfs_trial(
    directory: Path, rate_per_s: float, seconds: float, mib: int, **settings: Any
) -> Trial:
    """Offer a load to the workbench's NFS server with these factors."""
    server = asked.NfsServer(
        directory=str(directory),
        workload="db_tp",
        data_bytes=mib * MIB,
        settings=settings,
        warm_up_s=1.0,
    )
    request = TrialRequest(rate_per_s=rate_per_s, seconds=seconds)
    try:
        return run_trial(
            TrialOrder(
                server=server,
                sample={},
                threshold=Threshold(mean_ms=40),
                request=request,
                order=0,
                seed=1,
            )
        )
    finally:
        release_server(server, [{}])


def completed_per_s(trial: Trial) -> float:
    """Return what was done."""
    return measured_of(trial).completed_per_s


def measured_of(trial: Trial) -> Measured:
    """Return what a trial measured; one that measured nothing has broken."""
    if trial.measured is None:
        raise BrokenError(f"{trial.state.value}: {trial.failure}")
    return trial.measured


def threads_limit(folder: Path) -> Found:
    """Stall each request for a millisecond, with few workers and with many."""
    cannot_if(why_not(folder) or why_no_ganesha(None, "mem"))
    few, many = (
        completed_per_s(nfs_trial(folder, 4500, 2.0, 16, back_end="mem", threads=threads))
        for threads in (4, 24)
    )
    return Found(few < 3600 and many > 1.2 * few, f"{few:.0f}/s with few, {many:.0f}/s with many")


def disks_limit(folder: Path) -> Found:
    """Let each disk do 50 requests a second, one disk and four."""
    cannot_if(why_not(folder) or why_no_disks())
    one, four = (
        completed_per_s(
            nfs_trial(folder, 600, 4.0, 128, disk_iops=50, cache_cap="48MiB", disks=disks)
        )
        for disks in (1, 4)
    )
    return Found(four > 1.8 * one, f"{one:.0f}/s with one, {four:.0f}/s with four")


def half_and_twice(example: Example, _folder: Path) -> Found:
    """Offer half and twice what an example can do."""
    cannot_if(why_no(example))
    with released(example):
        half, twice = (
            measured_of(example_trial(example, example.limit_per_s * factor))
            for factor in (0.5, 2.0)
        )
    if half.response_ms is None or twice.response_ms is None:
        return Found(False, "nothing was answered")
    means_ms = half.response_ms.mean, twice.response_ms.mean
    return Found(
        means_ms[0] < 200 < means_ms[1]
        and twice.completed_per_s < 1.1 * example.limit_per_s
        and twice.unanswered > 0,
        f"mean {means_ms[0]:.0f} ms at half, {means_ms[1]:.0f} ms at twice, "
        f"{twice.completed_per_s:.0f}/s done",
    )


def given_up(example: Example, _folder: Path) -> Found:
    """Offer three times what an example can do, for long."""
    cannot_if(why_no(example))
    with released(example):
        trial = example_trial(example, 3 * example.limit_per_s, 90.0, abort_above_ms=400.0)
    if trial.state is not TrialState.ABORTED or trial.measured is None:
        return Found(False, f"{trial.state.value}: {trial.failure}")
    return Found(9 < trial.measured.seconds < 25, f"after {trial.measured.seconds:.0f} s")


def peak_of(example: Example, folder: Path) -> Found:
    """Search for an example's peak in a short form."""
    cannot_if(why_no(example))
    (folder / "short.toml").write_text(short_form(example))
    with released(example):
        answer = told_by(
            "peak",
            str(folder / "short.toml"),
            *at_words(example),
            "--policy",
            "mlrsearch",
            folder=folder,
        )
    bound = answer["lower_bound_per_s"] or 0.0
    return Found(
        0.2 * example.limit_per_s < bound <= 1.3 * example.limit_per_s,
        f"{bound:.0f}/s of a limit of {example.limit_per_s:.0f}/s",
    )


def _of_each(
    name: str, wanted: str, measure: Callable[[Example, Path], Found]
) -> tuple[Claim, ...]:
    return tuple(
        Claim(f"{example.name}: {name}", wanted, partial(measure, example)) for example in EXAMPLES
    )


CLAIMS = (
    Claim("a survey finds where an NFS server's cache ends", "within 15%", boundary_of_server),
    Claim("an NFS server does what it is offered", "within 5%", load_as_offered),
    Claim(
        "a killed NFS server ends a load soon",
        f"{KILLED_END_S_MAX:g} s",
        partial(ends_soon, "kill", KILLED_END_S_MAX),
    ),
    Claim(
        "a silent NFS server ends a load soon",
        f"{END_S_MAX:g} s",
        partial(ends_soon, "stall", END_S_MAX),
    ),
    Claim("threads that stall limit an NFS server", "< 3600/s; 1.2 times that", threads_limit),
    Claim("disks limit an NFS server", "four do 1.8 times one", disks_limit),
    *_of_each(
        "at half its limit it answers, at twice it queues", "< 200 ms, > 200", half_and_twice
    ),
    *_of_each("a load far too high is given up", "in 9 to 25 s", given_up),
    *_of_each("its peak is found", "0.2 to 1.3 of its limit", peak_of),
)
