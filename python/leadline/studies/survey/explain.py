"""From measurements to the survey document: pure, so that a stored survey explains itself."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean
from typing import NamedTuple

import msgspec

from leadline.engine import bytes_written
from leadline.record import (
    Boundary,
    Curve,
    CurvePoint,
    DriftStep,
    Family,
    Interval,
    Measurement,
    Region,
    Sentinel,
    SlopePoint,
    Status,
    Survey,
    SurveyStart,
    Workload,
)
from leadline.record.finding import Finding
from leadline.record.wording import PARAMETER_TITLES, format_place, format_rate_ci, format_value
from leadline.stats import change_points, good_range, group_drift, group_step, slope
from leadline.studies.hit_ratio import throughput
from leadline.studies.memory import memory_bytes_of
from leadline.studies.survey.boundaries import (
    Decided,
    SurveyReadings,
    curve_of,
    decide_again,
    value,
)
from leadline.studies.survey.middle import MiddleStrategy, RegionBounds, half_way
from leadline.studies.survey.sentences import NoiseModel, sentences, survey_findings
from leadline.studies.survey.strategy import SeventyFiveStrategy, Surveyor, format_vector
from leadline.units import format_seconds

CURVES = ("size_mean", "read_frac", "process_num", "seq_frac")
ORDINALS = ("first", "second", "third", "fourth")

CACHED_SHARE_MIN = 0.9
"""A region whose reads come from the page cache to more than this share is cached."""
DISK_CACHED_SHARE_MAX = 0.5
"""More of the reads from the page cache, and the rate is not that of a disk."""

READ_CACHE_RATIO = 2.0
"""Reads over writes, against the first region's, from which a cache holds reads only."""

SETTLED_FACTOR = 3.0
"""A half-way value is confirmed within this factor: it was read off coarse curves, of three points
each, and the families' have few more."""


def explain(start: SurveyStart, points: Sequence[Measurement]) -> Survey:
    """Derive the survey from its start record and its points, finished or not.

    Raises:
        ResumeMismatch: the points are not those of this survey.

    """
    return explain_told(Surveyor(start, points))


def explain_told(surveyor: Surveyor, *, wall_s: float | None = None) -> Survey:
    """Derive the survey from a surveyor that was told its points already; see `explain`.

    `wall_s` is what the survey took; by default the clock at the end of the last point.
    """
    return _Explanation(surveyor).survey(wall_s)


class _Explanation:
    """Everything derived from one replayed survey; made and thrown away by `explain`."""

    def __init__(self, surveyor: Surveyor) -> None:
        self.start = surveyor.start
        self.points = surveyor.points
        self.complete = surveyor.complete
        self.strategy: MiddleStrategy | SeventyFiveStrategy = surveyor.strategy
        self.readings: SurveyReadings = surveyor.strategy.readings
        self.noise = NoiseModel(self.readings, self.strategy.regions)
        self.contradicted = False
        self.memory_bytes = memory_bytes_of(
            self.start.cache_limit_bytes, self.start.facts, self.start.system_profile
        )

    def survey(self, wall_s: float | None) -> Survey:
        decided = self._decided_again()
        boundaries = decided.boundaries if decided else ()
        regions = self._regions(boundaries)
        curve = self._curve("unique_bytes", None, self._curve_focal())
        families = tuple(self._family(region) for region in regions)
        last = self.points[-1] if self.points else None
        draft = Survey(
            start=self.start,
            status=Status.DONE if self.complete else Status.STOPPED,
            wall_s=_end_of(last) if wall_s is None else wall_s,
            points=len(self.points),
            regions=regions,
            boundaries=boundaries,
            unique_bytes_curve=curve,
            slope=_slope(curve),
            families=families,
            cache_bytes=_cache_bytes(boundaries, regions, self.memory_bytes),
            sentinels=self._sentinels(),
            drift_frac=self._drift(),
            drift_step=self._drift_step(),
            noise_frac={region.name: self.noise.at(region.focal).sd_frac for region in regions},
            accuracy_frac=_accuracy(curve, families),
            settled=self._settled(families),
            cross_check_bytes=self._cross_check(),
            sentences=(),
            findings=(),
            written_bytes=sum(bytes_written(point.result) for point in self.points),
        )
        doubt = decided.doubt if decided else None
        worded = _with_words(draft, self.points, contradicted=self.contradicted, doubt=doubt)
        if isinstance(self.strategy, SeventyFiveStrategy):
            told = (worded.sentences[0], format_vector(self.strategy), *worded.sentences[1:])
            return msgspec.structs.replace(worded, sentences=told)
        return worded

    # ---- boundaries and regions ----------------------------------------------------------------

    def _decided_again(self) -> Decided | None:
        """Place the boundaries again, now that the focal points have added readings to the curve.

        The regions stay those that the families were measured for. Where later readings leave no
        fit with so many boundaries, the one that decided stands, with a warning.
        """
        decided = self.strategy.decided
        if decided is None:
            return None
        points = self.readings.along("unique_bytes", self.strategy.focal)
        again, self.contradicted = decide_again(
            decided, points, seed=self.start.seed, memory_bytes=self.memory_bytes
        )
        return again

    def _cross_check(self) -> tuple[float, ...]:
        """What a model-free change-point detector makes of the same curve."""
        if self.strategy.decided is None:
            return ()
        points = self.readings.along("unique_bytes", self.strategy.focal)
        return change_points(
            [value(p, "unique_bytes") for p in points], [throughput(p) for p in points]
        )

    def _regions(self, boundaries: Sequence[Boundary]) -> tuple[Region, ...]:
        bounds = self.strategy.regions
        edges = [item.bytes.value for item in boundaries]
        focals = [self.strategy.focal_in(item) for item in bounds]
        shares = [_cached_share(self.readings.at(focal)) for focal in focals]
        names = (
            server_level_names(len(focals))
            if self.start.backend == "nfs"
            else region_names(shares, [self._reads_over_writes(focal) for focal in focals])
        )
        regions = []
        for index, (item, focal) in enumerate(zip(bounds, focals, strict=True)):
            regions.append(
                Region(
                    index=index,
                    name=names[index],
                    low_bytes=round(edges[index - 1]) if index else item.low_bytes,
                    high_bytes=round(edges[index]) if index < len(edges) else item.high_bytes,
                    focal=focal,
                    throughput_mb_s=self._interval(self.readings.at(focal)),
                    cached_share=shares[index],
                )
            )
        return tuple(region for region in regions if region.throughput_mb_s.n > 0)

    def _reads_over_writes(self, focal: Workload) -> float:
        """How much faster reads are than writes at a focal point; 1 where that was not measured."""
        reads, writes = (
            [throughput(p) for p in self.readings.at(focal.with_value("read_frac", frac))]
            for frac in (1.0, 0.0)
        )
        return statistics.fmean(reads) / statistics.fmean(writes) if reads and writes else 1.0

    # ---- curves -----------------------------------------------------------------------------

    def _curve_focal(self) -> Workload:
        regions = self.strategy.regions
        return self.strategy.focal_in(regions[0]) if regions else self.strategy.focal

    def _family(self, region: Region) -> Family:
        curves = [self._curve(parameter, region.index, region.focal) for parameter in CURVES]
        return Family(region.index, tuple(curve for curve in curves if len(curve.points) > 1))

    def _curve(self, parameter: str, region: int | None, focal: Workload) -> Curve:
        at: dict[float, list[Measurement]] = {}
        for point in self.readings.along(parameter, focal):
            at.setdefault(value(point, parameter), []).append(point)
        points = tuple(
            CurvePoint(
                x=x,
                throughput_mb_s=self._interval(found),
                readings_mb_s=tuple(throughput(p) for p in found),
                point_ids=tuple(p.point_id for p in found),
            )
            for x, found in sorted(at.items())
        )
        low, high = _good(points, log=not parameter.endswith("frac"))
        return Curve(
            parameter=parameter,
            region=region,
            points=points,
            focal=focal,
            good_low=low,
            good_high=high,
        )

    def _interval(self, found: Sequence[Measurement]) -> Interval:
        return self.noise.interval(found)

    # ---- how sure ---------------------------------------------------------------------------

    def _sentinels(self) -> tuple[Sentinel, ...]:
        regions: list[tuple[int, RegionBounds]] = list(enumerate(self.strategy.regions))
        found = [
            Sentinel(point.clock_s, throughput(point), index)
            for index, bounds in regions
            for point in self.readings.at(self.strategy.focal_in(bounds))
        ]
        return tuple(sorted(found, key=lambda sentinel: sentinel.clock_s))

    def _drift(self) -> Interval | None:
        return group_drift(*self.readings.replicate_series())

    def _drift_step(self) -> DriftStep | None:
        return group_step(*self.readings.replicate_series())

    def _settled(self, families: tuple[Family, ...]) -> bool:
        if isinstance(self.strategy, SeventyFiveStrategy):
            return self.strategy.settled
        return all(
            self._confirmed(parameter, families) for parameter in ("size_mean", "process_num")
        )

    def _confirmed(self, parameter: str, families: tuple[Family, ...]) -> bool:
        """Whether the families' own half-way values agree with the focal value used."""
        used = float(getattr(self.strategy.focal, parameter))
        product, count = 1.0, 0
        for family in families:
            focal = self.strategy.focal_in(self.strategy.regions[family.region])
            xs, ys = curve_of(self.readings.along(parameter, focal), parameter)
            if len(xs) > 1:
                product *= half_way(xs, ys, used)
                count += 1
        if not count:
            return True
        found = product ** (1 / count)
        return bool(max(found, used) <= SETTLED_FACTOR * min(found, used))


def _end_of(last: Measurement | None) -> float:
    return last.clock_s + last.result.total_s if last else 0.0


def _cached_share(points: Sequence[Measurement]) -> float | None:
    """Of all reads; of those at random places where the file system counts no bytes (Btrfs)."""
    shares = [
        looked if point.result.cached_share is None else point.result.cached_share
        for point in points
        for looked in (point.result.provenance.found_random_share,)
    ]
    known = [share for share in shares if share is not None]
    return statistics.mean(known) if known else None


def region_names(
    cached_shares: Sequence[float | None], reads_over_writes: Sequence[float]
) -> list[str]:
    """Name the regions for people, from where the bytes came from at their focal points.

    A second cached region is a read cache when only there reads leave writes behind (Sprite's
    write cache is smaller than its read cache, CP94 Fig. 8). What is neither the first cache nor
    the last region is a level with a number: nothing is known of it but its speed.
    """
    count = len(cached_shares)
    if count <= 1:
        return ["whole range"] * count
    names = [f"{ordinal} level" for ordinal in ORDINALS[: count - 1]]
    if (cached_shares[0] or 0.0) > CACHED_SHARE_MIN:
        names[0] = "page cache"
    for index in range(1, count - 1):
        cached = (cached_shares[index] or 0.0) > CACHED_SHARE_MIN
        if cached and reads_over_writes[index] > READ_CACHE_RATIO * reads_over_writes[0]:
            names[index] = "read cache"
            break
    return [*names, _last_name(cached_shares[-1] or 0.0, count)]


def _last_name(cached_share: float, count: int) -> str:
    """Name the last level: where its reads all come from memory, the disk was not reached."""
    if cached_share > CACHED_SHARE_MIN:
        return f"{ORDINALS[count - 1]} level"
    return "disk" if cached_share <= DISK_CACHED_SHARE_MAX else "partly cached disk"


def server_level_names(count: int) -> list[str]:
    """Name the regions of a server: which is its cache and which its disk cannot be seen."""
    if count <= 1:
        return ["whole range"] * count
    return [f"server's {ordinal} level" for ordinal in (*ORDINALS[: count - 1], "last")]


def _cache_bytes(
    boundaries: Sequence[Boundary], regions: tuple[Region, ...], memory_bytes: int | None
) -> Interval | None:
    """Effective size of the page cache for reads: its end by hit ratio, or the last boundary.

    Where the device's own counters are known, the cache ends with the last region that was
    mostly read from it; otherwise with the first boundary. What ends beyond the memory is no page
    cache.
    """
    if not boundaries:
        return None
    counted = [boundary.bytes for boundary in boundaries if boundary.basis == "counted"]
    if counted:
        return counted[0]
    cached = [r.index for r in regions if (r.cached_share or 0.0) > CACHED_SHARE_MIN]
    found = boundaries[min(max(cached, default=0), len(boundaries) - 1)].bytes
    return None if memory_bytes is not None and found.value > memory_bytes else found


def _good(points: Sequence[CurvePoint], *, log: bool) -> tuple[float | None, float | None]:
    if len(points) < 2:
        return None, None
    xs = [point.x for point in points]
    return good_range(xs, [point.throughput_mb_s.value for point in points], 0.75, log=log)


def _slope(curve: Curve) -> tuple[SlopePoint, ...]:
    xs = [point.x for point in curve.points]
    ys = [point.throughput_mb_s.value for point in curve.points]
    pairs = list(zip(xs, ys, strict=True))
    return tuple(SlopePoint(x, value) for x, value in slope(pairs)) if len(xs) > 1 else ()


def _accuracy(curve: Curve, families: tuple[Family, ...]) -> float | None:
    curves = [curve, *(item for family in families for item in family.curves)]
    widths = [p.throughput_mb_s.half_width_frac for item in curves for p in item.points]
    known = [width for width in widths if width is not None]
    return statistics.median(known) if known else None


def _with_words(
    draft: Survey, points: Sequence[Measurement], *, contradicted: bool, doubt: Finding | None
) -> Survey:
    findings = survey_findings(draft, points, contradicted=contradicted, doubt=doubt)
    worded = msgspec.structs.replace(draft, findings=findings)
    return msgspec.structs.replace(worded, sentences=sentences(worded))


class PointLatency(NamedTuple):
    """What a point of a curve says beside its throughput; of several readings the mean."""

    mean_us: float
    p50_us: float
    p99_us: float
    iops: float


def latencies(points: Iterable[Measurement]) -> dict[str, PointLatency]:
    """Return what every measurement says of response times, by its id."""
    found = {}
    for point in points:
        result, times = point.result, point.result.latency_us
        found[point.point_id] = PointLatency(times.mean, times.p50, times.p99, result.iops.value)
    return found


def latency_at(point: CurvePoint, known: Mapping[str, PointLatency]) -> PointLatency | None:
    """Return what the readings of a curve's point say together; None where none is known."""
    own = [known[each] for each in point.point_ids if each in known]
    if not own:
        return None
    return PointLatency(*(fmean(column) for column in zip(*own, strict=True)))


def every_curve(survey: Survey) -> tuple[Curve, ...]:
    """Return the curve over the working set, then those of each level."""
    own = (curve for family in survey.families for curve in family.curves)
    return (survey.unique_bytes_curve, *own)


def format_curve(survey: Survey, curve: Curve) -> str:
    """Write what a curve is over, and where: `request size within the page cache`."""
    title = PARAMETER_TITLES[curve.parameter]
    region = next((each for each in survey.regions if each.index == curve.region), None)
    return f"{title}, over all levels" if region is None else f"{title}, {format_place(region)}"


def curve_rows(
    curve: Curve, known: Mapping[str, PointLatency], *, iops: bool = False
) -> list[tuple[str, ...]]:
    """Return a row for each point of a curve.

    Args:
        curve: whose points.
        known: by `latencies`.
        iops: requests per second in place of MB/s.

    """
    rows: list[tuple[str, ...]] = []
    for point in curve.points:
        own = latency_at(point, known)
        rate = format_rate_ci(point.throughput_mb_s)
        if iops:
            rate = "not known" if own is None else f"{own.iops:,.0f}"
        times = ("not known",) * 2
        if own is not None:
            times = (format_seconds(own.p50_us / 1e6), format_seconds(own.p99_us / 1e6))
        rows.append((format_value(curve.parameter, point.x), rate, *times))
    return rows


def curve_heads(curve: Curve, *, iops: bool = False) -> tuple[str, ...]:
    """Return the heads of these rows."""
    rate = "Requests/s" if iops else "Throughput (95% CI)"
    return (PARAMETER_TITLES[curve.parameter], rate, "p50", "p99")
