"""Stores that released versions wrote, and the one that today's code writes: the files of `kept/`.

`SCHEMA-NUMBER.sqlite.xz` is a store as it lay on a disk; of one that can be read,
`SCHEMA-NUMBER.records.json` has a digest of the form of each record that may be in it.
"""

from __future__ import annotations

import hashlib
import json
import lzma
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from leadline.record.kinds import KINDS
from leadline.store import open_store

KEPT = Path(__file__).resolve().parent / "kept"
RELEASED: frozenset[str] = frozenset()
"""Names of the stores that a released version wrote: never made anew, and read for ever."""
_SAID_TO_PEOPLE = frozenset({"description", "title"})


class KeptStore(NamedTuple):
    """A store of `kept/`."""

    schema: int
    number: int
    """Of several of one schema, whose documents have different forms."""

    @property
    def name(self) -> str:
        return f"{self.schema}-{self.number}"

    @property
    def packed(self) -> Path:
        return KEPT / f"{self.name}.sqlite.xz"

    @property
    def records(self) -> Path:
        return KEPT / f"{self.name}.records.json"

    def unpack(self, folder: Path) -> Path:
        """Put the store into a folder, as it was written."""
        path = folder / f"{self.name}.sqlite"
        path.write_bytes(lzma.decompress(self.packed.read_bytes()))
        return path

    def described(self) -> Any:
        """Return the digests of the forms of its records, by name."""
        return json.loads(self.records.read_text(encoding="utf-8"))


def kept_stores() -> tuple[KeptStore, ...]:
    """Return all that are kept, the oldest first."""
    names = (path.name.partition(".")[0] for path in KEPT.glob("*.sqlite.xz"))
    return tuple(sorted(KeptStore(*map(int, name.split("-"))) for name in names))


def tables_of(path: Path) -> dict[str, str]:
    """Return what made each table and index of a store, by its name."""
    with closing(sqlite3.connect(path)) as connection:
        rows = connection.execute("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL")
        return {name: " ".join(text.split()) for name, text in rows}


def todays_tables(folder: Path) -> dict[str, str]:
    """Return the same of a store made now."""
    path = folder / "todays.sqlite"
    open_store(str(path)).close()
    return tables_of(path)


def todays_forms() -> dict[str, Any]:
    """Return the form of every record that a store may hold: names, types, ranges, defaults.

    What is checked beyond that, by hand in a `__post_init__`, is not in it.
    """
    types = [part for kind in KINDS for part in (kind.start, kind.item, kind.answer)]
    forms, parts = msgspec.json.schema_components(types)
    roots = {
        f"{kind.kind} {what}": forms[3 * place + number]
        for place, kind in enumerate(KINDS)
        for number, what in enumerate(("start", "item", "answer"))
    }
    found: dict[str, Any] = _form_alone(roots | parts)
    return found


def digests(forms: dict[str, Any]) -> dict[str, str]:
    """Return twelve digits for each form: equal if and only if the forms are."""
    return {
        name: hashlib.sha256(json.dumps(form, sort_keys=True).encode()).hexdigest()[:12]
        for name, form in forms.items()
    }


def todays_records() -> dict[str, str]:
    """Return the digests of the records of today's code."""
    return digests(todays_forms())


def differences(before: dict[str, str], now: dict[str, str]) -> Iterator[str]:
    """Yield the names of what is not the same in both."""
    for name in sorted(before.keys() | now.keys()):
        if name not in now:
            yield f"{name} is gone"
        elif before.get(name) != now[name]:
            yield f"{name} {'has changed' if name in before else 'is new'}"


def _form_alone(value: Any) -> Any:
    """Leave out what is written for people: other words are no other form."""
    if isinstance(value, dict):
        # A field may be called `title`: then it is a form, and no text.
        kept = {
            key: inside
            for key, inside in value.items()
            if key not in _SAID_TO_PEOPLE or not isinstance(inside, str)
        }
        return {key: _form_alone(inside) for key, inside in kept.items()}
    return [_form_alone(each) for each in value] if isinstance(value, list) else value
