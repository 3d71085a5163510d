"""What a watch says to others: Prometheus' text for a node exporter, and a dashboard of Grafana.

Nothing is served: the node exporter's textfile collector reads the file when it is scraped.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from leadline.studies.watch.run import Changed, Probe

_PREFIX = "leadline_watch"
_QUANTILES = (("0.5", "p50"), ("0.9", "p90"), ("0.99", "p99"))


def exposition(
    target: str, probes: int, skipped: int, last: Probe, changes: Sequence[Changed]
) -> str:
    """Return the metrics after a probe, in Prometheus' text format 0.0.4."""
    return "\n".join(_lines(target, probes, skipped, last, changes)) + "\n"


def _lines(
    target: str, probes: int, skipped: int, last: Probe, changes: Sequence[Changed]
) -> Iterator[str]:
    own = {"target": target}
    yield from _metric("probes_total", "counter", "Probes that measured.", [(own, probes)])
    skips = "Probes left out, because the device was busy with others' requests."
    yield from _metric("skipped_total", "counter", skips, [(own, skipped)])
    if last.result is not None:
        rate = 1e6 * last.result.throughput_mb_s.value
        yield from _metric("throughput_bytes_per_second", "gauge", "Of a probe.", [(own, rate)])
        latency = last.result.latency_us
        rows = [(own | {"quantile": q}, 1e-6 * getattr(latency, name)) for q, name in _QUANTILES]
        yield from _metric("latency_seconds", "gauge", "Of a probe's requests.", rows)
    yield from _metric("last_probe_timestamp_seconds", "gauge", "", [(own, last.at.timestamp())])
    for metric in ("throughput", "p99"):
        of = [each for each in changes if each.metric == metric]
        which = own | {"metric": metric}
        yield from _metric("changes_total", "counter", "Changes of level.", [(which, len(of))])
        if of:
            newest, when = of[-1], of[-1].at.timestamp()
            yield from _metric("change_timestamp_seconds", "gauge", "", [(which, when)])
            ends = (newest.ratio.low, newest.ratio.value, newest.ratio.high)
            named = zip(("low", "value", "high"), ends, strict=True)
            rows = [(which | {"end": name}, value or 0.0) for name, value in named]
            yield from _metric("change_ratio", "gauge", "After over before, 95% CI.", rows)


def _metric(
    name: str, kind: str, help_: str, rows: Sequence[tuple[dict[str, str], float]]
) -> Iterator[str]:
    yield f"# HELP {_PREFIX}_{name} {help_ or name.replace('_', ' ')}"
    yield f"# TYPE {_PREFIX}_{name} {kind}"
    for labels, value in rows:
        said = ",".join(f'{key}="{_escaped(text)}"' for key, text in labels.items())
        yield f"{_PREFIX}_{name}{{{said}}} {value!r}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def dashboard() -> bytes:
    """Return a dashboard of Grafana for all watched targets of a Prometheus."""
    panels = [
        _panel(0, "Throughput", "Bps", [("throughput_bytes_per_second", "{{target}}")]),
        _panel(1, "Latency", "s", [("latency_seconds", "{{target}} p{{quantile}}")]),
        _panel(
            2, "Changes: after over before", "none", [("change_ratio", "{{target}} {{metric}}")]
        ),
        _panel(3, "Probes left out", "none", [("skipped_total", "{{target}}")]),
    ]
    document: dict[str, Any] = {
        "title": "Leadline",
        "uid": "leadline-watch",
        "schemaVersion": 39,
        "time": {"from": "now-7d", "to": "now"},
        "templating": {"list": [{"name": "source", "type": "datasource", "query": "prometheus"}]},
        "annotations": {
            "list": [
                {
                    "name": "changes",
                    "enable": True,
                    "iconColor": "red",
                    "datasource": _SOURCE,
                    "expr": f"changes({_PREFIX}_changes_total[5m]) > 0",
                    "titleFormat": "{{target}} {{metric}}",
                }
            ]
        },
        "panels": panels,
    }
    return json.dumps(document, indent=2).encode() + b"\n"


_SOURCE = {"type": "prometheus", "uid": "${source}"}


def _panel(place: int, title: str, unit: str, series: Sequence[tuple[str, str]]) -> dict[str, Any]:
    return {
        "id": place + 1,
        "type": "timeseries",
        "title": title,
        "datasource": _SOURCE,
        "gridPos": {"x": 12 * (place % 2), "y": 8 * (place // 2), "w": 12, "h": 8},
        "fieldConfig": {"defaults": {"unit": unit}, "overrides": []},
        "targets": [
            {"expr": f"{_PREFIX}_{name}", "legendFormat": legend, "refId": chr(65 + number)}
            for number, (name, legend) in enumerate(series)
        ],
    }
