"""`leadline show ID`: a study of any kind, or a single point."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from leadline.lazy_import import late
from leadline.record import Measurement
from leadline.record.survey import SURVEY
from leadline.store import Store, Stored, StoredItem, StoreError
from leadline.studies.measurement.text import measurement_document, render_measurement
from leadline.studies.registry import KINDS, find_study
from leadline.terminal.bundles import imported
from leadline.terminal.context import Context
from leadline.terminal.options import Json, study_argument
from leadline.terminal.talk import put_json, show
from leadline.terminal.tell import format_study, tell

# Loaded with the library of charts, which a lone measurement does without.
render_curves = late("leadline.studies.survey.text:render_curves")


def command(
    context: typer.Context,
    ref: Annotated[
        str,
        study_argument(
            "ID", "A survey, a system, a validation, a study, an experiment, or a point."
        ),
    ],
    curves: Annotated[
        bool,
        typer.Option(
            "--curves",
            help="Of a survey: every curve as a table, with p50 and p99 beside throughput.",
        ),
    ] = False,
    iops: Annotated[
        bool, typer.Option("--iops", help="With --curves: requests/s in place of MB/s.")
    ] = False,
    json: Json = False,
) -> None:
    """Show a stored study or point.

    Example: leadline show 3f2a5b58
    """
    if iops and not curves:
        raise typer.BadParameter("--iops goes with --curves")
    own: Context = context.obj
    ref = imported(own, ref)
    store = own.read_store()
    try:
        found = find_study(store, ref)
    except StoreError as no_study:
        _show_point(store, _point(store, ref, no_study), json=json)
        return
    kind = KINDS[found.kind]
    study = kind.load(store, found.start.study_id)
    if not curves:
        tell(study, kind, json=json)
        return
    if found.kind != SURVEY.kind or json:
        raise typer.BadParameter(
            "--curves shows a survey's as tables; --json has them without being asked"
            if json
            else f"--curves is of a survey, and this is a {kind.records.said}"
        )
    show(f"{format_study(SURVEY.said, study.start)}, {study.status.value}\n")
    show(render_curves(study.survey, study.points, iops=iops))


def _point(store: Store, ref: str, no_study: StoreError) -> StoredItem:
    try:
        item = store.item(ref)
    except StoreError:
        raise no_study from None
    if not isinstance(item.document, Measurement):
        raise no_study
    return item


def _show_point(store: Store, item: StoredItem, *, json: bool) -> None:
    if json:
        put_json(measurement_document(item.document, item.kind, item.study_id))
        return
    found: Stored[Any, Any] = store.find(item.study_id)
    point = item.document
    study = format_study(KINDS[found.kind].records.said, found.start)
    show(f"point {point.point_id[:8]}, {point.started_at[:16].replace('T', ' ')} UTC, of {study}\n")
    show(render_measurement(point))
