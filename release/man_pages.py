"""Man pages of every command, from the command line itself: `python release/man_pages.py DIR`.

One page for `leadline` and one for each command (`leadline-survey.1`, `leadline-stream-sort.1`), in
man(7)'s macros. Nothing is written twice: what a page says is what --help says.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import typer

from leadline.app import app
from leadline.machine.facts import leadline_version

SEE_ALSO = "Exit codes: 0 done, 1 fault, 2 refused, 3 stopped early, 4 a gate that failed."


def escaped(text: str) -> str:
    """Return text as troff shows it: signs that steer it made plain."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return "\n".join(
        f"\\&{line}" if line.startswith((".", "'")) else line for line in text.splitlines()
    )


def pages() -> dict[str, str]:
    """Return the text of every page by its file's name."""
    root = typer.main.get_command(app)
    return {f"{name}.1": page(name, command) for name, command in _commands("leadline", root)}


def _commands(name: str, command: Any) -> Iterator[tuple[str, Any]]:
    yield name, command
    for child in getattr(command, "commands", ()):
        yield from _commands(f"{name}-{child}", command.get_command(None, child))


def page(name: str, command: Any) -> str:
    """Return one page."""
    spaced = name.replace("-", " ")
    summary, _, more = (command.help or "").partition("\n")
    context = typer.Context(command, info_name=spaced)
    lines = [
        "'\\\" -*- coding: utf-8 -*-",
        f'.TH "{name.upper()}" 1 "{datetime.now(UTC):%Y-%m-%d}" "Leadline {leadline_version()}"',
        ".SH NAME",
        f"{escaped(name)} \\- {escaped(summary.rstrip('.'))}",
        ".SH SYNOPSIS",
        f".B {escaped(spaced)}",
        escaped(" ".join(command.collect_usage_pieces(context))),
        ".SH DESCRIPTION",
        escaped(summary),
        *(f".PP\n{escaped(part)}" for part in more.strip().split("\n\n") if part.strip()),
    ]
    children = list(getattr(command, "commands", ()))
    if children:
        lines.append(".SH COMMANDS")
        for child in children:
            said = command.get_command(None, child).help.partition("\n")[0]
            lines += [".TP", f".B {escaped(child)}", escaped(said)]
    records = [param.get_help_record(context) for param in command.get_params(context)]
    lines.append(".SH OPTIONS")
    for words, said in filter(None, records):
        lines += [".TP", f".B {escaped(words)}", escaped(said or "\\&")]
    lines += [".SH SEE ALSO", escaped(SEE_ALSO)]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Write every page into a directory."""
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in pages().items():
        (folder / name).write_text(text, encoding="utf-8")
    print(f"wrote {len(pages())} pages into {folder}")


if __name__ == "__main__":
    main()
