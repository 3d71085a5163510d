"""The line on which each key of a TOML text stands: `tomllib` tells it of broken texts only."""

from __future__ import annotations

from collections.abc import Mapping

KeyPath = tuple[str, ...]

_BARE_ENDS = " \t\r\n.=]"
_OPENING, _CLOSING = "[{", "]}"


def lines_of(text: str) -> dict[KeyPath, int]:
    """Return the line, from 1, of every key and table header of a valid TOML text.

    Keys inside an inline table are not told apart: they stand on the line of their table.
    """
    return _Scanner(text).scan()


def line_of(lines: Mapping[KeyPath, int], path: KeyPath) -> int:
    """Return the line of a key, or of the nearest table around it; 1 when there is none."""
    for length in range(len(path), 0, -1):
        if path[:length] in lines:
            return lines[path[:length]]
    return 1


class _Scanner:
    def __init__(self, text: str) -> None:
        self._text, self._at = text, 0
        self._lines: dict[KeyPath, int] = {}

    def scan(self) -> dict[KeyPath, int]:
        table: KeyPath = ()
        while self._skip_blank():
            line = self._text.count("\n", 0, self._at) + 1
            if self._text[self._at] == "[":
                table = self._header()
                self._note(table, line)
                continue
            path = table + self._key()
            self._note(path, line)
            self._at += 1  # the equals sign
            self._skip_value()
        return self._lines

    def _note(self, path: KeyPath, line: int) -> None:
        for length in range(1, len(path) + 1):
            self._lines.setdefault(path[:length], line)

    def _skip_blank(self) -> bool:
        """Go to the next header or key; False at the end."""
        while self._at < len(self._text):
            if self._text[self._at] == "#":
                self._skip_comment()
            elif self._text[self._at].isspace():
                self._at += 1
            else:
                return True
        return False

    def _skip_comment(self) -> None:
        end = self._text.find("\n", self._at)
        self._at = len(self._text) if end < 0 else end

    def _header(self) -> KeyPath:
        while self._text[self._at] == "[":
            self._at += 1
        path = self._key()
        while self._at < len(self._text) and self._text[self._at] == "]":
            self._at += 1
        return path

    def _key(self) -> KeyPath:
        """Read a dotted key, up to the sign after it."""
        parts: list[str] = []
        while True:
            while self._text[self._at] in " \t.":
                self._at += 1
            sign = self._text[self._at]
            if sign in "=]":
                return tuple(parts)
            begin = self._at
            if sign in "\"'":
                self._skip_string()
                parts.append(self._text[begin + 1 : self._at - 1])
                continue
            while self._text[self._at] not in _BARE_ENDS:
                self._at += 1
            parts.append(self._text[begin : self._at])

    def _skip_value(self) -> None:
        depth = 0
        while self._at < len(self._text):
            sign = self._text[self._at]
            if sign == "\n" and depth == 0:
                return
            if sign in "\"'":
                self._skip_string()
                continue
            if sign == "#":
                self._skip_comment()
                continue
            depth += (sign in _OPENING) - (sign in _CLOSING)
            self._at += 1

    def _skip_string(self) -> None:
        quote = self._text[self._at]
        mark = quote * 3 if self._text.startswith(quote * 3, self._at) else quote
        self._at += len(mark)
        while not self._text.startswith(mark, self._at):
            self._at += 2 if quote == '"' and self._text[self._at] == "\\" else 1
        self._at += len(mark)
        # A string of three quotes may end with up to two quotes of its own.
        while len(mark) == 3 and self._text.startswith(quote, self._at):
            self._at += 1
