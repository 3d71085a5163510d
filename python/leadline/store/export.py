"""Stored points as flat rows, and as JSON, CSV, Parquet or Arrow for other tools."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec
from msgspec.structs import asdict

from leadline.record import EngineResult, LatencyUs, Measurement, MovedBytes, Workload
from leadline.record.result import NUMBERS
from leadline.record.workload import interval_columns
from leadline.sanitize import to_csv
from leadline.store.errors import StoreError

Row = dict[str, Any]
_OWNERS = ("survey_id", "validation_id", "study_id")
"""Columns that say whose a point is: of a survey, of a validation, of another study."""


def rows(points: Sequence[Measurement], kind: str, study_id: str) -> list[Row]:
    """Return one flat dictionary per point of a study, all with the same keys in the same order.

    An interval becomes four keys (`throughput_mb_s`, `…_low`, `…_high`, `…_n`), so that no number
    travels without it; what could not be measured is None. Series inside a run (intervals,
    histograms) are left out: JSON of `leadline show` has them.
    """
    own = f"{kind}_id" if f"{kind}_id" in _OWNERS else "study_id"
    owner = dict.fromkeys(_OWNERS) | {own: study_id}
    return [owner | _row(point) for point in points]


def export_rows(table: list[Row], format_name: str) -> bytes:
    """Return flat rows, all with the same keys, as a file's content.

    Raises:
        StoreError: the format is unknown, or needs a library that is not installed.

    """
    write = _WRITERS.get(format_name)
    if write is None:
        raise StoreError(f"unknown format {format_name!r}; use {', '.join(FORMATS)}")
    return write(table)


def _row(point: Measurement) -> Row:
    result = point.result
    row: Row = {
        "point_id": point.point_id,
        "order": point.order,
        "stage": point.stage,
        "started_at": point.started_at,
        "clock_s": point.clock_s,
        # As text: other tools read numbers over 2^53 wrongly.
        "seed": str(point.seed),
        **point.access.stored_in(Measurement),
        "arrivals": point.arrivals.kind,
        "rate_per_s": point.arrivals.rate_per_s,
    }
    row |= _workload(point.workload)
    row |= interval_columns("throughput_mb_s", result.throughput_mb_s)
    row |= interval_columns("iops", result.iops)
    row |= _latency("latency_us", result.latency_us)
    row |= _latency("read_latency_us", result.read.latency_us)
    row |= _latency("write_latency_us", result.write.latency_us)
    spans = result.spans_us
    row |= _latency("due_to_submitted_us", spans.due_to_submitted if spans else None)
    row |= _latency("due_to_completed_us", spans.due_to_completed if spans else None)
    row |= _plain(result) | _evidence(result)
    return row | {name: getattr(result, name) for name in NUMBERS if name not in row}


def _workload(workload: Workload) -> Row:
    skewed = workload.access is not msgspec.UNSET
    row: Row = msgspec.to_builtins(workload)
    return row | {
        "size_dist": str(workload.size_dist),
        "access": str(workload.access) if skewed else "uniform",
    }


def _plain(result: EngineResult) -> Row:
    simulated = result.simulated
    return {
        "read_operations": result.read.operations,
        "write_operations": result.write.operations,
        "wall_s": result.wall_s,
        "total_s": result.total_s,
        "prepare_s": result.prepare_s,
        "warm_up_s": result.warm_up.seconds,
        "warm_up_steady": result.warm_up.steady,
        "cpu_user": result.cpu_user,
        "cpu_system": result.cpu_system,
        "io_share": result.io_share,
        "littles_law_error_frac": result.littles_law_error_frac,
        **_moved("workload", result.workload_bytes),
        **_moved("device", result.device_bytes),
        "cached_share": result.cached_share,
        "cache_resident_bytes": result.cache_resident_bytes,
        "foreign_cpu": result.foreign_cpu,
        **{f"realised_{name}": value for name, value in asdict(result.realised).items()},
        "truth_mb_s": simulated.truth_mb_s if simulated else None,
        "admissible": result.admissible,
        "reasons": "; ".join(result.reasons),
        "warnings": "; ".join(result.warnings),
    }


def _evidence(result: EngineResult) -> Row:
    offered, generator = result.offered, result.generator
    written = result.written_bytes
    return {
        "completed_per_s": offered.completed_per_s if offered else None,
        "shortfall_frac": offered.shortfall_frac if offered else None,
        "fell_short": offered.fell_short if offered else None,
        "cached_share_from": result.provenance.cached_share_from,
        "found_share": result.provenance.found_share,
        **_moved("process", result.provenance.process_bytes),
        "level_count": len(result.levels),
        "stall_s_max": max((stall.seconds for stall in result.stalls), default=0.0),
        "generator_ceiling_iops": generator.ceiling_iops if generator else None,
        "generator_bound": generator.bound if generator else None,
        "placement_pinned": result.placement.pinned if result.placement else None,
        "layout_bytes": written.layout,
        "precondition_bytes": written.precondition,
        "written_bytes": written.workload,
        **asdict(result.other_load),
    }


def _moved(name: str, moved: MovedBytes | None) -> Row:
    return {
        f"{name}_read_bytes": moved.read if moved else None,
        f"{name}_write_bytes": moved.write if moved else None,
    }


def _latency(name: str, latency: LatencyUs | None) -> Row:
    fields = LatencyUs.__struct_fields__
    return {f"{name}_{field}": latency and getattr(latency, field) for field in fields}


def _json(table: list[Row]) -> bytes:
    return msgspec.json.format(msgspec.json.encode(table), indent=1) + b"\n"


def _csv(table: list[Row]) -> bytes:
    return to_csv(table).encode()


def _parquet(table: list[Row]) -> bytes:
    arrow = _arrow_table(table)
    import pyarrow as pa  # noqa: PLC0415 - optional
    from pyarrow import parquet  # noqa: PLC0415 - optional

    sink = pa.BufferOutputStream()
    parquet.write_table(arrow, sink)
    return bytes(sink.getvalue())


def _arrow(table: list[Row]) -> bytes:
    arrow = _arrow_table(table)
    import pyarrow as pa  # noqa: PLC0415 - optional

    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, arrow.schema) as writer:
        writer.write_table(arrow)
    return bytes(sink.getvalue())


def _arrow_table(table: list[Row]) -> Any:
    try:
        import pyarrow as pa  # noqa: PLC0415 - optional
    except ImportError:
        raise StoreError(
            "this format needs pyarrow; install it: pip install 'leadline[frames]', or use json or "
            "csv"
        ) from None
    return pa.Table.from_pylist(table)


_WRITERS: dict[str, Callable[[list[Row]], bytes]] = {
    "json": _json,
    "csv": _csv,
    "parquet": _parquet,
    "arrow": _arrow,
}
FORMATS = tuple(_WRITERS)
