"""Pages of the documentation that are made from the code: commands, JSON schemas, Python.

Nothing is written twice: a command's page is its --help, a schema's is the type that Rust has, the
Python page its signatures and docstrings.
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import Any

import typer

import leadline
from leadline.app import app

ROOT = Path(__file__).parent.parent.parent
SCHEMAS = (ROOT / "protocol" / "job.schema.json", ROOT / "protocol" / "event.schema.json")


def command_pages() -> dict[str, str]:
    """Return every command's page by its name, as `stream-sort`; `index` lists them."""
    root = typer.main.get_command(app)
    found = dict(_commands("", root))
    pages = {name: _command(name, command) for name, command in found.items()}
    lines = ["# Every command, with its options", "", "| command | |", "|---|---|"]
    for name, command in found.items():
        summary = (command.help or "").partition("\n")[0]
        lines.append(f"| [`leadline {name.replace('-', ' ')}`]({name}.md) | {_cell(summary)} |")
    lines += ["", "By what you want to know: [commands by question](../reference/commands.md).", ""]
    return pages | {"index": "\n".join(lines)}


def _commands(before: str, command: Any) -> Iterator[tuple[str, Any]]:
    for child in getattr(command, "commands", ()):
        name = f"{before}{child}"
        own = command.get_command(None, child)
        yield name, own
        yield from _commands(f"{name}-", own)


def _command(name: str, command: Any) -> str:
    spaced = f"leadline {name.replace('-', ' ')}"
    context = typer.Context(command, info_name=spaced)
    summary, _, more = (command.help or "").partition("\n")
    usage = " ".join((spaced, *command.collect_usage_pieces(context)))
    lines = [f"# {spaced}", "", summary, "", f"    {usage}", ""]
    for part in filter(None, map(str.strip, more.split("\n\n"))):
        example = re.fullmatch(r"Example: (.*)", part, re.DOTALL)
        lines += ["Example:", "", f"    {example[1]}", ""] if example else [escape(part), ""]
    records = [param.get_help_record(context) for param in command.get_params(context)]
    lines += ["| option | meaning |", "|---|---|"]
    lines += [
        f"| `{words.replace('|', chr(92) + '|')}` | {_cell(said)} |"
        for words, said in records
        if words
    ]
    return "\n".join([*lines, ""])


def _cell(text: str) -> str:
    return escape(" ".join(text.split()), quote=False).replace("|", "\\|").replace("*", "\\*")


def schema_page() -> str:
    """Return the page of the wire: every type with its fields, from the schemas."""
    lines = [
        "# JSON schemas of the wire",
        "",
        "A job is a line of JSON to the engine, an event a line of its answer. The schemas are "
        "made from the types of the engine; the files are "
        + " and ".join(f"[`{path.name}`]({path.name})" for path in SCHEMAS)
        + ".",
        "",
    ]
    for path in SCHEMAS:
        schema = json.loads(path.read_text(encoding="utf-8"))
        lines += [f"## {path.name.removesuffix('.schema.json').capitalize()}", ""]
        lines += [_cell(schema.get("description", "")), ""]
        for name, own in sorted(schema["$defs"].items()):
            lines += [f"### {name}", "", _cell(own.get("description", "")), ""]
            for variant in own.get("oneOf", [own]):
                lines += _fields(variant)
    return "\n".join(lines)


def _fields(own: dict[str, Any]) -> list[str]:
    known = own.get("properties", {})
    if not known:
        return []
    said = own.get("description", "") if "const" in str(known.get("kind", "")) else ""
    required = set(own.get("required", ()))
    lines = [_cell(said), ""] if said else []
    lines += ["| field | type | required | meaning |", "|---|---|---|---|"]
    for name, field in known.items():
        needed = "yes" if name in required else ""
        said = _cell(field.get("description", ""))
        lines.append(f"| `{name}` | {_type(field)} | {needed} | {said} |")
    return [*lines, ""]


def _type(field: Any) -> str:
    if not isinstance(field, dict):
        return ""
    if "const" in field:
        return f"`{json.dumps(field['const'])}`"
    if "$ref" in field:
        name = field["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    several = field.get("anyOf") or field.get("oneOf") or field.get("allOf")
    if several:
        return " or ".join(dict.fromkeys(filter(None, map(_type, several))))
    kind = field.get("type", "")
    return " or ".join(kind) if isinstance(kind, list) else str(kind)


def python_page() -> str:
    """Return the page of `import leadline`: every name with its signature and its docstring."""
    lines = ["# Leadline in Python", "", *_docstring(leadline.__doc__ or "").splitlines(), ""]
    for name in sorted(leadline.__all__, key=lambda each: (each[0].isupper(), each)):
        if name.startswith("__"):
            continue
        own = getattr(leadline, name)
        lines += [f"## leadline.{name}", ""]
        lines += _member(own, f"leadline.{name}")
        if inspect.isclass(own):
            for method, made in vars(own).items():
                if method.startswith("_") or not (inspect.getdoc(made) or "").strip():
                    continue
                lines += [f"### {name}.{method}", "", *_member(made, f"{name}.{method}")]
    return "\n".join(lines)


def _member(own: Any, name: str) -> list[str]:
    if isinstance(own, property) or not callable(own):
        return [_docstring(inspect.getdoc(own) or ""), ""]
    return [
        "```python",
        f"{name}{_signature(own)}",
        "```",
        "",
        _docstring(inspect.getdoc(own) or ""),
        "",
    ]


def _signature(own: Any) -> str:
    """Write a signature, a parameter a line where it is long; annotations are text here."""
    try:
        signature = inspect.signature(own)
    except ValueError:  # an exception has none
        return "(…)"
    said = [_plain(str(each)) for each in signature.parameters.values() if each.name != "self"]
    kinds = [each.kind for each in signature.parameters.values() if each.name != "self"]
    if inspect.Parameter.KEYWORD_ONLY in kinds and inspect.Parameter.VAR_POSITIONAL not in kinds:
        said.insert(kinds.index(inspect.Parameter.KEYWORD_ONLY), "*")
    returned = signature.return_annotation
    end = "" if returned is inspect.Signature.empty else f" -> {returned}"
    line = f"({', '.join(said)}){end}"
    if len(line) < 80:
        return line
    return "(\n" + "".join(f"    {each},\n" for each in said) + f"){end}"


def _plain(parameter: str) -> str:
    """Take the quotes off an annotation, and the address off a function."""
    plain = re.sub(r"(: )'((?:[^']|(?<=\[)'[^']*')*)'( = |$)", r"\1\2\3", parameter)
    return re.sub(r"<function .*", "…", plain)


def _docstring(text: str) -> str:
    """Make sections of a docstring lists; all else is Markdown as it is."""
    lines: list[str] = []
    for line in inspect.cleandoc(text).splitlines():
        head = re.fullmatch(r"(Args|Returns|Raises|Yields):\s*(.*)", line)
        entry = re.fullmatch(r" {4}(\w+): (.*)", line)
        if head:
            lines += ["", f"**{head[1]}** {escape(head[2], quote=False)}".rstrip(), ""]
        elif entry:
            lines.append(f"- `{entry[1]}`: {escape(entry[2], quote=False)}")
        else:
            lines.append(escape(line, quote=False))
    return "\n".join(lines)
