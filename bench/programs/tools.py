"""Programs of a Unix system: sort, tar, grep, a compiler."""

from __future__ import annotations

import shutil
from functools import partial
from pathlib import Path

import numpy as np

from programs.program import MIB, Program, Unavailable

LINE = 64
TREE_FOLDERS, TREE_FILES = 40, 50
"""Folders, and files in each: of 4 to 200 KiB, as source trees with some data among them."""
C_FILES = 12


def _needs(command: str) -> None:
    if shutil.which(command) is None:
        raise Unavailable(f"there is no {command} here: apt-get install {command}")


def _lines(folder: Path, mib: int) -> None:
    """Write random lines of 64 bytes."""
    _needs("sort")
    draw = np.random.default_rng(7)
    with (folder / "lines").open("wb") as out:
        for _ in range(mib):
            text = draw.bytes(MIB // 2).hex().encode()
            out.write(b"\n".join(text[at : at + LINE - 1] for at in range(0, len(text), LINE)))
            out.write(b"\n")


def _tree(folder: Path) -> None:
    """Write a tree of files."""
    for command in ("tar", "grep"):
        _needs(command)
    draw = np.random.default_rng(11)
    for number in range(TREE_FOLDERS):
        place = folder / "tree" / f"folder{number}"
        place.mkdir(parents=True)
        for each in range(TREE_FILES):
            size = int(4096 * 50 ** draw.random())
            (place / f"file{each}").write_bytes(draw.bytes(size // 2).hex().encode())


def _archive(folder: Path) -> None:
    _tree(folder)
    shutil.make_archive(str(folder / "archive"), "tar", folder, "tree")
    shutil.rmtree(folder / "tree")


def _sources(folder: Path) -> None:
    """Write files of C."""
    _needs("cc")
    body = "\n".join(f'int f{n}(int x) {{ return printf("%d", x * {n}); }}' for n in range(200))
    for number in range(C_FILES):
        text = f"#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n{body}\n"
        (folder / f"c{number}.c").write_text(text, encoding="ascii")


def _without(folder: Path, *names: str) -> None:
    for name in names:
        for path in folder.glob(name):
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink()


TOOLS = (
    Program(
        "sort",
        partial(_lines, mib=96),
        "sort -S 16M -T . -o sorted lines",
        lambda folder: _without(folder, "sorted"),
    ),
    Program("tar", _tree, "tar -cf out.tar tree", lambda folder: _without(folder, "out.tar")),
    Program("untar", _archive, "tar -xf archive.tar", lambda folder: _without(folder, "tree")),
    Program("grep", _tree, "grep -r needle tree || true"),
    Program(
        "compile",
        _sources,
        "for each in c*.c; do cc -O1 -c $each -o ${each%.c}.o || exit 1; done",
        lambda folder: _without(folder, "*.o"),
    ),
)
