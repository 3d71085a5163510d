"""Small harm to an input, by chance: what a mutating fuzzer does without looking at the code."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence

LENGTH_MAX = 16_384
"""Bytes of an input; those of the seeds are fewer."""
_HARMS_MOST = 4
_NUMBER = re.compile(rb"-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_NUMBERS = (
    *(b"0", b"-1", b"1", b"-0", b"0.0", b"1e-300", b"1e300", b"1e308", b"1e309", b"-1e309"),
    *(b"9223372036854775807", b"9223372036854775808", b"18446744073709551616", b"4294967296"),
    *(b"1e19", b"0.1", b"nan", b"inf", b"-inf", b"1_000", b"0x10", b"9" * 400, b"9" * 5000),
    *("٣".encode(), "²".encode(), b"1.", b".5", b"1e", b"00", b"5e-324", b"1e999999999"),
)
_PIECES = (
    *(b"\0", b"\xff", b"\n", b"\r", b"\t", b" ", b"=", b",", b":", b"[", b"]", b"{", b"}", b'"'),
    *(b"'", b"\\", b"#", b"%", b"${HOME}", b"${", b"//", b"@", b"?", b"&", b"../", b"\x1b[31m"),
    *(b"null", b"true", b"false", b"\xed\xa0\x80", "\u202e".encode(), "ä".encode(), b"\\u0000"),
    *(b'"\\ud800"', b"[[", b"]]", b"{}", b"[]", b'""', b"1979-05-27T07:32:00Z", b'"""', b"'''"),
)
_DEEP = (b"[", b'{"a":', b"[[", b"a.", b"{", b"[{")
Harm = Callable[[random.Random, bytes, Sequence[bytes]], bytes]


def _replace(chance: random.Random, data: bytes, seeds: Sequence[bytes]) -> bytes:
    del seeds
    at = chance.randrange(len(data) + 1)
    return data[:at] + bytes([chance.getrandbits(8)]) + data[at + 1 :]


def _flip(chance: random.Random, data: bytes, seeds: Sequence[bytes]) -> bytes:
    del seeds
    if not data:
        return data
    at = chance.randrange(len(data))
    return data[:at] + bytes([data[at] ^ (1 << chance.randrange(8))]) + data[at + 1 :]


def _insert(chance: random.Random, data: bytes, seeds: Sequence[bytes]) -> bytes:
    del seeds
    at = chance.randrange(len(data) + 1)
    return data[:at] + chance.choice(_PIECES) + data[at:]


def _remove(chance: random.Random, data: bytes, seeds: Sequence[bytes]) -> bytes:
    del seeds
    at = chance.randrange(len(data) + 1)
    return data[:at] + data[at + _length(chance) :]


def _repeat(chance: random.Random, data: bytes, seeds: Sequence[bytes]) -> bytes:
    del seeds
    at = chance.randrange(len(data) + 1)
    piece = data[at : at + _length(chance)]
    return data[:at] + piece * (1 << chance.randrange(8)) + data[at:]


def _number(chance: random.Random, data: bytes, seeds: Sequence[bytes]) -> bytes:
    del seeds
    found = _NUMBER.search(data, chance.randrange(len(data) + 1))
    if found is None:
        return data + chance.choice(_NUMBERS)
    return data[: found.start()] + chance.choice(_NUMBERS) + data[found.end() :]


def _splice(chance: random.Random, data: bytes, seeds: Sequence[bytes]) -> bytes:
    other = chance.choice(seeds)
    at, start = chance.randrange(len(data) + 1), chance.randrange(len(other) + 1)
    return data[:at] + other[start : start + _length(chance)] + data[at:]


def _swap(chance: random.Random, data: bytes, seeds: Sequence[bytes]) -> bytes:
    del seeds
    lines = data.split(b"\n")
    one, other = chance.randrange(len(lines)), chance.randrange(len(lines))
    lines[one], lines[other] = lines[other], lines[one]
    return b"\n".join(lines)


def _deepen(chance: random.Random, data: bytes, seeds: Sequence[bytes]) -> bytes:
    del seeds
    if chance.randrange(8):  # long ones are slow, and all alike
        return data
    at = chance.randrange(len(data) + 1)
    return data[:at] + chance.choice(_DEEP) * chance.choice((3, 30, 300, 3000)) + data[at:]


def _length(chance: random.Random) -> int:
    """Mostly a few bytes, sometimes many."""
    return 1 + chance.randrange(1 << chance.randrange(1, 9))


_HARMS: tuple[Harm, ...] = (
    *(_replace, _flip, _insert, _insert, _remove, _remove, _repeat),
    *(_number, _number, _number, _splice, _splice, _swap, _deepen),
)


def mutated(chance: random.Random, seeds: Sequence[bytes]) -> bytes:
    """Return a seed with a few harms done to it.

    Args:
        chance: decides all.
        seeds: at least one; parts of others are put into the chosen one.

    """
    data = chance.choice(seeds)
    for _ in range(chance.randrange(1, _HARMS_MOST + 1)):
        data = chance.choice(_HARMS)(chance, data, seeds)
    return data[:LENGTH_MAX]
