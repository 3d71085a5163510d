"""The five-parameter workload of CP94 §5 and the interval every number travels with."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Annotated, Any, Literal, NamedTuple, get_type_hints

import msgspec

from leadline.errors import WorkloadError
from leadline.record.jobs.skew import Histogram, Places, read_access, read_size_dist
from leadline.units import parse_bytes, parse_seconds

PARAMETERS = ("unique_bytes", "size_mean", "read_frac", "seq_frac", "process_num")
"""The five parameters, in the order of CP94 §5."""


BYTES_MAX = 2**60
PROCESSES_MAX = 1024
QUEUE_DEPTH_MAX = 4096
"""Most of `unique_bytes` and `size_mean`, of `process_num` and of `queue_depth`; all ranges here
are the wire's, and `tests/conformance/test_ranges.py` holds them to it."""


def declared(kind: type[msgspec.Struct]) -> dict[str, tuple[Any, Any]]:
    """Return of each field declared as `Annotated[type, more]` its type and what more it says."""
    hints = get_type_hints(kind, include_extras=True)
    return {
        name: (told.__origin__, told.__metadata__[0])
        for name, told in hints.items()
        if hasattr(told, "__metadata__")
    }


class Interval(msgspec.Struct, frozen=True, omit_defaults=True):
    """A number with its 95% confidence interval and the count it rests on.

    `low` and `high` are None when the count allows no interval; nothing is filled in.
    """

    value: float
    low: float | None
    high: float | None
    n: int
    df: int | None = None
    """Degrees of freedom of one run's own interval: its batches depend on each other."""

    @property
    def half_width_frac(self) -> float | None:
        """Half the interval's width as a fraction of the value; None when there is none."""
        if self.low is None or self.high is None or self.value == 0:
            return None
        return (self.high - self.low) / (2 * abs(self.value))

    def covers(self, truth: float) -> bool:
        """Whether the interval holds `truth`; an absent interval covers nothing."""
        return self.low is not None and self.high is not None and self.low <= truth <= self.high

    def excludes(self, value: float) -> bool:
        """Whether `value` lies outside; an absent interval excludes nothing."""
        return self.low is not None and not self.covers(value)


def interval_columns(name: str, number: Interval | None) -> dict[str, float | None]:
    """Lay a number out as columns of a flat row."""
    return {
        name: None if number is None else number.value,
        f"{name}_low": None if number is None else number.low,
        f"{name}_high": None if number is None else number.high,
        f"{name}_n": 0 if number is None else number.n,
    }


class Quantity(NamedTuple):
    """How a value of a workload is read, and between which it must be."""

    read: Callable[[str], Any]
    low: float = 0
    high: float | None = None
    said: str = "between {low} and {high}"


SIZE = Quantity(parse_bytes, 512, BYTES_MAX, "between 512 bytes and 2^60 (a million TiB)")


def parse_share(text: str) -> float:
    """Read `0.8` or `80%`.

    Raises:
        ValueError: neither; the message shows the spelling.

    """
    number = text.strip().removesuffix("%")
    try:
        return float(number) / (100 if number != text.strip() else 1)
    except ValueError:
        raise ValueError(f"{text!r} is not a share; write for example 0.8 or 80%") from None


def _whole(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ValueError(f"{text!r} is not a whole number; write for example 4") from None


SHARE = Quantity(parse_share, 0, 1)
SizeDist = Literal["normal", "fixed", "exponential", "lognormal"] | Histogram
"""How sizes are drawn: by a law about their mean, or as often as a histogram says."""


class Workload(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is asked of the storage system (CP94 §5; think time is CP93's sixth knob)."""

    unique_bytes: Annotated[int, SIZE]
    size_mean: Annotated[int, SIZE]
    read_frac: Annotated[float, SHARE] = 0.5
    seq_frac: Annotated[float, SHARE] = 0.5
    process_num: Annotated[int, Quantity(_whole, 1, PROCESSES_MAX)] = 1
    size_dist: Annotated[SizeDist, Quantity(read_size_dist)] = "normal"
    queue_depth: Annotated[int, Quantity(_whole, 1, QUEUE_DEPTH_MAX)] = 1
    think_time_s: Annotated[
        float, Quantity(parse_seconds, 0, 3600, "between {low} and {high} seconds")
    ] = 0.0
    access: Annotated[Places, Quantity(read_access)] = msgspec.UNSET
    """Which places are asked for more often than others; unset, none."""

    def __post_init__(self) -> None:
        """Read what was given as text, `100MiB` or `80%`; reject values outside their range."""
        for name, (_, quantity) in QUANTITIES.items():
            value = getattr(self, name)
            if isinstance(value, str):
                try:
                    value = quantity.read(value)
                except ValueError as error:
                    raise WorkloadError(f"{name}: {error}") from error
                msgspec.structs.force_setattr(self, name, value)
            if quantity.high is not None and not quantity.low <= value <= quantity.high:
                said = quantity.said.format(low=quantity.low, high=quantity.high)
                raise WorkloadError(f"{name} is {value}, it must be {said}")
        if isinstance(self.size_dist, Histogram):
            mean = self.size_dist.mean_bytes
            if abs(mean - self.size_mean) > 1 + 1e-12 * mean:
                raise WorkloadError(
                    f"size_mean is {self.size_mean}, and the mean of size_dist={self.size_dist} is "
                    f"{mean:.0f}; leave it out, or write that"
                )

    def beyond(self, *known: str) -> list[str]:
        """Return what is not as usual, besides the five parameters and others that are known."""
        usual = Workload(self.unique_bytes, self.size_mean)
        names = [name for name in QUANTITIES if name not in (*PARAMETERS, *known)]
        given = [name for name in names if getattr(self, name) != getattr(usual, name)]
        return [f"{name}={getattr(self, name)}" for name in given]

    def with_value(self, parameter: str, value: float) -> Workload:
        """Return this workload with one parameter changed; counts and bytes are rounded."""
        whole = QUANTITIES[parameter][0] is int
        return msgspec.structs.replace(self, **{parameter: round(value) if whole else value})

    @classmethod
    def parse(cls, text: str) -> Workload:
        """Read `unique_bytes=2GiB,size_mean=32KiB,read_frac=0.8,…` (DESIGN.md, command line).

        Raises:
            WorkloadError: an unknown key, a missing one, or a value that cannot be read.

        """
        return cls.of(read_values(filter(None, (piece.strip() for piece in text.split(",")))))

    @classmethod
    def of(cls, values: dict[str, Any]) -> Workload:
        """Make a workload of parameters by name.

        Raises:
            WorkloadError: one without which it is none is missing.

        """
        missing = [key for key in ("unique_bytes", "size_mean") if key not in values]
        if missing:
            raise WorkloadError(
                f"{' and '.join(missing)} missing; say for example "
                "unique_bytes=2GiB,size_mean=32KiB,read_frac=0.8,seq_frac=0.1,process_num=4"
            )
        return cls(**values)


def read_values(parts: Iterable[str]) -> dict[str, Any]:
    """Read `key=value` each, into what each parameter is.

    Raises:
        WorkloadError: an unknown key, one given twice, or a value that cannot be read.

    """
    values: dict[str, Any] = {}
    for part in parts:
        key, equals, value = part.partition("=")
        key = KEYS.get(key.strip(), key.strip())
        if not equals or key not in QUANTITIES:
            known = ", ".join(QUANTITIES)
            raise WorkloadError(f"{part!r} is not key=value with a known key ({known})")
        if key in values:
            raise WorkloadError(f"{key} is given twice")
        try:
            values[key] = QUANTITIES[key][1].read(value.strip())
        except ValueError as error:
            raise WorkloadError(f"{key}: {error}") from error
    sizes = values.get("size_dist")
    if isinstance(sizes, Histogram):
        values.setdefault("size_mean", round(sizes.mean_bytes))
    return values


QUANTITIES: dict[str, tuple[Any, Quantity]] = declared(Workload)
"""What a workload says, in the order in which it is sent: of each its type and how it is read."""
KEYS = {name: name for name in QUANTITIES} | {"think_time": "think_time_s"}
"""How people write each of them."""
FRACTIONS = tuple(name for name, (_, quantity) in QUANTITIES.items() if quantity is SHARE)
SIZES = tuple(name for name, (_, quantity) in QUANTITIES.items() if quantity is SIZE)
