"""Skewed places and histograms of sizes, as fio says them and as Leadline does.

fio's side is options.c, init.c and lib/zipf.c (3.33): the rank of `zipf:theta` is multiplied by an
odd number and taken modulo the places. Where their number is a power of two each has one rank, as
here; elsewhere several ranks share a place and others have none: of 1,000 places 69% are never
asked for, of 1,536 29%, of 5,000 22% (`fio --write_iolog`). A zone of `zoned:60/10:…` is a whole
percent of the requests in a whole percent of the file, as here.
"""

from __future__ import annotations

import msgspec

from leadline.errors import WorkloadError
from leadline.fio.errors import FioJobRefused
from leadline.fio.sizes import Split, merged
from leadline.record.jobs.skew import Histogram, Places, Zipf, Zoned, read_access
from leadline.record.jobs.streams import SizeShare

_GRANULE_BYTES = 512


def zipf_differs(unique_bytes: int, smallest_bytes: int, size_mean: int) -> list[str]:
    """Return what fio's Zipf law does otherwise than Leadline's."""
    places = max(1, unique_bytes // smallest_bytes)
    differs = []
    if places & (places - 1):
        differs.append(
            f"fio hashes ranks to {places} places, which are no power of two, so that some are "
            "never asked for (of 1,000 two thirds, of 5,000 a fifth); in Leadline each has a rank"
        )
    if smallest_bytes != size_mean:
        differs.append(
            f"fio's ranks are of places of {smallest_bytes} bytes, as long as its smallest "
            f"request; Leadline's of {size_mean}, as long as the mean "
            "one"
        )
    return differs


def read_distribution(text: str) -> Places | None:
    """Return what `random_distribution` means here; None where nothing here is like it.

    Raises:
        FioJobRefused: zones that are not all of the file, or an exponent that cannot be.

    """
    kind, _, rest = text.partition(":")
    if kind == "random":
        return msgspec.UNSET
    if kind not in ("zipf", "zoned") or "," in text or (kind == "zipf" and ":" in rest):
        return None
    try:
        return read_access(text)
    except (ValueError, WorkloadError) as error:
        raise FioJobRefused(f"random_distribution={text}: {error}") from error


def write_distribution(access: Places) -> list[str]:
    """Return the lines that say the same to fio.

    Raises:
        FioJobRefused: an exponent of 1 or 0, or a zone that is no whole percent.

    """
    if isinstance(access, Zoned):
        for zone in access.zones:
            for share in (zone.access_frac, zone.size_frac):
                if abs(100 * share - round(100 * share)) > 1e-6:
                    raise FioJobRefused(
                        f"access={access}: fio takes whole percents of requests and of data"
                    )
        return [f"random_distribution={access}"]
    if isinstance(access, Zipf):
        if access.theta in (0.0, 1.0):
            raise FioJobRefused(
                f"access={access}: fio takes no exponent of {access.theta:g}; write for example "
                "zipf:0.99"
            )
        return [f"random_distribution={access}"]
    return []


def histogram_of(split: Split) -> Histogram | None:
    """Return the sizes of a bssplit as Leadline draws them; None where one is none here."""
    if not split or any(size % _GRANULE_BYTES for size, _ in split):
        return None
    return Histogram(tuple(SizeShare(size, float(percent)) for size, percent in split))


def split_of(histogram: Histogram, differences: list[str]) -> Split:
    """Return a histogram as whole percents; rare sizes are left out, which is said."""
    total = sum(size.weight for size in histogram.histogram)
    shares = [(size.bytes, 100 * size.weight / total) for size in histogram.histogram]
    kept = {
        size: percent for size, percent in merged([(s, round(p)) for s, p in shares]) if percent
    }
    largest = max(kept, key=lambda size: kept[size])
    kept[largest] += 100 - sum(kept.values())
    if any(abs(percent - kept.get(size, 0)) > 1e-6 for size, percent in shares):
        differences.append("shares of the sizes are whole percent; those below half of one are out")
    return tuple(sorted(kept.items()))
