"""Claims about the page cache: its boundary, its two sizes, its read fraction, its writeback."""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path
from typing import Any

from check_claims import MIB, CannotTellError, Claim, Found, cannot_if, new_directory, told_by
from leadline.engine import CacheLimitRefused, Limits, Target, memory_cgroup, open_engine
from leadline.machine.dirty_limits import why_not
from leadline.record import NO_SYNC, Access, Measurement, Workload, WritePolicy
from leadline.store import open_store
from leadline.studies.cache.flusher import measure_flusher
from leadline.studies.cache.sizes import Rates, judge, tally
from leadline.studies.cache.write_costs import measure_disciplines

CAP_MIB = 96
OFF_FRAC_MAX = 0.15
BUDGET_S = 60
START_S_MAX = 5.0
"""For the command itself: Python, numpy and scipy."""
SHARE_CAP_MIB = 512
SHARE_OFF_MAX = 0.05
FLUSHED = Workload(unique_bytes=48 << 20, size_mean=32 << 10, read_frac=0.0, size_dist="fixed")


def why_no_cap() -> str | None:
    """Say why no memory cgroup can be made; None when one can."""
    try:
        with memory_cgroup(64 * MIB):
            return None
    except CacheLimitRefused as reason:
        return str(reason)


def survey(target: Path, budget_s: float, folder: Path) -> dict[str, Any]:
    """Survey a directory under the cap."""
    return told_by(
        "survey",
        str(target),
        "--cache-limit",
        f"{CAP_MIB}MiB",
        "--max-bytes",
        "640MiB",
        "--budget",
        f"{budget_s}s",
        folder=folder,
    )


def boundary_of_survey(folder: Path) -> Found:
    """Survey a directory under a cap."""
    cannot_if(why_no_cap())
    target = new_directory(folder, "target")
    answer = survey(target, 60.0, folder)
    with open_store(str(folder / "store.sqlite")) as store:
        room = room_bytes(store.items(answer["survey"]))
    return near_boundary(answer["boundaries_bytes"], room)


def budget_kept(folder: Path) -> Found:
    """Survey a directory; hold its wall time against its budget."""
    cannot_if(why_no_cap())
    target = new_directory(folder, "target")
    began_s = time.monotonic()
    answer = survey(target, BUDGET_S, folder)
    wall_s = time.monotonic() - began_s
    return Found(
        wall_s <= BUDGET_S + START_S_MAX and answer["points"] == answer["planned_points"],
        f"{wall_s:.1f} s for {answer['points']} of {answer['planned_points']} points",
    )


def near_boundary(boundaries: list[dict[str, float]], room: int) -> Found:
    """Hold the nearest boundary against the room that the cap leaves."""
    said = (
        ", ".join(f"{boundary['value'] / MIB:.0f} MiB" for boundary in boundaries) or "no boundary"
    )
    off = min((abs(boundary["value"] / room - 1) for boundary in boundaries), default=float("inf"))
    return Found(off <= OFF_FRAC_MAX, f"{said} beside a room of {room / MIB:.0f} MiB")


def room_bytes(points: tuple[Measurement, ...]) -> int:
    """Return the most that the kernel held of files in the group."""
    return max(point.result.cache_resident_bytes or 0 for point in points)


def both_sizes(folder: Path) -> Found:
    """Study the cache under a cap."""
    cannot_if(why_no_cap())
    target = new_directory(folder, "target")
    answer = told_by(
        "cache", str(target), "--cache-limit", f"{CAP_MIB}MiB", "--budget", "48s", folder=folder
    )
    with open_store(str(folder / "store.sqlite")) as store:
        room = room_bytes(store.items(answer["study"]))
    found = [answer[f"{kind}_cache"]["bytes"] for kind in ("read", "write")]
    shares = [size["value"] / room if size else 0.0 for size in found]
    return Found(
        all(abs(share - 1) <= OFF_FRAC_MAX for share in shares),
        f"reads {shares[0]:.2f}, writes {shares[1]:.2f} of a room of {room / MIB:.0f} MiB",
    )


def cached_share(unique_mib: int, folder: Path) -> Found:
    """Read data of this size under a cap."""
    cannot_if(why_no_cap())
    target = new_directory(folder, "target")
    answer = told_by(
        "measure",
        str(target),
        "--cache-limit",
        f"{SHARE_CAP_MIB}MiB",
        "--seconds",
        "1",
        "--runs",
        "1",
        "--workload",
        f"unique_bytes={unique_mib}MiB,size_mean=4KiB,size_dist=fixed,"
        "read_frac=1,seq_frac=0,process_num=1",
        folder=folder,
    )
    wanted = min(1.0, SHARE_CAP_MIB / unique_mib)
    share = float(answer["cached_share"])
    return Found(abs(share - wanted) <= SHARE_OFF_MAX, f"{share:.3f} for {wanted:.3f}")


def policy_of(sync: str, wanted: WritePolicy, folder: Path) -> Found:
    """Write within the cache in this write mode; name the policy."""
    work = Workload(
        unique_bytes=2 * MIB, size_mean=32768, read_frac=0.0, seq_frac=0.0, size_dist="fixed"
    )
    limits = Limits(warm_up_s_max=0.5, measure_s_min=2.0, measure_s_max=2.0, total_s_max=60.0)
    with open_engine(Target.parse(str(folder)), Access(sync=sync)) as engine:
        result = engine.run(work, seed=1, limits=limits)
    point = Measurement(
        point_id="p",
        order=0,
        stage="policy",
        started_at="",
        clock_s=0.0,
        seed=1,
        workload=work,
        backend="pread",
        result=result,
    )
    policy, evidence = judge(Rates(), tally([point]), beyond=False)
    return Found(policy is wanted, f"{policy.value}: {evidence[0].sentence}")


def flusher(folder: Path) -> Found:
    """Let the kernel's writeback rest and work."""
    cannot_if(why_not())
    target = Target.parse(str(folder))
    with open_engine(target) as engine:
        found, _ = measure_flusher(engine, target, FLUSHED, pairs=2)
    resting, working = found.resting_reach, found.working_reach
    if resting is None or working is None:
        raise CannotTellError(f"no device to watch: {found.reason}")
    return Found(
        resting < 0.1 and working > 4 * resting, f"{resting:.3f} resting, {working:.3f} working"
    )


def disciplines(folder: Path) -> Found:
    """Write in every write mode."""
    with open_engine(Target.parse(str(folder))) as engine:
        found, _ = measure_disciplines(engine, FLUSHED, passes=2, run_s=0.5)
    rates: dict[str, Any] = {rate.name: rate for rate in found.rates}
    reaches = {name: rates[name].device_reach for name in ("O_DSYNC", "fsync each 8", "direct")}
    if None in reaches.values():
        raise CannotTellError("no block device to watch")
    dsync = rates["O_DSYNC"].against_buffered.value
    said = ", ".join(f"{name} {reach:.2f}" for name, reach in reaches.items())
    return Found(
        all(reach > 0.9 for reach in reaches.values()) and dsync < 0.5,
        f"reached the device: {said}; O_DSYNC at {dsync:.3f} of the buffered rate",
    )


CLAIMS = (
    Claim("a survey ends within its budget", f"{BUDGET_S} s, and a start", budget_kept),
    Claim("a survey finds where the page cache ends", "a boundary within 15%", boundary_of_survey),
    Claim("a cache study finds both sizes", "within 15% of the room", both_sizes),
    *(
        Claim(
            f"the share from a cache of {SHARE_CAP_MIB} MiB of {size} MiB is what it holds",
            "within 0.05",
            partial(cached_share, size),
        )
        for size in (128, 640, 1024, 2048)
    ),
    Claim(
        "buffered writes within the cache are cancelled",
        WritePolicy.CANCELLING.value,
        partial(policy_of, NO_SYNC, WritePolicy.CANCELLING),
    ),
    Claim(
        "synchronous writes go through",
        WritePolicy.THROUGH.value,
        partial(policy_of, "dsync", WritePolicy.THROUGH),
    ),
    Claim("writeback rests and works as the limits say", "< 0.1, > 4 times that", flusher),
    Claim(
        "what waits reaches the device, at less than half the buffered rate",
        "> 0.90, < 0.5",
        disciplines,
    ),
)
