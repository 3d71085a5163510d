"""What many tests and commands of one run would each work out again, to the same bits.

A page embeds Vega in one script, and every report and comparison fits a model to its survey; both
take longer than what most tests ask. Whichever process of a run needs one first makes it. The
functions themselves are held by `test_report_html.py` and `test_joint_model.py`.
"""

from __future__ import annotations

import fcntl
import functools
import hashlib
import os
import pickle
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec

FOLDER = "LEADLINE_TEST_RUN"
"""Names the folder that this run of the tests shares among its processes (`conftest.py`)."""

Made = TypeVar("Made")


def once(name: str, make: Callable[[], Made]) -> Made:
    """Return what `make` returned to the first process of this run that asked for `name`."""
    folder = os.environ.get(FOLDER)
    if folder is None:
        return make()
    path = Path(folder) / name
    with path.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not path.exists():
            whole = path.with_suffix(".part")  # a killed command leaves no half of one behind
            whole.write_bytes(pickle.dumps(make()))
            whole.replace(path)
        made: Made = pickle.loads(path.read_bytes())  # noqa: S301 - written by this run
        return made


def share() -> None:
    """Let this process take from the run's folder what it can."""
    from leadline.charts import embedding  # noqa: PLC0415
    from leadline.models import predictor  # noqa: PLC0415 - the server has loaded them

    vega, fit = embedding.vega_bundle.__wrapped__, predictor.MODELS["joint"]

    @functools.cache
    def shared_vega() -> str:
        return once("vega", vega)

    def shared_fit(survey: Any, points: Sequence[Any]) -> Any:
        told = hashlib.sha256(msgspec.json.encode((survey, points))).hexdigest()
        return once(f"joint-{told}", lambda: fit(survey, points))

    vars(embedding)["vega_bundle"] = shared_vega
    predictor.MODELS["joint"] = shared_fit
