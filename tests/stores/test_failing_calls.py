"""A store whose disk or memory fails at any call: what it promised is there, the rest is refused.

In the manner of SQLite's ioerr and malloc tests (sqlite.org/testing.html §3), one level up.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
MORE = (
    ("read", "lasting"),
    ("sync", "once"),
    ("open", "lasting"),
    ("write", "lasting"),
    ("full", "once"),
    ("full", "lasting"),
)
CALLS_MIN = {"read": 5, "write": 40, "full": 40, "sync": 5, "open": 2, "memory": 300}
"""Fewer were failed: they would not be SQLite's."""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    compiler = shutil.which("cc")
    assert compiler is not None, "Rust needs a C compiler as well"
    made = tmp_path_factory.mktemp("library") / "failing_calls.so"
    source = HERE / "failing_calls.c"
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", made, source, "-ldl"], check=True)
    return made


def swept(library: Path, folder: Path, kind: str, how: str, stride: int) -> None:
    command = [sys.executable, str(HERE / "store_sweep.py"), str(folder), kind, how, str(stride)]
    paths = os.pathsep.join([str(HERE), str(HERE.parent)])
    done = subprocess.run(
        command,
        env={**os.environ, "LD_PRELOAD": str(library), "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    found = json.loads(done.stdout)
    assert found["wrong"] == []
    assert found["tried"] >= CALLS_MIN[kind] / stride


@pytest.mark.parametrize(
    ("kind", "how"),
    [
        *(("read", "once"), ("sync", "lasting"), ("open", "once"), ("write", "once")),
        *(pytest.param(*each, marks=pytest.mark.long) for each in MORE),
    ],
)
def test_any_failing_call_loses_nothing_promised(
    library: Path, tmp_path: Path, kind: str, how: str
) -> None:
    swept(library, tmp_path, kind, how, stride=1)


@pytest.mark.parametrize("how", ["once", "lasting"])
def test_any_failing_allocation_loses_nothing_promised(
    library: Path, tmp_path: Path, how: str
) -> None:
    swept(library, tmp_path, "memory", how, stride=37)


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("how", ["once", "lasting"])
def test_every_failing_allocation_loses_nothing_promised(
    library: Path, tmp_path: Path, how: str
) -> None:
    swept(library, tmp_path, "memory", how, stride=1)
