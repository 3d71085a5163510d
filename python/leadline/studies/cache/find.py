"""From measurements of one system to its file cache: sizes, policy and the evidence for it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from leadline.record import CacheSize, FileCache, Interval, Measurement, WritePolicy
from leadline.stats import FittedBorder, Noise, own_error, pooled_noise, reading_interval
from leadline.studies.cache.policy import Rates, judge, promised, tally
from leadline.studies.cache.sizes import KindCurve, kind_curve, nearest_border, size_of, widened
from leadline.studies.cache.words import sentences
from leadline.studies.counted import EDGE, throughput
from leadline.units import format_bytes


def find_file_cache(
    points: Sequence[Measurement], *, memory_bytes: int | None, seed: int
) -> FileCache:
    """Find the file cache in measurements of one system.

    Sizes come from points of reads alone and of writes alone over unique_bytes; rates from places
    where both were measured. Whatever else is among `points` is left alone.

    Args:
        points: measurements of one system under one discipline.
        memory_bytes: memory that could hold file cache, when it is known.
        seed: of the intervals' bootstrap.

    """
    reads, writes = (kind_curve(points, frac, seed=seed) for frac in (1.0, 0.0))
    read_end, write_end = nearest_border(reads), nearest_border(writes)
    inside, outside = rate_places(reads, writes, read_end, write_end)
    noise = noise_of((*reads.points, *writes.points))
    rates = _rates(reads, writes, inside, outside, noise)
    fitting = [point for point in writes.points if point.workload.unique_bytes <= (inside or 0)]
    policy, evidence = judge(
        rates,
        tally(fitting),
        beyond=read_end is not None or bool(write_end),
        word=promised(writes.points),
    )
    found = FileCache(
        reads=_read_size(reads, read_end, memory_bytes),
        writes=_write_size(writes, write_end, policy, memory_bytes),
        policy=policy,
        evidence=evidence,
        size_mean=reads.points[0].workload.size_mean if reads.points else None,
        inside_bytes=inside,
        outside_bytes=outside,
        read_mb_s=rates.read,
        write_mb_s=rates.write,
        disk_read_mb_s=rates.disk_read,
        disk_write_mb_s=rates.disk_write,
        memory_bytes=memory_bytes,
    )
    return sentences(found)


def noise_of(points: Sequence[Measurement]) -> Noise:
    """Run-to-run noise of these points, from those that measured one and the same workload."""
    groups: dict[object, list[float]] = {}
    for point in points:
        if point.result.admissible:
            groups.setdefault(point.workload, []).append(throughput(point))
    return pooled_noise([group for group in groups.values() if len(group) > 1])


def pooled(points: Sequence[Measurement], noise: Noise) -> Interval:
    """Throughput behind the readings of one workload, in MB/s, with a 95 % interval."""
    return reading_interval(
        [throughput(point) for point in points],
        [own_error(point.result.throughput_mb_s) for point in points],
        noise,
    )


def rate_places(
    reads: KindCurve,
    writes: KindCurve,
    read_end: FittedBorder | None,
    write_end: FittedBorder | None,
) -> tuple[int | None, int | None]:
    """Choose the unique_bytes within the cache, and beyond it, at which rates are compared.

    Both kinds were measured there, as often as anywhere; "beyond" is twice the last border that
    any kind has. Without a border they are the ends of what was measured.
    """
    common = {p.workload.unique_bytes for p in reads.points} & {
        p.workload.unique_bytes for p in writes.points
    }
    if not common:
        return None, None
    ends = [end.bytes.value for end in (read_end, write_end) if end is not None]
    if not ends:
        return min(common), max(common) if len(common) > 1 else None
    last = max((b.bytes.value for b in (*reads.borders, *writes.borders)), default=0.0)
    inside = _most_read(reads, (u for u in common if u * EDGE <= min(ends)))
    outside = _most_read(reads, (u for u in common if u >= 2 * last and u != inside))
    return inside, outside


def _most_read(curve: KindCurve, places: Iterable[int]) -> int | None:
    """Return the place with the most readings; the larger of two with as many."""
    counts = dict.fromkeys(places, 0)
    for point in curve.points:
        if point.workload.unique_bytes in counts:
            counts[point.workload.unique_bytes] += 1
    return max(counts, key=lambda place: (counts[place], place), default=None)


def _rates(
    reads: KindCurve, writes: KindCurve, inside: int | None, outside: int | None, noise: Noise
) -> Rates:
    def at(curve: KindCurve, place: int | None) -> Interval | None:
        found = [point for point in curve.points if point.workload.unique_bytes == place]
        return pooled(found, noise) if found else None

    return Rates(
        read=at(reads, inside),
        write=at(writes, inside),
        disk_read=at(reads, outside),
        disk_write=at(writes, outside),
    )


def _read_size(
    curve: KindCurve, border: FittedBorder | None, memory_bytes: int | None
) -> CacheSize:
    if border is None:
        return _none(_no_border(curve, "reads"))
    return size_of(widened(border, curve), memory_bytes)


def _write_size(
    curve: KindCurve, border: FittedBorder | None, policy: WritePolicy, memory_bytes: int | None
) -> CacheSize:
    if policy is WritePolicy.THROUGH:
        return _none("no write ends in it: every write goes through")
    if border is None:
        return _none(_no_border(curve, "writes"))
    return size_of(widened(border, curve), memory_bytes)


def _no_border(curve: KindCurve, kind: str) -> str:
    if curve.fit is None:
        return f"too few points of {kind} alone"
    most = format_bytes(max(point.workload.unique_bytes for point in curve.points))
    return f"no border was found up to {most} of {kind} alone"


def _none(reason: str) -> CacheSize:
    return CacheSize(bytes=None, memory_frac=None, reason=reason)
