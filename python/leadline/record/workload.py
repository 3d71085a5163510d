"""The five-parameter workload of CP94 §5 and the interval every number travels with."""

from __future__ import annotations

from typing import Any, Literal, get_type_hints

import msgspec

from leadline.units import parse_bytes, parse_seconds

PARAMETERS = ("unique_bytes", "size_mean", "read_frac", "seq_frac", "process_num")
"""The five parameters, in the order of CP94 §5."""


BYTES_MAX = 2**60
PROCESSES_MAX = 1024
"""Most that the wire takes of `unique_bytes` and `size_mean`, and of `process_num`
(protocol/job.schema.json)."""


class WorkloadError(ValueError):
    """A workload that makes no sense; the message says what to type instead."""


def declared(kind: type[msgspec.Struct]) -> dict[str, tuple[Any, msgspec.Meta]]:
    """Return of each field declared as `Annotated[type, Meta(…)]` its type and that."""
    hints = get_type_hints(kind, include_extras=True)
    return {
        name: (told.__origin__, told.__metadata__[0])
        for name, told in hints.items()
        if hasattr(told, "__metadata__")
    }


class Interval(msgspec.Struct, frozen=True):
    """A number with its 95 % confidence interval and the count it rests on.

    `low` and `high` are None when the count allows no interval; nothing is filled in.
    """

    value: float
    low: float | None
    high: float | None
    n: int

    @property
    def half_width_frac(self) -> float | None:
        """Half the interval's width as a fraction of the value; None when there is none."""
        if self.low is None or self.high is None or self.value == 0:
            return None
        return (self.high - self.low) / (2 * abs(self.value))

    def covers(self, truth: float) -> bool:
        """Whether the interval holds `truth`; an absent interval covers nothing."""
        return self.low is not None and self.high is not None and self.low <= truth <= self.high


class Workload(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is asked of the storage system (CP94 §5; think time is CP93's sixth knob)."""

    unique_bytes: int
    size_mean: int
    read_frac: float = 0.5
    seq_frac: float = 0.5
    process_num: int = 1
    size_dist: Literal["normal", "fixed"] = "normal"
    queue_depth: int = 1
    think_time_s: float = 0.0

    def __post_init__(self) -> None:
        """Reject values outside their range."""
        checks = {
            "unique_bytes": 512 <= self.unique_bytes <= BYTES_MAX,
            "size_mean": 512 <= self.size_mean <= BYTES_MAX,
            "read_frac": 0.0 <= self.read_frac <= 1.0,
            "seq_frac": 0.0 <= self.seq_frac <= 1.0,
            "process_num": 1 <= self.process_num <= PROCESSES_MAX,
            "queue_depth": 1 <= self.queue_depth <= 4096,
            "think_time_s": 0.0 <= self.think_time_s <= 3600.0,
        }
        ranges = {
            "unique_bytes": "between 512 bytes and 2^60 (a million TiB)",
            "size_mean": "between 512 bytes and 2^60 (a million TiB)",
            "read_frac": "between 0 and 1",
            "seq_frac": "between 0 and 1",
            "process_num": f"between 1 and {PROCESSES_MAX}",
            "queue_depth": "between 1 and 4096",
            "think_time_s": "between 0 and 3600 seconds",
        }
        for name, good in checks.items():
            if not good:
                raise WorkloadError(f"{name} is {getattr(self, name)}, it must be {ranges[name]}")

    def with_value(self, parameter: str, value: float) -> Workload:
        """Return this workload with one parameter changed; counts and bytes are rounded."""
        whole = parameter in ("unique_bytes", "size_mean", "process_num", "queue_depth")
        return msgspec.structs.replace(self, **{parameter: round(value) if whole else value})

    @classmethod
    def parse(cls, text: str) -> Workload:
        """Read `unique_bytes=2GiB,size_mean=32KiB,read_frac=0.8,…` (DESIGN.md, command line).

        Raises:
            WorkloadError: an unknown key, a missing one, or a value that cannot be read.

        """
        values: dict[str, Any] = {}
        for part in filter(None, (piece.strip() for piece in text.split(","))):
            key, equals, value = part.partition("=")
            key = "think_time_s" if key.strip() == "think_time" else key.strip()
            if not equals or key not in _READERS:
                known = ", ".join(_READERS)
                raise WorkloadError(f"{part!r} is not key=value with a known key ({known})")
            if key in values:
                raise WorkloadError(f"{key} is given twice")
            try:
                values[key] = _READERS[key](value.strip())
            except ValueError as error:
                raise WorkloadError(f"{key}: {error}") from error
        missing = [key for key in ("unique_bytes", "size_mean") if key not in values]
        if missing:
            raise WorkloadError(
                f"{' and '.join(missing)} missing; say for example "
                "unique_bytes=2GiB,size_mean=32KiB,read_frac=0.8,seq_frac=0.1,process_num=4"
            )
        return cls(**values)


def _choice(value: str) -> str:
    if value not in ("normal", "fixed"):
        raise ValueError(f"{value!r} is neither normal nor fixed")
    return value


_READERS: dict[str, Any] = {
    "unique_bytes": parse_bytes,
    "size_mean": parse_bytes,
    "read_frac": float,
    "seq_frac": float,
    "process_num": int,
    "size_dist": _choice,
    "queue_depth": int,
    "think_time_s": parse_seconds,
}
