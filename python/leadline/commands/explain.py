"""`leadline explain [CODE]`: what a warning means, how it is found, and what to do."""

from __future__ import annotations

from typing import Annotated

import typer

from leadline.record.finding import Entry, Severity, catalogue, entries
from leadline.terminal.options import Json
from leadline.terminal.talk import put_json, show

_WEIGHT = {
    Severity.INVALID: "the number is not that of what was asked for; no verdict rests on it",
    Severity.SUSPECT: "the number is doubtful; look at the cause before using it",
    Severity.NOTE: "the number stands; this is to be known when reading it",
}
_Code = Annotated[
    str | None,
    typer.Argument(metavar="CODE", help="Of a warning, or its first words.  [default: list all]"),
]


def command(context: typer.Context, code: _Code = None, json: Json = False) -> None:
    """Explain a warning: meaning, detection, remedy.

    Example: leadline explain littles_law; leadline explain "host busy"
    """
    del context
    found = entries() if code is None else _named(code)
    if json:
        put_json({name: _document(entry) for name, entry in found.items()})
    elif code is None:
        for group, told in catalogue().items():
            show(f"{group}: {', '.join(sorted(told))}\n")
    else:
        show("\n\n".join(_text(name, entry) for name, entry in found.items()))


def _named(code: str) -> dict[str, Entry]:
    """Return the entry of a code, or those whose sentence begins with these words.

    Raises:
        BadParameter: there is none.

    """
    if code in entries():
        return {code: entries()[code]}
    words = code.strip().rstrip(":").lower()
    found = {
        name: entry for name, entry in entries().items() if entry.text.lower().startswith(words)
    }
    if not words or not found:
        raise typer.BadParameter(
            f"there is no warning {code!r}; `leadline explain` lists the codes, and --json names "
            "the code of each warning"
        )
    return found


def _document(entry: Entry) -> dict[str, str]:
    return {
        "severity": entry.severity,
        "sentence": entry.pattern(),
        "means": entry.means,
        "found": entry.found,
        "advice": entry.advice,
    }


def _text(name: str, entry: Entry) -> str:
    told = (
        ("severity", f"{entry.severity}: {_WEIGHT[entry.severity]}"),
        ("sentence", entry.pattern()),
        ("meaning", entry.means),
        ("detection", entry.found),
        ("remedy", entry.advice),
    )
    return "\n".join([name, *(f"{head:<10}  {said}" for head, said in told if said)])
