"""Files that a person names to be read: experiments, profiles, fio jobs, layouts of stripes."""

from __future__ import annotations

import os
import stat
import sys
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import msgspec

from leadline.errors import LeadlineError

TEXT_BYTES_MAX = 4 * 2**20
"""Of a text that a person wrote; the longest that ships has 6 KB."""
STDIN = "-"
_DEPTH_MAX = 20
"""Tables and lists inside one another; what ships has four."""


UNREADABLE_JSON = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
"""All that msgspec raises of bytes from outside: no JSON or not of the type, no text, too deep."""


class InputRefused(LeadlineError):
    """A file cannot be read, is none, or is too long; the message says which and why."""

    exit_code = 2


def read_text(path: str | Path, *, bytes_max: int = TEXT_BYTES_MAX) -> str:
    """Return the text of a regular file, or of standard input when it is `-`.

    Args:
        path: the file; a device, a pipe or a directory is refused without reading from it.
        bytes_max: longest that it may be.

    Raises:
        InputRefused: what is wrong with it.

    """
    data = read_bytes(path, bytes_max=bytes_max)
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InputRefused(f"{path} is not text in UTF-8") from error


def read_bytes(path: str | Path, *, bytes_max: int = TEXT_BYTES_MAX) -> bytes:
    """Return the content of a file, as `read_text` does."""
    with open_regular(path) as file:
        return _up_to(file, "standard input" if str(path) == STDIN else str(path), bytes_max)


@contextmanager
def open_regular(path: str | Path) -> Iterator[IO[bytes]]:
    """Open a regular file, or standard input when it is `-`, to be read as long as it is.

    Raises:
        InputRefused: what is wrong with it.

    """
    if str(path) == STDIN:
        yield sys.stdin.buffer
        return
    try:
        # Opening a pipe would wait for whoever writes into it.
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise InputRefused(f"{path} is no regular file; give one, or - for standard input")
            yield file
    except FileNotFoundError:
        raise InputRefused(f"there is no file {path}; check the path") from None
    except ValueError as error:  # a NUL in its name
        raise InputRefused(f"{str(path)!r} is no path: {error}") from error
    except OSError as error:
        raise InputRefused(f"{path} cannot be read: {error.strerror}") from error


def parse_toml(text: str) -> dict[str, Any]:
    """Return the tables of a TOML text.

    Raises:
        ValueError: it is not TOML, or nested too deeply; the message says where or what.

    """
    try:
        tables = tomllib.loads(text)
    except RecursionError:
        tables = None
    if tables is None or _depth(tables) > _DEPTH_MAX:
        raise ValueError(f"its values are nested deeper than {_DEPTH_MAX}; write them flatter")
    return tables


def _depth(tables: dict[str, Any]) -> int:
    """Count how many tables and lists stand inside one another."""
    depth, level = 0, list[Any]([tables])
    while level:
        depth += 1
        inside = [each.values() if isinstance(each, dict) else each for each in level]
        level = [each for found in inside for each in found if isinstance(each, dict | list)]
    return depth


def _up_to(file: IO[bytes], shown: str, bytes_max: int) -> bytes:
    data = file.read(bytes_max + 1)
    if len(data) > bytes_max:
        raise InputRefused(
            f"{shown} is longer than {bytes_max >> 10} KiB, and so not what belongs here; give "
            "another file"
        )
    return data
