"""A fio job file as sections: HOWTO "Job file format", init.c of fio 3.33.

Each job section starts from the `[global]` sections above it. Later lines win, but a `filename` is
added to those before it. Comments begin with `;` or `#` anywhere in a line, as fio has it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from leadline.fio.errors import FioJobRefused
from leadline.fio.options import ALIASES

_SECTION = re.compile(r"\[([^\]\n]{1,255})\]\s*\Z")
_VARIABLE = re.compile(r"\$\{([^}]*)\}")
_KEYWORD = re.compile(r"\$(pagesize|mb_memory|ncpus)")

Section = tuple[str, dict[str, str]]


def read_sections(text: str, environment: Mapping[str, str]) -> list[Section]:
    """Return each job's name and options, in the order they take effect.

    Args:
        text: the job file.
        environment: values of `${NAME}`; one that is absent is refused rather than left empty.

    Raises:
        FioJobRefused: what cannot be read, with its line.

    """
    shared: dict[str, str] = {}
    jobs: list[Section] = []
    current: dict[str, str] | None = None
    for number, raw in enumerate(text.splitlines(), 1):
        line = re.split("[;#]", raw, maxsplit=1)[0].strip()
        if not line:
            continue
        where = f"line {number} ({line})"
        if line.startswith("["):
            head = _SECTION.match(line)
            if head is None:
                raise FioJobRefused(f"{where}: a section is written [name]")
            # fio compares six letters, so [global-defaults] is global too.
            if head[1].startswith("global"):
                current = shared
            else:
                current = dict(shared)
                jobs.append((head[1], current))
            continue
        if line.split()[0] == "include":
            raise FioJobRefused(f"{where}: include is not read; put that file's lines here")
        if current is None:
            raise FioJobRefused(
                f"{where}: an option outside of a section; begin with [global] or [name]"
            )
        key, value = _option(line, where, environment)
        _put(current, key, value, where)
    if not jobs:
        raise FioJobRefused("the file holds no job: a job is a section such as [database]")
    return jobs


def _put(options: dict[str, str], key: str, value: str, where: str) -> None:
    before = options.pop(key, None)  # so that the order is that of the last mention
    if key == "filename":
        if not value:
            raise FioJobRefused(f"{where}: fio refuses an empty name; leave the line out")
        value = value if before is None else f"{before}:{value}"
    options[key] = value


def _option(line: str, where: str, environment: Mapping[str, str]) -> tuple[str, str]:
    key, equals, value = line.partition("=")
    key = ALIASES.get(key.strip().lower(), key.strip().lower())
    if value[:1].isspace() and not value.strip().isdecimal():
        raise FioJobRefused(
            f"{where}: fio takes the blank after = for a part of the value, and reads `bs = 4k` as "
            f"4 bytes; write {key}={value.strip()}"
        )
    value = value.strip() if equals else "1"

    def known(match: re.Match[str]) -> str:
        if match[1] not in environment:
            raise FioJobRefused(f"{where}: ${{{match[1]}}} is not set; fio would read it as empty")
        return environment[match[1]]

    value = _VARIABLE.sub(known, value)
    if _KEYWORD.search(value):
        raise FioJobRefused(f"{where}: keywords are not computed here; write the number")
    if value.startswith("("):
        raise FioJobRefused(f"{where}: expressions are not computed here; write the number")
    return key, value
