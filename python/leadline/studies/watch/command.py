"""`leadline watch TARGET`: probe gently, store, and tell when the level changed."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated

import typer

from leadline.engine import Target, open_engine, preflight, require_fit
from leadline.errors import UsageRefused
from leadline.fio.words import read_words
from leadline.outputs import write_whole
from leadline.record import Access, Workload
from leadline.record.wording import format_interval, format_number, format_workload
from leadline.studies.diary import Diary, Opened
from leadline.studies.watch.outputs import dashboard, exposition
from leadline.studies.watch.run import STAGE, Changed, Probe, WatchAsked, watch
from leadline.terminal.context import Context
from leadline.terminal.options import (
    Json,
    MaxBytes,
    Name,
    Seed,
    TargetArgument,
    duration,
    with_access,
)
from leadline.terminal.talk import print_findings, put_json, show, talk
from leadline.terminal.tell import require_directory
from leadline.units import format_bytes, format_percent, format_rate, format_seconds

USUAL = Workload(unique_bytes=256 << 20, size_mean=4096, read_frac=1.0, seq_frac=0.0)
"""Reads at random, one at a time."""


_Words = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="k=v…",
        help="The probe's workload, as of `measure`. What is not said is as in "
        f"{format_workload(USUAL)}.",
    ),
]
_For = Annotated[float | None, duration("How long to watch.  [default: until Ctrl-C]", "--for")]
_Textfile = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE.prom",
        help="Metrics for a node exporter's textfile collector, after each probe.",
    ),
]
_Requests = Annotated[
    int, typer.Option(min=20, help="Of one probe of a directory; it ends some 64 later.")
]
_Grafana = Annotated[
    Path | None, typer.Option(metavar="FILE.json", help="Write a dashboard for them.")
]


@with_access
def command(
    context: typer.Context,
    *,
    target: TargetArgument,
    words: _Words = None,
    every: Annotated[float, duration("Between two probes.")] = 600.0,
    for_: _For = None,
    seconds: Annotated[float, duration("Of one probe, at most.")] = 2.0,
    requests: _Requests = 200,
    textfile: _Textfile = None,
    grafana: _Grafana = None,
    access: Access,
    name: Name = None,
    max_bytes: MaxBytes = None,
    seed: Seed = 1,
    json: Json = False,
) -> None:
    """Watch a target: probe it gently, and tell when it changed.

    Example: leadline watch /data --every 10m --textfile /var/lib/node_exporter/leadline.prom
    """
    chosen = Target.parse(target)
    asked = WatchAsked(
        workload=read_words(words or (), USUAL).workload,
        every_s=every,
        seconds=seconds,
        requests=requests,
        for_s=for_ or math.inf,
        seed=seed,
    )
    asked.require_gentle()
    for path in (textfile, grafana):
        if path is not None:
            require_directory(path)
    if grafana is not None:
        _write(grafana, dashboard())
    own: Context = context.obj
    store = own.open_store()
    with (
        open_engine(chosen, access, max_bytes=max_bytes, run_seed=seed) as engine,
        (diary := Diary(store, STAGE)),
    ):
        require_fit(
            asked.workload, capacity_bytes=engine.capacity_bytes, backend=engine.access.backend
        )
        print_findings(preflight(chosen, engine.facts))
        engine.prepare()
        talk(_format_plan(asked, virtual=engine.virtual))
        system = Opened(name or chosen.name, chosen.text, engine)
        told = _Told(chosen.text, textfile, json=json)
        try:
            for probe in watch(system, chosen.path, asked, diary):
                told.take(probe)
        except KeyboardInterrupt:
            told.end()
            if for_ is not None:  # before its time; without one this is how it ends
                raise
        else:
            told.end()


def _format_plan(asked: WatchAsked, *, virtual: bool) -> str:
    share = format_percent(asked.seconds / asked.every_s)
    said = f"a probe every {format_seconds(asked.every_s)}: at most {asked.seconds:g} s ({share})"
    if virtual:
        return said
    moved = format_bytes(asked.requests * asked.workload.size_mean)
    return f"{said}, about {asked.requests} requests, {moved}"


class _Told:
    """Tells of probes as they come."""

    def __init__(self, target: str, textfile: Path | None, *, json: bool) -> None:
        self._target, self._textfile, self._json = target, textfile, json
        self._probes = self._skipped = 0
        self._changes: list[Changed] = []

    def take(self, probe: Probe) -> None:
        self._probes += probe.result is not None
        self._skipped += probe.result is None
        self._changes += probe.changes
        talk(f"{probe.at:%Y-%m-%d %H:%M} {_format_probe(probe)}")
        if not self._json:
            for change in probe.changes:
                show(format_change(change))
        if self._textfile is not None:
            metrics = exposition(self._target, self._probes, self._skipped, probe, self._changes)
            _write(self._textfile, metrics.encode())

    def end(self) -> None:
        if self._json:
            changes = [each._asdict() for each in self._changes]
            put_json({"probes": self._probes, "skipped": self._skipped, "changes": changes})
        elif not self._changes:
            show(f"no change of level in {self._probes} probes")


def _format_probe(probe: Probe) -> str:
    if probe.result is None:
        return "left out: the device is busy with others' requests"
    latency = probe.result.latency_us
    rate = format_rate(probe.result.throughput_mb_s.value)
    return f"{rate}, p50 {latency.p50:,.0f} us, p99 {latency.p99:,.0f} us"


def format_change(change: Changed) -> str:
    """Write `throughput ×0.60 (0.58 to 0.62) since 2026-11-24 10:30 (10:20 to 10:40)`."""
    moments = f"{change.earliest:%Y-%m-%d %H:%M} to {change.latest:%Y-%m-%d %H:%M}"
    return (
        f"{change.metric} ×{format_interval(change.ratio, format_number)} since "
        f"{change.at:%Y-%m-%d %H:%M} ({moments})"
    )


def _write(path: Path, data: bytes) -> None:
    try:
        write_whole(path, data)
    except OSError as error:
        raise UsageRefused(f"{path} cannot be written: {error.strerror}") from error
