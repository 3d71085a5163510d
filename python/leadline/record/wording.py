"""How records are said to people: a number with its interval, a workload, a place in a region."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import UNSET

from leadline.record.findings import Comparison
from leadline.record.survey import Boundary, DriftStep, Region
from leadline.record.workload import FRACTIONS, PARAMETERS, SIZES, Interval, Workload
from leadline.units import format_bytes, format_ci, format_percent, format_rate, format_seconds

PARAMETER_TITLES = {
    "unique_bytes": "Working set",
    "size_mean": "Mean request size",
    "read_frac": "Read fraction",
    "process_num": "Concurrency",
    "seq_frac": "Sequential fraction",
}
"""What each parameter is called on an axis and in a table."""
FRACTION_ENDS = {"read_frac": ("reads", "writes"), "seq_frac": ("sequential", "random")}
"""What a fraction is of, and what the rest is."""


def format_interval(number: Interval, write: Callable[[float], str]) -> str:
    """Write a number with its interval where it has one: `5.03 ms [4.96, 5.1]`."""
    if number.low is None or number.high is None:
        return write(number.value)
    return format_ci(write(number.value), write(number.low), write(number.high))


def format_rate_ci(rate: Interval, *, level: bool = False) -> str:
    """Write `310 MB/s [305, 316]`; with `level` `310 MB/s, 95% CI [305, 316]`."""
    return _with_interval(rate, format_rate, level=level)


def format_bytes_ci(size: Interval, *, level: bool = False) -> str:
    """Write `480 MiB [465, 495]`; with `level` `480 MiB, 95% CI [465, 495]`."""
    return _with_interval(size, format_bytes, level=level)


def format_boundary(boundary: Boundary) -> str:
    """Write `480 MiB [465, 495], from hit ratio`: where a level ends, and what shows it."""
    return f"{format_bytes_ci(boundary.bytes)}, from {format_basis(boundary.basis)}"


def format_basis(basis: str) -> str:
    """Say what shows a boundary: what was counted, or the throughput."""
    return "hit ratio" if basis == "counted" else "throughput"


def _with_interval(number: Interval, write: Callable[[float, str], str], *, level: bool) -> str:
    value = write(number.value, "")
    if number.low is None or number.high is None:
        return f"{value} (no interval, {format_count(number.n, 'reading')})"
    ends = write(max(0.0, number.low), value), write(number.high, value)
    return format_ci(value, *ends, level=0.95 if level else None)


def format_time(seconds: float, *, simulated: bool = False) -> str:
    """Write a duration, `14 h of simulated time` where nobody has to wait so long."""
    return f"{format_seconds(seconds)}{' of simulated time' if simulated else ''}"


def format_half_width(frac: float) -> str:
    """Write half an interval's width as `±2.1%`; one that tells nothing has no number."""
    return f"±{format_percent(frac)}" if frac <= 1.0 else "more than ±100%"


def format_share(share: Interval) -> str:
    """Write a fraction with its interval where it has one: `2.1% [1.8, 2.4]`."""
    return format_interval(share, format_percent)


def format_number(value: float) -> str:
    """Write a bare number with two or three digits and a true minus sign."""
    return f"{value:.3g}".replace("-", "\N{MINUS SIGN}")


def format_step(step: DriftStep) -> str:
    """Write a step: `fell by 40% [38, 42] at about 6 min into the survey`."""
    change = step.change_frac
    way = "fell" if change.value < 0 else "rose"
    at_s = step.at_s if step.at_s < 60 else 60.0 * round(step.at_s / 60)
    fell = format_percent(abs(change.value))
    if change.low is not None and change.high is not None:
        low, high = sorted((abs(change.low), abs(change.high)))
        fell = format_ci(fell, format_percent(low), format_percent(high))
    return f"{way} by {fell} at about {format_seconds(at_s)} into the survey"


def format_change(change: Interval) -> str:
    """Write a relative change with its interval: `-0.4% [-1.2, +0.4]`."""
    value = format_percent(change.value, signed=True)
    if change.low is None or change.high is None:
        return f"{value} (no interval, {format_count(change.n, 'reading')})"
    low, high = format_percent(change.low, signed=True), format_percent(change.high, signed=True)
    return format_ci(value, low, high)


def format_times(comparison: Comparison) -> str:
    """Write a ratio with its interval: `×3.1 [2.9, 3.3]`."""
    value = f"×{_digits(comparison.ratio)}"
    if comparison.low is None or comparison.high is None:
        return value
    return format_ci(value, _digits(comparison.low), _digits(comparison.high))


def _digits(value: float) -> str:
    return f"{value:.0f}" if value >= 20 else f"{value:.1f}" if value >= 3 else f"{value:.2f}"


def format_count(count: int, noun: str) -> str:
    """Write `1 reading`, `4 readings`, `4 processes`."""
    plural = f"{noun}es" if noun.endswith("s") else f"{noun}s"
    return f"{count} {noun if count == 1 else plural}"


def format_value(parameter: str, x: float) -> str:
    """Write one value of a parameter for a table or a tooltip: `64 KiB`, `75%`, `8`."""
    if parameter in SIZES:
        return format_bytes(x)
    if parameter in FRACTIONS:
        return f"{100 * x:.3g}%"
    return f"{x:.0f}"


def format_workload_at(parameter: str, x: float) -> str:
    """Write what one value of a parameter means to a reader: `64 KiB requests`, `only writes`."""
    if parameter == "unique_bytes":
        return f"{format_bytes(x)} touched"
    if parameter == "size_mean":
        return f"{format_bytes(x)} requests"
    if parameter == "process_num":
        return format_count(round(x), "process")
    kind, other = FRACTION_ENDS[parameter]
    if x in (0.0, 1.0):
        end = kind if x == 1.0 else other
        return f"only {end}" if parameter == "read_frac" else f"only {end} requests"
    return f"{100 * x:.3g}% {kind}"


def format_level(name: str, level: str | float) -> str:
    """Write a factor's level; a size of a workload's as people write sizes: `64 KiB`."""
    return format_bytes(level) if name in SIZES and isinstance(level, int) else str(level)


def format_workload(work: Workload) -> str:
    """Write all five parameters, and sizes and places that are unusual: `120 MiB touched, …`."""
    said = [format_workload_at(name, getattr(work, name)) for name in PARAMETERS]
    if work.size_dist not in ("normal", "fixed"):
        said.append(f"sizes {work.size_dist}")
    if work.access is not UNSET:
        said.append(f"places {work.access}")
    return ", ".join(said)


def format_parameters(work: Workload) -> str:
    """Write a workload as it is typed: `unique_bytes=256MiB size_mean=32KiB read_frac=0.5 …`."""
    said = {name: getattr(work, name) for name in PARAMETERS}
    written = {
        name: format_bytes(value).replace(" ", "") if name in SIZES else f"{value:g}"
        for name, value in said.items()
    }
    return " ".join(f"{name}={value}" for name, value in written.items())


def format_place(region: Region) -> str:
    """Write where a region is: `in the page cache`, `on the disk`."""
    on = any(word in region.name.lower() for word in ("disk", "device", "drive", "server"))
    return f"{'on' if on else 'in'} the {region.name}"


def join_words(parts: list[str]) -> str:
    """Join with commas and a last `and`."""
    return " and ".join([", ".join(parts[:-1]), parts[-1]]) if len(parts) > 1 else "".join(parts)
