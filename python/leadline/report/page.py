"""The report as one page that needs nothing but a browser: no network, no files beside it.

Everything a stranger controls (names, facts, warnings) reaches the page through Jinja's autoescape
or as JSON with `<`, `>` and `&` written as escapes. A content security policy allows only the
scripts written here, by their hash, and no connection at all.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import re
from collections.abc import Sequence
from importlib import resources
from typing import Any

import altair as alt
import jinja2
import msgspec
import vl_convert
from markupsafe import Markup

from leadline.record import Measurement, Survey, Validation
from leadline.record.wording import say_place
from leadline.report import tables
from leadline.report.catalogue import charts, not_measured, summary_chart
from leadline.report.curves import FAMILY_PARAMETERS
from leadline.report.overviews import drift_title
from leadline.report.theme import config
from leadline.report.validation import validation_charts, validation_rows
from leadline.report.what_if import what_if_document

_LABEL = re.compile(r"^(Runs best|Best and worst workloads|[A-Z][a-z]+(?: [a-z]+){0,2}): ")
_UNIT_GAP = re.compile(r"(?<=\d) (?=(?:%|[kKMGT]?i?B(?:/s)?|ms|s|min|h)(?![a-zA-Z]))")
_MIXES = re.compile(r"(?<=\.) (?=(?:Reads against writes|Sequential against random): )")


def render_html(
    survey: Survey,
    points: Sequence[Measurement],
    others: Sequence[Survey] = (),
    validation: Validation | None = None,
    *,
    model: str | None = None,
) -> str:
    """Render the page.

    Args:
        survey: what it shows.
        points: its points.
        others: surveys of other systems for the summary chart (CP94 Fig. 10).
        validation: its validation, for a section of its own (CP94 §9).
        model: what the what-if section predicts with; None is the default.

    """
    drawn = charts(survey)
    if validation is not None:
        drawn |= validation_charts(validation)
    if others:
        drawn["summary"] = summary_chart([survey, *others])
    else:
        drawn.pop("summary", None)
    looks = {"light": config(), "dark": config(dark=True)}
    specs = {name: _spec(chart) for name, chart in drawn.items()}
    asked = what_if_document(survey, points, model)
    scripts = [_bundle(), _text("page.js")]
    if not isinstance(asked, str):
        scripts += [_text("what_if_models.js"), _text("what_if.js")]
    return _template().render(
        survey=survey,
        status=survey.status.value,
        lead=_answer(survey)[0],
        answer=_answer(survey)[1],
        tiles=tables.tile_rows(survey),
        levels=tables.level_rows(survey),
        figures={name: _figure(name, chart) for name, chart in drawn.items()},
        missing=not_measured(survey),
        families=_families(survey),
        what_if=asked,
        what_if_json=_json(asked),
        validation=validation,
        validation_rows=validation_rows(validation) if validation else (),
        sure=tables.sure_rows(survey, points, drift_title(survey)),
        plan=tables.plan_rows(survey, points),
        run=tables.run_rows(survey, points),
        facts=tables.fact_rows(survey.start.facts),
        point_heads=tables.POINT_HEADS,
        points=tables.point_rows(points),
        csv_href=_data_uri("text/csv", tables.points_csv(points).encode()),
        icon_href=_data_uri("image/svg+xml", _ICON.encode()),
        policy=_policy(scripts),
        scripts=[Markup(script) for script in scripts],  # noqa: S704 - our own scripts
        style=Markup(_text("page.css")),  # noqa: S704 - our own style sheet
        icon=Markup(_ICON),  # noqa: S704 - our own drawing
        chart_json=_json({"specs": specs, "looks": looks}),
        data_json=_json({"survey": survey, "points": [_light(point) for point in points]}),
    )


def _light(point: Measurement) -> Measurement:
    """The point without its histograms and slices, which are most of its bytes.

    `leadline export` has them whole.
    """
    result = point.result
    return msgspec.structs.replace(
        point,
        result=msgspec.structs.replace(
            result,
            read=msgspec.structs.replace(result.read, histogram=()),
            write=msgspec.structs.replace(result.write, histogram=()),
            warm_up=msgspec.structs.replace(result.warm_up, intervals=()),
            intervals=(),
        ),
    )


_ICON = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32" width="32" height="32">'
    '<rect width="32" height="32" rx="7" fill="#0b6e8f"/>'
    '<path d="M16 3v15" stroke="#fff" stroke-width="2"/>'
    '<path d="M11 8h10M12.5 12.5h7" stroke="#fff" stroke-width="1.6" opacity=".75"/>'
    '<path d="M13.6 18h4.8l2 9a1.4 1.4 0 0 1-1.4 1.7h-6A1.4 1.4 0 0 1 11.6 27z" fill="#fff"/></svg>'
)


def _answer(survey: Survey) -> tuple[str, list[tuple[str, str]]]:
    """Split the sentences into the first, set large, and the others with their leading words."""
    if not survey.sentences:
        return "", []
    rest = [part for text in survey.sentences[1:] for part in _MIXES.split(text)]
    rows = []
    for text in rest:
        label = _LABEL.match(text)
        body = text[label.end() :] if label else text
        rows.append((label[1] if label else "", body[:1].upper() + body[1:]))
    return survey.sentences[0], rows


def _families(survey: Survey) -> list[dict[str, Any]]:
    return [
        {
            "name": region.name,
            "place": say_place(region),
            "charts": [f"region-{region.index}-{name}" for name in FAMILY_PARAMETERS],
        }
        for region in survey.regions
    ]


def _spec(chart: alt.LayerChart) -> dict[str, Any]:
    """Turn a chart into one for the page: as wide as its box, title and colours from the page."""
    spec: dict[str, Any] = chart.to_dict()
    for key in ("config", "title"):
        spec.pop(key, None)
    spec["width"] = "container"
    spec["autosize"] = {"type": "fit-x", "contains": "padding"}
    return spec


def _figure(name: str, chart: alt.LayerChart) -> dict[str, Any]:
    spec: dict[str, Any] = chart.to_dict()
    title = spec.pop("title")
    svg = vl_convert.vegalite_to_svg(spec)
    # vl-convert writes XML with every text escaped, so the drawing can stand in the page as it is.
    return {
        "name": name,
        "title": title["text"],
        "subtitle": title["subtitle"],
        "svg": Markup(svg),  # noqa: S704
    }


def _bind(text: str) -> str:
    """Keep a number and its unit on one line; the result is escaped like any other text."""
    return _UNIT_GAP.sub("\N{NO-BREAK SPACE}", text)


def _json(document: Any) -> Markup:
    """Encode for a script element: no character in it can end the element or open a comment."""
    text = msgspec.json.encode(document).decode()
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)  # noqa: S704 - made inert on the line above


def _policy(scripts: Sequence[str]) -> str:
    """Allow our scripts by hash and nothing from outside; Vega compiles its expressions (eval)."""
    hashes = " ".join(
        f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"
        for script in scripts
    )
    return (
        f"default-src 'none'; script-src {hashes} 'unsafe-eval'; style-src 'unsafe-inline'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )


def _data_uri(kind: str, content: bytes) -> str:
    return f"data:{kind};base64,{base64.b64encode(content).decode()}"


@functools.cache
def _bundle() -> str:
    """Vega, Vega-Lite and Vega-Embed in one script, from vl-convert; taken once per process."""
    # The stub of vl-convert forgets that the argument has a default.
    script: str = vl_convert.javascript_bundle()  # type: ignore[call-arg]
    if "</script" in script.lower() or "<!--" in script:
        raise ValueError("the bundled Vega cannot stand inside a page: it holds a closing tag")
    return script.replace("\r\n", "\n").replace("\r", "\n")


def _text(name: str) -> str:
    return resources.files("leadline.report").joinpath(name).read_text(encoding="utf-8")


@functools.cache
def _template() -> jinja2.Template:
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["bind"] = _bind
    return environment.from_string(_text("template.html.j2"))
