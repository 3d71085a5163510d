"""Leadline's commands on a store of their own, with an engine that knows nothing."""

from __future__ import annotations

import functools
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import leadline
from leadline import app
from leadline.engine import open_engine
from leadline.studies.measurement import run

HERE = Path(sys.argv[1])
"""Where the edited copy lies, and all that is written."""
JOBS = HERE / "jobs"

assert Path(leadline.__file__).is_relative_to(HERE), leadline.__file__


def answer_with(patch: pytest.MonkeyPatch, **added: Any) -> None:
    """Let `measure` ask the engine that knows nothing; `added` goes over its result."""
    program = str(Path(__file__).with_name("answers_alike.py"))
    command = (sys.executable, "-I", program, str(JOBS), json.dumps(added))
    patch.setattr(run, "open_engine", functools.partial(open_engine, command=command))


def said(*arguments: str, code: int = 0) -> str:
    """What a command says."""
    store = ("--store", str(HERE / "store.sqlite"))
    done = CliRunner().invoke(app.app, [*store, *arguments])
    assert done.exit_code == code, (done.output, done.exception)
    # Beside a document on stdout stands what is told of progress.
    return done.stdout if "--json" in arguments and code == 0 else done.output


def last_job() -> dict[str, Any]:
    """The last job on the wire."""
    job: dict[str, Any] = json.loads(JOBS.read_text(encoding="utf-8").splitlines()[-1])
    return job
