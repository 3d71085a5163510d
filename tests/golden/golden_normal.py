"""Takes out of an output what time, chance and machine decide, and makes it fit for reading.

Each rule says why. What is left is compared letter by letter.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

_DIGITS = 6
_LONG_NUMBER = re.compile(r"(?<![\w.])-?\d+\.\d{4,}(?:[eE][-+]?\d+)?(?![\w.])")
_INSTANT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|\+00:00)?")
_SAID_INSTANT = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d UTC")
_ID = re.compile(r"\b[0-9a-f]{32}\b")
_SERIES = ("histogram", "intervals", "batches", "trial_records")
"""Long series whose first element shows what they are; sums of them stand beside them."""
_ALIKE = 2
"""Objects of a list that are written out; of more there is a digest."""
_LINE_MAX = 100
_BLOCKS = "main|header|section|table|thead|tbody|tr|div|p|h1|h2|h3|ul|li|dl|dt|dd|figure|details"


def plain(text: str, places: Sequence[tuple[str, str]]) -> str:
    """Any text: temporary places by name, numbers to six digits.

    A matrix product rounds its last digits as the processor's instructions have it.
    """
    for place, name in places:
        text = text.replace(place, name)
    text = _LONG_NUMBER.sub(lambda found: f"{float(found[0]):.{_DIGITS}g}", text)
    return "\n".join(line.rstrip() for line in text.splitlines())


def live(text: str, given: Sequence[str]) -> str:
    """Text of a command that measured now: its ids by their order in it, and no instant."""
    text = _SAID_INSTANT.sub("<instant>", _INSTANT.sub("<instant>", text))
    at = {each: text.find(each[:8]) for each in given}
    found = sorted((each for each in given if at[each] >= 0), key=lambda each: at[each])
    for number, each in enumerate(found, 1):
        text = text.replace(each, f"<id {number}>").replace(each[:8], f"<id {number}…>")
    return _ID.sub("<id>", text)


def document(text: str, *, host: bool, rows: bool = False) -> str:
    """JSON, a line for what fits one.

    Args:
        text: the JSON.
        host: whether it says what host and clock it was made on, now.
        rows: a table, whose first row is enough: its CSV is kept whole.

    """
    value = _read(text)
    if rows:
        value = [*value[:1], f"… {len(value) - 1} more"]
    return _said(_short(_masked(value) if host else value), "")


def _read(text: str) -> Any:
    """Read JSON, rounded before it is laid out: what fits a line must not hang on a last digit."""
    return json.loads(text, parse_float=lambda number: float(f"{float(number):.{_DIGITS}g}"))


def _masked(value: Any) -> Any:
    """What depends on host, build and clock by its key alone."""
    if isinstance(value, list):
        return [_masked(each) for each in value]
    if not isinstance(value, dict):
        return value
    found = {key: _masked(each) for key, each in value.items()}
    if isinstance(found.get("facts"), dict):
        found["facts"] = dict.fromkeys(found["facts"], "…")
    if "experiment" in found and "wall_s" in found:
        found["wall_s"] = "…"  # of the host's clock; a survey's is virtual
    return found


def _short(value: Any) -> Any:
    """Show the first of a long series, and the first two of many objects with a digest of all."""
    if isinstance(value, list):
        shown = [_short(each) for each in value]
        if len(value) <= _ALIKE + 1 or not all(isinstance(each, dict) for each in value):
            return shown
        digest = hashlib.sha256(json.dumps(shown).encode()).hexdigest()[:12]
        return [*shown[:_ALIKE], f"… {len(value) - _ALIKE} more, all {digest}"]
    if not isinstance(value, dict):
        return value
    return {
        key: [_short(each[0]), f"… {len(each) - 1} more"]
        if key in _SERIES and isinstance(each, list) and len(each) > 1
        else _short(each)
        for key, each in value.items()
    }


def _said(value: Any, indent: str) -> str:
    line = json.dumps(value, ensure_ascii=False)
    if len(line) + len(indent) <= _LINE_MAX or not isinstance(value, dict | list) or not value:
        return line
    inner = indent + " "
    if isinstance(value, dict):
        parts = [f"{inner}{json.dumps(key)}: {_said(each, inner)}" for key, each in value.items()]
        return "{\n" + ",\n".join(parts) + f"\n{indent}}}"
    return "[\n" + ",\n".join(inner + _said(each, inner) for each in value) + f"\n{indent}]"


def page(html: str) -> str:
    """A page without drawings, styles and scripts; of the scripts' data the charts' names stay.

    What a page embeds beside its text (the data it was made of, models for its sliders, Vega) is
    megabytes, and is shown by other outputs or held by tests of its own.
    """
    charts = re.search(r'<script[^>]*id="leadline-charts">(.*?)</script>', html, re.DOTALL)
    html = re.sub(r"<(script|style|svg)\b.*?</\1>", "", html, flags=re.DOTALL)
    html = re.sub(r'(Content-Security-Policy" content=)"[^"]*"', r'\1"…"', html)
    html = re.sub(r"data:[\w/+.;-]+(?:;base64)?,[^\"']*", "data:…", html)
    html = re.sub(r"\s+", " ", html)
    html = re.sub(rf" ?(</?(?:{_BLOCKS})\b[^>]*>) ?", r"\n\1", html)
    html = re.sub(r"\n(</?t[rdh]>|</\w+>)", r"\1", html)
    return f"{html.strip()}\n{_charts(charts[1]) if charts else 'no charts'}"


def _charts(text: str) -> str:
    """Name every chart, and how many rows of data each of its sets has."""
    said = []
    for name, spec in json.loads(text)["specs"].items():
        rows = sorted(len(rows) for rows in spec.get("datasets", {}).values())
        said.append(f"chart {name}: rows {rows}")
    return "\n".join(said)


def wire(line: str, *, real: bool) -> str | None:
    """One line of the wire; None for what comes only when there was time for it.

    A job is kept as its bytes. Of a real engine's result only the keys can be the same twice.
    """
    way, text = line[:2], line[2:]
    if way == "> ":
        text = re.sub(r'"total_s_max":\d+\.\d{3,}', '"total_s_max":<what is left>', text)
        text = re.sub(r'"ceiling_iops":[\d.]+', '"ceiling_iops":<measured>', text)
        text = re.sub(r'"process":\d+', '"process":<pid>', text)
        text = re.sub(r'"raw":(?:null|"[^"]*")', '"raw":<path, or null without O_DIRECT>', text)
        return way + re.sub(r"run-[0-9a-f]{32}", "run-<id>", text)
    event = _read(text)
    if not real:
        return way + _said(_short(event), "")
    if event["event"] == "progress":
        return None
    if "elapsed_s" in event:
        event["elapsed_s"] = "…"
    return way + _said(_keys(event) if event["event"] == "result" else event, "")


_SURE = (
    "event",
    "version",
    "kind",
    "job_id",
    "kernel",
    "name",
    "test",
    "passes",
    "file_bytes",
    "bytes_in",
    "bytes_out",
    "verified",
)


def _keys(event: dict[str, Any]) -> dict[str, Any]:
    return {
        key: each
        if key in _SURE
        else [_keys(part) for part in each]
        if key in ("phases", "tests")
        else "…"
        for key, each in event.items()
    }


def places(*pairs: tuple[Path, str]) -> list[tuple[str, str]]:
    """Names for paths, those inside others first."""
    return sorted(((str(path), name) for path, name in pairs), key=lambda pair: -len(pair[0]))
