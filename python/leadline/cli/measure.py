"""`leadline measure TARGET --workload …`: how fast is this one workload?"""

from __future__ import annotations

import uuid
from datetime import UTC, datetime
from typing import Annotated, Any

import typer

from leadline.cli.context import Context
from leadline.cli.options import (
    Backend,
    CacheLimit,
    Direct,
    Json,
    MaxBytes,
    Seed,
    TargetArgument,
    positive_seconds,
    reader,
)
from leadline.cli.talk import put_json, show
from leadline.engine import Limits, Target, open_engine
from leadline.record import Measurement, Workload
from leadline.report import render_measurement
from leadline.survey import derive_seed


def command(
    context: typer.Context,
    *,
    target: TargetArgument,
    workload: Annotated[
        str,
        typer.Option(
            metavar="k=v,…",
            help="unique_bytes=2GiB,size_mean=32KiB,read_frac=0.8,seq_frac=0.1,process_num=4",
        ),
    ],
    seconds: Annotated[
        float, typer.Option(parser=reader(positive_seconds), help="Time to measure, at most.")
    ] = 5.0,
    accuracy: Annotated[
        float, typer.Option(min=0.0005, max=0.5, help="Stop when ± this fraction is reached.")
    ] = 0.01,
    backend: Backend = None,
    direct: Direct = False,
    cache_limit: CacheLimit = None,
    max_bytes: MaxBytes = None,
    seed: Seed = 1,
    json: Json = False,
) -> None:
    """Measure one workload: throughput, response times, and where the bytes came from."""
    asked = Workload.parse(workload)
    chosen = Target.parse(target)
    own: Context = context.obj
    store = own.open_store()
    limits = Limits(
        warm_up_s_max=max(2.0, seconds),
        measure_s_min=min(1.0, seconds / 2),
        measure_s_max=seconds,
        accuracy=accuracy,
        total_s_max=3600.0,
    )
    with open_engine(
        chosen, backend=backend, direct=direct, cache_limit_bytes=cache_limit or None,
        max_bytes=max_bytes, run_seed=seed,
    ) as engine:  # fmt: skip
        started_at = datetime.now(UTC).isoformat()
        result = engine.run(asked, seed=derive_seed(seed, 0), limits=limits)
        point = Measurement(
            point_id=uuid.uuid4().hex, survey_id=None, order=0, stage="measure",
            started_at=started_at, clock_s=0.0, seed=seed, workload=asked,
            backend=engine.backend, result=result,
        )  # fmt: skip
    store.add_point(point)
    if json:
        put_json(measurement_document(point))
    else:
        show(render_measurement(point))


def measurement_document(point: Measurement) -> dict[str, Any]:
    """The keys DESIGN.md promises for `measure --json`, and the whole result beside them."""
    result = point.result
    return {
        "point": point.point_id,
        "workload": point.workload,
        "throughput_mb_s": result.throughput_mb_s,
        "iops": result.iops,
        "latency_us": result.latency_us,
        "cpu_user": result.cpu_user,
        "cpu_system": result.cpu_system,
        "cached_share": result.cached_share,
        "admissible": result.admissible,
        "reasons": result.reasons,
        "read": result.read,
        "write": result.write,
        "result": result,
    }
