"""Pages that need nothing but a browser: charts, scripts and data inside one HTML file.

Vega is inlined from vl-convert, so a page draws its charts with the network cut. Everything that a
page embeds is made inert here: text in templates is escaped, JSON cannot end its script element,
and scripts run by their hash only.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from importlib import resources
from typing import Any

import jinja2
import msgspec
import vl_convert
from markupsafe import Markup

from leadline.charts.caveats import by_severity
from leadline.charts.drawable import Drawn, drawable, to_svg
from leadline.charts.theme import config
from leadline.record.finding import Finding

_UNIT_GAP = re.compile(r"(?<=\d) (?=(?:%|[kKMGT]?i?B(?:/s)?|ms|s|min|h)(?![a-zA-Z]))")

_SECTION = re.compile(r'<h2 id="([\w-]+)">(.*?)</h2>')

ICON = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32" width="32" height="32">'
    '<rect width="32" height="32" rx="7" fill="#0b6e8f"/>'
    '<path d="M16 3v15" stroke="#fff" stroke-width="2"/>'
    '<path d="M11 8h10M12.5 12.5h7" stroke="#fff" stroke-width="1.6" opacity=".75"/>'
    '<path d="M13.6 18h4.8l2 9a1.4 1.4 0 0 1-1.4 1.7h-6A1.4 1.4 0 0 1 11.6 27z" fill="#fff"/></svg>'
)
"""Leadline's mark, as SVG."""


def _responsive(drawn: dict[str, Any]) -> dict[str, Any]:
    """Make a drawing one for the page: as wide as its box, title and colours from the page."""
    spec = {key: part for key, part in drawn.items() if key not in {"config", "title"}}
    spec["width"] = "container"
    spec["autosize"] = {"type": "fit-x", "contains": "padding"}
    return spec


def _figure(name: str, drawn: dict[str, Any]) -> dict[str, Any]:
    """Return a chart's title, subtitle and drawing for readers without scripts."""
    spec = {key: part for key, part in drawn.items() if key != "title"}
    title = drawn["title"]
    lines = title["subtitle"]
    svg = to_svg(spec, name)
    # vl-convert writes XML with every text escaped, so the drawing can stand in the page as it is.
    return {
        "name": name,
        "title": title["text"],
        "subtitle": lines if isinstance(lines, str) else " ".join(lines),
        "svg": Markup(svg),  # noqa: S704
    }


def page_parts(
    charts: Mapping[str, Drawn],
    document: Any,
    scripts: Sequence[str] = (),
    warnings: Iterable[Finding] = (),
) -> dict[str, Any]:
    """Return what every page of charts needs beside its own text: drawings, scripts, style, data.

    Args:
        charts: under names that become elements of the page; they are ours, never a stranger's.
            The one that comes first is seen first, right below the verdict.
        document: what the page's data is saved as.
        scripts: names of packaged ones that a page needs beside those of all pages.
        warnings: all that is to be said, in the order in which it matters.

    """
    drawn = {name: drawable(chart) for name, chart in charts.items()}
    specs = {name: _responsive(each) for name, each in drawn.items()}
    looks = {"light": config(), "dark": config(dark=True)}
    packaged = [vega_bundle(), *map(packaged_text, ("page.js", *scripts))]
    return {
        "figures": {name: _figure(name, each) for name, each in drawn.items()},
        "missing": {},
        "first": next(iter(charts), None),
        "doubts": by_severity(warnings),
        "icon_href": data_uri("image/svg+xml", ICON.encode()),
        "policy": content_policy(packaged),
        "scripts": [Markup(script) for script in packaged],  # noqa: S704 - our own scripts
        "style": Markup(packaged_text("page.css")),  # noqa: S704 - our own style sheet
        "icon": Markup(ICON),  # noqa: S704 - our own drawing
        "chart_json": script_json({"specs": specs, "looks": looks}),
        "data_json": script_json(document),
    }


def render_page(name: str, **parts: Any) -> str:
    """Render a packaged template that extends `page.html.j2`, with the list of its sections."""
    html = _environment().get_template(name).render(**parts)
    links = "".join(
        f'<a href="#{anchor}">{title}</a>' for anchor, title in _SECTION.findall(html)
    )  # the titles were escaped when they were rendered
    return html.replace("<!--contents-->", links, 1)


def bare_page(name: str, **parts: Any) -> str:
    """Render a packaged template of a page that has neither charts nor scripts."""
    return (
        _environment()
        .get_template(name)
        .render(
            icon_href=data_uri("image/svg+xml", ICON.encode()),
            policy=content_policy(()),
            style=Markup(packaged_text("page.css")),  # noqa: S704 - our own style sheet
            icon=Markup(ICON),  # noqa: S704 - our own drawing
            **parts,
        )
    )


def _bind(text: str) -> str:
    """Keep a number and its unit on one line; the result is escaped like any other text."""
    return _UNIT_GAP.sub("\N{NO-BREAK SPACE}", text)


def script_json(document: Any) -> Markup:
    """Encode for a script element: no character in it can end the element or open a comment."""
    text = msgspec.json.encode(document).decode()
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)  # noqa: S704 - made inert on the line above


def content_policy(scripts: Sequence[str]) -> str:
    """Allow our scripts by hash and nothing from outside; Vega compiles its expressions (eval)."""
    hashes = " ".join(
        f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"
        for script in scripts
    )
    scripts_from = f"script-src {hashes} 'unsafe-eval'; " if hashes else ""
    return (
        f"default-src 'none'; {scripts_from}style-src 'unsafe-inline'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )


def data_uri(kind: str, content: bytes) -> str:
    """Return content as a link."""
    return f"data:{kind};base64,{base64.b64encode(content).decode()}"


@functools.cache
def vega_bundle() -> str:
    """Vega, Vega-Lite and Vega-Embed in one script, from vl-convert; taken once per process."""
    # The stub of vl-convert forgets that the argument has a default.
    script: str = vl_convert.javascript_bundle()  # type: ignore[call-arg]
    if "</script" in script.lower() or "<!--" in script:
        raise ValueError("the bundled Vega cannot stand inside a page: it holds a closing tag")
    return script.replace("\r\n", "\n").replace("\r", "\n")


def packaged_text(name: str) -> str:
    """Return a text file of this package."""
    return resources.files("leadline.charts").joinpath(name).read_text(encoding="utf-8")


@functools.cache
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        loader=jinja2.FunctionLoader(packaged_text),
    )
    environment.filters["bind"] = _bind
    return environment
