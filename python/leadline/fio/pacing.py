"""What makes a process of a fio job wait: think time, and rates.

A rate of fio is of one process and one direction, and a single value holds for reads and for writes
each (HOWTO "I/O rate"; usec_for_io of backend.c): in a mix both are held to their own clock, hence
the mix is what the rates say and not what rwmixread says.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from leadline.fio.errors import FioJobRefused
from leadline.fio.quantities import read_bytes, read_pair, read_seconds, read_whole
from leadline.fio.sizes import Sizes
from leadline.record import Arrivals


class Paced(NamedTuple):
    """When requests are due, and the read fraction that the rates leave."""

    arrivals: Arrivals
    read_frac: float


def read_think_time(
    options: dict[str, str], depth: int, tell: Callable[[str, str], None]
) -> tuple[float, int]:
    """Return seconds of pause after each request, and the queue depth that is left."""
    think_s = read_seconds("thinktime", options.get("thinktime", "0"), default_unit="us")
    if think_s == 0:
        return 0.0, depth
    if read_seconds("ramp_time", options.get("ramp_time", "0")) > 0:
        tell(
            "differs",
            "beside a thinktime fio 3.33 counts the requests of ramp_time but not its "
            "seconds, so that it tells too high a rate; leave ramp_time out there",
        )
    blocks = read_whole("thinktime_blocks", options.get("thinktime_blocks", "1"), 1, 2**31)
    if blocks > 1:
        tell(
            "approximated",
            f"fio pauses after every {blocks} requests; here after each, for as long in the mean",
        )
        return think_s / blocks, depth
    if depth > 1:
        tell(
            "differs",
            f"thinktime empties the queue in fio, so iodepth={depth} does nothing; taken as 1",
        )
    return think_s, 1


def read_arrivals(
    options: dict[str, str],
    *,
    sizes: tuple[Sizes, Sizes],
    read_frac: float,
    process_num: int,
    kb_base: int,
    tell: Callable[[str, str], None],
) -> Paced:
    """Return the arrivals that `rate` or `rate_iops` stand for; closed without either.

    Raises:
        FioJobRefused: both are given, or a process that fio does not have.

    """
    closed = Paced(Arrivals(), read_frac)
    given = [key for key in ("rate", "rate_iops") if key in options]
    if not given:
        return closed
    if len(given) == 2:
        raise FioJobRefused("rate and rate_iops exclude each other; fio refuses the job too")
    process = options.get("rate_process", "linear")
    if process not in ("linear", "poisson"):
        raise FioJobRefused(f"rate_process={process}: fio has linear and poisson")
    key = given[0]
    limits = [read_bytes(key, text, kb_base) if text else 0 for text in read_pair(options[key])]
    used = (read_frac > 0, read_frac < 1)
    asked = [
        pair for pair, is_used in zip(zip(limits, sizes, strict=True), used, strict=True) if is_used
    ]
    if not all(limit for limit, _ in asked):
        if any(limit for limit, _ in asked):
            tell(
                "not_mapped",
                f"{key}={options[key]} makes it ANOTHER workload: fio holds back "
                "only reads or only writes; here neither is",
            )
        return closed
    rates = [_per_second(key, process, limit, each) for limit, each in asked]
    total = sum(rates)
    if len(rates) == 2 and abs(rates[0] / total - read_frac) > 0.005:
        tell(
            "differs",
            f"reads and writes each have a rate in fio, so {rates[0] / total:.0%} are "
            f"reads whatever rwmixread says ({read_frac:.0%})",
        )
        read_frac = rates[0] / total
    tell(
        "differs",
        f"{key} is the most that fio asks for, and a process that falls behind asks "
        "later; here requests are due by the clock, and what is not served in time is told",
    )
    kind = Arrivals("poisson" if process == "poisson" else "constant", process_num * total)
    return Paced(kind, read_frac)


def _per_second(key: str, process: str, limit: int, sizes: Sizes) -> float:
    """Return the requests a second that one process makes of one kind."""
    # fio keeps the rate in bytes, a request counting as the smallest one; a Poisson process gets
    # its requests back in the same way, a linear one spends the bytes.
    if key == "rate_iops":
        return limit if process == "poisson" else limit * sizes.min_bytes / sizes.mean_bytes
    return limit / (sizes.min_bytes if process == "poisson" else sizes.mean_bytes)
